//! `GET /v1/policies`, `GET /v1/policies/{id}`: the policies in force, and how they come to be.

use portcullis_testkit::tool;

use crate::{policy_commands::assert_printed, prelude::*};

const POLICIES: &str = r#"@id("base")
@title("Everybody may do everything")
permit (principal, action, resource);

@id("no-notes")
@description("Notes are for people.")
@reason("Services do not write notes")
@severity("high")
@priority("7")
@tags("notes, writes")
forbid (principal in Mcp::Role::"service", action == Mcp::Action::"sample:create_note", resource);

@id("short-lists")
@mode("shadow")
forbid (principal, action == Mcp::Action::"sample:list_items", resource)
when { context has input && context.input has limit && context.input.limit > 100 };

@id("switched-off")
@mode("disabled")
forbid (principal, action, resource);
"#;

const BUILTINS: [&str; 5] =
    ["default-deny", "dlp-default", "policy-error", "token-scopes", "tool-pinning"];

pub(super) fn write(gateway: &Gateway, text: &str) {
    fs::write(gateway.folder().join("policies/test.cedar"), text).unwrap();
}

/// The policies in force.
pub(super) async fn set(gateway: &Gateway, who: &Principal) -> Answer {
    gateway.get(who, "/v1/policies").await
}

/// The same, once a policy of this name is one of them.
pub(super) async fn set_with(gateway: &Gateway, who: &Principal, id: &str) -> Answer {
    until(|| set(gateway, who), |it| members(it, "id").contains(&id)).await
}

/// The same, once the last reading of the folder ended like this.
pub(super) async fn set_read(gateway: &Gateway, who: &Principal, status: &str) -> Answer {
    until(|| set(gateway, who), |it| it.at("/data/policy_set/last_reload/status") == status).await
}

/// Admins of two orgs, on a gateway with the policies that `policies` makes of them.
pub(super) fn of_two_orgs(
    policies: impl FnOnce(&Principal, &Principal) -> String,
) -> (Gateway, Principal, Principal) {
    let mut gateway = gateway().sample().policies("").prepare();
    let [ours, theirs] = ["acme", "other"]
        .map(|name| gateway.user(&gateway.org(name, &ENOUGH), "admin", ALL_SCOPES));
    write(&gateway, &policies(&ours, &theirs));
    gateway.start();
    (gateway, ours, theirs)
}

async fn note(gateway: &Gateway, who: &Principal) -> String {
    let input = json!({"title": "a", "text": "b"});
    let answer = gateway.invoke(who, "sample:create_note", input).await;
    let policy = answer.at("/governance/policy").as_str().unwrap_or("none").to_owned();
    format!("{} {policy}", answer.status.as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_listed_filtered_read_again_and_named_once() {
    // Policies are listed by id and filtered.
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    let person = gateway.user(&who.org, "auditor", "policies:read");
    let all = "base default-deny dlp-default no-notes policy-error short-lists switched-off \
               token-scopes tool-pinning";

    for (query, wanted) in [
        ("", all),
        ("?status=shadow,disabled", "short-lists switched-off"),
        ("?effect=permit", "base"),
        ("?tag=writes", "no-notes"),
        ("?tag=write", ""),
        ("?q=NOTES", "no-notes"),
        ("?q=everybody+may", "base"),
        ("?tool=sample:create_note&status=active&effect=permit", "base"),
        ("?tool=sample:slow_echo&q=no-notes", ""),
        ("?tool=sample:create_note&q=no-notes", "no-notes"),
    ] {
        let answer = gateway.get(&person, &format!("/v1/policies{query}")).await;
        assert_eq!(members(&answer, "id").join(" "), wanted, "{query}");
        assert_enveloped(&answer, query);
    }
    let page = gateway.get(&who, "/v1/policies?limit=4").await;
    let cursor = page.at("/meta/pagination/next_cursor").as_str().unwrap();
    let rest = gateway.get(&who, &format!("/v1/policies?cursor={cursor}")).await;
    assert_eq!([members(&page, "id"), members(&rest, "id")].concat().join(" "), all);
    has!(gateway.get(&who, "/v1/policies?tool=sample:nothing").await, 404 "not_found");
    let loaded = page.at("/data/policy_set");
    let numbers = json!([loaded["active"], loaded["shadow"], loaded["disabled"]]);
    assert_eq!(numbers.to_string(), "[2,1,1]", "{loaded}");
    assert_eq!(loaded["last_reload"]["status"], "ok");
    assert!(loaded["version"].as_str().unwrap().starts_with("sha256:"));

    // A hangup loads the folder again.
    let tried = "/data/policy_set/last_reload/at";
    let before = set(&gateway, &who).await;

    gateway.hang_up();

    let after = until(|| set(&gateway, &who), |it| it.at(tried) != before.at(tried)).await;
    assert_eq!(after.at("/data/policy_set/version"), before.at("/data/policy_set/version"));

    // Two policies of one name are refused.
    let twice = "@id(\"base\")\nforbid (principal, action, resource);\n";
    fs::write(gateway.folder().join("policies/twice.cedar"), twice).unwrap();

    let failed = set_read(&gateway, &who, "failed").await;
    let error = failed.at("/data/policy_set/last_reload/errors/0");
    has!(error, "/path": "twice.cedar", "/policy": "base");
    assert_eq!(note(&gateway, &who).await, "403 no-notes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_shown_with_its_source_wherever_its_file_lies() {
    // A policy is shown with its source and whatever decides can be read.
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));

    let one = gateway.get(&who, "/v1/policies/no-notes").await;

    let record = one.at("/data");
    has!(record, "/id": "no-notes", "/name": "no-notes", "/effect": "forbid", "/status": "active",
        "/severity": "high", "/phase": "request");
    assert_eq!(record["priority"].to_string(), "7");
    has!(record, "/reason": "Services do not write notes", "/description": "Notes are for people.",
        "/tags": ["notes", "writes"], "/origin/path": "policies/test.cedar");
    assert_eq!(record["origin"]["line"].to_string(), "5");
    assert_eq!((&record["builtin"], &record["validation"]["valid"]), (&json!(false), &json!(true)));
    assert!(record["source"].as_str().unwrap().starts_with("@id(\"no-notes\")"), "{record}");
    let note = json!({"title": "a", "text": "b"});
    let denied = gateway.invoke(&who, "sample:create_note", note).await;
    has!(denied, 403 "policy_denied", "/error/details/policy": "no-notes",
        "/error/details/reason": "Services do not write notes");
    let event = gateway.event(&who, denied.event_id()).await;
    let version = event.at("/data/governance/policy_version").as_str().unwrap();
    assert_eq!(record["version"], version);
    let list = set(&gateway, &who).await;
    assert_eq!(event.at("/data/governance/policy_set"), list.at("/data/policy_set/version"));
    for (path, status) in [
        (format!("no-notes?version={version}"), 200),
        (format!("base?version={version}"), 404),
        ("no-notes?version=sha256:00".to_owned(), 404),
        ("nothing".to_owned(), 404),
        ("NO-NOTES".to_owned(), 404),
    ] {
        let answer = gateway.get(&who, &format!("/v1/policies/{path}")).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
    }
    for id in BUILTINS {
        let answer = gateway.get(&who, &format!("/v1/policies/{id}")).await;
        assert_eq!(answer.at("/data/builtin"), true, "{id}: {}", answer.text);
        assert!(answer.at("/data/description").is_string(), "{id}");
    }

    // Files come and go in folders and those of editors are not looked at.
    let policies = gateway.folder().join("policies");
    std::os::unix::fs::symlink("nobody@nowhere.1234", policies.join(".#test.cedar")).unwrap();
    fs::write(policies.join("notes.txt"), "permit (").unwrap();
    fs::write(policies.join(".hidden.cedar"), "permit (").unwrap();
    fs::create_dir(policies.join("team")).unwrap();

    let more = "@id(\"more\")\nforbid (principal, action, resource);\n";
    fs::write(policies.join("team/more.cedar"), more).unwrap();
    let more = set_with(&gateway, &who, "more").await;
    assert_eq!(more.at("/data/policy_set/last_reload/status"), "ok", "{}", more.text);
    let record = gateway.get(&who, "/v1/policies/more").await;
    assert_eq!(record.at("/data/origin/path"), "policies/team/more.cedar");

    fs::rename(policies.join("team"), policies.join("away")).unwrap();
    fs::remove_file(policies.join("away/more.cedar")).unwrap();
    until(|| set(&gateway, &who), |it| !members(it, "id").contains(&"more")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_in_force_soon_and_neither_a_broken_nor_an_emptied_folder_is_taken() {
    // An edit is in force soon and a broken one leaves the last good set.
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    let before = set(&gateway, &who).await;
    assert_eq!(note(&gateway, &who).await, "403 no-notes");

    let fine = "@id(\"fine\")\npermit (principal, action, resource);\n";
    let off = "@id(\"off\") @mode(\"disabled\")\npermit (principal, action, resource);\n";
    write(&gateway, &format!("{fine}{off}"));
    set_with(&gateway, &who, "fine").await;
    assert_eq!(note(&gateway, &who).await, "200 fine");

    write(&gateway, &format!("{fine}\n@id(\"bad\")\npermit (principal,\n  oops\n"));
    let broken = set_read(&gateway, &who, "failed").await;
    let error = broken.at("/data/policy_set/last_reload/errors/0");
    assert_eq!(error["path"], "test.cedar", "{error}");
    let place = (error["line"].as_u64().unwrap(), error["column"].as_u64().unwrap());
    assert!((6..=7).contains(&place.0) && place.1 >= 1, "{error}");
    assert!(error["code"].is_string() && error["message"].is_string(), "{error}");
    assert!(members(&broken, "id").contains(&"fine"));
    assert_eq!(note(&gateway, &who).await, "200 fine");

    write(&gateway, POLICIES);
    // The set is in force a moment before it is told that it was read.
    let fixed = set_read(&gateway, &who, "ok").await;
    assert!(members(&fixed, "id").contains(&"no-notes"));
    assert_eq!(fixed.at("/data/policy_set/last_reload/errors"), &json!([]));
    assert_eq!(fixed.at("/data/policy_set/version"), before.at("/data/policy_set/version"));
    assert_eq!(note(&gateway, &who).await, "403 no-notes");
    let changes = list_of(&gateway, &who, "policy.changed", "").await;
    assert_eq!(changes.len(), 2, "two sets came into force: {changes:?}");
    assert_eq!(&changes[1]["target"]["id"], before.at("/data/policy_set/version"));

    // An emptied folder is taken only when it is meant and then denies every call.
    fs::remove_file(gateway.folder().join("policies/test.cedar")).unwrap();
    let refused = set_read(&gateway, &who, "failed").await;
    let error = refused.at("/data/policy_set/last_reload/errors/0");
    assert_eq!(error["code"], "too_few_policies", "{error}");
    assert_eq!(note(&gateway, &who).await, "403 no-notes", "the last good set stays");

    let reloaded = run(&gateway, &["policy", "reload"]).await;

    assert_printed(&reloaded, 0, "decides by the set sha256:");
    assert_eq!(members(&set(&gateway, &who).await, "id"), BUILTINS);
    assert_eq!(note(&gateway, &who).await, "403 default-deny");
    assert_printed(&run(&gateway, &["policy", "diff"]).await, 0, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbid_that_no_longer_fits_its_tool_denies_it_and_says_so() {
    let mut strict = tool("a");
    strict["inputSchema"] = json!({"type": "object", "properties": {"limit": {"type": "integer"}}});
    let server = McpServer::start(vec![strict.clone(), tool("b")]).await;
    let policies = r#"@id("base") permit (principal, action, resource);
        @id("limit") forbid (principal, action == Mcp::Action::"other:a", resource)
        when { context has input && context.input has limit && context.input.limit > 100 };"#;
    let more = "protocol = \"legacy\"\npin = \"off\"";
    let (gateway, who) = serve(gateway().http("other", &server.url(), more).policies(policies));
    assert_eq!(gateway.invoke(&who, "other:a", json!({"limit": 5})).await.status, 200);

    strict["inputSchema"]["properties"]["limit"]["type"] = json!("string");
    server.change_tools(vec![strict, tool("b")]);
    let limit = || gateway.get(&who, "/v1/policies/limit");
    let record = until(limit, |it| it.at("/data/validation/valid") == false).await;

    let error = record.at("/data/validation/errors/0").to_string();
    assert!(error.contains("other:a"), "{}", record.text);
    let call = gateway.invoke(&who, "other:a", json!({"limit": "5"})).await;
    has!(call, 403, "/governance/policy": "policy-error");
    assert_eq!(gateway.invoke(&who, "other:b", json!({})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_and_statistics_of_another_org_are_nobody_elses() {
    let (gateway, ours, theirs) = of_two_orgs(|ours, theirs| {
        format!(
            "@id(\"everybody\") permit (principal, action, resource);\n\
             @id(\"their-org\") permit (principal in Mcp::Org::\"{other}\", action, resource);\n\
             @id(\"their-user\") forbid (principal == Mcp::User::\"{user}\", \
                 action == Mcp::Action::\"sample:create_note\", resource);\n\
             @id(\"their-condition\") permit (principal, action, resource) \
                 when {{ principal in Mcp::Org::\"{other}\" }};\n\
             @id(\"our-org\") permit (principal in Mcp::Org::\"{own}\", action, resource);\n\
             @id(\"our-user\") permit (principal == Mcp::User::\"{me}\", action, resource);",
            other = theirs.org,
            user = theirs.id,
            own = ours.org,
            me = ours.id,
        )
    });
    let listed = async |who: &Principal| {
        let answer = gateway.get(who, "/v1/policies").await;
        let all = members(&answer, "id").into_iter().filter(|id| !BUILTINS.contains(id));
        all.map(str::to_owned).collect::<Vec<_>>()
    };

    let of_ours = listed(&ours).await;
    let of_theirs = listed(&theirs).await;

    assert_eq!(of_ours, ["everybody", "our-org", "our-user"]);
    assert_eq!(of_theirs, ["everybody", "their-condition", "their-org", "their-user"]);
    let path = |id: &str| format!("/v1/policies/{id}");
    for id in &of_theirs[1..] {
        has!("{id}"; gateway.get(&ours, &path(id)).await, 404 "not_found");
        let shown = gateway.get(&theirs, &path(id)).await;
        assert_eq!(shown.status, 200, "{id}: {}", shown.text);
        let version = shown.at("/data/version").as_str().unwrap();
        let versioned = format!("{}?version={version}", path(id));
        assert_eq!(gateway.get(&ours, &versioned).await.status, 404, "{id}");
        let kept = until(|| gateway.get(&theirs, &versioned), |answer| answer.status == 200);
        assert_eq!(kept.await.at("/data/id"), id.as_str());
    }
    for _ in 0..3 {
        gateway.invoke(&theirs, "sample:list_items", json!({})).await.ok();
    }
    let matched = async |who: &Principal| {
        let answer = gateway.get(who, "/v1/policies/everybody").await;
        answer.at("/data/stats/matched").as_u64().unwrap()
    };
    assert_eq!((matched(&ours).await, matched(&theirs).await), (0, 3));
}
