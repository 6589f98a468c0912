//! Proofs of possession (DPoP, RFC 9449), each of which is used once on all nodes.

use super::{PUBLIC, trio};
use crate::{
    oauth::{
        dpop::{Prover, claims_of, tools},
        grants::with,
    },
    prelude::*,
};

/// `GET /v1/mcps` with a new proof that was made with this nonce.
async fn with_nonce(node: &Gateway, key: &Prover, token: &str, nonce: &str) -> (Answer, String) {
    let claims = claims_of("GET", &format!("{PUBLIC}/v1/mcps"), token);
    let proof = key.sign(&key.header(), &with(claims, &json!({ "nonce": nonce })));
    (tools(node, "DPoP", token, &[&proof]).await, proof)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_is_used_on_one_node_only_whatever_its_nonce() {
    let Some(trio) = trio("proofs", Builder::sample).await else { return };
    let [a, b, c] = &trio.nodes;
    let key = Prover::new();
    let org = a.org("acme", &ENOUGH);
    let ci = a.service(&org, "mcps:read mcps:invoke");
    let jwk = key.jwk().to_string();
    let made = a.admin(&["token", "create", "--principal", &ci.id, "--dpop-key", &jwk]);
    let token = made["token"].as_str().unwrap();

    // Without a nonce, on all nodes at once.
    let bare = || key.proof_of("GET", &format!("{PUBLIC}/v1/mcps"), token);
    let proof = bare();
    let proofs = [proof.as_str()];
    let race = trio.nodes.iter().map(|node| tools(node, "DPoP", token, &proofs));
    let race = join_all(race).await;
    let used: Vec<&Answer> = race.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(used.len(), 1, "{race:?}");

    // A nonce of one node is good there alone.
    let first = tools(a, "DPoP", token, &[&bare()]).await;
    let own = first.header("dpop-nonce").to_owned();
    let (elsewhere, proof) = with_nonce(b, &key, token, &own).await;
    assert_eq!(elsewhere.refusal(), (401, "use_dpop_nonce"));
    assert_eq!(tools(a, "DPoP", token, &[&proof]).await.status, 200);
    for node in [a, b, c] {
        assert_eq!(tools(node, "DPoP", token, &[&proof]).await.status, 401);
    }

    // The nonce that another node gives then is good on all.
    let shared = elsewhere.header("dpop-nonce").to_owned();
    let (answer, proof) = with_nonce(c, &key, token, &shared).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!answer.headers.contains_key("dpop-nonce"), "it stays with the shared one");
    for node in [a, b, c] {
        has!(tools(node, "DPoP", token, &[&proof]).await, "/error/details/check": "replay");
        assert_eq!(with_nonce(node, &key, token, &shared).await.0.status, 200);
    }
}
