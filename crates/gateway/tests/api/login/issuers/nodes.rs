//! A login that is begun on one node and finished on another.

use super::{CLIENT, SECRET, entry, person, rule};
use crate::{
    cluster::{Common, PUBLIC},
    login::browser::Browser,
    prelude::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_login_begun_on_one_node_is_finished_on_another_once() {
    let Some(database) = PostgresDatabase::create("login") else { return };
    let common = Common::new();
    let redis = RedisServer::start();
    let oidc = Oidc::start();
    let node = |name: &str| {
        let node = common.node(name, &redis.url()).config(&database.config());
        node.env("LOGIN_SECRET", SECRET).prepare()
    };
    let mut nodes = [node("node-a"), node("node-b")];
    let org = nodes[0].org("acme", &ENOUGH);
    for node in &mut nodes {
        node.configure(&rule(&oidc, &org));
        node.configure(&entry(&oidc, "client_secret = { env = \"LOGIN_SECRET\" }"));
        node.start();
    }
    oidc.client(CLIENT, Some(SECRET), PUBLIC);
    let [one, other] = &nodes;

    let begun = Browser::new(one);
    let sent = begun.open("/login/issuers/acme").await;
    let back = oidc.browse(sent.header("location"), "ana", &person(&json!({})), PUBLIC);
    let path = &back[PUBLIC.len()..];
    let finished = Browser::new(other);
    let (name, sealed) = begun.cookies_of("__Host-portcullis-login-").remove(0);
    finished.plant(&name, &sealed);
    finished.open(path).await.ok();
    has!(begun.open(path).await, 400);

    let session = "__Host-portcullis-session";
    assert!(finished.open("/login").await.ok().text.contains("Signed in"));
    assert!(begun.cookie(session).is_none());
    let first = Browser::new(one);
    first.plant(session, &finished.cookie(session).unwrap());
    assert!(first.open("/login").await.ok().text.contains("Signed in"), "on each node");
}
