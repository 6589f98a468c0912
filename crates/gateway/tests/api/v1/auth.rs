//! `DELETE /v1/auth/token`, and who every other route lets in.

mod delegation;
mod exchange;
mod lineage;
mod logins;
mod refresh;
pub(super) mod routes;
mod trusting;

use portcullis_core::{
    id::{OrgId, PrincipalId, TokenId},
    principal::Role,
    random::Random,
    token::{Token, TokenKind},
};
use portcullis_store::TokenRecord;

use self::{
    routes::{routes, templates},
    trusting::revoke,
};
use crate::prelude::*;

#[derive(Debug)]
struct FixedRandom(u8);

impl Random for FixedRandom {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0);
    }
}

/// Stores a token that no command would make.
async fn plant(
    gateway: &Gateway,
    whose: &Principal,
    number: u8,
    change: impl FnOnce(&mut TokenRecord),
) -> Principal {
    let id = format!("01M7W9Y2TK00000000000000{number:02}");
    let issued_at = now(gateway).await;
    let mut record = TokenRecord::of_operator(
        format!("tok_{id}").parse().unwrap(),
        whose.org.parse().unwrap(),
        whose.id.parse().unwrap(),
        format!("grn_{id}").parse().unwrap(),
        "mcps:read".parse().unwrap(),
        issued_at,
        issued_at.plus_seconds(3600),
    );
    change(&mut record);
    let token = Token::generate(record.kind, &FixedRandom(number));
    store(gateway).await.insert_token(&record, &token.hash()).await.unwrap();
    let token = token.secret().expose().to_owned();
    let token_id = record.id.to_string();
    Principal { token, token_id, ..whose.clone() }
}

/// Another token of the same principal.
fn second(gateway: &Gateway, who: &Principal, more: &[&str]) -> Principal {
    let mut command = vec!["token", "create", "--principal", &who.id];
    command.extend(more);
    let made = gateway.admin(&command);
    let member = |name: &str| made[name].as_str().unwrap().to_owned();
    Principal { token: member("token"), token_id: member("id"), ..who.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_lets_a_stranger_in() {
    let gateway =
        gateway().config("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]").sample().start();
    let who = gateway.user(&gateway.org("acme", &ENOUGH), "admin", ALL_SCOPES);
    let moment = now(&gateway).await;
    let expired = plant(&gateway, &who, 1, |token| token.expires_at = moment).await;
    let refresh = plant(&gateway, &who, 2, |token| token.kind = TokenKind::Refresh).await;
    let revoked = plant(&gateway, &who, 3, |token| token.revoked_at = Some(moment)).await;
    let unknown = Token::generate(TokenKind::User, &FixedRandom(9));
    let elsewhere = second(&gateway, &who, &["--allowed-from", "203.0.113.0/24,2001:db8::/32"]);
    let wrong_prefix = who.token.replace("mcp_live_", "svc_live_");
    let mut wrong_checksum = who.token.clone();
    let last = wrong_checksum.pop().unwrap();
    wrong_checksum.push(if last == 'a' { 'b' } else { 'a' });
    let cases = [
        ("missing_token", None),
        ("invalid_token", Some("")),
        ("invalid_token", Some("nonsense")),
        ("invalid_token", Some("mcp_live_")),
        ("invalid_token", Some(wrong_checksum.as_str())),
        ("invalid_token", Some(&wrong_prefix)),
        ("invalid_token", Some(unknown.secret().expose())),
        ("invalid_token", Some(&refresh.token)),
        ("invalid_token", Some(&elsewhere.token)),
        ("token_expired", Some(&expired.token)),
        ("token_revoked", Some(&revoked.token)),
    ];
    for (route, (method, path, _)) in routes().into_iter().enumerate() {
        for (number, (code, bearer)) in cases.iter().enumerate() {
            // The holder of a token of any kind may end it.
            let ends = method == Method::DELETE && path == "/v1/auth/token";
            if ends && *bearer == Some(&refresh.token) {
                continue;
            }
            // Each from a source of its own, lest the source's limit be what refuses.
            let source = format!("100.64.{}.{number}", route / 32);
            let mut request = gateway.request(method.clone(), &path);
            request = request.header("x-forwarded-for", source);
            if let Some(bearer) = bearer {
                request = request.bearer_auth(bearer);
            }
            let answer = gateway.send(request).await;
            let what = format!("{method} {path}, case {number}");
            // Where only refresh tokens are taken, the others are all of the wrong kind.
            let kind = path == "/v1/auth/refresh" && bearer.is_some();
            let code = if kind { "invalid_token" } else { code };
            assert_eq!(answer.refusal(), (401, code), "{what}");
            assert_framed(&answer, &what);
            assert!(!answer.text.contains("sample"), "{what}: {}", answer.text);
        }
    }
}

/// A body that a request of this route takes.
fn body_of(method: &Method, path: &str) -> &'static str {
    match *method {
        // Tests of connections take no body.
        Method::POST if path.ends_with("/test") => "",
        Method::POST if path.ends_with("/get") => "{\"input\": {\"customer\": \"cus_1001\"}}",
        Method::POST => "{\"input\": {}}",
        Method::PATCH => "{}",
        _ => "",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_shows_or_touches_what_is_another_orgs() {
    let mut gateway = gateway().prepare();
    let orgs = ["acme", "other"].map(|name| gateway.org(name, &ENOUGH));
    let binary = env!("CARGO_BIN_EXE_portcullis");
    let provider = format!(
        "[[providers]]\nslug = \"sample\"\ncommand = [\"{binary}\", \"sample-mcp\"]\norg = \"{}\"\n\
         expose = [\"tools\", \"prompts\", \"skills\"]",
        orgs[1]
    );
    gateway.configure(&provider);
    gateway.start();
    let [ours, theirs] = orgs.map(|org| gateway.user(&org, "admin", ALL_SCOPES));
    until(|| gateway.get(&theirs, "/v1/mcps"), |answer| !items(answer).is_empty()).await;
    let first = async |path: &str| {
        let listed = gateway.get(&theirs, path).await;
        members(&listed, "id")[0].to_owned()
    };
    let provider = first("/v1/providers").await;
    let event = first("/v1/audit/events").await;
    let token = second(&gateway, &theirs, &[]);
    let export = gateway.post(&theirs, "/v1/audit/export", "{}").await;
    let export = export.at("/data/id").as_str().unwrap().to_owned();

    let hold = gateway.post(&theirs, "/v1/audit/holds", "{\"reason\": \"case 4711\"}").await;
    let hold = hold.at("/data/id").as_str().unwrap().to_owned();

    for (method, template) in templates() {
        let id = match template.as_str() {
            "/v1/mcps/{id}" | "/v1/mcps/{id}/invoke" => "sample:list_items",
            "/v1/prompts/{id}" | "/v1/prompts/{id}/get" => "sample:customer_letter",
            "/v1/skills/{id}" => "sample:skill:%2F%2Frefund-policy%2FSKILL.md",
            // What changes connections is walked in `connect/oauth.rs`.
            "/v1/providers/{id}" if method == Method::DELETE => continue,
            "/v1/providers/{id}" | "/v1/providers/{id}/test" => &provider,
            "/v1/audit/events/{id}" | "/v1/audit/events/{id}/proof" => &event,
            "/v1/audit/exports/{id}" | "/v1/audit/exports/{id}/file" => &export,
            // What waits for people is walked in `approvals/deciding.rs` and `admin/tools.rs`.
            "/v1/approvals/{id}" | "/v1/approvals/{id}/decision" | "/v1/tools/{id}/accept"
            // So are keys, sessions and consents in the files of their names.
            | "/v1/principals/{id}/keys" | "/v1/sessions/{id}" | "/v1/consents/{id}"
            // The policies are the installation's, not an org's; what orgs switch off is in `admin/overrides.rs`.
            | "/v1/policies/{id}/override"
            | "/v1/providers/{id}/refresh" | "/v1/providers/{slug}/connect" | "/v1/policies/{id}" => {
                continue;
            }
            "/v1/principals/{id}" => &theirs.id,
            "/v1/tokens/{id}" => &token.token_id,
            "/v1/audit/holds/{id}" => &hold,
            "/v1/auth/token" if method == Method::DELETE => &token.token_id,
            path if path.contains('{') => panic!("say what is another org's at {path}"),
            _ => continue,
        };
        let path = match template.split_once("{id}") {
            Some((before, after)) => format!("{before}{id}{after}"),
            None => format!("{template}?token_id={id}"),
        };
        let ask = |who: &Principal| {
            let request = gateway.request_of(who, method.clone(), &path);
            let body = body_of(&method, &path);
            gateway.send(request.header("content-type", "application/json").body(body))
        };

        has!("{method} {path}"; ask(&ours).await, 404 "not_found");

        assert_eq!(ask(&theirs).await.status, 200, "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_asks_for_its_scope_and_for_no_other_and_roles_cut_it_down() {
    // Every route asks for its scope and for no other.
    let gateway = gateway().sample().start();
    let org = gateway.org("acme", &ENOUGH);
    let all: Vec<&str> = ALL_SCOPES.split(' ').collect();

    for scope in &all {
        let others: Vec<&str> = all.iter().filter(|other| *other != scope).copied().collect();
        let weak = gateway.service(&org, &others.join(" "));
        for (method, path, needs) in routes() {
            if needs != Some(scope) {
                continue;
            }
            let answer = gateway.send(gateway.request_of(&weak, method.clone(), &path)).await;

            has!("{method} {path}"; answer, 403 "insufficient_scope",
                "/error/details/required_scope": scope, "/error/details/policy": "token-scopes");
            assert!(answer.at("/error/details/reason").as_str().unwrap().contains(scope));
            assert!(answer.header("www-authenticate").contains("error=\"insufficient_scope\""));
            assert!(answer.header("www-authenticate").contains(&format!("scope=\"{scope}\"")));
            assert_framed(&answer, &path);
        }
    }
    let none = gateway.service(&org, "providers:write");
    gateway.get(&none, "/v1/audit/events").await.ok();
    let one = gateway.service(&org, "mcps:read");
    gateway.get(&one, "/v1/mcps/sample:create_note").await.ok();

    // A change of role cuts existing tokens down and a disabled principal has none.
    let who = gateway.user(&fresh_org(&gateway), "admin", ALL_SCOPES);
    let (of, id): (OrgId, PrincipalId) = (who.org.parse().unwrap(), who.id.parse().unwrap());
    let store = store(&gateway).await;
    assert_eq!(gateway.get(&who, "/v1/policies").await.status, 200);

    store.set_role(of, id, Role::Member).await.unwrap();
    let cut = until(|| gateway.get(&who, "/v1/policies"), |answer| answer.status == 403).await;
    assert_eq!(cut.code(), "insufficient_scope");
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);

    store.disable_principal(of, id, now(&gateway).await).await.unwrap();
    let gone = until(|| gateway.get(&who, "/v1/mcps"), |answer| answer.status == 401).await;
    assert_eq!(gone.code(), "token_revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_is_refused_at_once_with_all_that_descends_from_it() {
    // A revoked token is refused at once by the node that revoked it.
    let gateway = gateway().start();
    let who = gateway.user(&gateway.org("acme", &ENOUGH), "admin", ALL_SCOPES);
    let other = second(&gateway, &who, &["--scopes", "mcps:read"]);
    for token in [&who, &other] {
        assert_eq!(gateway.get(token, "/v1/mcps").await.status, 200, "it is known by now");
    }

    let revoked = revoke(&gateway, &other.token, None).await.ok();

    let data = json!({"revoked": true, "token_id": other.token_id, "descendants_revoked": 0});
    assert_eq!(revoked.at("/data"), &data);
    assert_eq!(gateway.get(&other, "/v1/mcps").await.refusal(), (401, "token_revoked"));
    assert_eq!(revoke(&gateway, &other.token, None).await.refusal(), (401, "token_revoked"));
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200, "it is another grant");
    let events = gateway.get(&who, "/v1/audit/events?type=token.revoked").await;
    assert_eq!(members(&events, "type"), ["token.revoked"]);
    let event = &items(&events)[0];
    has!(event, "/target/id": other.token_id.as_str(), "/actor/id": who.id.as_str());

    // What descends from a token falls with it.
    let root = gateway.service(&fresh_org(&gateway), ALL_SCOPES);
    let root_id: TokenId = root.token_id.parse().unwrap();
    let child = plant(&gateway, &root, 1, |token| token.parent_id = Some(root_id)).await;
    let child_id: TokenId = child.token_id.parse().unwrap();
    let grandchild = plant(&gateway, &root, 2, |token| token.parent_id = Some(child_id)).await;
    let sibling = plant(&gateway, &root, 3, |_| {}).await;
    for who in [&root, &child, &grandchild, &sibling] {
        assert_eq!(gateway.get(who, "/v1/mcps").await.status, 200);
    }

    let answer = revoke(&gateway, &sibling.token, Some(&root.token_id)).await;

    assert_eq!(answer.at("/data/descendants_revoked"), 2, "{}", answer.text);
    for who in [&root, &child, &grandchild] {
        assert_eq!(gateway.get(who, "/v1/mcps").await.refusal(), (401, "token_revoked"));
    }
    assert_eq!(gateway.get(&sibling, "/v1/mcps").await.status, 200);

    // What the shell revokes a running node refuses within seconds.
    let who = gateway.user(&fresh_org(&gateway), "member", "mcps:read");
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);

    let told = gateway.admin(&["token", "revoke", &who.token_id]);
    let since = Instant::now();
    let refused = until(|| gateway.get(&who, "/v1/mcps"), |answer| answer.status == 401).await;
    let took = since.elapsed();

    assert_eq!(told["revoked"], who.token_id.as_str());
    assert_eq!(refused.code(), "token_revoked");
    // Five seconds, and as many for a busy machine; a session that hears of no change lives for a minute.
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_end_by_their_principals_by_admins_by_time_and_with_their_org() {
    // One may revoke ones own tokens and an admin any of the org.
    let (gateway, admin) = serve_admin(gateway());
    let plain = second(&gateway, &admin, &[]);
    let member = gateway.user(&admin.org, "member", "mcps:read");
    let own = second(&gateway, &member, &[]);
    let stranger = gateway.user(&gateway.org("other", &ENOUGH), "admin", ALL_SCOPES);
    let unknown = "tok_01M7W9Y2TK0000000000000000";

    for (who, token_id) in [
        (&member, admin.token_id.as_str()),
        (&plain, &member.token_id),
        (&stranger, &member.token_id),
        (&stranger, &admin.token_id),
        (&admin, &stranger.token_id),
        (&admin, unknown),
        (&admin, "tok_x"),
        (&admin, &member.id),
    ] {
        let answer = revoke(&gateway, &who.token, Some(token_id)).await;

        assert_eq!(answer.refusal(), (404, "not_found"), "{token_id}: {}", answer.text);
        assert_eq!(answer.at("/error/details"), &json!({"resource": "token", "id": token_id}));
    }
    assert_eq!(revoke(&gateway, &admin.token, Some("")).await.refusal(), (400, "invalid_request"));
    for (who, whose) in [(&member, &own), (&member, &own), (&admin, &member)] {
        let token_id = &whose.token_id;
        assert_eq!(revoke(&gateway, &who.token, Some(token_id)).await.status, 200, "{token_id}");
    }
    for gone in [&own, &member] {
        assert_eq!(gateway.get(gone, "/v1/mcps").await.refusal(), (401, "token_revoked"));
    }
    for live in [&admin, &plain, &stranger] {
        assert_eq!(gateway.get(live, "/v1/mcps").await.status, 200);
    }

    // A token that runs out while it is known is refused.
    let who = gateway.user(&fresh_org(&gateway), "member", "mcps:read");
    let soon = now(&gateway).await.plus_seconds(2);
    let brief = plant(&gateway, &who, 1, |token| token.expires_at = soon).await;
    assert_eq!(gateway.get(&brief, "/v1/mcps").await.status, 200);

    let refused = until(|| gateway.get(&brief, "/v1/mcps"), |answer| answer.status == 401).await;

    has!(refused, "/error/code": "token_expired", "/error/details/expired_at": soon);
    let told = refused.at("/meta/timestamp").as_str().unwrap();
    assert!(Timestamp::parse_rfc3339(told).unwrap() >= soon, "{told}");

    // A disabled org lets nobody in.
    let who = gateway.user(&fresh_org(&gateway), "admin", ALL_SCOPES);
    let other = gateway.user(&fresh_org(&gateway), "admin", ALL_SCOPES);
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);

    let org: OrgId = who.org.parse().unwrap();
    store(&gateway).await.disable_org(org, now(&gateway).await).await.unwrap();
    until(|| gateway.get(&who, "/v1/mcps"), |answer| answer.status == 401).await;

    assert_eq!(gateway.get(&other, "/v1/mcps").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bound_to_networks_works_from_there_only() {
    let gateway = gateway().config("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]").start();
    let who = gateway.user(&gateway.org("acme", &ENOUGH), "member", "mcps:read");
    let bound = second(&gateway, &who, &["--allowed-from", "203.0.113.0/24,2001:db8::/32"]);

    for (from, wanted) in [
        ("203.0.113.7", 200),
        ("2001:db8::7", 200),
        ("::ffff:203.0.113.7", 200),
        ("203.0.114.7", 401),
        ("203.0.113.7, 198.51.100.1", 401),
        ("203.0.113.7", 200),
    ] {
        let request = gateway.request_of(&bound, Method::GET, "/v1/mcps");
        let answer = gateway.send(request.header("x-forwarded-for", from)).await;

        assert_eq!(answer.status, wanted, "{from}: {}", answer.text);
    }
    assert_eq!(gateway.get(&bound, "/v1/mcps").await.refusal(), (401, "invalid_token"));
}
