//! Requests that Okta and Microsoft Entra ID send, and some that no provider should.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::*;
use crate::id::PrincipalId;

const ANA: &str = "usr_01M754BKTKX1YB8Q05NMW9TP4G";
const BEN: &str = "usr_01M754BKTK9KV856N96WMEHWY9";

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn user(value: &Value) -> Result<UserRequest, ScimError> {
    UserRequest::parse(&object(value))
}

fn ana() -> UserAttributes {
    user(&json!({
        "userName": "ana@acme.example", "externalId": "00uana",
        "name": {"givenName": "Ana", "familyName": "Silva"},
        "emails": [{"value": "ana@acme.example", "type": "work", "primary": true}],
    }))
    .unwrap()
    .attributes
}

fn patched(operations: &Value) -> Result<UserRequest, ScimError> {
    let body = object(&json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": operations,
    }));
    UserRequest::patched(&ana(), &PatchRequest::parse(&body)?)
}

fn group_patch(operations: &Value) -> Result<GroupPatch, ScimError> {
    GroupPatch::parse(&PatchRequest::parse(&object(&json!({ "Operations": operations })))?)
}

fn ids(texts: &[&str]) -> BTreeSet<PrincipalId> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn kind<T: std::fmt::Debug>(result: Result<T, ScimError>) -> &'static str {
    result.unwrap_err().kind.map_or("none", ScimType::as_str)
}

#[test]
fn a_user_is_read_without_regard_to_case_and_without_what_is_not_kept() {
    let found = user(&json!({
        "schemas": [USER_SCHEMA, "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
        "id": "usr_mine", "USERNAME": " ana@acme.example ", "externalid": "00uana", "active": "False",
        "name": {"GivenName": "Ana", "honorificPrefix": "Dr."}, "displayName": "Ana Silva",
        "emails": [{"value": "ana@acme.example", "type": "work", "primary": true}],
        "roles": [{"value": "admin"}], "entitlements": ["admin"], "password": "x", "title": "Boss",
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "Sales"},
        "groups": [{"value": "grp_1"}], "somethingElse": {"a": 1},
    }))
    .unwrap();

    assert_eq!(found.active, Some(false));
    let told = serde_json::to_value(&found.attributes).unwrap();
    assert_eq!(
        told,
        json!({
            "userName": "ana@acme.example", "externalId": "00uana", "displayName": "Ana Silva",
            "name": {"givenName": "Ana"},
            "emails": [{"value": "ana@acme.example", "type": "work", "primary": true}],
        })
    );
    assert_eq!(serde_json::from_value::<UserAttributes>(told).unwrap(), found.attributes);
    assert_eq!(found.attributes.shown_name(), "Ana Silva");
    assert_eq!(ana().shown_name(), "Ana Silva");
}

#[test]
fn a_user_that_breaks_a_rule_is_refused() {
    for (body, wanted) in [
        (json!({}), "invalidValue"),
        (json!({ "userName": "" }), "invalidValue"),
        (json!({ "userName": 7 }), "invalidValue"),
        (json!({ "userName": "a\u{0}b" }), "invalidValue"),
        (json!({ "userName": "x".repeat(257) }), "invalidValue"),
        (json!({ "userName": "a", "active": "maybe" }), "invalidValue"),
        (json!({ "userName": "a", "name": "Ana" }), "invalidValue"),
        (json!({ "userName": "a", "emails": [{"type": "work"}] }), "invalidValue"),
        (json!({ "userName": "a", "emails": vec![json!({"value": "a"}); 11] }), "invalidValue"),
        (json!({ "userName": "a", "na me": 1 }), "invalidPath"),
    ] {
        assert_eq!(kind(user(&body)), wanted, "{body}");
    }
}

#[test]
fn okta_patches_without_a_path() {
    let off = patched(&json!([{"op": "replace", "value": {"active": false}}])).unwrap();

    assert_eq!((off.active, off.attributes), (Some(false), ana()));
}

#[test]
fn entra_patches_with_words_in_other_cases_and_dotted_names() {
    let operations = json!([
        {"op": "Replace", "path": "active", "value": "False"},
        {"op": "Replace", "path": "name.givenName", "value": "Anna"},
        {"op": "Add", "path": "displayName", "value": "Anna Silva"},
        {"op": "Replace", "path": "emails[type eq \"work\"].value", "value": "anna@acme.example"},
        {"op": "Add", "path": "emails[type eq \"home\"].value", "value": "a@home.example"},
        {"op": "Remove", "path": "externalId"},
        {"op": "Add", "path": "roles[primary eq \"True\"].value", "value": "admin"},
        {"op": "Add", "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager",
         "value": ANA},
        {"op": "Replace", "value": {"name.familyName": "Souza", "nickName": "An",
         "urn:ietf:params:scim:schemas:core:2.0:User:userName": "anna@acme.example"}},
    ]);

    let UserRequest { attributes, active } = patched(&operations).unwrap();

    assert_eq!(active, Some(false));
    assert_eq!(
        serde_json::to_value(attributes).unwrap(),
        json!({
            "userName": "anna@acme.example", "displayName": "Anna Silva",
            "name": {"givenName": "Anna", "familyName": "Souza"},
            "emails": [
                {"value": "anna@acme.example", "type": "work", "primary": true},
                {"value": "a@home.example", "type": "home"},
            ],
        })
    );
}

#[test]
fn addresses_are_added_replaced_and_removed_and_one_is_primary() {
    // A star follows the primary one.
    let emails = |operations: &Value| {
        let emails = patched(operations).unwrap().attributes.emails;
        let shown =
            |email: Email| format!("{}{}", email.value, if email.primary { "*" } else { "" });
        emails.into_iter().map(shown).collect::<Vec<_>>().join(" ")
    };
    let other = json!([{"value": "b@acme.example"}]);
    let first = json!([{"value": "b@acme.example", "primary": true}]);
    let add = |value: &Value| json!({"op": "add", "path": "emails", "value": value});

    for (operations, wanted) in [
        (json!([add(&other)]), "ana@acme.example* b@acme.example"),
        (json!([add(&other), add(&other)]), "ana@acme.example* b@acme.example"),
        (json!([add(&first)]), "ana@acme.example b@acme.example*"),
        (json!([add(&first), add(&first)]), "ana@acme.example b@acme.example*"),
        (json!([{"op": "Add", "value": {"emails": first}}]), "ana@acme.example b@acme.example*"),
        (
            json!([
                add(&other),
                {"op": "Replace", "path": "emails[value eq \"b@acme.example\"].primary", "value": "True"},
            ]),
            "ana@acme.example b@acme.example*",
        ),
        (json!([{"op": "replace", "path": "emails", "value": other}]), "b@acme.example"),
        (
            json!([{"op": "replace", "path": "emails", "value": [
                {"value": "c@acme.example", "primary": true}, {"value": "d@acme.example", "primary": true},
            ]}]),
            "c@acme.example* d@acme.example",
        ),
        (json!([{"op": "remove", "path": "emails[type eq \"work\"]"}]), ""),
        (json!([{"op": "remove", "path": "emails"}]), ""),
        (
            json!([add(&other), {"op": "Remove", "path": "emails", "value": other}]),
            "ana@acme.example*",
        ),
        (json!([{"op": "remove", "path": "emails", "value": other}]), "ana@acme.example*"),
    ] {
        assert_eq!(emails(&operations), wanted, "{operations}");
    }
}

#[test]
fn attributes_that_are_not_kept_are_ignored_by_any_path() {
    for path in ["org_id", "role", "roles[primary eq \"True\"].value", "custom.part", "nickName"] {
        for kind in ["add", "replace", "remove"] {
            let operation = json!([{"op": kind, "path": path, "value": "admin"}]);
            assert_eq!(patched(&operation).unwrap().attributes, ana(), "{operation}");
            assert_eq!(group_patch(&operation).unwrap(), GroupPatch::default(), "{operation}");
        }
    }
}

#[test]
fn hostile_operations_change_nothing() {
    let long = format!("members[value eq \"{}\"]", "x".repeat(2_000));
    for (operation, wanted) in [
        (json!({"op": "replace", "path": "id", "value": "usr_x"}), "mutability"),
        (json!({"op": "replace", "path": "meta.version", "value": "x"}), "mutability"),
        (json!({"op": "remove", "path": "userName"}), "mutability"),
        (json!({"op": "remove", "path": "active"}), "mutability"),
        (json!({"op": "remove"}), "noTarget"),
        (
            json!({"op": "replace", "path": "emails[value eq \"none\"].value", "value": "x"}),
            "noTarget",
        ),
        (json!({"op": "replace", "path": "displayName.x", "value": "x"}), "invalidPath"),
        (json!({"op": "replace", "path": "na me", "value": "x"}), "invalidPath"),
        (json!({"op": "replace", "path": "userName[a eq \"b\"]", "value": "x"}), "invalidPath"),
        (
            json!({"op": "replace", "path": "a[b[c eq \"d\"] eq \"e\"]", "value": "x"}),
            "invalidPath",
        ),
        (json!({"op": "replace", "path": "emails[type ne \"work\"]", "value": "x"}), "invalidPath"),
        (json!({"op": "replace", "path": "emails[type eq \"work\"", "value": "x"}), "invalidPath"),
        (
            json!({"op": "replace", "path": "emails[type eq \"work\"]value", "value": "x"}),
            "invalidPath",
        ),
        (json!({"op": "replace", "path": long, "value": "x"}), "invalidPath"),
        (json!({"op": "replace", "path": 7, "value": "x"}), "invalidPath"),
        (json!({"op": "copy", "path": "userName", "value": "x"}), "invalidSyntax"),
        (
            json!({"op": "add", "op ": 1, "OP": "add", "path": "userName", "value": "x"}),
            "invalidSyntax",
        ),
        (json!({"op": "replace", "value": "x"}), "invalidValue"),
        (json!({"op": "replace", "path": "userName", "value": {"a": 1}}), "invalidValue"),
        (json!("replace"), "invalidSyntax"),
    ] {
        assert_eq!(kind(patched(&json!([operation]))), wanted, "{operation}");
    }
    let one = json!({"op": "replace", "path": "displayName", "value": "x"});
    assert_eq!(kind(patched(&json!(vec![one; 1_001]))), "tooMany");
    assert_eq!(kind(patched(&json!([]))), "invalidSyntax");
}

#[test]
fn members_are_changed_as_both_providers_send_it() {
    let before = ids(&[ANA]);
    for (operations, wanted) in [
        (
            json!([{"op": "Add", "path": "members", "value": [{"value": BEN}, {"value": BEN}]}]),
            ids(&[ANA, BEN]),
        ),
        (json!([{"op": "Remove", "path": "members", "value": [{"value": ANA}]}]), ids(&[])),
        (json!([{"op": "remove", "path": format!("members[value eq \"{ANA}\"]")}]), ids(&[])),
        (json!([{"op": "Add", "path": "members", "value": [{"value": ANA}]}]), ids(&[ANA])),
        (json!([{"op": "Remove", "path": "members", "value": ANA}]), ids(&[])),
        (json!([{"op": "remove", "path": "members[value eq \"nobody\"]"}]), ids(&[ANA])),
        (json!([{"op": "remove", "path": "members", "value": []}]), ids(&[ANA])),
        (json!([{"op": "remove", "path": "members"}]), ids(&[])),
        (json!([{"op": "replace", "path": "members", "value": [{"value": BEN}]}]), ids(&[BEN])),
        (json!([{"op": "replace", "value": {"members": [{"value": BEN}]}}]), ids(&[BEN])),
        (json!([{"op": "add", "value": {"members": [{"value": BEN}]}}]), ids(&[ANA, BEN])),
        (
            json!([
                {"op": "remove", "path": format!("members[value eq \"{ANA}\"]")},
                {"op": "add", "path": "members", "value": [{"value": BEN, "display": "ben"}]},
                {"op": "add", "path": "members", "value": [{"value": ANA}]},
                {"op": "remove", "path": format!("members[value eq \"{BEN}\"]")},
            ]),
            ids(&[ANA]),
        ),
    ] {
        let patch = group_patch(&operations).unwrap();
        assert_eq!(patch.members.applied(&before), wanted, "{operations}");
    }
    for (operations, only) in [
        (json!([{"op": "add", "path": "members", "value": [{"value": BEN}]}]), true),
        (json!([{"op": "remove", "path": "members", "value": [{"value": BEN}]}]), true),
        (json!([{"op": "replace", "path": "members", "value": [{"value": BEN}]}]), false),
        (json!([{"op": "remove", "path": "members"}]), false),
        (json!([{"op": "add", "value": {"members": [{"value": BEN}], "displayName": "x"}}]), false),
        (json!([{"op": "remove", "path": "externalId"}]), false),
    ] {
        assert_eq!(group_patch(&operations).unwrap().only_names_members(), only, "{operations}");
    }
    let renamed = json!([{"op": "replace", "value": {"id": "grp_1", "displayName": "Finance"}}]);
    assert_eq!(group_patch(&renamed).unwrap().display_name.as_deref(), Some("Finance"));
    let removed = json!([{"op": "Remove", "path": "externalId"}]);
    assert_eq!(group_patch(&removed).unwrap().external_id, AttributeEdit::Clear);
}

#[test]
fn members_that_are_too_many_or_no_users_are_refused() {
    let add =
        |value: Value| group_patch(&json!([{"op": "add", "path": "members", "value": value}]));
    let service = ANA.replace("usr_", "sa_");

    assert!(add(json!(vec![json!({"value": ANA}); 10_000])).is_ok());
    assert_eq!(kind(add(json!(vec![json!({"value": ANA}); 10_001]))), "tooMany");
    for wrong in
        [json!([{"value": service}]), json!([{"value": "grp_1"}]), json!([{"x": 1}]), json!([7])]
    {
        assert_eq!(kind(add(wrong.clone())), "invalidValue", "{wrong}");
    }
    for path in ["members[display eq \"x\"]", "members.value", "members[value eq \"x\"].value"] {
        let remove = group_patch(&json!([{"op": "remove", "path": path, "value": "x"}]));
        assert_eq!(kind(remove), "invalidPath", "{path}");
    }
    let replace =
        json!([{"op": "replace", "path": format!("members[value eq \"{ANA}\"]"), "value": BEN}]);
    assert_eq!(kind(group_patch(&replace)), "invalidPath");
    assert_eq!(kind(group_patch(&json!([{"op": "remove", "path": "displayName"}]))), "mutability");
}

#[test]
fn a_group_keeps_its_members_unless_a_request_names_them() {
    let read = |value: Value| NewGroup::parse(&object(&value));

    let silent = read(json!({ "displayName": "Finance", "externalId": null })).unwrap();
    let empty = read(json!({ "displayName": "Finance", "members": [] })).unwrap();

    assert_eq!((silent.members, silent.attributes.external_id), (None, None));
    assert_eq!(empty.members, Some(ids(&[])));
    assert_eq!(kind(read(json!({ "members": [] }))), "invalidValue");
    let twice = json!({ "displayName": "a", "DISPLAYNAME": "b" });
    assert_eq!(kind(read(twice)), "invalidSyntax");
}

#[test]
fn filters_are_read() {
    let read = |text: &str| Filter::parse(text).unwrap();

    let filter = read("userName eq \"Ana \\\"A\\\" \\u00e4 and b\"");
    assert_eq!(filter.text("username"), Some("Ana \"A\" \u{e4} and b"));
    let filter = read(&format!("{USER_SCHEMA}:externalId Eq \"00u\""));
    assert_eq!(filter.text("externalid"), Some("00u"));
    let both = read("id eq \"x\"  AND active eq true");
    assert_eq!(both.comparisons.len(), 2);
    assert_eq!(both.comparisons[1].value, FilterValue::Flag(true));
}

#[test]
fn filters_that_do_more_or_are_hostile_are_refused() {
    let long = format!("userName eq \"{}\"", "x".repeat(3_000));
    let many = ["userName eq \"a\""; 3].join(" and ");
    let nested = format!("userName eq {}", "[".repeat(1_000));
    for wrong in [
        "",
        "userName",
        "userName eq",
        "userName eq ana",
        "userName eq \"a",
        "userName ne \"a\"",
        "userName pr",
        "not (userName eq \"a\")",
        "(userName eq \"a\")",
        "userName eq \"a\" or userName eq \"b\"",
        "userName eq \"a\" and",
        "userName eq \"a\"; drop table",
        "userName eq \"a\u{0}\"",
        "user'Name eq \"a\"",
        "eq eq eq",
        "a..b eq \"x\"",
        &long,
        &many,
        &nested,
    ] {
        assert_eq!(kind(Filter::parse(wrong)), "invalidFilter", "{wrong:.60}");
    }
}

#[test]
fn attributes_are_chosen() {
    let shown = |only: Option<&str>, without: Option<&str>| {
        let mut resource = object(&json!({
            "schemas": [USER_SCHEMA], "id": ANA, "userName": "ana", "members": [1],
            "name": {"givenName": "Ana", "familyName": "Silva"},
        }));
        ScimProjection::parse(only, without).unwrap().apply(&mut resource);
        Value::Object(resource)
    };
    let always = json!({"schemas": [USER_SCHEMA], "id": ANA});

    let mut one = always.clone();
    one["userName"] = json!("ana");
    assert_eq!(shown(Some("USERNAME"), None), one);
    let mut part = always;
    part["name"] = json!({"givenName": "Ana"});
    assert_eq!(shown(Some("name.givenName"), None), part);
    assert!(shown(None, Some("members, id"))["members"].is_null());
    assert_eq!(shown(None, Some("members"))["id"], ANA);
    assert_eq!(shown(None, Some("name.familyName"))["name"], json!({"givenName": "Ana"}));
    assert!(!ScimProjection::parse(None, Some("members")).unwrap().shows("members"));
    assert!(ScimProjection::parse(Some("a b"), None).is_err());
    assert!(ScimProjection::parse(Some(&"a,".repeat(60)), None).is_err());
}

#[test]
fn an_error_says_its_status_as_a_text() {
    let body = ScimError::new(ScimType::Uniqueness, "It is taken.").body();

    assert_eq!(body["status"], "409");
    assert_eq!(body["scimType"], "uniqueness");
    assert_eq!(body["schemas"][0], "urn:ietf:params:scim:api:messages:2.0:Error");
    assert!(ScimError::not_implemented("no").body().get("scimType").is_none());
}
