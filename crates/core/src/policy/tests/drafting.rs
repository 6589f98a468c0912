//! Sets that are other sets with changes.

use std::cell::Cell;

use super::*;

const RULES: &str = r#"
    @id("base") permit (principal, action, resource);
    @id("limit") @reason("Too many") forbid (principal, action == Mcp::Action::"a:list", resource)
    when { context.input has limit && context.input.limit > 100 };
    @id("later") @mode("shadow") forbid (principal, action == Mcp::Action::"a:only", resource);
"#;

fn tools() -> Vec<Arc<Capability>> {
    let input = json!({"limit": {"type": "integer"}});
    vec![tool("a:list", &input), tool("a:only", &input)]
}

fn upsert(text: &str) -> Changes {
    Changes { upsert: vec![file(text)], ..Changes::default() }
}

/// The change of a status alone.
fn restated(id: &str, status: Status) -> Changes {
    Changes { statuses: [(id.to_owned(), status)].into(), ..Changes::default() }
}

fn drafted(set: &PolicySet, changes: &Changes) -> PolicySet {
    set.draft(changes, Timestamp::default()).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[test]
fn a_draft_decides_by_its_changes_and_leaves_its_base_alone() {
    let set = loaded(RULES, &tools());
    let tools = tools();
    let changes = Changes {
        remove: ["base".to_owned()].into(),
        statuses: [("later".to_owned(), Status::Active)].into(),
        ..upsert(
            r#"@id("limit") @reason("r") forbid (principal, action, resource)
               when { context.input has limit && context.input.limit > 10 };
               @id("new") permit (principal in Mcp::Role::"member", action, resource);"#,
        )
    };

    let draft = drafted(&set, &changes);

    let asked =
        |set: &PolicySet, which: usize| said(&ask(set, &tools[which], &json!({"limit": 50})));
    assert_eq!(asked(&draft, 0), "deny limit");
    assert_eq!(asked(&draft, 1), "deny later");
    assert_eq!(asked(&set, 0), "allow base");
    assert_eq!(asked(&set, 1), "allow base");
    let is_other =
        |it: &&PolicyRecord| set.find(&it.id).is_none_or(|before| before.version != it.version);
    let differing = draft.records().iter().filter(is_other).map(|it| &*it.id);
    assert_eq!(differing.collect::<Vec<_>>(), ["later", "limit", "new"]);
    assert!(draft.find("base").is_none() && set.find("new").is_none());
}

#[test]
fn a_changed_status_is_as_if_the_annotation_said_so() {
    let set = loaded(RULES, &tools());

    let changed = drafted(&set, &restated("later", Status::Active));

    let text = RULES.replace("@mode(\"shadow\")", "@mode(\"active\")");
    let written = loaded(&text, &tools());
    assert_eq!(changed.version(), written.version());
    assert_eq!(changed.find("later").unwrap().status, Status::Active);
    let back = drafted(&changed, &restated("later", Status::Shadow));
    assert_eq!(back.version(), set.version());
}

#[test]
fn a_policy_of_others_is_answered_as_one_that_is_not_there() {
    let set = loaded(RULES, &tools());
    let errors = |id: &str| {
        let changes = Changes {
            remove: [id.to_owned()].into(),
            hidden: ["later".to_owned()].into(),
            ..restated(id, Status::Active)
        };
        let errors = set.draft(&changes, Timestamp::default()).unwrap_err();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };

    let theirs = errors("later");
    let nobodys = errors("other");

    assert_eq!(theirs.len(), 2, "{theirs:?}");
    let renamed: Vec<_> = theirs.iter().map(|error| error.replace("later", "other")).collect();
    assert_eq!(renamed, nobodys);
}

#[test]
fn a_draft_with_the_same_text_is_the_same_set() {
    let set = loaded(RULES, &tools());

    let same = drafted(&set, &upsert(RULES));

    assert_eq!(same.version(), set.version());
    assert_eq!(drafted(&set, &Changes::default()).version(), set.version());
}

#[test]
fn a_draft_shares_what_it_does_not_change() {
    let set = loaded(RULES, &tools());
    let tools = tools();

    let limit = r#"@id("limit") forbid (principal, action == Mcp::Action::"a:list", resource);"#;
    let draft = drafted(&set, &upsert(limit));

    assert!(!draft.is_same_for(&set, &tools[0]));
    assert!(draft.is_same_for(&set, &tools[1]));
}

#[test]
fn what_is_wrong_in_a_draft_is_said_where_it_stands() {
    let set = loaded(RULES, &tools());
    let codes = |changes: &Changes| {
        let errors = set.draft(changes, Timestamp::default()).unwrap_err();
        errors.iter().map(|e| format!("{} {}:{} {}", e.path, e.line, e.column, e.code)).collect()
    };
    let table: Vec<(Changes, &str)> = vec![
        (upsert("permit (principal"), "test.cedar 1:18 syntax"),
        (
            upsert("@id(\"x\") @raeson(\"y\") permit (principal, action, resource);"),
            "test.cedar 1:10 unknown_annotation",
        ),
        (
            upsert("\n@id(\"x\") permit (principal, action == Mcp::Action::\"a:lits\", resource);"),
            "test.cedar 2:52 unknown_action",
        ),
        (
            upsert(
                "@id(\"x\") permit (principal, action == Mcp::Action::\"a:list\", resource) when { context.input.limt > 1 };",
            ),
            "test.cedar 1:79 unknown_attribute",
        ),
        (
            Changes { remove: ["typo".to_owned()].into(), ..Changes::default() },
            "remove 1:1 unknown_policy",
        ),
        (restated("typo", Status::Active), "set_status 1:1 unknown_policy"),
    ];
    for (changes, expected) in table {
        let found: Vec<String> = codes(&changes);

        assert_eq!(found, [expected], "{changes:?}");
    }
}

#[test]
fn without_policies_everything_is_denied() {
    let set = loaded(RULES, &tools());
    let tools = tools();

    let empty = set.emptied(Timestamp::default());

    assert_eq!(said(&ask(&empty, &tools[0], &json!({}))), "deny default-deny");
    let one = drafted(&empty, &upsert("@id(\"p\") permit (principal, action, resource);"));
    assert_eq!(said(&ask(&one, &tools[0], &json!({}))), "allow p");
}

#[test]
fn a_draft_of_a_set_with_a_policy_that_no_longer_fits_keeps_it_and_its_mark() {
    let set = loaded(RULES, &tools());
    let text = json!({"limit": {"type": "string"}});
    let changed = [tool("a:list", &text), tool("a:only", &text)];
    let set = set.rebind(&catalogue(&changed));

    let draft = drafted(&set, &upsert("@id(\"p\") permit (principal, action, resource);"));

    assert!(!draft.find("limit").unwrap().validation.valid);
    assert_eq!(said(&ask(&draft, &changed[0], &json!({}))), "deny policy-error");
}

#[test]
fn an_addition_is_checked_wherever_its_name_stands_among_the_others() {
    let set = loaded(RULES, &tools());
    for id in ["a", "c", "zz"] {
        let text = format!(
            "@id(\"{id}\") permit (principal, action, resource) when {{ context.inptu.x }};"
        );

        let errors = set.draft(&upsert(&text), Timestamp::default()).unwrap_err();

        assert_eq!(errors[0].code, "unknown_attribute", "{id}");
    }
}

#[test]
fn a_reload_reads_what_the_files_say_whatever_status_was_set_beside_them() {
    let set = loaded(RULES, &tools());
    let draft = drafted(&set, &restated("later", Status::Active));

    let again =
        draft.reload(vec![file(RULES)], &catalogue(&tools()), &DETECTORS, Timestamp::default());

    assert_eq!(again.unwrap().version(), set.version());
}

/// Policies `p0` to `p{count-1}` that concern every tool.
fn many(count: usize) -> Changes {
    let policy = |n| format!("@id(\"p{n}\") permit (principal, action, resource);\n");
    upsert(&(0..count).map(policy).collect::<String>())
}

fn within(set: &PolicySet, changes: &Changes, max_checks: usize) -> Result<PolicySet, DraftError> {
    let bounds = DraftBounds { max_checks, stop: &|| false };
    set.draft_within(changes, Timestamp::default(), &bounds)
}

#[test]
fn a_draft_of_more_checks_than_it_may_take_is_refused_with_its_size() {
    let set = loaded(RULES, &tools());
    let size = DraftSize { policies: 3, tools: 2, checks: 6 };

    assert_eq!(within(&set, &many(3), 5).err(), Some(DraftError::TooLarge { size, max_checks: 5 }));
    assert!(within(&set, &many(3), 6).is_ok());
    // Only what a policy may apply to counts, and only what the set does not have.
    let one = upsert(r#"@id("x") permit (principal, action == Mcp::Action::"a:list", resource);"#);
    assert!(within(&set, &one, 1).is_ok());
    let shadow = restated("base", Status::Shadow);
    assert!(matches!(within(&set, &shadow, 1), Err(DraftError::TooLarge { .. })));
    assert!(within(&set, &shadow, 2).is_ok());
    // From nothing, it is the policies of the draft alone.
    assert!(within(&set.emptied(Timestamp::default()), &many(3), 6).is_ok());
}

#[test]
fn a_draft_can_be_stopped_between_any_two_policies_and_tools() {
    let set = loaded(RULES, &tools());
    let policies = 200;
    let asked = Cell::new(0_usize);
    let stopped_after = |looks: usize| {
        asked.set(0);
        let stop = || asked.replace(asked.get() + 1) >= looks;
        let bounds = DraftBounds { max_checks: usize::MAX, stop: &stop };
        set.draft_within(&many(policies), Timestamp::default(), &bounds).err()
    };

    assert_eq!(stopped_after(usize::MAX), None);
    let all = asked.get();

    // Each policy is parsed; each tool is counted, bound and validated in several lots.
    assert!(all >= policies + 2 * tools().len() * 3, "{all}");
    for looks in [0, 1, policies / 2, policies, policies + 3, all - 1] {
        assert_eq!(stopped_after(looks), Some(DraftError::Stopped), "{looks}");
        assert_eq!(asked.get(), looks + 1, "nothing goes on after it");
    }
}

#[test]
fn an_earlier_set_can_be_stopped_while_it_is_loaded() {
    let set = loaded(RULES, &tools());
    let bounds = DraftBounds { max_checks: 0, stop: &|| true };
    let files = vec![file(RULES)];
    let known = catalogue(&tools());

    let stopped = set.reload_within(files, &known, &DETECTORS, Timestamp::default(), &bounds);

    assert_eq!(stopped.err(), Some(DraftError::Stopped));
}
