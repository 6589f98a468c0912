//! A set against a catalogue that changes: what stays, what becomes invalid, what is denied.

use super::*;

const RULES: &str = r#"
    @id("base") permit (principal, action, resource);
    @id("limit") @reason("Too many") forbid (principal, action == Mcp::Action::"a:list", resource)
    when { context.input has limit && context.input.limit > 100 };
    @id("small") permit (principal, action == Mcp::Action::"a:only", resource)
    when { context.input has limit && context.input.limit < 100 };
"#;

fn list(kind: &str) -> Arc<Capability> {
    tool("a:list", &json!({"limit": {"type": kind}}))
}

fn only(kind: &str) -> Arc<Capability> {
    tool("a:only", &json!({"limit": {"type": kind}}))
}

#[test]
fn a_forbid_that_no_longer_fits_denies_its_tool_and_no_other() {
    let set = loaded(RULES, &[list("integer"), only("integer")]);

    let bound = set.rebind(&catalogue(&[list("string"), only("integer")]));

    let denied = ask(&bound, &list("string"), &json!({"limit": "1"}));
    assert_eq!(said(&denied), "deny policy-error");
    assert!(reason(&denied).contains("`limit`"), "{}", reason(&denied));
    assert!(matches!(denied.verdict, Verdict::Deny { cause: Cause::PolicyError, error: true, .. }));
    assert_eq!(said(&ask(&bound, &only("integer"), &json!({}))), "allow base");
    assert_eq!(set.summary().invalid, 0);
    assert_eq!(bound.summary().invalid, 1);
    let record = bound.find("limit").unwrap();
    assert!(!record.validation.valid);
    assert!(record.validation.errors[0].contains("`a:list`"), "{:?}", record.validation);
    assert_eq!(bound.version(), set.version());
}

#[test]
fn a_permit_that_no_longer_fits_permits_nothing_there() {
    let text = RULES.replace("@id(\"base\")", "@id(\"base\") @mode(\"disabled\")");
    let set = loaded(&text, &[list("integer"), only("integer")]);

    let bound = set.rebind(&catalogue(&[list("integer"), only("boolean")]));

    assert_eq!(said(&ask(&set, &only("integer"), &json!({"limit": 1}))), "allow small");
    assert_eq!(said(&ask(&bound, &only("boolean"), &json!({"limit": true}))), "deny default-deny");
}

#[test]
fn a_tool_that_changed_before_the_set_was_bound_again_is_judged_as_it_is() {
    let set = loaded(RULES, &[list("integer"), only("integer")]);

    assert_eq!(said(&ask(&set, &list("string"), &json!({"limit": "1"}))), "deny policy-error");
}

#[test]
fn a_tool_that_went_away_marks_the_policies_that_name_it() {
    let set = loaded(RULES, &[list("integer"), only("integer")]);

    let bound = set.rebind(&catalogue(&[only("integer")]));

    assert!(!bound.find("limit").unwrap().validation.valid);
    assert!(bound.find("base").unwrap().validation.valid);
    let back = bound.rebind(&catalogue(&[list("integer"), only("integer")]));
    assert!(back.find("limit").unwrap().validation.valid);
}

#[test]
fn a_provider_that_has_not_told_its_tools_is_a_warning() {
    let unknown = Catalogue::new([("a".parse().unwrap(), None)]);
    let set =
        PolicySet::load(vec![file(RULES)], &unknown, &DETECTORS, Timestamp::default()).unwrap();
    let record = set.find("limit").unwrap();
    assert!(record.validation.valid);
    assert!(record.validation.warnings[0].contains("a:list"), "{:?}", record.validation);

    let bound = set.rebind(&catalogue(&[list("integer"), only("integer")]));

    assert_eq!(said(&ask(&bound, &list("integer"), &json!({"limit": 101}))), "deny limit");
    assert!(bound.find("limit").unwrap().validation.warnings.is_empty());
}

#[test]
fn an_unfit_forbid_about_others_denies_nobody_else() {
    let text = RULES.replace("forbid (principal,", "forbid (principal in Mcp::Role::\"admin\",");
    let set = loaded(&text, &[list("integer"), only("integer")]);

    let bound = set.rebind(&catalogue(&[list("string"), only("integer")]));

    assert_eq!(said(&ask(&bound, &list("string"), &json!({}))), "allow base");
    let of_admin = ask_as(&caller(Role::Admin), &bound, &list("string"), &json!({}));
    assert_eq!(said(&of_admin), "deny policy-error");
}
