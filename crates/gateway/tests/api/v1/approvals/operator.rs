//! `portcullis approval`: the operator lists, shows and decides.

use super::{Waiting, types};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_lists_shows_and_decides_what_can_be_decided() {
    // The operator lists shows and decides.
    let it = Waiting::start().await;
    let ana = it.person("ana", &[]).await;
    let wanted = it.ask(&ana, "pay", json!({"amount": 7})).await;
    let unwanted = it.ask(&ana, "pay", json!({"amount": 8})).await;

    let listed = it.gateway.admin(&["approval", "list", "--status", "pending"]);
    let shown = it.gateway.admin(&["approval", "show", &wanted, "--org", "acme"]);
    let reason = ["--reason", "Called her back"];
    let approved = [&["approval", "approve", &wanted][..], &reason].concat();
    let approved = it.gateway.admin(&approved);
    let denied = it.gateway.admin(&["approval", "deny", &unwanted]);

    let ids: Vec<_> = listed.as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, [&json!(unwanted), &json!(wanted)]);
    assert_eq!(listed[1]["approved_by"], "0 of 1");
    assert_eq!(shown["input"], json!({"amount": 7}));
    assert_eq!((&approved["status"], &denied["status"]), (&json!("approved"), &json!("denied")));
    has!(approved, "/decisions/0/name": "operator", "/decisions/0/comment": "Called her back");
    assert_eq!(it.invoke(&ana, "pay", json!({"amount": 7})).await.status, 200);
    assert_eq!(it.invoke(&ana, "pay", json!({"amount": 8})).await.status, 403);
    let events = it.events(&wanted, 3).await;
    assert_eq!(types(&events), ["approval.requested", "approval.granted", "approval.consumed"]);
    assert_eq!(events[1]["actor"]["auth"]["method"], "operator");
    assert_eq!(events[1]["detached"]["approval"]["decisions"][0]["by"], json!(null));

    // The operator is told what cannot be decided.
    let once = it.ask(&ana, "pay", json!({"amount": 7})).await;
    let several = it.ask(&ana, "wire", json!({"amount": 7})).await;
    it.gateway.admin(&["approval", "deny", &once]);
    it.gateway.admin(&["approval", "approve", &several]);
    let unknown = "apr_01M754BKTK9TG1TCT7SPYHDJTD";

    for (command, code, expected) in [
        (&["approval", "show", unknown][..], 1, "no approval `apr_"),
        (&["approval", "approve", unknown], 1, "no approval `apr_"),
        (&["approval", "approve", "x"], 2, "apr_"),
        (&["approval", "approve", &once], 1, "is denied"),
        (&["approval", "approve", &several], 1, "You have decided about"),
        (&["approval", "deny", &several, "--reason", ""], 1, "1 to 1000 characters"),
        (&["approval", "list", "--status", "open"], 2, "pending"),
        (&["approval", "list", "--org", "nobody"], 1, "no org `nobody`"),
    ] {
        assert_fails(&it.gateway, command, code, expected).await;
    }
}
