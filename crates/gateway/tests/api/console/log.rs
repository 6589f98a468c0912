//! The log in the console: `GET /console/log`, `POST /console/log`, `GET /console/log/checkpoint`,
//! `GET /console/log/exports/{id}/file`.

use super::{Site, hidden, link};

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_shown_compared_and_exported_by_those_who_may() {
    let site = Site::start().await;
    let admin = site.browser("Ada", "admin").await;
    let member = site.browser("Mia", "member").await;

    let page = admin.open("/console/log").await;
    assert!(page.text.contains("Signed note"), "{}", page.text);
    assert!(page.text.contains("portcullis audit verify export.jsonl --key"), "{}", page.text);
    assert!(page.text.contains("Nothing was exported yet"), "{}", page.text);
    let older = admin.open("/console/log/checkpoint?since=1").await.ok();
    assert!(older.text.contains("\"consistency\""), "{}", older.text);
    let beyond = admin.open("/console/log/checkpoint?since=1000000").await;
    assert_eq!(beyond.status, 400, "{}", beyond.text);

    let token = hidden(&page, "form_token");
    let wrong = [("form_token", &*token), ("from", "yesterday")];
    let refused = admin.submit("/console/log", &wrong).await;
    assert!(refused.text.contains("role=\"alert\""), "{}", refused.text);
    let right = [("form_token", &*token), ("format", "jsonl"), ("from", ""), ("to", "")];
    let begun = admin.submit("/console/log", &right).await;
    assert_eq!(begun.status, 303, "{}", begun.text);
    let back = begun.headers["location"].to_str().unwrap().to_owned();
    assert!(back.starts_with("/console/log?export=exp_"), "{back}");
    let ready = crate::given::until(
        || admin.open(&back),
        |page| page.text.contains("data-state=\"ready\""),
    )
    .await;
    let path = link(&ready, "/console/log/exports/exp_");
    let file = admin.open(&path).await.ok();
    assert!(file.text.starts_with('{') && file.text.contains("\"manifest\""), "{}", file.text);

    let stolen = hidden(&member.open("/console/sessions").await, "form_token");
    for path in ["/console/log/checkpoint?since=1", &*path] {
        assert_eq!(member.open(path).await.status, 403, "{path}");
    }
    let foreign = member.submit("/console/log", &[("form_token", &stolen)]).await;
    assert_eq!(foreign.status, 403, "{}", foreign.text);
    let forged = admin.submit("/console/log", &[("form_token", "AAAA")]).await;
    assert_eq!(forged.status, 400, "{}", forged.text);
}
