//! Callers who are let in, and requests that are refused, at each of these:
//!
//! - `GET /scim/v2/Users`
//! - `POST /scim/v2/Users`
//! - `GET /scim/v2/Users/{id}`
//! - `PUT /scim/v2/Users/{id}`
//! - `PATCH /scim/v2/Users/{id}`
//! - `DELETE /scim/v2/Users/{id}`
//! - `GET /scim/v2/Groups`
//! - `POST /scim/v2/Groups`
//! - `GET /scim/v2/Groups/{id}`
//! - `PUT /scim/v2/Groups/{id}`
//! - `PATCH /scim/v2/Groups/{id}`
//! - `DELETE /scim/v2/Groups/{id}`
//! - `GET /scim/v2/ServiceProviderConfig`
//! - `GET /scim/v2/Schemas`
//! - `GET /scim/v2/Schemas/{urn}`
//! - `GET /scim/v2/ResourceTypes`
//! - `GET /scim/v2/ResourceTypes/{name}`
//! - `POST /scim/v2/Bulk`

use super::{GROUP, Site, USER, error, id, listed};
use crate::prelude::*;

/// Every SCIM route of the OpenAPI document, below `/scim/v2`.
fn routes(site: &Site) -> Vec<(Method, String)> {
    let document: Value = serde_json::from_str(&site.gateway.run(&["openapi"])).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let of_scim = paths.filter_map(|(path, it)| Some((path.strip_prefix("/scim/v2/")?, it)));
    let each = of_scim.flat_map(|(path, operations)| {
        let methods = operations.as_object().unwrap().keys();
        methods.map(move |method| (method.to_uppercase().parse().unwrap(), path.to_owned()))
    });
    each.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_asks_for_its_scope_and_shows_nothing_of_another_org() {
    let site = Site::start().await;
    let ana = site.person("ana").await;
    let group = site.group("finance", &[&ana]).await;
    let weak = site.gateway.service(&site.org, ALL_SCOPES);
    let theirs = site.gateway.service(&site.gateway.org("other", &ENOUGH), "scim");
    let nobody = Principal { token: "nonsense".to_owned(), ..weak.clone() };
    let routes = routes(&site);
    assert_eq!(routes.len(), 18);

    for (method, template) in routes {
        let id = if template.starts_with("Users") { &ana } else { &group };
        let path = template.replace("{id}", id).replace("{urn}", USER).replace("{name}", "User");
        let what = format!("{method} {path}");
        let body = match method {
            Method::PUT if template.starts_with("Users") => json!({"userName": "ana"}),
            Method::PUT => json!({"displayName": "finance"}),
            Method::PATCH => {
                json!({"Operations": [{"op": "replace", "value": {"externalId": "x"}}]})
            }
            _ => Value::Null,
        };
        let as_who = |who| site.scim_as(who, method.clone(), &path, body.clone());

        let stranger = as_who(&nobody).await;
        assert_eq!(error(&stranger).0, 401, "{what}");
        assert_framed(&stranger, &what);
        let lacking = as_who(&weak).await;
        assert_eq!(error(&lacking).0, 403, "{what}");
        assert!(lacking.header("www-authenticate").contains("scope=\"scim\""), "{what}");
        if template.contains("{id}") {
            assert_eq!(error(&as_who(&theirs).await).0, 404, "{what}");
        }
    }
    for path in ["Users", "Groups"] {
        let seen = site.scim_as(&theirs, Method::GET, path, Value::Null).await;
        assert_eq!(listed(&seen), (vec![], 0));
        let found =
            format!("{path}?filter=id eq \"{}\"", if path == "Users" { &ana } else { &group });
        assert_eq!(listed(&site.scim_as(&theirs, Method::GET, &found, Value::Null).await).1, 0);
    }
    let steal = json!({"displayName": "stolen", "members": [{"value": ana}]});
    let steal = site.scim_as(&theirs, Method::POST, "Groups", steal).await;
    assert_eq!(error(&steal), (400, "invalidValue"));
    // The same names are free in another org.
    let twin = json!({"userName": "ana@acme.example", "externalId": "ana"});
    id(&site.scim_as(&theirs, Method::POST, "Users", twin).await);
    assert_eq!(site.get(&format!("Users/{ana}")).await.ok().at("/externalId"), "ana");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scope_is_a_service_accounts_and_the_server_tells_what_it_does() {
    // The scope is a service accounts and no admins.
    let site = Site::start().await;
    let boss = &site.admin;

    let asked = site.gateway.post(boss, "/v1/auth/token", r#"{"scope": "scim"}"#).await;
    assert_eq!(asked.refusal(), (400, "invalid_scope"));
    assert_eq!(error(&site.scim_as(boss, Method::GET, "Users", Value::Null).await).0, 403);
    // An admin makes the account of a provider and its token.
    let account = r#"{"name": "entra", "kind": "service", "scopes": "scim"}"#;
    let account = site.gateway.post(boss, "/v1/principals", account).await;
    let account = account.at("/data/id").as_str().expect(&account.text).to_owned();
    let silent = json!({ "principal_id": account }).to_string();
    has!("only by name"; site.gateway.post(boss, "/v1/tokens", &silent).await, "/data/scopes": "");
    let named = json!({"principal_id": account, "scopes": "scim"}).to_string();
    let named = site.gateway.post(boss, "/v1/tokens", &named).await;
    let token = named.at("/data/token").as_str().expect(&named.text).to_owned();
    let provider = Principal { token, ..boss.clone() };
    site.scim_as(&provider, Method::GET, "Users", Value::Null).await.ok();
    // A service account that administers gives the scope to no principal.
    let robot = site.gateway.service(&site.org, ALL_SCOPES);
    let more = r#"{"name": "more", "kind": "service", "scopes": "scim"}"#;
    has!(site.gateway.post(&robot, "/v1/principals", more).await, 400 "invalid_scope");

    // The server tells what it does.
    has!(site.get("ServiceProviderConfig").await.ok(), "/patch/supported": true,
        "/bulk/supported": false, "/filter/maxResults": 200, "/etag/supported": true);
    let bulk =
        json!({"schemas": [], "Operations": [{"method": "POST", "path": "/People", "data": {}}]});
    assert_eq!(error(&site.scim(Method::POST, "Bulk", bulk).await).0, 501);
    assert_eq!(listed(&site.get("Schemas").await), (vec![USER, GROUP], 2));
    assert_eq!(site.get(&format!("Schemas/{USER}")).await.ok().at("/name"), "User");
    assert_eq!(error(&site.get("Schemas/urn:none").await).0, 404);
    assert_eq!(listed(&site.get("ResourceTypes").await).0, ["User", "Group"]);
    assert_eq!(site.get("ResourceTypes/Group").await.ok().at("/endpoint"), "/Groups");
    assert_eq!(error(&site.get("ResourceTypes/Robot").await).0, 404);
    assert_eq!(error(&site.get("/Robots").await).0, 404);
    assert_eq!(error(&site.scim(Method::PUT, "Users", json!({})).await).0, 405);
    let stranger = site.gateway.send(site.gateway.request(Method::GET, "/scim/v2/Robots")).await;
    assert_eq!(error(&stranger).0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_groups_are_as_the_schema_describes_them() {
    let site = Site::start().await;
    let ana = site.person("ana").await;
    let group = site.group("finance", &[&ana]).await;

    let schema = site.get(&format!("Schemas/{GROUP}")).await.ok();
    let answered = site.get(&format!("Groups/{group}")).await.ok();

    let attributes = schema.at("/attributes").as_array().unwrap();
    let members = attributes.iter().find(|it| it["name"] == "members").unwrap();
    let parts = members["subAttributes"].as_array().unwrap();
    let part = |name: &str| parts.iter().find(|it| it["name"] == name).expect(name);
    let mut described: Vec<&str> = parts.iter().filter_map(|it| it["name"].as_str()).collect();
    described.sort_unstable();
    let member = answered.at("/members/0").as_object().unwrap();
    let mut told: Vec<&str> = member.keys().map(String::as_str).collect();
    told.sort_unstable();
    assert_eq!(told, described);
    assert_eq!((&member["value"], &member["type"]), (&json!(ana), &json!("User")));
    assert_eq!(part("type")["canonicalValues"], json!(["User"]));
    assert_eq!(part("$ref")["referenceTypes"], json!(["User"]));
    assert_eq!(part("display")["mutability"], "readOnly");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_and_paged() {
    let site = Site::start().await;
    let mut people = Vec::new();
    for name in ["ana", "ben", "cleo", "dan", "eve"] {
        people.push(site.person(name).await);
    }

    let first = site.get("Users?startIndex=1&count=2").await;
    let second = site.get("Users?startIndex=3&count=2").await;
    let beyond = site.get("Users?startIndex=6").await;
    let none = site.get("Users?count=0").await;

    assert_eq!(listed(&first).1, 5);
    assert_eq!(first.at("/startIndex"), 1);
    assert_eq!(second.at("/startIndex"), 3);
    let seen: Vec<&str> = [listed(&first).0, listed(&second).0].concat();
    assert_eq!(seen.len(), 4);
    assert!(seen.is_sorted() && seen.iter().all(|id| people.iter().any(|it| it == id)));
    assert_eq!(listed(&beyond), (vec![], 5));
    assert_eq!(listed(&none), (vec![], 5));
    for (filter, wanted) in [
        ("userName eq \"BEN@acme.example\"", 1),
        ("externalId eq \"ben\"", 1),
        ("externalId eq \"BEN\"", 0),
        ("displayName eq \"Ben\"", 1),
        ("active eq true", 5),
        ("active eq true and displayName eq \"cleo\"", 1),
        ("active eq false and displayName eq \"cleo\"", 0),
        ("id eq \"nonsense\"", 0),
    ] {
        let found = site.get(&format!("Users?filter={filter}")).await;
        assert_eq!(listed(&found).1, wanted, "{filter}");
    }
    let some = site.get("Users?count=1&attributes=userName").await;
    let mut names: Vec<&String> = some.at("/Resources/0").as_object().unwrap().keys().collect();
    names.sort_unstable();
    assert_eq!(names, ["id", "schemas", "userName"]);
    for wrong in [
        "Users?filter=userName co \"a\"",
        "Users?filter=org_id eq \"a\"",
        "Groups?filter=userName eq \"a\"",
    ] {
        assert_eq!(error(&site.get(wrong).await), (400, "invalidFilter"), "{wrong:.60}");
    }
    assert_eq!(error(&site.get("Users?count=many").await).0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_read_as_providers_write_them_and_versions_guard_changes() {
    // Addresses are read as identity providers write them.
    let site = Site::start().await;
    let people = [site.person("ana").await, site.person("ben").await];
    for (asked, wanted) in [
        ("Users/?filter=userName%20eq%20\"ben@acme.example\"", 1),
        ("/Users?aadOptscim062020&filter=userName%20eq%20\"ben@acme.example\"", 1),
        ("Users?filter=&startIndex=&org_id=x", 2),
        ("Users//?count=1", 2),
    ] {
        assert_eq!(listed(&site.get(asked).await).1, wanted, "{asked}");
    }
    assert_eq!(
        site.get(&["", "Users", "", &people[0], ""].join("/")).await.ok().at("/id"),
        &people[0]
    );
    assert_eq!(error(&site.get(&format!("Users%2F{}", people[0])).await).0, 404);
    // The API of the gateway stays strict.
    for (path, status) in
        [("/v1/principals/", 404), ("/v1//principals", 404), ("/v1/principals?x", 400)]
    {
        assert_eq!(site.gateway.get(&site.admin, path).await.status, status, "{path}");
    }

    // Versions guard changes.
    let ana = site.person("cleo").await;
    let path = format!("Users/{ana}");
    let with = async |method: Method, name: &str, tag: &str, body: &Value| {
        let request = site.gateway.request_of(&site.provider, method, &format!("/scim/v2/{path}"));
        let request = request.header(name, tag).header("content-type", "application/json");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        site.gateway.send(request.body(body)).await
    };
    let first = site.get(&path).await.ok().header("etag").to_owned();
    let body = json!({"Operations": [{"op": "replace", "path": "displayName", "value": "Ana"}]});

    let known = with(Method::GET, "if-none-match", &first, &Value::Null).await;
    has!(with(Method::GET, "if-none-match", &format!("W/{first}"), &Value::Null).await, 304);
    let changed = with(Method::PATCH, "if-match", &first, &body).await.ok();
    let stale = with(Method::PATCH, "if-match", &first, &body).await;
    with(Method::GET, "if-none-match", &first, &Value::Null).await.ok();
    let gone = with(Method::DELETE, "if-match", &first, &Value::Null).await;
    has!(with(Method::DELETE, "if-match", "*", &Value::Null).await, 204);

    assert_eq!((known.status.as_u16(), known.text.as_str()), (304, ""));
    assert_ne!(changed.header("etag"), first);
    assert_eq!(changed.at("/meta/version"), changed.header("etag"));
    assert_eq!(error(&stale).0, 412);
    assert_eq!(error(&gone).0, 412);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_collide_and_hostile_bodies_are_refused() {
    let site = Site::start().await;
    let ana = site.person("ana").await;
    let ben = site.person("ben").await;
    let group = site.group("finance", &[&ana]).await;

    let twin = json!({"userName": "ANA@acme.example", "externalId": "other"});
    assert_eq!(error(&site.scim(Method::POST, "Users", twin).await), (409, "uniqueness"));
    let twin = json!({"userName": "other@acme.example", "externalId": "ana"});
    assert_eq!(error(&site.scim(Method::POST, "Users", twin).await), (409, "uniqueness"));
    let rename = json!([{"op": "replace", "value": {"userName": "ana@acme.example"}}]);
    assert_eq!(error(&site.patch(&format!("Users/{ben}"), rename).await), (409, "uniqueness"));
    let twin = json!({"displayName": "FINANCE"});
    assert_eq!(error(&site.scim(Method::POST, "Groups", twin).await), (409, "uniqueness"));

    let many: Vec<Value> = (0..10_001).map(|_| json!({"value": ana})).collect();
    let path = format!("Groups/{group}");
    let add = json!([{"op": "add", "path": "members", "value": many}]);
    assert_eq!(error(&site.patch(&path, add).await), (400, "tooMany"));
    let role = json!([{"op": "replace", "path": "role", "value": "admin"}]);
    site.patch(&format!("Users/{ben}"), role).await.ok();
    let ignored = site.gateway.get(&site.admin, &format!("/v1/principals/{ben}")).await.ok();
    assert_eq!(ignored.at("/data/role"), "member");
    for (body, kind, status) in [
        ("{\"userName\": \"a\", \"userName\": \"b\"}", "application/scim+json", 400),
        ("[]", "application/scim+json", 400),
        ("{", "application/json", 400),
        ("{\"userName\": \"a\"}", "text/plain", 415),
    ] {
        let request = site.gateway.request_of(&site.provider, Method::POST, "/scim/v2/Users");
        let answer = site.gateway.send(request.header("content-type", kind).body(body)).await;
        assert_eq!(error(&answer).0, status, "{body}");
    }
    let large = json!({"userName": "a", "nickName": "x".repeat(1 << 20)});
    assert_eq!(error(&site.scim(Method::POST, "Users", large).await).0, 413);
    assert_eq!(listed(&site.get("Users").await).1, 2, "nothing came of any of it");
    assert_eq!(site.get(&path).await.ok().at("/members").as_array().unwrap().len(), 1);
}
