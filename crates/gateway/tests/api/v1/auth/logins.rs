//! Claims of an issuer at a login, and their effect on policies.

use super::trusting::{AUDIENCE, Trusting, get, list_items, operators, post, text};
use crate::prelude::*;

const POLICIES: &str = r#"@id("staff-eu") permit (principal in Mcp::Group::"staff", action, resource)
when { principal.hasTag("region") && principal.getTag("region").contains("eu") };
@id("admins") permit (principal in Mcp::Role::"admin", action, resource);
@id("notes-need-mfa") @reason("Notes need a second factor")
forbid (principal, action == Mcp::Action::"sample:create_note", resource)
unless { context.request.mfa };"#;

/// The claims of a person of the staff in Europe.
fn staff() -> Wanted {
    claims(&["staff"])
        .claim("region", vec!["eu"])
        .claim("name", "Ana")
        .claim("email", "ana@acme.example")
}

fn claims(groups: &[&str]) -> Wanted {
    let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
    Wanted::new(AUDIENCE).claim("email_verified", true).claim("groups", groups)
}

/// A user who logged in.
struct Person {
    id: String,
    access: String,
    refresh: String,
}

impl Person {
    fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status, 200, "{}", answer.text);
        Self {
            id: text(answer, "/data/principal/id"),
            access: text(answer, "/data/access_token"),
            refresh: text(answer, "/data/refresh_token"),
        }
    }
}

async fn login(it: &Trusting, subject: &str, claims: &Wanted) -> Person {
    let jwt = it.oidc.user_token(subject, claims);
    Person::of(&it.exchange(&jwt, &Value::Null).await)
}

async fn admin(it: &Trusting) -> String {
    let jwt = it.oidc.user_token("root", &claims(&["mcp-admins"]));
    let scope = "admin mcps:read policies:read audit:read";
    let answer = it.exchange(&jwt, &json!({"scope": scope})).await;
    text(&answer, "/data/access_token")
}

async fn note(gateway: &Gateway, token: &str) -> Answer {
    let input = json!({"input": {"title": "a", "text": "b"}});
    post(gateway, "/v1/mcps/sample:create_note/invoke", token, &input).await
}

fn decision(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), text(answer, "/governance/policy"))
}

async fn accesses(gateway: &Gateway, token: &str) -> Vec<Value> {
    let answer = get(gateway, token, "/v1/mcps").await;
    items(&answer).iter().map(|item| item["access"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_know_what_was_said_at_the_login() {
    // Groups are parents claims are tags and a second factor is known.
    let it = Trusting::governed_by(POLICIES);
    let ana = login(&it, "ana", &staff()).await;
    let careful = login(&it, "ana", &staff().claim("amr", vec!["pwd", "mfa"])).await;
    let elsewhere = login(&it, "bo", &claims(&["staff"]).claim("region", "us")).await;
    let outsider = login(&it, "cy", &claims(&["friends"]).claim("region", "eu")).await;
    let gateway = &it.gateway;

    assert_eq!(decision(&list_items(gateway, &ana.access).await), (200, "staff-eu".to_owned()));
    assert_eq!(decision(&note(gateway, &ana.access).await), (403, "notes-need-mfa".to_owned()));
    assert_eq!(decision(&note(gateway, &careful.access).await), (200, "staff-eu".to_owned()));
    for other in [&elsewhere, &outsider] {
        let denied = list_items(gateway, &other.access).await;
        assert_eq!(decision(&denied), (403, "default-deny".to_owned()));
    }
    assert!(accesses(gateway, &ana.access).await.iter().all(|access| access == "conditional"));
    assert!(accesses(gateway, &outsider.access).await.iter().all(|access| access == "deny"));

    // Tokens that come of a login keep what was said at it until the next.
    let refreshed = Person::of(&it.refresh(&ana.refresh).await);
    let narrowed = it.exchange(&refreshed.access, &json!({"scope": "mcps:invoke"})).await;
    let narrowed = text(&narrowed, "/data/access_token");
    let today = login(&it, "ana", &claims(&["friends"])).await;

    for token in [&ana.access, &refreshed.access, &narrowed] {
        assert_eq!(list_items(gateway, token).await.status, 200);
    }
    assert_eq!(list_items(gateway, &today.access).await.status, 403);
    assert_eq!(today.id, ana.id);

    // The actor of a delegation brings none of its own.
    let agent = operators(&it.gateway, &it.agent);
    let delegated = async |subject: &str, claims: &Wanted| {
        let body = json!({"subject_token": it.oidc.user_token(subject, claims)});
        text(&it.exchange(&agent, &body).await, "/data/access_token")
    };

    let of_staff = delegated("ana", &staff()).await;
    let of_outsider = delegated("cy", &claims(&[])).await;

    assert_eq!(list_items(&it.gateway, &of_staff).await.status, 200);
    assert_eq!(list_items(&it.gateway, &of_outsider).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_whose_approvers_nobody_ever_was_warns_the_org() {
    let policies = format!(
        "{POLICIES}\n@id(\"payouts\") @reason(\"r\") \
         @require_approval(\"approvers=staff,finance\") forbid (principal, action, resource);"
    );
    let it = Trusting::governed_by(&policies);
    let root = admin(&it).await;
    let warnings = async |path: &str, pointer: &str| {
        let answer = get(&it.gateway, &root, path).await;
        answer.at(&format!("{pointer}/validation/warnings")).to_string()
    };

    let before = warnings("/v1/policies/payouts", "/data").await;
    login(&it, "ana", &staff()).await;
    let after = warnings("/v1/policies/payouts", "/data").await;
    let listed = warnings("/v1/policies?q=payouts", "/data/items/0").await;

    assert!(before.contains("`staff`") && before.contains("`finance`"), "{before}");
    assert!(!after.contains("`staff`") && after.contains("`finance`"), "{after}");
    assert_eq!(listed, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn simulation_and_events_know_what_policies_read_of_the_claims() {
    // Somebody else is simulated with what was said at the last login.
    let it = Trusting::governed_by(POLICIES);
    let ana = login(&it, "ana", &staff().claim("amr", vec!["mfa"])).await;
    let root = admin(&it).await;
    let ask = async |principal: Value| {
        let body = json!({"tool": "sample:list_items", "input": {}, "principal": principal});
        let answer = post(&it.gateway, "/v1/policies/simulate", &root, &body).await;
        ["decision", "policy"]
            .map(|name| text(&answer, &format!("/data/results/0/{name}")))
            .join(" ")
    };

    assert_eq!(ask(json!({"id": ana.id})).await, "allow staff-eu");
    assert_eq!(ask(json!({"id": ana.id, "groups": []})).await, "deny default-deny");
    assert_eq!(ask(json!({"id": ana.id, "claims": {}})).await, "deny default-deny");
    login(&it, "ana", &claims(&[])).await;
    assert_eq!(ask(json!({"id": ana.id})).await, "deny default-deny");

    // Events keep of the claims what policies read and replay knows no more.
    let ana = login(&it, "ana", &staff().claim("department", "sales")).await;
    let called = list_items(&it.gateway, &ana.access).await;
    let path = format!("/v1/audit/events/{}", called.event_id());

    let event = get(&it.gateway, &root, &path).await;
    let inputs = event.at("/data/detached/decision_inputs");
    let replay = async |tag: &str, value: &str| {
        let policy = format!(
            "@id(\"staff-eu\") permit (principal in Mcp::Group::\"staff\", action, resource) when \
             {{ principal.hasTag(\"{tag}\") && principal.getTag(\"{tag}\").contains(\"{value}\") }};"
        );
        let body = json!({"replay": {}, "policies": {"upsert": [{"source": policy}]}});
        post(&it.gateway, "/v1/policies/simulate", &root, &body).await
    };
    has!(replay("region", "us").await, "/data/summary/newly_denied": 1);
    has!(replay("department", "it").await, "/data/summary/maybe_denied": 1,
        "/data/changes/0/missing": ["principal.tags.department"], "/data/summary/newly_denied": 0);

    has!(inputs, "/principal/groups": ["staff"], "/principal/claims": {"region": ["eu"]},
        "/claims_paths": ["principal.tags.region"]);
    assert!(!event.text.contains("sales") && !event.text.contains("ana@"), "{}", event.text);
}
