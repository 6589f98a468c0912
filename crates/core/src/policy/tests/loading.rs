//! Files that do not load: every error, with its place.

use super::*;

fn gh() -> Vec<Arc<Capability>> {
    vec![
        tool("github:create-issue", &json!({"repo": {"type": "string"}})),
        tool("github:list.repos", &json!({"limit": {"type": "integer"}})),
    ]
}

/// `line:column code` of every error.
fn places(text: &str) -> Vec<String> {
    let errors = load(text, &gh()).err().unwrap_or_default();
    errors.iter().map(|e| format!("{}:{} {}", e.line, e.column, e.code)).collect()
}

#[test]
fn what_is_wrong_with_an_annotation_is_said_where_it_stands() {
    let table = [
        ("", "forbid", "1:1 missing_id"),
        ("@id(\"\")", "forbid", "1:1 invalid_id"),
        ("@id(\"Upper\")", "forbid", "1:1 invalid_id"),
        ("@id(\"-a\")", "forbid", "1:1 invalid_id"),
        (&format!("@id(\"{}\")", "a".repeat(129)), "forbid", "1:1 invalid_id"),
        ("@id(\"default-deny\")", "forbid", "1:1 reserved_id"),
        ("@id(\"a\")\n  @raeson(\"x\")", "forbid", "2:3 unknown_annotation"),
        ("@id(\"a\") @step_up(\"x\")", "forbid", "1:10 not_supported_yet"),
        ("@id(\"a\") @require_approval(\"x\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @rate_limit(\"x\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @rate_limit(\"1/1h\")", "permit", "1:10 obligation_on_permit"),
        ("@id(\"a\") @notify(\"x\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @notify(\"webhook:x\")", "forbid", "1:10 unknown_webhook"),
        ("@id(\"a\") @notify(\"log\")", "permit", "1:10 obligation_on_permit"),
        ("@id(\"a\") @log(\"x\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @mode(\"off\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @phase(\"later\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @locked(\"false\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @priority(\"high\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @severity(\"awful\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @reason(\" \")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @redact(\"email\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @redact(\"both: email\")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @redact(\"output: \")", "forbid", "1:10 invalid_annotation"),
        ("@id(\"a\") @redact(\"output: emial\")", "forbid", "1:10 unknown_detector"),
        ("@id(\"a\") @redact(\"output: *\")", "permit", "1:10 obligation_on_permit"),
        ("@id(\"a\") @phase(\"response\")", "permit", "1:10 permit_in_response"),
        ("@id(\"a\") @phase(\"response\") @redact(\"input: *\")", "forbid", "1:29 too_late"),
        ("@id(\"a\") @phase(\"response\") @rate_limit(\"1/1h\")", "forbid", "1:29 too_late"),
    ];
    for (annotations, effect, expected) in table {
        let text = format!("{annotations} {effect} (principal, action, resource);");
        assert_eq!(places(text.trim_start()), [expected], "{text}");
    }
}

#[test]
fn a_policy_is_locked_by_an_annotation_without_value() {
    let set = loaded(
        "@id(\"a\") @locked forbid (principal, action, resource);
         @id(\"b\") forbid (principal, action, resource);",
        &gh(),
    );

    let locked = |id: &str| set.find(id).map(|record| record.locked);
    assert_eq!(
        (locked("a"), locked("b"), locked("default-deny")),
        (Some(true), Some(false), Some(true))
    );
}

#[test]
fn every_annotation_that_is_known_loads() {
    let set = loaded(
        r#"@id("a.b_c-1") @title("T") @description("D") @reason("R") @severity("critical")
           @priority("-5") @mode("shadow") @phase("response") @tags("x, y,, ") @owner("o")
           @redact("output: email, iban") @notify("log")
           forbid (principal, action, resource);"#,
        &gh(),
    );

    let record = set.find("a.b_c-1").unwrap();
    assert_eq!((record.priority, record.status), (-5, Status::Shadow));
    assert_eq!(record.tags, ["x", "y"]);
}

/// A policy with this scope.
fn with(scope: &str) -> String {
    format!("@id(\"a\") @reason(\"r\")\nforbid ({scope});")
}

#[test]
fn names_in_a_policy_must_be_there() {
    let table = [
        ("principal, action == Mcp::Action::\"github:create-isue\", resource", "unknown_action"),
        ("principal, action in Mcp::Action::\"hint:readonly\", resource", "unknown_action"),
        ("principal, action in Mcp::Action::\"read_only\", resource", "unknown_action"),
        ("principal, action == Mcp::Action::\"github:*\", resource", "group_compared"),
        ("principal, action, resource == Mcp::Tool::\"github:nope\"", "unknown_tool"),
        ("principal in Mcp::Rolle::\"admin\", action, resource", "unknown_entity_type"),
        ("principal is Mcp::Role, action, resource", "unknown_entity_type"),
        ("principal, action, resource is Mcp::Provider", "unknown_entity_type"),
    ];
    for (scope, code) in table {
        let errors = load(&with(scope), &gh()).unwrap_err();

        assert!(errors.iter().any(|error| error.code == code), "{scope}: {errors:#?}");
        assert!(errors.iter().all(|error| error.line == 2), "{scope}: {errors:#?}");
    }
}

#[test]
fn a_provider_that_is_gone_is_a_warning() {
    for scope in [
        "principal, action in Mcp::Action::\"old:*\", resource",
        "principal, action in [Mcp::Action::\"old:list\", Mcp::Action::\"github:*\"], resource",
        "principal, action, resource in Mcp::Provider::\"old\"",
        "principal, action, resource == Mcp::Tool::\"old:list\"",
    ] {
        let set = load(&with(scope), &gh()).unwrap();

        let warnings = set.find("a").unwrap().validation.warnings.join("\n");
        assert!(warnings.contains("no such provider is configured"), "{scope}: {warnings}");
    }
}

#[test]
fn an_unknown_name_points_at_itself() {
    let text =
        "@id(\"a\")\npermit (principal,\n  action == Mcp::Action::\"github:nope\", resource);";

    let errors = load(text, &gh()).unwrap_err();

    assert_eq!(
        errors[0].to_string(),
        "test.cedar:3:26: `github:nope`: the provider has no such tool, prompt or skill"
    );
    assert_eq!(errors.len(), 1);
}

#[test]
fn conditions_are_checked_against_the_tools_they_can_meet() {
    let on = |scope: &str, when: &str| {
        format!(
            "@id(\"a\") @reason(\"r\") forbid (principal, {scope}, resource)\nwhen {{ {when} }};"
        )
    };
    let list = "action == Mcp::Action::\"github:list.repos\"";
    let table = [
        (list, "context.input has limit && context.input.limit > 1", None),
        (list, "context.input.limit > 1", Some("2:8 unguarded_attribute")),
        (list, "context.input.limt > 1", Some("2:8 unknown_attribute")),
        (list, "context.input has limit && context.input.limit == \"1\"", Some("type_mismatch")),
        (list, "context.facts.x == 1", Some("unknown_attribute")),
        (list, "principal.hasTag(\"x\") && principal.getTag(\"x\").contains(\"y\")", None),
        (list, "principal.getTag(\"x\").contains(\"y\")", Some("unguarded_tag")),
        (list, "resource.read_only && resource.provider == \"github\"", None),
        (list, "context.request.hour_utc < 8 || context.request.weekday > 5", None),
        (list, "context.request has ip && context.request.ip.isInRange(ip(\"10.0.0.0/8\"))", None),
        (list, "context has agent && context.agent.kind == \"service\"", None),
        ("action", "context.input has limit && context.input.limit > 1", None),
        ("action", "context.input.limit > 1", Some("unknown_attribute")),
        ("action in Mcp::Action::\"github:*\"", "context.input.repo == \"x\"", Some("attribute")),
        ("action", "context has output && context.output.x == 1", None),
        ("action", "context.output.x == 1", Some("unknown_attribute")),
        ("action", "context.dlp_output.count > 0", Some("unguarded_attribute")),
        ("action", "Mcp::Tool::\"github:list.repos\".read_only", Some("2:8 absent_entity")),
        ("action", "Mcp::Group::\"a\" in Mcp::Group::\"b\"", Some("2:8 absent_entity")),
    ];
    for (scope, when, expected) in table {
        let found = places(&on(scope, when));
        match expected {
            None => assert!(found.is_empty(), "{when}: {found:?}"),
            Some(code) => assert!(found.iter().any(|f| f.contains(code)), "{when}: {found:?}"),
        }
    }
}

#[test]
fn every_error_of_every_file_is_given_at_once() {
    let all = "(principal, action, resource)";
    let two = format!("@id(\"x\") permit {all};\n").repeat(2);
    let files = [
        ("b.cedar", "permit (;".to_owned()),
        ("a.cedar", format!("{two}@id(\"y\") @mood(\"\") permit {all};")),
        ("c.cedar", "// ä\n@id(\"ä\") nope".to_owned()),
        ("d.cedar", "/".repeat(MAX_FILE_BYTES + 1)),
    ];
    let files = files.map(|(path, text)| PolicyFile { path: path.to_owned(), text });

    let errors = load_files(files.into(), &gh()).unwrap_err();

    let places: Vec<String> =
        errors.iter().map(|e| format!("{}:{} {}", e.path, e.line, e.code)).collect();
    assert_eq!(
        places,
        [
            "a.cedar:2 duplicate_id", "a.cedar:3 unknown_annotation", "b.cedar:1 syntax",
            "c.cedar:2 syntax", "d.cedar:1 file_too_large",
        ]
    );
}

#[test]
fn an_error_names_the_cure() {
    let number = json!({"amount": {"type": "number"}, "count": {"type": "integer"}, "name": {"type": "string"}});
    let mut definition = tool("bank:pay", &number).definition.clone();
    definition.input_schema["required"] = json!(["amount", "count", "name"]);
    let provider: ProviderSlug = "bank".parse().unwrap();
    let tools = [Arc::new(Capability::new(&provider, definition, Timestamp::default()).unwrap())];
    let of = |when: &str, rest: &str| {
        format!(
            "@id(\"a\") @reason(\"r\") forbid (principal, action == Mcp::Action::\"bank:pay\", resource)\n\
             when {{ {when} }}{rest}"
        )
    };
    let decimal = "`context.input.amount.greaterThan(decimal(\"1000.0\"))`";
    for (text, cure) in [
        (of("context.input.amount > 1000", ";"), decimal),
        (of("context.input.amount == 1000", ";"), "`== decimal(\"1000.0\")`"),
        (of("context.input.amount > 1000.0", ";"), "`decimal(\"1000.0\")`"),
        (of("context.input.count.greaterThan(decimal(\"1.0\"))", ";"), "by `>`"),
        (of("context.input.name.matches(\"a.*\")", ";"), "`like \"…*\"`"),
        (
            of("true", "\n@id(\"b\") permit (principal, action, resource);"),
            "is a `;` missing before it?",
        ),
        (of("true", ";").replace("reason", "reasn"), "(did you mean `reason`?)"),
        (
            of("true", ";").replace("reason(\"r\")", "redact(\"output: emial\")"),
            "(did you mean `email`?)",
        ),
        (of("true", "\npermit (principal, action, resource);"), "is a `;` missing before it?"),
    ] {
        let errors = load(&text, &tools).unwrap_err();

        assert!(errors.iter().any(|error| error.message.contains(cure)), "{text}: {errors:#?}");
    }
    assert!(
        load(&of("context.input.amount.greaterThan(decimal(\"1000.0\"))", ";"), &tools).is_ok()
    );
}

#[test]
fn templates_are_refused() {
    let found = places("@id(\"a\") permit (principal == ?principal, action, resource);");

    assert_eq!(found, ["1:1 template"]);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_no_error() {
    let text = "\u{feff}@id(\"a\")\r\npermit (principal, action, resource);\r\n";

    assert!(load(text, &gh()).is_ok());
}

#[test]
fn the_version_ignores_white_space_and_comments_only() {
    let one = loaded("@id(\"a\") permit (principal, action, resource);", &gh());
    let same = loaded("// hi\n@id(\"a\")\npermit(principal,action,resource) ;", &gh());
    let other = loaded("@id(\"a\") permit (principal is Mcp::User, action, resource);", &gh());

    assert_eq!(one.version(), same.version());
    assert_ne!(one.version(), other.version());
    assert!(one.version().starts_with("sha256:"));
    assert_eq!(one.find("a").unwrap().version, same.find("a").unwrap().version);
}

#[test]
fn an_empty_folder_denies_everything() {
    let set = load_files(Vec::new(), &gh()).unwrap();

    let decision = ask(&set, &gh()[0], &json!({}));

    assert_eq!(said(&decision), "deny default-deny");
    assert_eq!(reason(&decision), "No policy permits this call");
}

#[test]
fn awkward_schemas_load_and_their_open_members_cannot_be_read() {
    let awkward = tool(
        "odd:tool.v2-x",
        &json!({
            "a b": {"type": "string"}, "": {"type": "string"}, "\u{202e}\"\\": {"type": "boolean"},
            "__entity": {"type": "string"}, "type": {"type": "integer"},
            "free": {}, "union": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "loop": {"$ref": "#"}, "map": {"type": "object", "additionalProperties": true},
        }),
    );
    let policy =
        |when: &str| format!("@id(\"a\") permit (principal, action, resource) when {{ {when} }};");
    for when in [
        r#"context.input has "a b" && context.input["a b"] == "x""#,
        r#"context.input has "" && context.input[""] == "x""#,
        r#"context.input has "__entity" && context.input["__entity"] == "x""#,
        r#"context.input has "type" && context.input["type"] > 1"#,
    ] {
        let set = load(&policy(when), &[Arc::clone(&awkward)]);
        assert!(set.is_ok(), "{when}: {:#?}", set.err());
    }
    for name in ["free", "union", "map"] {
        let set = load(&policy(&format!("context.input.{name} == \"x\"")), &[Arc::clone(&awkward)]);
        assert_eq!(set.unwrap_err()[0].code, "unknown_attribute", "{name}");
    }
}

/// One condition of each shape that nests, `depth` deep.
fn nested(depth: usize) -> Vec<String> {
    let mfa = "context.request.mfa";
    let condition = |text: String| {
        format!("@id(\"a\") permit (principal, action, resource) when {{ {text} }};")
    };
    let lists = format!("{}1{}", "[".repeat(depth.min(60)), "]".repeat(depth.min(60)));
    let shapes = vec![
        format!("{}true{}", "(".repeat(depth.min(60)), ")".repeat(depth.min(60))),
        format!("{lists} == {lists}"),
        vec![mfa; depth].join(" && "),
        vec![mfa; depth].join(" || "),
        format!("1{} > 0", " + 1".repeat(depth)),
        format!("{}{mfa}", "!".repeat(depth.min(4))),
        format!("{}true", format!("if {mfa} then false else ").repeat(depth)),
    ];
    shapes.into_iter().map(condition).collect()
}

#[test]
fn the_deepest_policies_that_are_parsed_can_be_parsed_and_evaluated() {
    let tools = gh();
    for text in nested(490) {
        let set = load(&text, &tools);

        let set = set.unwrap_or_else(|errors| panic!("{}: {errors:?}", &text[..80]));
        // Any answer will do.
        drop(ask(&set, &tools[0], &json!({})));
    }
}

#[test]
fn a_policy_nested_as_deep_as_a_file_is_long_is_refused() {
    let texts = ["(", "[", "{", "!", "-", "if true then true else ", "true && ", "1 + ", "1 * "];
    for text in texts {
        let condition = text.repeat(20_000);
        let policy = format!("@id(\"a\") permit (principal, action, resource) when {{ {condition}");

        assert!(places(&policy)[0].ends_with("too_deep"), "{text}");
    }
}

#[test]
fn brackets_and_operators_in_texts_and_comments_do_not_nest() {
    let noise = "([{!+-*&&||if".repeat(200);
    let text = format!(
        "// {noise}\n@id(\"a\") @reason(\"\\\"{}\") // {noise}\npermit (principal, action, resource);",
        "([{!+-*".repeat(200)
    );

    assert!(load(&text, &gh()).is_ok(), "{:?}", load(&text, &gh()).err());
}
