//! The authorization server over three nodes on one database: what one of them began is finished on another, and
//! what is good once is good once on all.

use super::{
    client::{Client, Fields, Tokens},
    error,
};
use crate::{
    cluster::{PUBLIC, Trio, trio},
    login::browser::Browser,
    prelude::*,
};

const APP: &str = "https://app.example/cb";

/// Three nodes with an org and a person.
struct Nodes {
    trio: Trio,
    ana: Principal,
}

impl Nodes {
    /// `None` if there is no PostgreSQL.
    async fn start(what: &str) -> Option<Self> {
        let trio = trio(what, |builder| builder.config(super::LINKS).sample()).await?;
        let [first, ..] = &trio.nodes;
        let org = first.org("acme", &ENOUGH);
        let ana = first.user(&org, "member", "mcps:read mcps:invoke");
        for node in &trio.nodes {
            let found = eventually("the sample server", async || {
                let tools = node.get(&ana, "/v1/mcps").await;
                tools.text.contains("list_items").then_some(())
            });
            found.await;
        }
        Some(Self { trio, ana })
    }

    fn node(&self, number: usize) -> &Gateway {
        &self.trio.nodes[number % 3]
    }

    /// The person's browser, signed in at the second node by a link that the first one showed.
    async fn browser(&self) -> Browser<'_> {
        let made = self.node(0).admin(&["login-link", "--principal", &self.ana.id]);
        let url = made["url"].as_str().unwrap();
        let (_, code) = url.split_once("code=").unwrap();
        let browser = Browser::behind(self.node(0), PUBLIC);
        browser.open(&format!("/login/link?code={code}")).await.ok();
        let browser = browser.at(self.node(1));
        browser.submit("/login/link", &[("code", code)]).await.ok();
        browser
    }

    async fn client(&self) -> Client<'_> {
        Client::registered(self.node(2), "App", APP).await
    }

    /// A code: the page comes from the first node, and the third takes what is decided there.
    async fn code(&self, client: &Client<'_>) -> String {
        let browser = self.browser().await;
        let page = client.asks(&browser.at(self.node(0)), &client.request()).await;
        let back = Client::decides(&browser.at(self.node(2)), &page, "allow", false).await;
        super::client::returned(&back)["code"].clone()
    }

    /// The same client, which asks this node.
    fn at<'a>(&'a self, client: &Client<'_>, number: usize) -> Client<'a> {
        let Client { id, redirect_uri, .. } = client.clone();
        Client { gateway: self.node(number), id, redirect_uri }
    }

    /// Answers of the nodes to the same token request, sent to each of them twice at once.
    async fn race(&self, client: &Client<'_>, fields: &Fields) -> Vec<Answer> {
        let race = (0..6).map(async |number| self.at(client, number).token(fields).await);
        join_all(race).await
    }

    /// The answer of a node to a call at `/mcp`.
    async fn call(&self, number: usize, token: &str) -> Answer {
        let who = Principal { token: token.to_owned(), ..self.ana.clone() };
        let params = json!({"name": "sample__list_items", "arguments": {}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.node(number).post(&who, "/mcp", &body.to_string()).await
    }

    /// Waits until no node takes the token any more.
    async fn until_worthless(&self, token: &str) {
        for number in 0..3 {
            eventually("a token that is worth nothing", async || {
                (self.call(number, token).await.status == 401).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_began_is_finished_on_others() {
    let Some(nodes) = Nodes::start("oauth_flow").await else { return };
    let client = nodes.client().await;

    let code = nodes.code(&client).await;
    let second = nodes.at(&client, 1);
    let tokens = Tokens::of(&second.token(&second.exchange(&code)).await);
    let third = nodes.at(&client, 2);
    let refreshed = Tokens::of(&third.token(&third.refresh(&tokens.refresh)).await);

    for number in 0..3 {
        for token in [&tokens.access, &refreshed.access] {
            let called = nodes.call(number, token).await.ok();
            assert!(called.at("/result/structuredContent").is_object(), "{}", called.text);
        }
    }
    let again = nodes.at(&client, 0);
    let again = again.token(&again.exchange(&code)).await;
    assert_eq!(error(&again), (400, "invalid_grant"));
    nodes.until_worthless(&refreshed.access).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_all_nodes_get_at_once_is_used_once() {
    let Some(nodes) = Nodes::start("oauth_code").await else { return };
    let client = nodes.client().await;
    let code = nodes.code(&client).await;

    let answers = nodes.race(&client, &client.exchange(&code)).await;

    let (granted, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 200);
    assert!(granted.len() <= 1, "{answers:?}");
    for answer in refused {
        assert_eq!(error(answer), (400, "invalid_grant"), "{}", answer.text);
    }
    for answer in granted {
        nodes.until_worthless(&Tokens::of(answer).access).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_a_client_that_refresh_at_all_nodes_at_once_get_one_pair() {
    let Some(nodes) = Nodes::start("oauth_refresh").await else { return };
    let client = nodes.client().await;
    let code = nodes.code(&client).await;
    let tokens = Tokens::of(&client.token(&client.exchange(&code)).await);

    let answers = nodes.race(&client, &client.refresh(&tokens.refresh)).await;

    let pairs: Vec<Tokens> = answers.iter().map(Tokens::of).collect();
    assert!(pairs.iter().all(|pair| *pair == pairs[0]), "{pairs:?}");
    for number in 0..3 {
        nodes.call(number, &pairs[0].access).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_at_one_node_is_known_to_the_others() {
    let Some(nodes) = Nodes::start("oauth_revoke").await else { return };
    let client = nodes.client().await;
    let code = nodes.code(&client).await;
    let tokens = Tokens::of(&client.token(&client.exchange(&code)).await);
    for number in 0..3 {
        nodes.call(number, &tokens.access).await.ok();
    }

    let fields =
        Fields::from([("client_id", client.id.clone()), ("token", tokens.refresh.clone())]);
    nodes.at(&client, 0).posts("/oauth/revoke", &fields).await.ok();

    assert_eq!(nodes.call(0, &tokens.access).await.status, 401, "there at once");
    nodes.until_worthless(&tokens.access).await;
    let refreshed = nodes.at(&client, 1);
    let refreshed = refreshed.token(&refreshed.refresh(&tokens.refresh)).await;
    assert_eq!(error(&refreshed), (400, "invalid_grant"));
}
