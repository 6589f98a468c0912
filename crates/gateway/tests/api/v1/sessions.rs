//! `GET /v1/sessions`, `DELETE /v1/sessions/{id}`, and `portcullis session`.

use crate::{login::Site, prelude::*};

/// A token of Ana with these scopes.
fn token_of_ana(site: &Site) -> Principal {
    let made = site.gateway.admin(&["token", "create", "--principal", &site.ana]);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    Principal {
        org: site.org.clone(),
        id: site.ana.clone(),
        token_id: text("id"),
        token: text("token"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_list_and_end_their_own_sessions_and_admins_those_of_the_org() {
    let site = Site::start();
    let [one, two] = [site.browser().await, site.browser().await];
    let ana = token_of_ana(&site);
    let bo = site.gateway.user(&site.org, "member", "mcps:read");
    let admin = site.gateway.user(&site.org, "admin", "admin");
    let stranger = site.gateway.user(&site.gateway.org("other", &[]), "admin", "admin");

    let own = site.gateway.get(&ana, "/v1/sessions").await;
    let all = site.gateway.get(&admin, "/v1/sessions?limit=1").await;

    assert_eq!(items(&own).len(), 2);
    assert_eq!(members(&own, "method"), ["operator", "operator"]);
    assert_eq!(members(&own, "principal_id"), [site.ana.as_str(); 2]);
    assert_eq!(members(&own, "principal_name"), ["Ana <b>"; 2]);
    assert_eq!(items(&all).len(), 1);
    assert!(all.at("/meta/pagination/next_cursor").is_string(), "{}", all.text);
    for nobody in [&bo, &stranger] {
        assert_eq!(items(&site.gateway.get(nobody, "/v1/sessions").await), &Vec::<Value>::new());
    }
    let of_ana = format!("/v1/sessions?principal={}", site.ana);
    has!(site.gateway.get(&bo, &of_ana).await, 403 "insufficient_scope");
    assert_eq!(items(&site.gateway.get(&admin, &of_ana).await).len(), 2);
    assert_eq!(items(&site.gateway.get(&admin, "/v1/sessions?q=an").await).len(), 2);
    assert_eq!(items(&site.gateway.get(&ana, "/v1/sessions?q=adm").await).len(), 0);
    let ids = members(&own, "id");
    let path = |at: usize| format!("/v1/sessions/{}", ids[at]);
    for nobody in [&bo, &stranger] {
        assert_eq!(site.gateway.delete(nobody, &path(0)).await.refusal(), (404, "not_found"));
    }
    assert_eq!(site.gateway.delete(&ana, &path(0)).await.ok().at("/data/id"), ids[0]);
    assert_eq!(site.gateway.delete(&ana, &path(0)).await.refusal(), (404, "not_found"));
    site.gateway.delete(&admin, &path(1)).await.ok();
    for browser in [&one, &two] {
        assert!(!browser.open("/login").await.ok().text.contains("Signed in"));
    }
    assert_eq!(items(&site.gateway.get(&admin, "/v1/sessions").await).len(), 0);
    assert_eq!(site.events("session.ended", 2).await.len(), 2);
    for wrong in ["ses_", "tok_01M754BKTKX1YB8Q05NMW9TP4G", "%ff"] {
        let path = format!("/v1/sessions/{wrong}");
        assert_eq!(site.gateway.delete(&admin, &path).await.refusal(), (404, "not_found"));
    }
    has!(site.gateway.get(&admin, "/v1/sessions?principal=x").await, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_ended_at_the_shell_and_not_by_a_token_that_was_handed_on() {
    // The operator lists and ends sessions at the shell.
    let site = Site::start();
    let browser = site.browser().await;

    let listed = site.gateway.admin(&["session", "list", "--principal", &site.ana]);
    let id = listed[0]["id"].as_str().unwrap();
    site.gateway.admin(&["session", "end", id]);

    assert_eq!(listed[0]["principal_id"], site.ana.as_str());
    until(|| browser.open("/login"), |page| !page.text.contains("Signed in")).await;
    assert_eq!(site.gateway.admin(&["session", "list"]), json!([]));
    assert_fails(&site.gateway, &["session", "end", id], 1, "no session `ses_").await;
    assert_eq!(site.events("session.ended", 1).await[0]["actor"]["auth"]["method"], "operator");
    let unknown =
        site.gateway.request(Method::DELETE, "/v1/sessions/ses_01M754BKTKX1YB8Q05NMW9TP4G");
    assert_eq!(site.gateway.send(unknown).await.refusal(), (401, "missing_token"));

    // A token that was handed on neither sees nor ends sessions.
    let browser = site.browser().await;
    let ana = token_of_ana(&site);
    let id = members(&site.gateway.get(&ana, "/v1/sessions").await, "id")[0].to_owned();

    let narrowed = site.gateway.post(&ana, "/v1/auth/token", r#"{"scope": "mcps:read"}"#).await;
    let token = narrowed.ok().at("/data/access_token").as_str().unwrap().to_owned();
    let narrowed = Principal { token, ..ana };

    has!(site.gateway.get(&narrowed, "/v1/sessions").await, 403 "insufficient_scope");
    has!(site.gateway.delete(&narrowed, &format!("/v1/sessions/{id}")).await, 404 "not_found");
    assert!(browser.open("/login").await.ok().text.contains("Signed in"));
}
