//! Policies as the API shows them, and the filters on them.

use super::*;

const RULES: &str = r#"
// a comment
@id("no-prod-writes") @title("Read-only") @reason("production is read-only")
@tags("prod") @owner("platform")
forbid (principal in Mcp::Role::"member", action in Mcp::Action::"github:*", resource)
when { context.input has repo && context.input.repo like "prod-*" };
@id("mask") @phase("response") @redact("output: iban, email")
forbid (principal is Mcp::Service, action, resource);
@id("all") permit (principal, action == Mcp::Action::"github:write", resource is Mcp::Tool in Mcp::Provider::"github");
"#;

fn github() -> Vec<Arc<Capability>> {
    vec![tool("github:write", &json!({"repo": {"type": "string"}})), tool("a:b", &json!({}))]
}

#[test]
fn a_record_is_as_the_contract_shows_it() {
    let set = loaded(RULES, &github());
    let record = serde_json::to_value(set.find("no-prod-writes").unwrap().full()).unwrap();
    let version = record["version"].as_str().unwrap();

    assert!(version.starts_with("sha256:") && version.len() == 71);
    let source = record["source"].as_str().unwrap();
    assert!(source.starts_with("@id(\"no-prod-writes\")") && source.ends_with("};"), "{source}");
    assert_eq!(
        record,
        json!({
            "id": "no-prod-writes", "name": "no-prod-writes", "title": "Read-only",
            "description": null, "effect": "forbid", "kind": "rule", "status": "active",
            "phase": "request", "priority": 0, "severity": "medium",
            "reason": "production is read-only", "tags": ["prod"], "owner": "platform",
            "scope": {
                "principal": {"op": "in", "id": "Mcp::Role::\"member\""},
                "action": {"op": "in", "id": "github:*"},
                "resource": {"op": "any"},
            },
            "obligations": [], "reads": ["context.input.repo"], "version": version,
            "origin": {"type": "file", "path": "policies/test.cedar", "line": 3},
            "validation": {"valid": true, "warnings": []},
            "builtin": false, "source": source, "updated_at": "1970-01-01T00:00:00.000Z",
        })
    );
}

#[test]
fn the_list_has_no_sources_and_is_ordered_by_name_with_the_built_ins() {
    let set = loaded(RULES, &github());

    let names: Vec<&str> = set.records().iter().map(|record| &*record.id).collect();
    assert_eq!(
        names.join(" "),
        "all default-deny dlp-default mask no-prod-writes policy-error token-scopes tool-pinning"
    );
    for record in set.records() {
        let listed = serde_json::to_value(record).unwrap();
        assert!(listed.get("source").is_none());
        assert_eq!(set.find(&record.id).unwrap().id, record.id);
    }
    assert!(set.find("nope").is_none());
}

#[test]
fn scopes_and_obligations_are_shown() {
    let set = loaded(RULES, &github());

    let mask = serde_json::to_value(set.find("mask").unwrap()).unwrap();
    let all = serde_json::to_value(set.find("all").unwrap()).unwrap();

    assert_eq!(mask["scope"]["principal"], json!({"op": "is", "type": "Mcp::Service"}));
    assert_eq!(
        mask["obligations"],
        json!([{"id": "o1", "type": "redact",
                "properties": {"direction": "output", "detectors": ["email", "iban"]}}])
    );
    assert_eq!(mask["kind"], "obligation");
    assert_eq!(all["scope"]["action"], json!({"op": "eq", "id": "github:write"}));
    assert_eq!(
        all["scope"]["resource"],
        json!({"op": "is_in", "type": "Mcp::Tool", "id": "Mcp::Provider::\"github\""})
    );
}

#[test]
fn doubtful_policies_are_marked() {
    let table = [
        ("forbid (principal is Mcp::User, action, resource)", "no `@reason`"),
        ("permit (principal, action, resource)", "neither principals nor actions"),
        ("permit (principal in Mcp::Role::\"boss\", action, resource)", "nobody's"),
        ("permit (principal in Mcp::Scope::\"mcps:write\", action, resource)", "nobody's"),
        ("permit (principal == Mcp::User::\"ana\", action, resource)", "such as `usr_…`"),
        (
            "permit (principal is Mcp::Service, action, resource) \
             when { principal == Mcp::Service::\"usr_01M754BKTKX1YB8Q05NMW9TP4G\" }",
            "such as `sa_…`",
        ),
        (
            "permit (principal == Mcp::User::\"usr_01M754BKTKX1YB8Q05NMW9TP4G\", action, resource)",
            "",
        ),
        ("permit (principal == Mcp::Role::\"admin\", action, resource)", "never be true"),
        ("permit (principal == Mcp::Group::\"a\", action, resource)", "write `in`"),
        (
            "permit (principal is Mcp::User, action, resource == Mcp::Provider::\"github\")",
            "write `in`",
        ),
        (
            "permit (principal is Mcp::User, action, resource) when { context.input has nope }",
            "never be true",
        ),
        (
            "permit (principal is Mcp::User, action, resource) \
             when { principal.hasTag(\"scope\") && principal.getTag(\"scope\").contains(\"x\") }",
            "",
        ),
    ];
    for (policy, warning) in table {
        let set = loaded(&format!("@id(\"p\") {policy};"), &github());

        let warnings = set.find("p").unwrap().validation.warnings.join("\n");

        assert!(warnings.contains(warning), "{policy}: {warnings}");
        assert_eq!(warnings.is_empty(), warning.is_empty(), "{policy}: {warnings}");
    }
}

#[test]
fn the_summary_counts_policies_by_status() {
    let text = RULES.replace("@id(\"all\")", "@id(\"all\") @mode(\"shadow\")");

    let summary = loaded(&text, &github()).summary();

    assert_eq!((summary.active, summary.shadow, summary.disabled, summary.invalid), (2, 1, 0, 0));
}

#[test]
fn an_unchanged_policy_keeps_its_moment_across_a_reload() {
    let later = Timestamp::from_micros(5_000_000);
    let first = loaded(RULES, &github());
    let text = RULES.replace("prod-*", "live-*");

    let second = first.reload(vec![file(&text)], &catalogue(&github()), &DETECTORS, later);
    let second = second.unwrap();

    assert_eq!(second.find("all").unwrap().updated_at, Timestamp::default());
    assert_eq!(second.find("no-prod-writes").unwrap().updated_at, later);
    assert_eq!(second.summary().loaded_at, later);
}

#[test]
fn filters_tell_which_policies_concern_whom() {
    let set = loaded(RULES, &github());
    let tools = github();
    let those = |concerned: &dyn Fn(&str) -> bool| {
        let records = set.records().iter().filter(|it| !it.builtin && concerned(&it.id));
        records.map(|record| record.id.to_string()).collect::<Vec<_>>()
    };
    let by_tool = |tool: &Capability| those(&|id| set.applies_to_tool(id, tool));
    let by_principal = |text: &str| {
        let somebody: Somebody = text.parse().unwrap();
        those(&|id| set.concerns(id, &somebody))
    };

    assert_eq!(by_tool(&tools[0]), ["all", "mask", "no-prod-writes"]);
    assert_eq!(by_tool(&tools[1]), ["mask"]);
    assert_eq!(by_principal(&format!("usr_{ULID}")), ["all", "no-prod-writes"]);
    assert_eq!(by_principal(&format!("sa_{ULID}")), ["all", "mask", "no-prod-writes"]);
    assert_eq!(by_principal("Mcp::Role::\"admin\""), ["all", "mask"]);
    assert_eq!(by_principal("Mcp::Role::\"member\""), ["all", "mask", "no-prod-writes"]);
    assert_eq!("nonsense".parse::<Somebody>(), Err(SomebodyError));
    assert!(set.applies_to_tool("default-deny", &tools[0]));
    assert!(!set.applies_to_tool("nope", &tools[0]));
}

#[test]
fn access_is_what_scopes_alone_can_tell() {
    let permit = "@id(\"p\") permit (principal, action, resource);";
    let table = [
        ("", Access::Deny),
        ("@id(\"p\") permit (principal, action, resource);", Access::Allow),
        ("@id(\"p\") permit (principal in Mcp::Role::\"admin\", action, resource);", Access::Deny),
        ("@id(\"p\") permit (principal in Mcp::Group::\"x\", action, resource);", Access::Deny),
        (
            "@id(\"p\") permit (principal, action, resource) when { context.request.mfa };",
            Access::Conditional,
        ),
    ];
    let forbids = [
        ("@id(\"f\") forbid (principal, action, resource);", Access::Deny),
        ("@id(\"f\") forbid (principal is Mcp::Service, action, resource);", Access::Allow),
        ("@id(\"f\") @mode(\"shadow\") forbid (principal, action, resource);", Access::Allow),
        ("@id(\"f\") @phase(\"response\") forbid (principal, action, resource);", Access::Allow),
        (
            "@id(\"f\") @redact(\"input: *\") forbid (principal, action, resource);",
            Access::Conditional,
        ),
        (
            "@id(\"f\") forbid (principal, action, resource) when { context.request.mfa };",
            Access::Conditional,
        ),
    ];
    let forbids = forbids.map(|(text, access)| (format!("{permit}{text}"), access));
    let table = table.map(|(text, access)| (text.to_owned(), access));
    for (text, expected) in table.into_iter().chain(forbids) {
        let tools = github();

        let access = loaded(&text, &tools).access(&caller(Role::Member), &tools[0]);

        assert_eq!(access, expected, "{text}");
    }
}

#[test]
fn a_policy_that_another_makes_pointless_is_marked() {
    let all = "permit (principal, action in Mcp::Action::\"*:*\", resource)";
    let github = "permit (principal, action in Mcp::Action::\"github:*\", resource)";
    let write =
        "permit (principal is Mcp::User, action == Mcp::Action::\"github:write\", resource)";
    let denied = write.replace("permit", "forbid");
    let when = "when { context.request.mfa }";
    let table = [
        (all, github, true),
        (github, all, false),
        (github, write, true),
        (write, github, false),
        (github, &format!("{write} {when}"), true),
        (&format!("{github} {when}"), write, false),
        (github, &denied, false),
        (&github.replace("permit", "@phase(\"response\") forbid"), &denied, false),
        (&format!("@mode(\"shadow\") {github}"), write, false),
        (&format!("@mode(\"disabled\") {github}"), write, false),
        (write, write, true),
        ("permit (principal in Mcp::Role::\"admin\", action, resource)", write, false),
    ];
    for (wide, narrow, expected) in table {
        let text = format!("@id(\"a\") {wide}; @id(\"b\") {narrow};");
        let set = loaded(&text, &self::github());

        let marked = |id: &str| {
            let warnings = set.find(id).unwrap().validation.warnings.join(" ");
            warnings.contains("changes no decision")
        };
        assert_eq!(marked("b"), expected, "{text}");
    }
}
