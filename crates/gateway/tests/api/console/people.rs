//! People, tokens and connections run from pages: `POST /console/people`, `POST /console/people/{id}`,
//! `POST /console/tokens`, `POST /console/providers/connect`, `GET /console/providers/{slug}/connected`,
//! `POST /console/providers/{id}/refresh`, `POST /console/providers/{id}/disconnect`.

use super::{Site, hidden, link_of_action};

#[tokio::test(flavor = "multi_thread")]
async fn admins_make_change_and_disable_principals_and_make_tokens_shown_once() {
    let site = Site::start().await;
    let admin = site.browser("Ada", "admin").await;
    let member = site.browser("Mia", "member").await;
    let token = hidden(&admin.open("/console/people").await, "form_token");
    let stolen = hidden(&member.open("/console/sessions").await, "form_token");

    let account = [
        ("form_token", &*token),
        ("kind", "service"),
        ("name", "nightly <b>"),
        ("scopes", "mcps:read"),
        ("groups", "build, ops"),
    ];
    let made = admin.submit("/console/people", &account).await;
    assert_eq!(made.status, 303, "{}", made.text);
    let list = admin.open("/console/people?role=service").await;
    assert!(list.text.contains("nightly") && !list.text.contains("nightly <b>"), "{}", list.text);
    assert!(list.text.contains("build, ops"), "{}", list.text);
    let found = admin.open("/console/people?q=NIGHT").await;
    assert!(found.text.contains("build, ops") && !found.text.contains(">Mia<"), "{}", found.text);
    assert!(found.text.contains("name=\"q\" value=\"NIGHT\""), "{}", found.text);
    let path = link_of_action(&list, "/console/people/sa_");
    let id = path.rsplit('/').next().unwrap().to_owned();

    // By the name of the account; below by its id.
    let asked = [("form_token", &*token), ("principal_id", "nightly <b>"), ("days", "1")];
    let shown = admin.submit("/console/tokens", &asked).await.ok();
    assert!(shown.text.contains("<pre id=\"token\">svc_live_"), "{}", shown.text);
    assert_eq!(shown.headers["cache-control"], "no-store");
    let tokens = admin.open("/console/tokens").await;
    assert!(
        tokens.text.contains("nightly") && !tokens.text.contains("svc_live_"),
        "{}",
        tokens.text
    );
    assert!(admin.open("/console/tokens?q=night").await.text.contains("tok_"));
    for page in ["tokens", "sessions", "clients"] {
        let none = admin.open(&format!("/console/{page}?q=nobody")).await.ok();
        assert!(none.text.contains("Nothing on this page fits the search."), "{}", none.text);
    }
    let wrong = [("form_token", &*token), ("principal_id", &*id), ("days", "soon")];
    let refused = admin.submit("/console/tokens", &wrong).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    for kept in
        [&*format!("value=\"{id}\""), "value=\"soon\"", "<small class=\"error\" id=\"wrong-days\">"]
    {
        assert!(refused.text.contains(kept), "{kept}: {}", refused.text);
    }
    let again = admin.submit("/console/people", &account).await;
    assert_eq!(again.status, 409, "{}", again.text);
    assert!(again.text.contains("value=\"build, ops\""), "{}", again.text);

    let disable = [("form_token", &*token), ("disabled", "true")];
    assert_eq!(admin.submit(&path, &disable).await.status, 303);
    let off = admin.open("/console/people?disabled=true").await;
    assert!(off.text.contains(&id) && off.text.contains("Enable"), "{}", off.text);

    for (path, fields) in [
        ("/console/people", vec![("form_token", &*stolen), ("name", "x"), ("kind", "user")]),
        (&*path, vec![("form_token", &*stolen), ("disabled", "false")]),
        ("/console/tokens", vec![("form_token", &*stolen), ("principal_id", &*id)]),
    ] {
        assert_eq!(member.submit(path, &fields).await.status, 403, "{path}");
        assert_eq!(admin.submit(path, &[("form_token", "AAAA")]).await.status, 400, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_comes_back_connects_nothing_before_its_button() {
    let site = Site::start().await;
    let admin = site.browser("Ada", "admin").await;

    let back = "/console/providers/up/connected?owner=org&provider_id=prv_x&confirm=K7QX-2M9P";
    let page = admin.open(back).await.ok();
    assert_eq!(hidden(&page, "confirm"), "K7QX-2M9P");
    assert!(page.text.contains("Confirm for the org"), "{}", page.text);
    let token = hidden(&page, "form_token");
    let failed = admin.open("/console/providers/up/connected?error=access_denied").await;
    assert!(failed.text.contains("access_denied"), "{}", failed.text);
    assert!(!failed.text.contains("name=\"confirm\""), "{}", failed.text);

    let unknown = [("form_token", &*token), ("slug", "none"), ("owner", "org")];
    let unknown = admin.submit("/console/providers/connect", &unknown).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text);
    assert!(unknown.text.contains("role=\"alert\""), "{}", unknown.text);
    for action in ["refresh", "disconnect"] {
        let path = format!("/console/providers/prv_x/{action}");
        assert_eq!(admin.submit(&path, &[("form_token", &token)]).await.status, 404, "{path}");
        assert_eq!(admin.submit(&path, &[("form_token", "AAAA")]).await.status, 400, "{path}");
    }
}
