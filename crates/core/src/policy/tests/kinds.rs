//! Tools and prompts under one law: groups, resources and names of both.

use super::*;

/// A tool and a prompt of one name, and a prompt of another provider.
fn both() -> Vec<Arc<Capability>> {
    let prompt = |slug: &str, name: &str| {
        let definition =
            Definition::prompt(name.parse().unwrap(), json!([{"name": "who", "required": true}]));
        let provider: ProviderSlug = slug.parse().unwrap();
        Arc::new(Capability::new(&provider, definition, Timestamp::default()).unwrap())
    };
    let hints = json!({"readOnlyHint": false});
    vec![
        tool_with("crm:greet", &json!({"who": {"type": "string"}}), &hints, None),
        prompt("crm", "greet"),
        prompt("mail", "greet"),
    ]
}

#[test]
fn names_of_prompts_are_checked_as_those_of_tools() {
    let all = both();
    for (scope, code) in [
        ("action == Mcp::Action::\"prompt:crm:gret\", resource", "unknown_action"),
        ("action == Mcp::Action::\"prompt:greet\", resource", "unknown_action"),
        ("action == Mcp::Action::\"kind:prompt\", resource", "group_compared"),
        ("action == Mcp::Action::\"provider:crm\", resource", "group_compared"),
        ("action in Mcp::Action::\"kind:event\", resource", "unknown_action"),
        ("action == Mcp::Action::\"skill:crm\", resource", "unknown_action"),
        ("action, resource == Mcp::Prompt::\"crm:nope\"", "unknown_prompt"),
        ("action, resource == Mcp::Prompt::\"prompt:crm:greet\"", "unknown_prompt"),
    ] {
        let errors = load(&format!("@id(\"p\") permit (principal, {scope});"), &all).unwrap_err();

        assert_eq!(errors[0].code, code, "{scope}");
    }
}

/// A listed resource, a template and what the provider does not list.
fn resources() -> Vec<Arc<Capability>> {
    let crm: ProviderSlug = "crm".parse().unwrap();
    let of = |kind, name: &str| {
        let name = CapabilityName::of_kind(kind, name).unwrap();
        Definition::resource(kind, name, json!({"mimeType": "text/plain"}))
    };
    let all = [
        of(CapabilityKind::Resource, "notes://team/a"),
        of(CapabilityKind::Template, "notes://files/{name}"),
        Definition::unlisted(),
    ];
    let made = all.map(|it| Capability::new(&crm, it, Timestamp::default()).unwrap());
    made.into_iter().map(Arc::new).collect()
}

#[test]
fn reads_of_resources_are_judged_by_their_uris() {
    let all = resources();
    let uris = ["notes://team/a", "notes://files/b", "https://open.example/x"];
    // Scope and condition: the listed one, the one of a template, the one that is not listed.
    for (scope, wanted) in [
        ("action, resource", [true, true, false]),
        ("action in Mcp::Action::\"*:*\", resource", [true, true, false]),
        ("action in Mcp::Action::\"kind:resource\", resource", [true, true, false]),
        ("action in Mcp::Action::\"provider:crm\", resource", [true, true, false]),
        ("action in Mcp::Action::\"hint:read_only\", resource", [true, true, false]),
        ("action in Mcp::Action::\"crm:*\", resource", [false, false, false]),
        (
            "action == Mcp::Action::\"resource:crm\", resource == Mcp::Resource::\"crm\"",
            [true, true, false],
        ),
        ("action == Mcp::Action::\"resource:mail\", resource", [false, false, false]),
    ] {
        let set = loaded(&format!("@id(\"p\") permit (principal, {scope});"), &all);
        let warnings = set.find("p").unwrap().validation.warnings.join("\n");
        assert!(!warnings.contains("it is a group"), "{scope}: {warnings}");
        let found = all
            .iter()
            .zip(uris)
            .map(|(it, uri)| said(&ask(&set, it, &json!({"uri": uri}))) == "allow p");

        assert_eq!(found.collect::<Vec<_>>(), wanted, "{scope}");
    }
    let other = "@id(\"p\") permit (principal, action in Mcp::Action::\"provider:crm\", resource) when { context has skill && context.skill.uri like \"*\" };";
    assert_ne!(said(&ask(&loaded(other, &all), &all[0], &json!({"uri": uris[0]}))), "allow p");
    for (condition, wanted) in [
        ("context.resource.listed", [true, true, false]),
        ("!context.resource.listed", [false, false, true]),
        (
            "context.resource.listed || context.resource.host == \"open.example\"",
            [true, true, true],
        ),
        ("context.resource.uri like \"notes://team/*\"", [true, false, false]),
        ("context.resource.scheme == \"https\"", [false, false, false]),
        (
            "context.resource.host == \"files\" && context.resource.path == \"/b\"",
            [false, true, false],
        ),
        (
            "context.resource has mime && context.resource.mime == \"text/plain\"",
            [true, true, false],
        ),
    ] {
        let text = format!(
            "@id(\"p\") permit (principal, action == Mcp::Action::\"resource:crm\", resource) when {{ {condition} }};"
        );
        let set = loaded(&text, &all);
        let found = all
            .iter()
            .zip(uris)
            .map(|(it, uri)| said(&ask(&set, it, &json!({"uri": uri}))) == "allow p");

        assert_eq!(found.collect::<Vec<_>>(), wanted, "{condition}");
    }
    // What is no URI cannot be judged.
    let forbid = "@id(\"p\") permit (principal, action, resource);\n@id(\"f\") forbid (principal, action == Mcp::Action::\"resource:crm\", resource)\nwhen { context.resource.host == \"shut.example\" };";
    let set = loaded(forbid, &all);
    for input in [json!({"uri": "no uri"}), json!({"uri": 7}), json!({})] {
        assert_ne!(said(&ask(&set, &all[0], &input)), "allow p", "{input}");
    }
}

/// A skill with two files, and one whose files have no digests.
fn skills() -> Vec<Arc<Capability>> {
    let of = |uri: &str, files: &Value| {
        let name = CapabilityName::of_kind(CapabilityKind::Skill, uri).unwrap();
        let more = json!({"frontmatter": {"name": "x", "description": "Does it."}, "files": files});
        let definition = Definition::skill(name, more);
        let crm: ProviderSlug = "crm".parse().unwrap();
        Arc::new(Capability::new(&crm, definition, Timestamp::default()).unwrap())
    };
    let files = json!({
        "skill://acme/refunds/SKILL.md": {"digest": "sha256:aa", "size": 1},
        "skill://acme/refunds/a.md": {"digest": "sha256:bb", "size": 2},
    });
    vec![
        of("skill://acme/refunds/SKILL.md", &files),
        of("skill://daily/SKILL.md", &json!("dynamic")),
    ]
}

#[test]
fn reads_of_skills_are_judged_by_their_folder_and_file() {
    let all = skills();
    for (scope, code) in [
        ("action == Mcp::Action::\"skill:crm:refunds\", resource", "unknown_action"),
        ("action == Mcp::Action::\"skill:crm:skill://daily/SKILL.md\", resource", "unknown_action"),
        ("action, resource == Mcp::Skill::\"crm:refunds\"", "unknown_skill"),
        ("action, resource == Mcp::Skill::\"daily\"", "unknown_skill"),
    ] {
        let errors = load(&format!("@id(\"p\") permit (principal, {scope});"), &all).unwrap_err();

        assert_eq!(errors[0].code, code, "{scope}");
    }
    // Scope and condition: two files of one, and a file of one without digests.
    for (rest, wanted) in [
        ("action, resource)", [true, true, true]),
        ("action in Mcp::Action::\"kind:skill\", resource)", [true, true, true]),
        ("action in Mcp::Action::\"provider:crm\", resource)", [true, true, true]),
        ("action in Mcp::Action::\"hint:read_only\", resource is Mcp::Skill)", [true, true, true]),
        ("action in Mcp::Action::\"crm:*\", resource)", [false, false, false]),
        ("action in Mcp::Action::\"kind:resource\", resource)", [false, false, false]),
        // What is told of a resource is told of no skill, and the other way round.
        (
            "action in Mcp::Action::\"provider:crm\", resource) when { context has resource && context.resource.listed }",
            [false, false, false],
        ),
        ("action == Mcp::Action::\"skill:crm:acme/refunds\", resource)", [true, true, false]),
        ("action, resource == Mcp::Skill::\"crm:daily\")", [false, false, true]),
        (
            "action in Mcp::Action::\"kind:skill\", resource) when { context.skill has digest }",
            [true, true, false],
        ),
        (
            "action in Mcp::Action::\"kind:skill\", resource) when { context.skill.uri like \"*.md\" && context.skill has digest && context.skill.digest == \"sha256:bb\" }",
            [false, true, false],
        ),
    ] {
        let set = loaded(&format!("@id(\"p\") permit (principal, {rest};"), &all);
        let reads = [
            (&all[0], "skill://acme/refunds/SKILL.md"),
            (&all[0], "skill://acme/refunds/a.md"),
            (&all[1], "skill://daily/any"),
        ];
        let found = reads.map(|(it, uri)| said(&ask(&set, it, &json!({"uri": uri}))) == "allow p");

        assert_eq!(found, wanted, "{rest}");
    }
}

/// Conditions that look at nothing but the resource and the principal count as what they say of a URI; others may hold.
#[test]
fn access_to_a_resource_is_that_to_its_uri() {
    use Access::{Allow, Conditional, Deny};
    let all = resources();
    let forbid =
        |more: &str| format!("@id(\"a\") permit (principal, action, resource); @id(\"f\") {more}");
    let here =
        "forbid (principal, action in Mcp::Action::\"kind:resource\", resource is Mcp::Resource)";
    let path = "context.resource.path like \"/a*\"";
    for (policies, listed, made) in [
        (forbid(&format!("{here} when {{ {path} }};")), Deny, Allow),
        (forbid(&format!("{here} unless {{ {path} }};")), Allow, Deny),
        (forbid(&format!("{here} when {{ !({path}) }};")), Allow, Deny),
        (
            forbid(&format!("{here} when {{ {path} || context.request.mfa }};")),
            Conditional,
            Conditional,
        ),
        (
            forbid(&format!("@redact(\"output: email\") {here} when {{ {path} }};")),
            Conditional,
            Allow,
        ),
        (forbid(&format!("@mode(\"shadow\") {here} when {{ {path} }};")), Allow, Allow),
        (forbid(&format!("@phase(\"response\") {here} when {{ {path} }};")), Allow, Allow),
        (forbid(&format!("{here} when {{ principal.id == \"x\" }};")), Allow, Allow),
        (
            forbid(&format!(
                "{here} when {{ context.resource has mime && context.resource.mime == \"text/html\" }};"
            )),
            Allow,
            Allow,
        ),
        (
            format!("@id(\"p\") permit (principal, action, resource) when {{ {path} }};"),
            Allow,
            Deny,
        ),
    ] {
        let set = loaded(&policies, &all);
        let member = caller(Role::Member);
        let access = |tool: &Capability, uri: &str| set.access_to(&member, tool, uri);
        assert_eq!(access(&all[0], "notes://team/a"), listed, "{policies}");
        assert_eq!(access(&all[1], "notes://files/b"), made, "{policies}");
        assert_eq!(set.access(&member, &all[0]), listed, "{policies}");
        assert_eq!(set.accesses(&member).of(&all[0]), listed, "{policies}");
        if listed == Deny || made == Deny {
            assert_eq!(access(&all[1], "no uri"), Deny, "{policies}");
        }
    }
}
