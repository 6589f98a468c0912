//! Drafts of policies and proofs of events in the console: `GET /console/workbench`,
//! `POST /console/workbench`, `GET /console/events/{id}/proof`.

use super::{Site, hidden, link};

const DRAFT: &str = "@id(\"no-reads\") @reason(\"Reads are <b>closed</b>\")\n\
    forbid (principal, action == Mcp::Action::\"up:read\", resource);";

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_checked_simulated_replayed_and_downloaded_and_decides_nothing() {
    let site = Site::start().await;
    let admin = site.browser("Ada", "admin").await;
    let member = site.browser("Mia", "member").await;
    let token = hidden(&admin.open("/console/workbench").await, "form_token");
    let stolen = hidden(&member.open("/console/sessions").await, "form_token");
    let call = [("form_token", &*token), ("raw", "{}")];
    admin.submit("/console/tools/up%3Aread", &call).await;
    let wrong = format!("{DRAFT}\nforbid (principal, action, resource) when {{ nonsense }};");

    for (ask, source, expected) in [
        ("check", DRAFT, "The draft loads."),
        ("check", "", "The draft loads."),
        ("check", &*wrong, "id=\"line-3\" class=\"wrong\""),
        ("simulate", DRAFT, "no-reads"),
        ("replay", DRAFT, "<strong>1 newly denied</strong>"),
        ("replay", DRAFT, "href=\"/console/events/evt_"),
        ("replay", &*wrong, "role=\"alert\""),
        ("download", DRAFT, DRAFT),
    ] {
        let fields = [
            ("form_token", &*token),
            ("ask", ask),
            ("source", source),
            ("tool", "up:read"),
            ("input", "{}"),
            ("calls", "100"),
        ];
        let page = admin.submit("/console/workbench", &fields).await;

        assert_eq!(page.status, 200, "{ask}: {}", page.text);
        assert!(page.text.contains(expected), "{ask} {source}: {}", page.text);
        let is_file = page.headers.contains_key("content-disposition");
        assert_eq!(is_file, ask == "download", "{ask}");
        assert!(is_file || !page.text.contains("<b>closed"), "{ask}: {}", page.text);
    }
    let recorded = admin.open("/console/events?type=policy.simulated").await;
    let times = recorded.text.matches("href=\"/console/events/evt_").count();
    for source in [DRAFT, &wrong, ""] {
        let fields = [("form_token", &*token), ("ask", "check"), ("source", source)];
        admin.submit("/console/workbench", &fields).await;
    }
    let again = admin.open("/console/events?type=policy.simulated").await;
    assert!(times > 0, "{}", recorded.text);
    let same = again.text.matches("href=\"/console/events/evt_").count();
    assert_eq!(same, times, "a check while somebody types is no event");
    let tool_page = admin.open("/console/tools/up%3Aread").await;
    let path = link(&tool_page, "/console/workbench?tool=");
    assert!(admin.open(&path).await.text.contains("name=\"tool\" value=\"up:read\""), "{path}");
    let shown = member.open("/console/tools/up%3Aread").await;
    assert!(!shown.text.contains("/console/workbench"), "{}", shown.text);
    let fields = [("form_token", &*stolen), ("source", DRAFT)];
    assert_eq!(member.submit("/console/workbench", &fields).await.status, 403);
    let fields = [("form_token", "AAAA"), ("source", DRAFT)];
    assert_eq!(admin.submit("/console/workbench", &fields).await.status, 400);
    admin.submit("/console/tools/up%3Aread", &call).await;
    assert_eq!(site.upstream.calls().len(), 2, "no draft is in force");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_page_holds_what_its_proof_is_checked_with() {
    let site = Site::start().await;
    let admin = site.browser("Ada", "admin").await;
    let other = site.browser("Mia", "member").await;
    let token = hidden(&admin.open("/console/tools/up%3Aread").await, "form_token");
    let call = [("form_token", &*token), ("raw", "{\"text\": \"\u{202e}<b>\"}")];
    let path = link(&admin.submit("/console/tools/up%3Aread", &call).await, "/console/events/evt_");

    let proof = admin.open(&format!("{path}/proof")).await;
    let page = admin.open(&path).await;

    assert_eq!(proof.status, 200, "{}", proof.text);
    assert!(proof.text.starts_with("c2sp.org/tlog-proof@v1\nindex "), "{}", proof.text);
    assert!(page.text.contains(&format!("data-proof=\"{path}/proof\"")), "{}", page.text);
    let (_, rest) = page.text.split_once("data-leaf=\"").expect("a leaf");
    let (leaf, _) = rest.split_once('"').unwrap();
    assert!(leaf.contains("commitments") && !leaf.contains("detached"), "{leaf}");
    assert!(page.text.contains("/console/assets/proof.js"), "{}", page.text);
    assert_eq!(other.open(&format!("{path}/proof")).await.status, 404);
}
