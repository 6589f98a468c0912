//! `GET /v1/principals`, `POST /v1/principals`, `GET /v1/principals/{id}`, `PATCH /v1/principals/{id}`.

use tokio::join;

use super::{latest_change, patch};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn people_and_programs_are_made_and_changed_and_no_program_changes_its_own_groups() {
    // People and programs are made listed and changed.
    let (gateway, admin) = serve_admin(gateway());
    let service =
        json!({"name": "ci", "kind": "service", "scopes": "mcps:read", "groups": ["ops"]});

    let made = gateway.post(&admin, "/v1/principals", &service.to_string()).await;
    let user = gateway.post(&admin, "/v1/principals", "{\"name\": \"Ana María\"}").await;

    assert_eq!((made.status.as_u16(), user.status.as_u16()), (201, 201), "{}", made.text);
    assert_enveloped(&made, "made");
    let id = made.at("/data/id").as_str().unwrap();
    assert!(id.starts_with("sa_"), "{id}");
    assert_eq!(user.at("/data/role"), "member");
    let got = gateway.get(&admin, &format!("/v1/principals/{id}")).await.ok();
    assert_eq!(got.at("/data"), made.at("/data"));
    assert_eq!(got.header("etag"), made.header("etag"));

    let path = format!("/v1/principals/{id}");
    let body = json!({"name": "deploys", "scopes": "mcps:read mcps:invoke", "groups": null});
    let changed = patch(&gateway, &admin, &path, Some(got.header("etag")), &body).await.ok();

    has!(changed, "/data/name": "deploys", "/data/scopes": "mcps:invoke mcps:read",
        "/data/groups": [], "/data/disabled": false);
    assert_ne!(changed.header("etag"), got.header("etag"));
    let (event, change) = latest_change(&gateway, &admin, "principal.changed").await;
    assert_eq!((&event["target"]["id"], &event["actor"]["id"]), (&json!(id), &json!(admin.id)));
    assert_eq!(change["members"], json!(["name", "role", "groups"]));
    assert!(!change.to_string().contains("deploys"), "a name is personal: {change}");

    // A program changes neither its own groups nor those of whom it acts for.
    let admin = gateway.user(&fresh_org(&gateway), "admin", ALL_SCOPES);
    let service = gateway.service(&admin.org, "admin mcps:read");
    let member = gateway.user(&admin.org, "member", "mcps:read");
    let path = |id: &str| format!("/v1/principals/{id}");
    let exchanged = async |bearer: &Principal, body: Value| {
        let given = gateway.post(bearer, "/v1/auth/token", &body.to_string()).await.ok();
        let token = given.at("/data/access_token").as_str().unwrap().to_owned();
        Principal { token, ..admin.clone() }
    };
    let narrowed = exchanged(&admin, json!({"scope": "admin mcps:read"})).await;
    let acting = json!({"subject_token": admin.token, "scope": "admin mcps:read"});
    let acting = exchanged(&service, acting).await;
    let finance = json!({"groups": ["finance"]});

    for (who, whose) in [
        (&service, &service.id),
        (&narrowed, &admin.id),
        (&acting, &admin.id),
        (&acting, &service.id),
    ] {
        let refused = patch(&gateway, who, &path(whose), None, &finance).await;
        has!("{whose}"; refused, 409 "conflict", "/error/details/reason": "people_only");
    }

    patch(&gateway, &service, &path(&member.id), None, &finance).await.ok();
    patch(&gateway, &admin, &path(&admin.id), None, &finance).await.ok();
    patch(&gateway, &admin, &path(&service.id), None, &finance).await.ok();
    let same = json!({"groups": ["finance"], "name": "renamed"});
    patch(&gateway, &service, &path(&service.id), None, &same).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_org_keeps_an_admin_and_a_change_of_an_older_version_is_refused() {
    // An org keeps an admin.
    let gateway = gateway().start();
    let org = gateway.org("acme", &ENOUGH);
    let admins = ["one", "two"].map(|name| {
        let kind = ["--role", "admin"];
        gateway.principal(&org, name, &kind, &["--scopes", ALL_SCOPES])
    });
    let path_of = |number: usize| format!("/v1/principals/{}", admins[number].id);
    let demote = json!({"role": "member"});
    let disable = json!({"disabled": true});

    let [first, second] = [path_of(0), path_of(1)];
    let (one, two) = join!(
        patch(&gateway, &admins[0], &second, None, &demote),
        patch(&gateway, &admins[1], &first, None, &disable),
    );

    let done = [&one, &two].iter().filter(|answer| answer.status == 200).count();
    assert_eq!(done, 1, "one of two who take each other's role away: {} {}", one.text, two.text);
    let left = usize::from(one.status != 200);
    for body in [&demote, &disable, &json!({"role": "auditor", "name": "x"})] {
        let refused = patch(&gateway, &admins[left], &path_of(left), None, body).await;
        has!("{body}"; refused, 409 "conflict", "/error/details/reason": "last_admin");
    }
    let found = gateway.get(&admins[left], &path_of(left)).await.ok();
    assert_eq!(found.at("/data/role"), "admin");
    assert_ne!(found.at("/data/name"), "x", "nothing of a refused patch is done");
    // The operator can.
    gateway.admin(&["principal", "disable", &admins[left].id]);

    // A change of an older version is refused.
    let admin = tenant(&gateway);
    let made = gateway.post(&admin, "/v1/principals", "{\"name\": \"ana\"}").await;
    let path = format!("/v1/principals/{}", made.at("/data/id").as_str().unwrap());
    let old = made.header("etag");
    let first = patch(&gateway, &admin, &path, Some(old), &json!({"role": "auditor"})).await.ok();

    let stale = patch(&gateway, &admin, &path, Some(old), &json!({"role": "admin"})).await;

    assert_eq!(stale.refusal(), (412, "precondition_failed"), "{}", stale.text);
    let weak = format!("W/{}", first.header("etag"));
    let weak = patch(&gateway, &admin, &path, Some(&weak), &json!({"name": "b"})).await;
    assert_eq!(weak.refusal(), (412, "precondition_failed"));
    let bare = patch(&gateway, &admin, &path, Some("x"), &json!({"name": "b"})).await;
    assert_eq!(bare.refusal(), (400, "invalid_request"));
    assert_eq!(gateway.get(&admin, &path).await.at("/data"), first.at("/data"));

    let rename = async |name: &str| {
        let version = Some(first.header("etag"));
        patch(&gateway, &admin, &path, version, &json!({ "name": name })).await
    };
    let (one, two) = join!(rename("one"), rename("two"));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412], "of two changes of one version one is made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_gives_nobody_more_than_it_has() {
    let (gateway, admin) = serve_admin(gateway());
    let weak = gateway.service(&admin.org, "admin mcps:read");
    let member = gateway.user(&admin.org, "member", "mcps:read");
    let strong = json!({"name": "s", "kind": "service", "scopes": "mcps:read mcps:invoke"});
    let strong = gateway.post(&admin, "/v1/principals", &strong.to_string()).await;
    let strong = strong.at("/data/id").as_str().unwrap();
    let path = |id: &str| format!("/v1/principals/{id}");
    patch(&gateway, &admin, &path(strong), None, &json!({"disabled": true})).await.ok();

    let attempts = [
        (path(&member.id), json!({"role": "admin"})),
        (path(&member.id), json!({"role": "auditor"})),
        (path(&weak.id), json!({"scopes": "admin mcps:read audit:export"})),
        (path(strong), json!({"disabled": false})),
        (path(strong), json!({"disabled": null, "name": "t"})),
    ];
    for (path, body) in attempts {
        has!("{body}"; patch(&gateway, &weak, &path, None, &body).await, 400 "invalid_scope");
    }
    for body in [
        json!({"name": "x", "role": "admin"}),
        json!({"name": "x"}),
        json!({"name": "x", "kind": "service", "scopes": "admin audit:read"}),
    ] {
        let refused = gateway.post(&weak, "/v1/principals", &body.to_string()).await;
        assert_eq!(refused.refusal(), (400, "invalid_scope"), "{body}");
    }

    let able = json!({"name": "x", "kind": "service", "scopes": "admin mcps:read"});
    assert_eq!(gateway.post(&weak, "/v1/principals", &able.to_string()).await.status, 201);
    let down = patch(&gateway, &weak, &path(strong), None, &json!({"scopes": "mcps:read"})).await;
    assert_eq!(down.status, 200, "to take away is not to give: {}", down.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_admins_may_change_is_read_from_a_body() {
    // Only what admins may change is read from a body.
    let (gateway, admin) = serve(gateway());
    let made = gateway.post(&admin, "/v1/principals", "{\"name\": \"ana\"}").await;
    let path = format!("/v1/principals/{}", made.at("/data/id").as_str().unwrap());

    for body in [json!({"role": "admin", "kind": "service"}), json!({"id": "usr_x"})] {
        has!("{body}"; patch(&gateway, &admin, &path, None, &body).await, 400 "invalid_request");
    }
    let twice = gateway.request_of(&admin, Method::PATCH, &path);
    let twice = gateway.send(twice.body("{\"role\": \"admin\", \"role\": \"member\"}")).await;
    assert_eq!(twice.refusal(), (400, "invalid_request"));
    let array = gateway.send(gateway.request_of(&admin, Method::PATCH, &path).body("[]")).await;
    assert_eq!(array.refusal(), (400, "invalid_request"));
    let typed = gateway.request_of(&admin, Method::PATCH, &path);
    let typed = typed.header("content-type", "application/json-patch+json").body("{}");
    assert_eq!(gateway.send(typed).await.refusal(), (415, "unsupported_media_type"));
    assert_eq!(gateway.get(&admin, &path).await.at("/data"), made.at("/data"));
    for name in ["ana", "ANA"] {
        let body = json!({ "name": name }).to_string();
        let taken = gateway.post(&admin, "/v1/principals", &body).await;
        has!("{name}"; taken, 409 "conflict", "/error/details/reason": "name_taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_paged_and_filtered_and_who_is_disabled_is_refused_at_once() {
    // A disabled principal is refused at once and its tokens work again later.
    let (gateway, admin) = serve_admin(gateway().sample());
    let agent = gateway.service(&admin.org, "mcps:read");
    let path = format!("/v1/principals/{}", agent.id);
    gateway.get(&agent, "/v1/mcps").await.ok();

    patch(&gateway, &admin, &path, None, &json!({"disabled": true})).await.ok();
    let refused = gateway.get(&agent, "/v1/mcps").await;
    let state = gateway.get(&admin, &format!("/v1/tokens?principal={}", agent.id)).await;
    patch(&gateway, &admin, &path, None, &json!({"disabled": false})).await.ok();

    assert_eq!(refused.status, 401, "{}", refused.text);
    assert_eq!(members(&state, "state"), ["principal_disabled"]);
    gateway.get(&agent, "/v1/mcps").await.ok();

    // The list is paged and filtered.
    let admin = gateway.user(&fresh_org(&gateway), "admin", ALL_SCOPES);
    for name in ["a", "b", "c"] {
        let body = json!({"name": name}).to_string();
        assert_eq!(gateway.post(&admin, "/v1/principals", &body).await.status, 201);
    }
    let other = gateway.user(&gateway.org("other", &ENOUGH), "admin", ALL_SCOPES);
    let all = gateway.get(&admin, "/v1/principals").await;
    let of_a = items(&all).iter().find(|it| it["name"] == "a").unwrap()["id"].as_str().unwrap();
    let path = format!("/v1/principals/{of_a}");
    patch(&gateway, &admin, &path, None, &json!({"disabled": true})).await.ok();

    let mut seen = BTreeSet::new();
    let mut path = "/v1/principals?limit=2".to_owned();
    loop {
        let page = gateway.get(&admin, &path).await;
        seen.extend(members(&page, "id").into_iter().map(str::to_owned));
        let Some(cursor) = page.at("/meta/pagination/next_cursor").as_str() else { break };
        path = format!("/v1/principals?limit=2&cursor={cursor}");
        has!("a cursor of another org"; gateway.get(&other, &path).await, 400 "invalid_request");
    }

    assert_eq!(seen.len(), 4);
    let names = async |query: &str| {
        let page = gateway.get(&admin, &format!("/v1/principals?{query}")).await;
        members(&page, "name").into_iter().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(names("disabled=true").await, BTreeSet::from(["a".to_owned()]));
    assert_eq!(names("role=member&disabled=false").await.len(), 2);
    assert_eq!(names("role=admin").await.len(), 1);
    assert_eq!(names("q=ADM").await, BTreeSet::from(["admin".to_owned()]));
    assert!(names("q=dmin").await.is_empty());
    assert!(names("q=adm&role=member").await.is_empty());
    let long = format!("q={}", "x".repeat(65));
    for wrong in ["limit=0", &long] {
        let refused = gateway.get(&admin, &format!("/v1/principals?{wrong}")).await;
        assert_eq!(refused.refusal(), (400, "invalid_request"), "{wrong}");
    }
}
