//! Checks of policies against the tools there are.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{
    EntityUid, PolicySet, ValidationError, ValidationMode, ValidationWarning, Validator,
};
use miette::Diagnostic;

use crate::capability::CapabilityKind;
use crate::policy::{
    engine::ActionScope,
    files::{PolicyError, label_offset},
    language::{entity_types::entity_types, misnamed::Misnamed},
    load::compiled::{Compiled, Placed},
    tool::{
        catalogue::{Catalogue, NameLookup, ToolFacts, is_group},
        facts::Declared,
        schema::{self, Shapes},
    },
    watch::Watch,
};

/// Something that keeps a policy from being used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) struct Problem {
    pub(in crate::policy) offset: usize,
    pub(in crate::policy) code: &'static str,
    pub(in crate::policy) message: String,
}

impl Problem {
    fn new(offset: usize, code: &'static str, message: String) -> Self {
        Self { offset, code, message }
    }
}

/// Result of validating one policy against one tool.
#[derive(Debug, Clone, Default)]
pub(in crate::policy) struct ToolCheck {
    pub(in crate::policy) problems: Vec<Problem>,
    pub(in crate::policy) warnings: Vec<String>,
    /// True if the policy can never be true for this tool.
    pub(in crate::policy) impossible: bool,
}

impl ToolCheck {
    /// Returns true if there is no problem and no warning.
    pub(in crate::policy) fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.warnings.is_empty() && !self.impossible
    }
}

/// Result of checking a policy's names before any tool is looked at.
#[derive(Debug, Clone, Default)]
pub(in crate::policy) struct NameCheck {
    pub(in crate::policy) problems: Vec<Problem>,
    pub(in crate::policy) warnings: Vec<String>,
}

/// Checks every entity that the policy names against the catalogue.
pub(in crate::policy) fn names_of(
    policy: &Compiled,
    catalogue: &Catalogue,
    declared: &Declared,
) -> NameCheck {
    let mut check = NameCheck::default();
    let literals: BTreeSet<&EntityUid> = policy.literals.iter().collect();
    for literal in literals {
        check_literal(policy, literal, catalogue, declared, &mut check);
    }
    check_scope(policy, &mut check);
    check
}

fn check_literal(
    policy: &Compiled,
    literal: &EntityUid,
    catalogue: &Catalogue,
    declared: &Declared,
    check: &mut NameCheck,
) {
    let kind = literal.type_name();
    let id = literal.id().unescaped();
    let offset = || policy.offset_of(&format!("\"{}\"", literal.id().escaped()));
    let (code, known) = if !entity_types().knows(kind) {
        let message = format!("there is no entity type `{kind}`");
        check.problems.push(Problem::new(offset(), "unknown_entity_type", message));
        return;
    } else if *kind == entity_types().action {
        ("unknown_action", catalogue.action(id))
    } else if *kind == entity_types().tool {
        ("unknown_tool", catalogue.entity(CapabilityKind::Tool, id))
    } else if *kind == entity_types().prompt {
        ("unknown_prompt", catalogue.entity(CapabilityKind::Prompt, id))
    } else if *kind == entity_types().resource {
        ("unknown_resource", catalogue.entity(CapabilityKind::Resource, id))
    } else if *kind == entity_types().skill {
        ("unknown_skill", catalogue.entity(CapabilityKind::Skill, id))
    } else if *kind == entity_types().provider {
        ("unknown_provider", catalogue.provider(id))
    } else {
        check.warnings.extend(unknown_member(literal, declared));
        return;
    };
    let problem = match known {
        NameLookup::Yes => return,
        NameLookup::NotYet => {
            let warning = format!("`{id}`: its provider has not told its tools yet");
            check.warnings.push(warning);
            return;
        }
        NameLookup::NoProvider => {
            let warning = format!(
                "`{id}`: no such provider is configured, so this matches nothing: check the spelling, or take \
                 it out if the provider is gone"
            );
            check.warnings.push(warning);
            return;
        }
        NameLookup::NoTool => format!("`{id}`: the provider has no such tool, prompt or skill"),
        NameLookup::NoName => {
            format!("`{id}` is neither a tool, a prompt, a resource, a skill nor a group of them")
        }
    };
    check.problems.push(Problem::new(offset(), code, problem));
}

/// Principals are their ids. Roles, scopes and labels are closed lists; a name outside of them
/// matches no principal today.
fn unknown_member(literal: &EntityUid, declared: &Declared) -> Option<String> {
    use crate::principal::Scope;

    if let Some(misnamed) = Misnamed::of(literal) {
        return Some(misnamed.warning());
    }
    let kind = literal.type_name();
    let id = literal.id().unescaped();
    let known = if *kind == entity_types().role {
        ["member", "auditor", "admin", "service"].contains(&id)
    } else if *kind == entity_types().scope {
        id.parse::<Scope>().is_ok()
    } else if *kind == entity_types().label {
        declared.knows_label(id)
    } else {
        true
    };
    (!known).then(|| format!("`{literal}` is nobody's: check the spelling"))
}

fn check_scope(policy: &Compiled, check: &mut NameCheck) {
    let scope = &policy.rule.scope;
    if let ActionScope::Eq(uid) = &scope.action
        && let id = uid.id().unescaped()
        && is_group(id)
    {
        let offset = policy.offset_of(&format!("\"{id}\""));
        let message = format!("`{id}` is a group: write `action in`, `==` matches no tool");
        check.problems.push(Problem::new(offset, "group_compared", message));
    }
    let principals = [&entity_types().user, &entity_types().service];
    let types = entity_types();
    let used = [&types.tool, &types.prompt, &types.resource, &types.skill];
    let wanted =
        [(scope.principal.parts().1, &principals[..]), (scope.resource.parts().1, &used[..])];
    for (kind, allowed) in wanted {
        if let Some(kind) = kind.filter(|kind| !allowed.contains(kind)) {
            let offset = policy.offset_of(&kind.to_string());
            let message = format!("nothing that can stand here is a `{kind}`");
            check.problems.push(Problem::new(offset, "unknown_entity_type", message));
        }
    }
}

/// Only the principal, the action and the tool of a call are there to be read, and they hold no other entities.
const LEVEL: u32 = 1;
/// Policies that are validated together: between two lots the work can be stopped.
const LOT: usize = 64;

/// Validates the policies strictly as far as they concern one tool; findings in their order.
pub(in crate::policy) fn against_tool<W: Watch>(
    policies: &[&Compiled],
    tool: &ToolFacts,
    shapes: &Shapes,
    watch: &W,
) -> Result<Vec<ToolCheck>, W::Stop> {
    if policies.is_empty() {
        return Ok(Vec::new());
    }
    let mentioned = policies.iter().flat_map(|policy| &policy.literals);
    let actions = mentioned.filter(|uid| *uid.type_name() == entity_types().action);
    let ids: BTreeSet<&str> = actions.map(|uid| uid.id().unescaped()).collect();
    match schema::of_tool(tool, shapes, ids) {
        Ok(schema) => {
            let validator = Validator::new(schema);
            let mut found = Vec::with_capacity(policies.len());
            for lot in policies.chunks(LOT) {
                watch.go_on()?;
                found.extend(validate(lot, &validator));
            }
            Ok(found)
        }
        Err(error) => {
            let message = format!("the tool's schema cannot be used for policies: {error}");
            let finding = |_: &&Compiled| ToolCheck {
                problems: vec![Problem::new(0, "tool_schema", message.clone())],
                ..ToolCheck::default()
            };
            Ok(policies.iter().map(finding).collect())
        }
    }
}

fn validate(policies: &[&Compiled], validator: &Validator) -> Vec<ToolCheck> {
    let mut findings: BTreeMap<&str, ToolCheck> = BTreeMap::new();
    let mut set = PolicySet::new();
    for policy in policies {
        let mut finding = ToolCheck::default();
        if let Err(error) = set.add(policy.rule.cedar().clone()) {
            finding.problems.push(Problem::new(0, "invalid_policy", error.to_string()));
        }
        findings.insert(&policy.id, finding);
    }
    let result = validator.validate_with_level(&set, ValidationMode::Strict, LEVEL);
    for error in result.validation_errors() {
        let id: &str = error.policy_id().as_ref();
        let policy = policies.iter().find(|policy| &*policy.id == id);
        if let (Some(finding), Some(policy)) = (findings.get_mut(id), policy) {
            finding.problems.push(problem(error, &policy.source));
        }
    }
    for warning in result.validation_warnings() {
        if let Some(finding) = findings.get_mut::<str>(warning.policy_id().as_ref()) {
            if matches!(warning, ValidationWarning::ImpossiblePolicy(_)) {
                finding.impossible = true;
            } else {
                finding.warnings.push(plain(warning, warning.policy_id().as_ref()));
            }
        }
    }
    policies.iter().map(|policy| findings.remove(&*policy.id).unwrap_or_default()).collect()
}

/// The library's message and advice, without the policy's name, which stands beside it.
fn plain(diagnostic: &dyn Diagnostic, policy: &str) -> String {
    let text = match diagnostic.help() {
        Some(help) => format!("{diagnostic}; {help}"),
        None => diagnostic.to_string(),
    };
    text.replace(&format!("for policy `{policy}`, "), "")
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library may add kinds of errors")]
fn problem(error: &ValidationError, source: &str) -> Problem {
    let code = match error {
        ValidationError::UnsafeAttributeAccess(_) => "unknown_attribute",
        ValidationError::UnsafeOptionalAttributeAccess(_) => "unguarded_attribute",
        ValidationError::UnsafeTagAccess(_) => "unguarded_tag",
        ValidationError::UnrecognizedEntityType(_) => "unknown_entity_type",
        ValidationError::UnrecognizedActionId(_) => "unknown_action",
        ValidationError::EntityDerefLevelViolation(_) => "absent_entity",
        ValidationError::UnexpectedType(_) | ValidationError::IncompatibleTypes(_) => {
            "type_mismatch"
        }
        _ => "invalid_policy",
    };
    let mut message = plain(error, error.policy_id().as_ref());
    if let Some(cure) = number_cure(&message, labelled(error, source)) {
        message = format!("{message}; {cure}");
    }
    Problem::new(label_offset(error).unwrap_or(0), code, message)
}

/// Text that a diagnostic points at.
fn labelled<'a>(diagnostic: &dyn Diagnostic, source: &'a str) -> Option<&'a str> {
    let label = diagnostic.labels()?.next()?;
    source.get(label.offset()..label.offset().checked_add(label.len())?)
}

/// The right way to compare a `number` or an `integer` that is compared like the other.
fn number_cure(message: &str, read: Option<&str>) -> Option<String> {
    let has = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    if has(&["but saw decimal", "Long and decimal", "decimal and Long"]) {
        let path =
            read.filter(|it| it.starts_with("context.") && !it.contains(char::is_whitespace));
        let path = path.unwrap_or("context.input.amount");
        return Some(format!(
            "a `number` is compared with a `decimal`: `{path}.greaterThan(decimal(\"1000.0\"))`, or with \
             `lessThan`, `greaterThanOrEqual`, `lessThanOrEqual`, or `== decimal(\"1000.0\")`"
        ));
    }
    has(&["expected decimal but saw Long"]).then(|| {
        "an `integer` is compared with a whole number, by `>`, `<`, `>=`, `<=` or `==`".to_owned()
    })
}

/// One error for the same problem with many tools.
pub(in crate::policy) fn merge_errors<'a>(
    found: impl IntoIterator<Item = (&'a Placed, &'a Problem, &'a str)>,
) -> Vec<PolicyError> {
    let mut merged: BTreeMap<(&str, &Problem), (&Placed, Vec<&str>)> = BTreeMap::new();
    for (placed, problem, tool) in found {
        let key = (&*placed.policy.id, problem);
        merged.entry(key).or_insert_with(|| (placed, Vec::new())).1.push(tool);
    }
    let error = |((_, problem), (placed, tools)): ((&str, &Problem), (&Placed, Vec<&str>))| {
        let message = format!("{} (for {})", problem.message, some_of(&tools));
        placed.error(problem.offset, problem.code, message)
    };
    merged.into_iter().map(error).collect()
}

/// The first tools by name, and how many there are beside.
pub(in crate::policy) fn some_of(tools: &[&str]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = tools.iter().take(SHOWN).map(|tool| format!("`{tool}`")).collect();
    let shown = shown.join(", ");
    match tools.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
