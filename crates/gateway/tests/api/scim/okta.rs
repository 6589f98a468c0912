//! The requests of Okta: it looks a person up, makes it, sends its whole profile, deactivates and reactivates it by a
//! PATCH without a path, and pushes groups.

use super::{GROUP, Site, USER, error, id, listed};
use crate::prelude::*;

/// The profile as Okta sends it.
fn profile(given: &str, active: bool) -> Value {
    json!({
        "schemas": [USER],
        "userName": "ana.silva@acme.example",
        "name": {"givenName": given, "familyName": "Silva"},
        "emails": [{"primary": true, "value": "ana.silva@acme.example", "type": "work"}],
        "displayName": format!("{given} Silva"),
        "locale": "en-US",
        "externalId": "00uana",
        "groups": [],
        "password": "1mz050nq",
        "active": active,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_lives_from_assignment_to_removal() {
    let site = Site::start().await;
    let find = "Users?filter=userName%20eq%20%22Ana.Silva%40acme.example%22&startIndex=1&count=100";
    assert_eq!(listed(&site.get(find).await), (vec![], 0));

    let made = site.scim(Method::POST, "Users", profile("Ana", true)).await;
    let ana = id(&made);
    assert_eq!(made.header("content-type"), "application/scim+json");
    assert!(made.header("location").ends_with(&format!("/scim/v2/Users/{ana}")));
    has!(made, "/meta/location": made.header("location"), "/meta/version": made.header("etag"),
        "/meta/resourceType": "User", "/name/givenName": "Ana",
        "/emails/0/value": "ana.silva@acme.example", "/active": true);
    assert!(made.at("/password").is_null() && made.at("/locale").is_null());
    assert_eq!(listed(&site.get(find).await), (vec![ana.as_str()], 1));
    let again = site.scim(Method::POST, "Users", profile("Ana", true)).await;
    assert_eq!(error(&again), (409, "uniqueness"));

    let path = format!("Users/{ana}");
    let renamed = site.scim(Method::PUT, &path, profile("Anna", true)).await.ok();
    assert_eq!(renamed.at("/displayName"), "Anna Silva");
    assert_ne!(renamed.header("etag"), made.header("etag"));
    let same = site.scim(Method::PUT, &path, profile("Anna", true)).await.ok();
    assert_eq!(same.header("etag"), renamed.header("etag"), "a repeat changes nothing");

    let off = json!([{"op": "replace", "value": {"active": false}}]);
    assert_eq!(site.patch(&path, off.clone()).await.ok().at("/active"), false);
    assert_eq!(site.patch(&path, off).await.ok().at("/active"), false);
    let on = json!([{"op": "replace", "value": {"active": true}}]);
    assert_eq!(site.patch(&path, on).await.ok().at("/active"), true);
    assert_eq!(site.scim(Method::DELETE, &path, Value::Null).await.status, 204);
    assert_eq!(error(&site.get(&path).await), (404, ""));
    assert_eq!(error(&site.scim(Method::DELETE, &path, Value::Null).await), (404, ""));

    // The same person gets the same principal again.
    let back = site.scim(Method::POST, "Users", profile("Anna", true)).await;
    assert_eq!(id(&back), ana);
    assert_eq!(back.at("/active"), true);
    let about = site.events("principal.changed", 6).await;
    let about: Vec<&Value> = about.iter().filter(|it| it["target"]["id"] == *ana).collect();
    assert_eq!(about.len(), 6, "made, renamed, off, on, deleted, made: repeats are no events");
    for event in about {
        assert_eq!(event["actor"]["id"], *site.provider.id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_pushed_with_their_members() {
    let site = Site::start().await;
    let [ana, ben] = [site.person("ana").await, site.person("ben").await];
    let body = json!({"schemas": [GROUP], "displayName": "finance", "members": []});
    let group = id(&site.scim(Method::POST, "Groups", body.clone()).await);
    assert_eq!(error(&site.scim(Method::POST, "Groups", body).await), (409, "uniqueness"));
    let path = format!("Groups/{group}");

    let join = json!([
        {"op": "remove", "path": format!("members[value eq \"{ben}\"]")},
        {"op": "add", "path": "members", "value": [{"value": ana, "display": "ana@acme.example"}]},
    ]);
    assert_eq!(site.patch(&path, join.clone()).await.status, 204);
    let shown = site.get(&path).await.ok();
    assert_eq!(shown.at("/members/0/value"), &json!(ana));
    assert!(
        shown.at("/members/0/$ref").as_str().unwrap().ends_with(&format!("/scim/v2/Users/{ana}"))
    );
    assert_eq!(site.patch(&path, join).await.header("etag"), shown.header("etag"));
    let rename = json!([{"op": "replace", "value": {"id": group, "displayName": "Finance"}}]);
    assert_eq!(site.patch(&path, rename).await.status, 204);
    let replace = json!([{"op": "replace", "path": "members", "value": [{"value": ben}]}]);
    assert_eq!(site.patch(&path, replace).await.status, 204);
    let shown = site.get(&path).await.ok();
    assert_eq!(shown.at("/displayName"), "Finance");
    assert_eq!(shown.at("/members").as_array().unwrap().len(), 1);
    let put = json!({"schemas": [GROUP], "displayName": "Finance", "members": [{"value": ana}]});
    let put = site.scim(Method::PUT, &path, put).await.ok();
    assert_eq!(put.at("/members/0/value"), &json!(ana));

    let groups_of = async |id: &str| {
        let found = site.gateway.get(&site.admin, &format!("/v1/principals/{id}")).await.ok();
        found.at("/data/provisioned_groups").clone()
    };
    assert_eq!(groups_of(&ana).await, json!(["Finance"]));
    assert_eq!(groups_of(&ben).await, json!([]));
    assert_eq!(site.scim(Method::DELETE, &path, Value::Null).await.status, 204);
    assert_eq!(groups_of(&ana).await, json!([]));
    let events = site.events("group.changed", 6).await;
    assert_eq!(events.len(), 6, "made, joined, renamed, replaced, put, deleted");
    assert!(events.iter().all(|event| event["target"]["id"] == *group));
}
