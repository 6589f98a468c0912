//! Policies that can concern an org, and those that cannot.

use super::*;

const OURS: &str = "org_01M754BKTKX1YB8Q05NMW9TP4G";
const THEIRS: &str = "org_01M754BKTKGT8C7BR1BSH99ZV7";
const MEMBER: &str = "usr_01M754BKTKX1YB8Q05NMW9TP4G";
const STRANGER: &str = "sa_01M754BKTK9TG1TCT7SPYHDJTD";

fn ours() -> OrgView {
    let members = [MEMBER.parse::<PrincipalId>().unwrap()];
    OrgView::new(OURS.parse().unwrap(), members, ["theirs".to_owned()])
}

/// Each policy, and whether it can concern us.
fn cases() -> Vec<(String, bool)> {
    let us = format!("Mcp::Org::\"{OURS}\"");
    let them = format!("Mcp::Org::\"{THEIRS}\"");
    let scoped = |principal: &str| format!("permit (principal{principal}, action, resource);");
    let when = |effect: &str, condition: &str| {
        format!("{effect} (principal, action, resource) when {{ {condition} }};")
    };
    let permit = |condition: &str| when("permit", condition);
    let forbid = |condition: &str| when("forbid", condition);
    vec![
        (scoped(""), true),
        (scoped(&format!(" in {us}")), true),
        (scoped(&format!(" in {them}")), false),
        (scoped(&format!(" is Mcp::User in {them}")), false),
        (scoped(&format!(" is Mcp::User in {us}")), true),
        (scoped(&format!(" == Mcp::User::\"{MEMBER}\"")), true),
        (scoped(&format!(" == Mcp::Service::\"{STRANGER}\"")), false),
        (scoped(" == Mcp::User::\"alice\""), true),
        (scoped(" in Mcp::Role::\"admin\""), true),
        ("permit (principal, action == Mcp::Action::\"theirs:list\", resource);".into(), false),
        ("permit (principal, action in [Mcp::Action::\"theirs:*\", Mcp::Action::\"s:list\"], resource);".into(), true),
        ("permit (principal, action in Mcp::Action::\"*:*\", resource);".into(), true),
        ("permit (principal, action, resource in Mcp::Provider::\"theirs\");".into(), false),
        ("permit (principal, action, resource == Mcp::Tool::\"theirs:list\");".into(), false),
        ("permit (principal, action, resource == Mcp::Tool::\"s:list\");".into(), true),
        (permit(&format!("principal in {them} && context.input.n > 5")), false),
        (permit(&format!("context.input.n > 5 && principal in {them}")), true),
        (permit(&format!("principal is Mcp::User && principal in {them}")), false),
        (permit(&format!("principal in [{them}, {us}]")), true),
        (permit(&format!("principal in {them} || principal in {us}")), true),
        (permit(&format!("principal in {them} || resource in Mcp::Provider::\"theirs\"")), false),
        (permit(&format!("!(principal in {us})")), false),
        (permit(&format!("!(principal in {them})")), true),
        (permit(&format!("!(principal == {us})")), true),
        (permit(&format!("!(resource in {us})")), true),
        (permit(&format!("principal == Mcp::Service::\"{STRANGER}\"")), false),
        (permit(&format!("!(principal == Mcp::Service::\"{STRANGER}\")")), true),
        (format!("permit (principal, action, resource) unless {{ principal in {us} }};"), false),
        (format!("permit (principal, action, resource) when {{ principal in {them} }} unless {{ context.input.n > 5 }};"), false),
        (forbid(&format!("principal in {them}")), false),
        (forbid(&format!("principal is Mcp::Service && principal in {them}")), false),
        // Of a tool without this member it forbids whatever the condition says.
        (forbid(&format!("principal in {them} && context.input.n > 5")), true),
        (format!("forbid (principal in {them}, action, resource) when {{ context.input.n > 5 }};"), false),
    ]
}

#[test]
fn a_policy_is_kept_from_those_whom_it_can_never_concern() {
    for (text, concerns) in cases() {
        assert_eq!(ours().can_be_concerned_by(&text), concerns, "{text}");
    }
    assert!(ours().can_be_concerned_by("no policy"));
}

#[test]
fn a_policy_that_is_kept_from_an_org_has_no_say_in_its_calls() {
    let tool = tool("s:list", &json!({"n": {"type": "integer"}}));
    for (text, concerns) in cases() {
        let text = format!("@id(\"asked\") {text}");
        // A policy that names tools of no provider is refused when it is loaded.
        let Ok(set) = load(&text, &[Arc::clone(&tool)]) else { continue };
        assert_eq!(set.can_concern("asked", &ours()), concerns, "{text}");
        for input in [json!({"n": 1}), json!({"n": 9}), json!({})] {
            let decision = ask(&set, &tool, &input);

            let errors = decision.errors.iter().map(|errored| &*errored.policy);
            let mut named = decision.determining.iter().map(|id| &**id).chain(errors);
            assert!(concerns || !named.any(|id| id == "asked"), "{text}");
        }
    }
}
