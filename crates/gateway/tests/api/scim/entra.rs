//! The requests of Microsoft Entra ID: capitalised operations, flags as texts, dotted paths and paths with filters.

use super::{GROUP, Site, USER, error, id, listed};
use crate::prelude::*;

const ENTERPRISE: &str = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_matched_made_changed_and_disabled() {
    let site = Site::start().await;
    // The connection test looks for a person who is not there.
    let nobody = site.get("Users?filter=userName+eq+%22b1f8-none%22").await;
    assert_eq!(listed(&nobody), (vec![], 0));

    let made = site.scim(
        Method::POST,
        "Users",
        json!({
            "schemas": [USER, ENTERPRISE],
            "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
            "userName": "Test_User_ab6490ee@acme.example",
            "active": true,
            "displayName": "Ana Silva",
            "emails": [{"primary": true, "type": "work", "value": "ana@acme.example"}],
            "meta": {"resourceType": "User"},
            "name": {"formatted": "Ana Silva", "familyName": "Silva", "givenName": "Ana"},
            "roles": [],
            (ENTERPRISE): {"department": "Finance"},
        }),
    );
    let ana = id(&made.await);
    let path = format!("Users/{ana}");
    let by_id =
        site.get("Users?filter=externalId eq \"0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef\"").await;
    assert_eq!(listed(&by_id), (vec![ana.as_str()], 1));

    let changed = site.patch(
        &path,
        json!([
            {"op": "Replace", "path": "name.familyName", "value": "Souza"},
            {"op": "Replace", "path": "emails[type eq \"work\"].value", "value": "souza@acme.example"},
            {"op": "Add", "path": format!("{ENTERPRISE}:department"), "value": "Audit"},
            {"op": "Replace", "path": "displayName", "value": "Ana Souza"},
        ]),
    );
    has!(changed.await.ok(), "/name/familyName": "Souza", "/emails/0/value": "souza@acme.example",
        "/displayName": "Ana Souza");

    for (asked, wanted) in [("souza@acme", 1), ("TEST_user", 1), ("nobody", 0)] {
        let found = site.gateway.get(&site.admin, &format!("/v1/principals?q={asked}")).await.ok();
        assert_eq!(found.at("/data/items").as_array().unwrap().len(), wanted, "{asked}");
    }

    let off = json!([{"op": "Replace", "path": "active", "value": "False"}]);
    assert_eq!(site.patch(&path, off).await.ok().at("/active"), false);
    let inactive = site.get("Users?filter=active%20eq%20false").await;
    assert_eq!(listed(&inactive), (vec![ana.as_str()], 1));
    let on = json!([{"op": "Replace", "value": {"active": "True", "name.givenName": "Anna"}}]);
    has!(site.patch(&path, on).await.ok(), "/active": true, "/name/givenName": "Anna");
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_read_without_members_and_changed_by_lists() {
    let site = Site::start().await;
    let [ana, ben] = [site.person("ana").await, site.person("ben").await];
    let made = site.scim(
        Method::POST,
        "Groups",
        json!({
            "schemas": [GROUP, "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
            "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
            "displayName": "finance",
            "meta": {"resourceType": "Group"},
        }),
    );
    let group = id(&made.await);
    let path = format!("Groups/{group}");

    let add = json!([{"op": "Add", "path": "members", "value": [{"value": ana}, {"value": ben}, {"value": ana}]}]);
    assert_eq!(site.patch(&path, add).await.status, 204);
    let blind = site.get(&format!("{path}?excludedAttributes=members")).await.ok();
    assert!(blind.at("/members").is_null());
    assert_eq!(blind.at("/displayName"), "finance");
    let find = "Groups?excludedAttributes=members&filter=displayName eq \"FINANCE\"";
    let found = site.get(find).await;
    assert_eq!(listed(&found), (vec![group.as_str()], 1));
    assert!(found.at("/Resources/0/members").is_null());

    let remove = json!([{"op": "Remove", "path": "members", "value": [{"value": ana}]}]);
    let left = site.patch(&format!("{path}?attributes=members"), remove).await.ok();
    assert_eq!(left.at("/members/0/value"), &json!(ben));
    assert_eq!(left.at("/members").as_array().unwrap().len(), 1);
    assert!(left.at("/displayName").is_null());
    let rename = json!([{"op": "Replace", "path": "displayName", "value": "Finance Team"}]);
    assert_eq!(site.patch(&path, rename).await.status, 204);
    let unknown = json!([{"op": "Add", "path": "members", "value": [{"value": site.provider.id}]}]);
    assert_eq!(error(&site.patch(&path, unknown).await), (400, "invalidValue"));
    let manual = site.gateway.admin(&["principal", "create", "Manual", "--org", &site.org]);
    let manual = json!([{"op": "Add", "path": "members", "value": [{"value": manual["id"]}]}]);
    assert_eq!(error(&site.patch(&path, manual).await), (400, "invalidValue"), "no user of SCIM");
    assert_eq!(site.scim(Method::DELETE, &path, Value::Null).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_changes_at_the_same_moment_and_many_members_are_all_made() {
    // Changes of one resource at the same moment are all made.
    let site = Site::start().await;
    let group = site.group("finance", &[]).await;
    let path = format!("Groups/{group}");
    let mut people = Vec::new();
    for n in 0..40 {
        people.push(site.person(&format!("person{n}")).await);
    }
    let change = async |kind: &str| {
        let one = |id: &String| {
            let change = json!([{"op": kind, "path": "members", "value": [{"value": id}]}]);
            site.patch(&path, change)
        };
        join_all(people.iter().map(one)).await
    };

    let added = change("Add").await;
    let full = site.get(&path).await.ok();
    let removed = change("Remove").await;
    has!(site.get(&path).await.ok(), "/members": []);
    let ana = format!("Users/{}", people[0]);
    let renamed = (0..20).map(|n| {
        let rename = json!([{"op": "Replace", "path": "displayName", "value": format!("Ana {n}")}]);
        site.patch(&ana, rename)
    });
    let renamed = join_all(renamed).await;
    let groups = (0..20).map(|n| {
        let body = json!({ "groups": [format!("group{n}")] }).to_string();
        let path = format!("/v1/principals/{}", people[0]);
        let request = site.gateway.request_of(&site.admin, Method::PATCH, &path);
        site.gateway.send(request.header("content-type", "application/json").body(body))
    });
    let groups = join_all(groups).await;

    assert!(added.iter().chain(&removed).all(|answer| answer.status == 204));
    assert_eq!(full.at("/members").as_array().unwrap().len(), 40);
    assert!(renamed.iter().chain(&groups).all(|answer| answer.status == 200));

    // As many members are written as are read.
    let ana = site.person("ana").await;
    let group = site.group("sales", &[&ana]).await;
    let path = format!("Groups/{group}");
    let mut body = site.get(&path).await.ok().at("").clone();
    let member = body["members"][0].clone();
    // The server reads each of them, also if they are one person.
    body["members"] = Value::from(vec![member; 10_000]);
    assert!(body.to_string().len() > 1 << 20);

    has!(site.scim(Method::PUT, &path, body.clone()).await.ok(), "/members/0/value": ana);
    let members = json!([{"op": "replace", "path": "members", "value": body["members"]}]);
    has!(site.patch(&path, members).await, 204);
}
