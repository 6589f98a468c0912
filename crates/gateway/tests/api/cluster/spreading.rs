//! Changes on one node, and their propagation to the others.

use portcullis_testkit::{CLIENT_SECRET, Condition};

use super::{PUBLIC, trio};
use crate::{
    prelude::*,
    v1::connect::{USER, code_on, come_back, connect, text},
};

/// Calls by way of each node.
const CALLS: usize = 30;

/// Waits until a node does not accept the token any more.
async fn refused(node: &Gateway, who: &Principal) {
    until(|| node.get(who, "/v1/mcps"), |answer| answer.status == 401).await;
}

/// A request of an identity provider to a node, and the member `id` of its answer.
async fn scim(node: &Gateway, who: &Principal, method: Method, path: &str, body: Value) -> Value {
    let request = node.request_of(who, method, &format!("/scim/v2/Users{path}"));
    let request = request.header("content-type", "application/scim+json").body(body.to_string());
    let answer = node.send(request).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    answer.at("/id").clone()
}

/// A person whom an identity provider made at a node, with a token of the operator.
async fn provisioned(node: &Gateway, provider: &Principal, name: &str) -> Principal {
    let user = json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": format!("{name}@acme.example"), "externalId": name, "active": true,
    });
    let id = scim(node, provider, Method::POST, "", user).await.as_str().unwrap().to_owned();
    let made = node.admin(&["token", "create", "--principal", &id, "--scopes", "mcps:read"]);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    Principal { org: provider.org.clone(), id, token_id: text("id"), token: text("token") }
}

/// Deactivates a person at a node.
async fn deactivate(node: &Gateway, provider: &Principal, person: &Principal) {
    let off = json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        "Operations": [{"op": "replace", "value": {"active": false}}],
    });
    scim(node, provider, Method::PATCH, &format!("/{}", person.id), off).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_is_known_everywhere_also_if_pushes_are_lost() {
    let Some(trio) = trio("revoked", |builder| builder).await else { return };
    let [a, b, c] = &trio.nodes;
    let org = a.org("acme", &ENOUGH);
    let pushed = a.user(&org, "member", "mcps:read");
    let lost = a.user(&org, "auditor", "mcps:read");
    let provider = a.service(&org, "scim");
    let leaver = provisioned(a, &provider, "leaver").await;
    let unheard = provisioned(a, &provider, "unheard").await;
    for node in &trio.nodes {
        for who in [&pushed, &lost, &leaver, &unheard] {
            assert_eq!(node.get(who, "/v1/mcps").await.status, 200);
        }
    }

    a.delete(&pushed, "/v1/auth/token").await.ok();
    assert_eq!(a.get(&pushed, "/v1/mcps").await.code(), "token_revoked", "here at once");
    tokio::join!(refused(b, &pushed), refused(c, &pushed));
    deactivate(b, &provider, &leaver).await;
    assert_eq!(b.get(&leaver, "/v1/mcps").await.code(), "token_revoked", "there at once");
    tokio::join!(refused(a, &leaver), refused(c, &leaver));

    // No pushes any more.
    let drop = "DROP TRIGGER tokens_push ON tokens";
    trio.sql(drop);
    for node in [b, c] {
        assert_eq!(node.get(&lost, "/v1/mcps").await.status, 200);
    }
    a.delete(&lost, "/v1/auth/token").await.ok();
    deactivate(a, &provider, &unheard).await;
    let begun = Instant::now();
    tokio::join!(refused(b, &lost), refused(c, &lost), refused(b, &unheard), refused(c, &unheard));
    // The promise is five; the rest is for the machine.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_from_the_store_trusts_nothing_for_longer_than_five_seconds() {
    let Some(trio) = trio("cutoff", |builder| builder).await else { return };
    let [a, _, c] = &trio.nodes;
    let who = a.user(&a.org("acme", &ENOUGH), "member", "mcps:read");

    for condition in [Condition::Cut, Condition::Frozen] {
        until(|| c.get(&who, "/v1/mcps"), |answer| answer.status == 200).await;
        trio.wires[2].set(condition);
        let begun = Instant::now();
        let mut last_trusted = Duration::ZERO;
        let refused = eventually("a refusal", async || {
            let asked = begun.elapsed();
            let answer = c.get(&who, "/v1/mcps").await;
            if answer.status == 503 {
                return Some(answer);
            }
            assert_eq!(answer.status, 200, "{}", answer.text);
            last_trusted = asked;
            None
        })
        .await;
        // The promise is five; the rest is for the machine.
        assert!(last_trusted < Duration::from_secs(8), "{condition:?}: {last_trusted:?}");
        assert_eq!(refused.at("/error/details/reason"), "store", "{condition:?}");
        until(|| c.get(&who, "/readyz"), |answer| answer.status == 503).await;
        // Refused while nothing comes over the wire: no client is kept waiting for it.
        for _ in 0..5 {
            assert_eq!(c.get(&who, "/v1/mcps").await.status, 503);
        }
        assert_eq!(a.get(&who, "/v1/mcps").await.status, 200, "the others go on");
        trio.wires[2].set(Condition::Whole);
    }
    until(|| c.get(&who, "/v1/mcps"), |answer| answer.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connect_begun_on_one_node_comes_back_to_another_and_is_confirmed_on_a_third() {
    let saas = Saas::start(Habits { expires_in: Some(3600), ..Habits::default() }).await;
    let Some(trio) = trio("connect", |builder| {
        builder.env("SAAS_SECRET", CLIENT_SECRET).http("saas", &saas.mcp(), &saas.oauth())
    })
    .await
    else {
        return;
    };
    let [a, b, c] = &trio.nodes;
    let who = a.user(&a.org("acme", &ENOUGH), "member", USER);
    for node in &trio.nodes {
        let before = node.invoke(&who, "saas:whoami", json!({})).await;
        assert_eq!(before.code(), "not_found", "remembered by every node");
    }

    let begun = connect(a, &who, "saas", &json!({})).await;
    let back = saas.consent(&text(&begun, "/data/authorization_url"), "octocat").await;
    // A load balancer sends the browser anywhere.
    let elsewhere = back.replace(PUBLIC, b.url());
    assert_ne!(back, elsewhere);
    let page = come_back(&elsewhere).await.text().await.unwrap();
    connect(c, &who, "saas", &json!({ "confirm": code_on(&page) })).await.ok();
    for node in &trio.nodes {
        let call =
            until(|| node.invoke(&who, "saas:whoami", json!({})), |answer| answer.status == 200);
        assert_eq!(call.await.at("/result/account"), "octocat");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_spreads_with_its_files_and_events_tell_which_set_decided() {
    let Some(trio) = trio("policies", Builder::sample).await else { return };
    let who = trio.nodes[0].service(&trio.nodes[0].org("acme", &ENOUGH), ALL_SCOPES);
    let note = json!({"title": "a", "text": "b"});
    let call = async |node: &Gateway| node.invoke(&who, "sample:create_note", note.clone()).await;
    let decided_by = async |node: &Gateway, answer: &Answer| {
        let event = node.get(&who, &format!("/v1/audit/events/{}", answer.event_id())).await;
        text(&event, "/data/governance/policy_set")
    };
    let before = call(&trio.nodes[0]).await;
    let old = decided_by(&trio.nodes[1], &before).await;

    trio.common.policies("@id(\"closed\") @reason(\"r\") forbid (principal, action, resource);");
    for node in &trio.nodes {
        let denied = until(|| call(node), |answer| answer.status == 403).await;
        assert_eq!(denied.at("/error/details/policy"), "closed");
        assert_ne!(decided_by(&trio.nodes[0], &denied).await, old);
    }
}

/// Ids of calls as a node lists them over pages, from the first page to the last one of now.
async fn listed(node: &Gateway, who: &Principal, query: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/audit/events?type=mcp.invocation&{query}{cursor}");
        let page = node.get(who, &path).await.ok();
        ids.extend(members(&page, "id").into_iter().map(str::to_owned));
        match page.at("/meta/pagination/next_cursor").as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_every_node_skip_and_repeat_nothing_while_all_of_them_record() {
    let Some(trio) = trio("lists", Builder::sample).await else { return };
    let who = trio.nodes[0].service(&trio.nodes[0].org("acme", &ENOUGH), ALL_SCOPES);
    let calls = trio.nodes.iter().map(async |node| {
        for _ in 0..CALLS {
            node.invoke(&who, "sample:list_items", json!({"limit": 1})).await.ok();
        }
    });
    let orders = ["order=asc&limit=1", "order=asc&limit=7", "order=desc&limit=5"];
    let walks = trio.nodes.iter().zip(orders).map(async |(node, query)| {
        let mut walks = vec![Vec::new()];
        while walks.last().is_some_and(|walk| walk.len() < 3 * CALLS) {
            walks.push(listed(node, &who, query).await);
        }
        walks
    });

    let (_, walks) = tokio::join!(join_all(calls), join_all(walks));

    let all = listed(&trio.nodes[0], &who, "order=asc&limit=200").await;
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 3 * CALLS);
    let is_part = |walk: &Vec<String>| (1..3 * CALLS).contains(&walk.len());
    assert!(walks.iter().flatten().any(is_part), "nothing was listed meanwhile");
    for (walks, query) in walks.into_iter().zip(orders) {
        for mut walk in walks {
            // What was the newest then is somewhere; what lies before it is all there.
            if query.contains("desc") {
                walk.reverse();
            }
            assert!(all.starts_with(&walk), "{query}: {walk:?}");
        }
    }
}
