//! `portcullis audit reindex` makes nothing of records that are not those of the log, and goes on.

use super::{forge, invoke, live, logged, reindex, rewrite, size};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_of_a_record_that_is_not_the_one_of_the_log() {
    let (gateway, who) = logged(2).await;
    let id = invoke(&gateway, &who).await;
    assert!(size(&gateway, &who).await > 2);
    rewrite(&gateway, &id, |texts| {
        texts.core = texts.core.replace("\"decision\":\"allow\"", "\"decision\":\"deny\"");
    });

    reindex(&gateway, &[], 10, "NOT those of the log").await;

    let kept = gateway.ask(&format!("SELECT decision FROM audit_events WHERE id = '{id}'"));
    assert_eq!(kept, "allow");
    live(&gateway, &[], 10, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_of_a_record_that_was_forged_up_to_the_tile_of_its_leaf() {
    let (gateway, who) = logged(2).await;
    let id = invoke(&gateway, &who).await;
    assert!(size(&gateway, &who).await > 2);
    forge(&gateway, &who.org, &id, |texts| {
        texts.core = texts.core.replace("\"decision\":\"allow\"", "\"decision\":\"deny\"");
    });

    reindex(&gateway, &[], 10, "NOT those of the log").await;

    let kept = gateway.ask(&format!("SELECT decision FROM audit_events WHERE id = '{id}'"));
    assert_eq!(kept, "allow");
    live(&gateway, &[], 10, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_is_named_and_others_are_looked_at() {
    let (gateway, who) = logged(2).await;
    if !gateway.database_url().starts_with("sqlite:") {
        return;
    }
    let damaged = invoke(&gateway, &who).await;
    let id = invoke(&gateway, &who).await;
    assert!(size(&gateway, &who).await > 3);
    let target =
        format!("UPDATE audit_events SET target = CAST(x'ff' AS TEXT) WHERE id = '{damaged}'");
    gateway.tamper(&target);
    gateway.tamper(&format!("UPDATE audit_events SET decision = 'deny' WHERE id = '{id}'"));

    let found = reindex(&gateway, &[], 10, "1 records are NOT those of the log").await;

    assert!(found.contains(&id), "{found}");
    let kept = gateway.ask(&format!("SELECT decision FROM audit_events WHERE id = '{id}'"));
    assert_eq!(kept, "allow");
    live(&gateway, &[], 10, "cannot be read").await;
}
