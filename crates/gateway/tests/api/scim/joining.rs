//! The principal that a person is: that of the subject that the provider names, and no other.

use super::{AUDIENCE, GROUP, PATCH, Site, USER, error, id, people};
use crate::prelude::*;

/// A site whose people come from two directories, and the account that pushes those of the second one.
async fn two_directories(other: &Oidc) -> (Site, Principal) {
    let accounts = std::sync::Mutex::new(Vec::new());
    let site = Site::trusting(|gateway, org, oidc, provider| {
        let kind = ["--type", "service", "--scopes", "scim"];
        let second = gateway.principal(org, "second", &kind, &["--scopes", "scim"]);
        let rule = |name, oidc: &Oidc, account: &str| {
            let people = format!("{}\nscim_account = \"{account}\"", people("external_id"));
            oidc.trust(name, org, AUDIENCE, &people)
        };
        let rules = rule("first", oidc, &provider.id) + &rule("second", other, "second");
        accounts.lock().unwrap().push(second);
        rules
    })
    .await;
    let second = accounts.lock().unwrap().remove(0);
    (site, second)
}

/// The body of a PATCH with one operation.
fn patch(operation: &Value) -> Value {
    json!({"schemas": [PATCH], "Operations": [operation]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_becomes_the_person_of_its_id_and_no_other() {
    // A person who was made first logs in as that principal.
    let site = Site::start().await;
    let ana = site.person("00uana").await;

    let logged_in = site.login("00uana").await;

    assert_eq!(logged_in.id, ana);
    assert_eq!(site.login("00uana").await.id, ana);
    // A subject that the provider does not keep gets nothing.
    assert_eq!(site.logged_in("00ueve", &[]).await.refusal(), (401, "invalid_credential"));

    // A subject never becomes a person whom another subject is.
    let ana = site.person("00ucleo").await;
    site.login("00ucleo").await;

    // The provider gives the id of another person to the person who is joined already.
    let steal = json!([{"op": "replace", "path": "externalId", "value": "00umallory"}]);
    site.patch(&format!("Users/{ana}"), steal).await.ok();

    assert_eq!(site.logged_in("00umallory", &[]).await.refusal(), (401, "invalid_credential"));
    assert_eq!(site.login("00ucleo").await.id, ana, "the subject stays the person");

    // Accounts of one directory change what another one pushed.
    let kind = ["--type", "service", "--scopes", "scim"];
    let next = site.gateway.principal(&site.org, "next", &kind, &["--scopes", "scim"]);
    let [ana, ben] = [site.person("00udan").await, site.person("00uben").await];
    let group = format!("Groups/{}", site.group("finance", &[&ana]).await);

    let renamed = json!({"op": "replace", "path": "externalId", "value": "00uanna"});
    let path = format!("Users/{ana}");
    site.scim_as(&next, Method::PATCH, &path, patch(&renamed)).await.ok();
    let add = json!({"op": "add", "path": "members", "value": [{"value": ben}]});
    let added = site.scim_as(&next, Method::PATCH, &group, patch(&add)).await;
    let members = site.get(&group).await;
    let deleted = site.scim_as(&next, Method::DELETE, &group, Value::Null).await;
    let gone = site.scim_as(&next, Method::DELETE, &format!("Users/{ben}"), Value::Null).await;

    assert_eq!(site.login("00uanna").await.id, ana);
    assert_eq!(members.at("/members").as_array().map(Vec::len), Some(2), "{}", members.text);
    for answer in [added, deleted, gone] {
        assert_eq!(answer.status, 204, "{}", answer.text);
    }

    // A name or an address of somebody else takes nothing.
    let boss =
        site.gateway.admin(&["principal", "create", "Boss", "--role", "admin", "--org", &site.org]);
    let boss = boss["id"].as_str().unwrap();

    let twin = json!({
        "schemas": [USER], "userName": "Boss", "displayName": "Boss", "externalId": boss, "id": boss,
        "emails": [{"value": "boss@acme.example", "primary": true}],
    });
    let made = id(&site.scim(Method::POST, "Users", twin).await);

    assert_ne!(made, boss);
    let path = format!("Users/{boss}");
    assert_eq!(error(&site.get(&path).await), (404, ""), "the provider does not keep it");
    let off = json!([{"op": "replace", "value": {"active": false}}]);
    assert_eq!(error(&site.patch(&path, off).await), (404, ""));
    assert_eq!(error(&site.scim(Method::DELETE, &path, Value::Null).await), (404, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_joins_where_the_rule_says_so() {
    let site = Site::joined_by("user_name").await;
    let body = json!({"schemas": [USER], "userName": "Ana@Acme.example"});
    let ana = id(&site.scim(Method::POST, "Users", body).await);

    assert_eq!(site.login("ana@acme.example").await.id, ana);
    let other = site.logged_in("ANA@acme.example", &[]).await;
    assert_eq!(other.refusal(), (401, "invalid_credential"), "another subject is another person");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_of_another_issuer_never_becomes_a_person_who_is_joined() {
    let other = Oidc::start();
    let site = Site::trusting(|_, org, oidc, provider| {
        let people = format!("{}\nscim_account = \"{}\"", people("external_id"), provider.id);
        let [first, second] = [("first", oidc), ("second", &other)]
            .map(|(name, it)| it.trust(name, org, AUDIENCE, &people));
        first + &second
    })
    .await;
    let boss = site.person("00uboss").await;
    has!(site.logged_in("00uboss", &["mcp-admins"]).await.ok(), "/data/principal/id": boss);

    let take = json!([{"op": "replace", "path": "externalId", "value": "MALLORY"}]);
    site.patch(&format!("Users/{boss}"), take).await.ok();

    has!(site.logged_in_at(&other, "", "MALLORY", &["*"]).await, 401 "invalid_credential");
    let known = site.gateway.get(&site.admin, &format!("/v1/principals/{boss}")).await.ok();
    assert_eq!(known.at("/data/role"), "admin");
    // Somebody who is joined to nobody comes in at either issuer.
    let ana = site.person("00uana").await;
    has!(site.logged_in_at(&other, "", "00uana", &[]).await.ok(), "/data/principal/id": ana);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_two_directories_with_one_id_stay_two() {
    let other = Oidc::start();
    let (site, second) = two_directories(&other).await;
    let push = async |who: &Principal, name: &str, external: &str| {
        let body = json!({"schemas": [USER], "userName": name, "externalId": external});
        site.scim_as(who, Method::POST, "Users", body).await
    };
    let ana = id(&push(&site.provider, "ana", "7").await);
    let gone = id(&push(&site.provider, "gone", "8").await);
    site.scim(Method::DELETE, &format!("Users/{gone}"), Value::Null).await;

    // The same id means another person at the other provider.
    has!(site.logged_in_at(&other, "", "7", &[]).await, 401 "invalid_credential");
    assert_eq!(site.login("7").await.id, ana);
    assert_eq!(error(&push(&second, "ben", "7").await), (409, "uniqueness"));
    let new = id(&push(&second, "new", "8").await);
    assert_ne!(new, gone, "who was deleted stays the person of its own provider");
    has!(site.logged_in_at(&other, "", "8", &[]).await.ok(), "/data/principal/id": new);
    assert_eq!(site.logged_in("8", &[]).await.refusal(), (401, "invalid_credential"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_changes_only_people_and_groups_that_it_pushed() {
    let other = Oidc::start();
    let (site, second) = two_directories(&other).await;
    let boss = site.person("00uboss").await;
    let leads = site.group("finance-leads", &[]).await;
    let body = json!({"schemas": [USER], "userName": "mal", "externalId": "00umal"});
    let mal = id(&site.scim_as(&second, Method::POST, "Users", body).await);
    let (user, group) = (format!("Users/{boss}"), format!("Groups/{leads}"));
    let change = json!({"op": "replace", "path": "externalId", "value": "MALLORY"});
    let off = json!({"op": "replace", "path": "active", "value": false});
    let whole = json!({"schemas": [USER], "userName": "boss", "externalId": "MALLORY"});
    let add = |id: &str| json!({"op": "add", "path": "members", "value": [{"value": id}]});
    let renamed = json!({"schemas": [GROUP], "displayName": "leads"});

    for (method, path, body) in [
        (Method::PATCH, &user, patch(&change)),
        (Method::PATCH, &user, patch(&off)),
        (Method::PUT, &user, whole),
        (Method::DELETE, &user, Value::Null),
        (Method::PATCH, &group, patch(&add(&mal))),
        (Method::PUT, &group, renamed),
        (Method::DELETE, &group, Value::Null),
    ] {
        let answer = site.scim_as(&second, method.clone(), path, body).await;
        assert_eq!(error(&answer), (403, ""), "{method} {path}: {}", answer.text);
    }

    // Nor does it put a person of the first one into a group of its own.
    let mixed = json!({"schemas": [GROUP], "displayName": "own", "members": [{"value": boss}]});
    let mixed = site.scim_as(&second, Method::POST, "Groups", mixed).await;
    assert_eq!(error(&mixed), (400, "invalidValue"));
    let own = json!({"schemas": [GROUP], "displayName": "own", "members": [{"value": mal}]});
    let own = id(&site.scim_as(&second, Method::POST, "Groups", own).await);
    let own = format!("Groups/{own}");
    let mixed = site.scim_as(&second, Method::PATCH, &own, patch(&add(&boss))).await;
    assert_eq!(error(&mixed), (400, "invalidValue"));
    has!(site.logged_in("MALLORY", &["mcp-admins"]).await, 401 "invalid_credential");
    assert_eq!(site.login("00uboss").await.id, boss);
    // Each of them goes on with its own.
    site.patch(&user, json!([off])).await.ok();
    has!(site.scim_as(&second, Method::DELETE, &format!("Users/{mal}"), Value::Null).await, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_never_takes_the_role_of_the_last_admin() {
    let site = Site::start().await;
    let boss = site.person("00uboss").await;
    let other = site.person("00uother").await;
    for subject in ["00uboss", "00uother"] {
        site.logged_in(subject, &["mcp-admins"]).await.ok();
    }
    let to_auditor = ["principal", "set-role", &site.admin.id, "--role", "auditor"];
    site.gateway.admin(&to_auditor);

    let both = [site.logged_in("00uboss", &[]), site.logged_in("00uother", &[])];
    for answer in join_all(both).await {
        answer.ok();
    }

    let kept = site.kept_roles(1).await;
    let [kept] = kept.as_slice() else { panic!("one of them stays: {kept:?}") };
    assert!([&boss, &other].map(String::as_str).contains(&kept["target"]["id"].as_str().unwrap()));
    let change = &kept["detached"]["change"];
    assert_eq!((&change["role"], &change["login_role"]), (&json!("admin"), &json!("member")));
    site.logged_in("00uboss", &[]).await.ok();
    site.logged_in("00uother", &[]).await.ok();
    assert_eq!(site.kept_roles(2).await.len(), 2, "and stays admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_the_provider_reach_policies_and_approvers_and_make_no_admin() {
    // Policies and approvers see the groups of the provider.
    let site = Site::start().await;
    let [ana, ben] = [site.person("00uana").await, site.person("00uben").await];
    let as_ana = site.login("00uana").await;
    let call = async || site.gateway.invoke(&as_ana, "up:read", json!({})).await.status.as_u16();
    assert_eq!(call().await, 403);

    let group = site.group("finance", &[&ana]).await;
    site.group("finance-leads", &[&ben]).await;

    assert_eq!(call().await, 200);
    let asked = site.gateway.invoke(&as_ana, "up:close", json!({})).await;
    let approval = asked.at("/error/details/approval/id").as_str().expect(&asked.text).to_owned();
    let token = site.logged_in_for("approvals:read approvals:decide", "00uben", &[]).await.ok();
    let token = token.at("/data/access_token").as_str().unwrap().to_owned();
    let decider = Principal { token, ..as_ana.clone() };
    let path = format!("/v1/approvals/{approval}/decision");
    site.gateway.post(&decider, &path, r#"{"decision": "approve"}"#).await.ok();
    assert_eq!(site.gateway.invoke(&as_ana, "up:close", json!({})).await.status, 200);
    site.scim(Method::DELETE, &format!("Groups/{group}"), Value::Null).await;
    assert_eq!(call().await, 403);

    // No group and no attribute makes an admin.
    let body = json!({
        "schemas": [USER], "userName": "eve", "externalId": "00ueve", "userType": "admin",
        "roles": [{"value": "admin", "primary": true}], "entitlements": [{"value": "admin"}],
    });
    let eve = id(&site.scim(Method::POST, "Users", body).await);
    for name in ["admin", "mcp-admins", "Mcp::Role::\"admin\""] {
        site.group(name, &[&eve]).await;
    }

    let logged_in = site.login("00ueve").await;

    assert_eq!(logged_in.id, eve);
    let known = site.gateway.get(&site.admin, &format!("/v1/principals/{eve}")).await.ok();
    assert_eq!(known.at("/data/role"), "member");
    let asked = site.gateway.post(&logged_in, "/v1/auth/token", r#"{"scope": "admin"}"#).await;
    assert_eq!(asked.refusal(), (400, "invalid_scope"), "{}", asked.text);
    let asked = site.gateway.post(&logged_in, "/v1/auth/token", r#"{"scope": "scim"}"#).await;
    assert_eq!(asked.refusal(), (400, "invalid_scope"), "{}", asked.text);
    assert_eq!(site.gateway.get(&logged_in, "/v1/org").await.status, 403);
    // What the login itself says still counts.
    site.logged_in("00ueve", &["mcp-admins"]).await.ok();
    let known = site.gateway.get(&site.admin, &format!("/v1/principals/{eve}")).await.ok();
    assert_eq!(known.at("/data/role"), "admin");
}
