//! DLP in the console: `GET /console/dlp`, `POST /console/dlp`.

use super::{Site, hidden};

const TOKEN: &str = concat!("ghp_", "F4k3F4k3abcdefghijklmnopqrst01234567");

#[tokio::test(flavor = "multi_thread")]
async fn a_pasted_text_is_shown_with_findings_and_masks_up_to_a_size() {
    // A pasted text is shown with findings and masks and is in no event.
    let site = Site::start().await;
    let admin = site.browser("Ada", "admin").await;
    let member = site.browser("Mia", "member").await;
    let token = hidden(&admin.open("/console/dlp").await, "form_token");
    let stolen = hidden(&member.open("/console/sessions").await, "form_token");
    let hostile = format!("<script>alert(1)</script> {TOKEN} \u{202e}end");
    let in_json = format!("{{\"a\": [\"{TOKEN}\"]}}");

    for (kind, direction, text, expected) in [
        ("text", "output", &*hostile, "[REDACTED:github_token]"),
        ("text", "input", &*hostile, "A call with these arguments is refused."),
        ("json", "output", &*in_json, "<code>/a/0</code>"),
        ("text", "output", "nothing here", "Nothing was found."),
        ("json", "output", "{\"a\": ", "The text is no JSON"),
        ("text", "output", "", "There is nothing to scan"),
    ] {
        let fields =
            [("form_token", &*token), ("kind", kind), ("direction", direction), ("text", text)];
        let page = admin.submit("/console/dlp", &fields).await;

        assert_eq!(page.status, 200, "{}", page.text);
        assert!(page.text.contains(expected), "{kind} {text}: {}", page.text);
        assert!(!page.text.contains("<script>alert"), "{}", page.text);
        let (_, below) = page.text.rsplit_once("</form>").unwrap();
        assert!(!below.contains(TOKEN) && !below.contains('\u{202e}'), "{below}");
    }
    let events = admin.open("/console/events").await;
    assert!(!events.text.contains(TOKEN) && !events.text.contains("dlp.scan"), "{}", events.text);
    let fields = [("form_token", "AAAA"), ("text", "x")];
    assert_eq!(admin.submit("/console/dlp", &fields).await.status, 400);
    let fields = [("form_token", &*stolen), ("text", TOKEN)];
    assert_eq!(member.submit("/console/dlp", &fields).await.status, 403);

    // A text that is too large is refused on a page.
    let crowded = format!("{TOKEN} ").repeat(500);
    let many = format!("[{}1]", format!("\"{TOKEN}\",").repeat(500));
    let large = "x".repeat(1 << 20);

    let fields = |kind, text| [("form_token", &*token), ("kind", kind), ("text", text)];
    let refused = admin.submit("/console/dlp", &fields("text", &large)).await;
    let full = admin.submit("/console/dlp", &fields("text", &crowded)).await;
    let listed = admin.submit("/console/dlp", &fields("json", &many)).await;

    assert_eq!(refused.status, 413, "{}", refused.text);
    assert!(refused.text.contains("role=\"alert\""), "a page says it: {}", refused.text);
    assert!(refused.text.len() < 64 << 10, "the text does not come back");
    assert!(full.text.contains("[REDACTED:github_token]"), "{}", full.text);
    assert!(listed.text.contains("300 more findings are not listed"), "{}", listed.text);
}
