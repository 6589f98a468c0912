//! Policy files as compiled policies, with every error and where it stands.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use cedar_policy::{EntityTypeName, EntityUid, ParseError, ParseErrors, Policy, PolicyId};
use miette::Diagnostic;

use super::compiled::digest;
use crate::policy::{
    engine::{ActionScope, Conditions, EntityScope, Rule, RuleScope},
    files::{MAX_FILE_BYTES, PolicyError, PolicyFile, SourceFile, label_offset},
    language::{context_paths, entity_types::entity_types, nesting},
    load::{
        annotations::{self, Annotations, DeclaredNames},
        compiled::{Compiled, Placed},
        obligations::Fault,
    },
    terms::Effect,
    watch::Watch,
};

/// Parser of policy files, with the names it checks and the policies it may take over.
pub(in crate::policy) struct Parser<'a> {
    pub(in crate::policy) names: DeclaredNames<'a>,
    /// Compiled policies by their text.
    pub(in crate::policy) known: HashMap<&'a str, &'a Arc<Compiled>>,
}

impl Parser<'_> {
    /// Parses all files. Policies of files with errors elsewhere are given too, so that one run
    /// finds every error.
    pub(in crate::policy) fn parse<W: Watch>(
        &self,
        files: Vec<PolicyFile>,
        watch: &W,
    ) -> Result<(Vec<Placed>, Vec<PolicyError>), W::Stop> {
        let mut policies = Vec::new();
        let mut errors = Vec::new();
        let mut conditions = Conditions::default();
        for file in files {
            let file = Arc::new(SourceFile::new(file));
            self.file(&file, &mut conditions, &mut policies, &mut errors, watch)?;
        }
        errors.extend(duplicates(&policies));
        policies.sort_by(|a: &Placed, b| a.policy.id.cmp(&b.policy.id));
        policies.dedup_by(|a, b| a.policy.id == b.policy.id);
        Ok((policies, errors))
    }

    fn file<W: Watch>(
        &self,
        file: &Arc<SourceFile>,
        conditions: &mut Conditions,
        policies: &mut Vec<Placed>,
        errors: &mut Vec<PolicyError>,
        watch: &W,
    ) -> Result<(), W::Stop> {
        if file.text().len() > MAX_FILE_BYTES {
            let message = format!("the file is larger than {MAX_FILE_BYTES} bytes; split it");
            errors.push(file.error(0, "file_too_large", None, message));
            return Ok(());
        }
        let statements = match nesting::statements(file.text()) {
            Ok(statements) => statements,
            Err(offset) => {
                let message = "the policy nests too deeply here; split it".to_owned();
                errors.push(file.error(offset, "too_deep", None, message));
                return Ok(());
            }
        };
        for statement in statements {
            watch.go_on()?;
            let text = file.text().get(statement.clone()).unwrap_or_default();
            let placed = |policy| Placed { policy, file: Arc::clone(file), start: statement.start };
            match self.known.get(text) {
                Some(known) => policies.push(placed(Arc::clone(known))),
                None => match self.statement(text, file, statement.start, conditions) {
                    Ok(compiled) => policies.push(placed(Arc::new(compiled))),
                    Err(found) => errors.extend(found),
                },
            }
        }
        Ok(())
    }

    fn statement(
        &self,
        text: &str,
        file: &SourceFile,
        start: usize,
        conditions: &mut Conditions,
    ) -> Result<Compiled, Vec<PolicyError>> {
        let set: cedar_policy::PolicySet = text.parse().map_err(|found: ParseErrors| {
            found.iter().map(|error| syntax_error(file, start, error)).collect::<Vec<_>>()
        })?;
        let Some(policy) = set.policies().next() else {
            let message = match set.templates().next() {
                Some(_) => "templates with `?principal` or `?resource` cannot be used",
                None => "there is no policy here",
            };
            let code = if set.templates().next().is_some() { "template" } else { "syntax" };
            return Err(vec![file.error(start, code, None, message.to_owned())]);
        };
        self.compile(policy, text, file, start, conditions)
    }

    fn compile(
        &self,
        policy: &Policy,
        source: &str,
        file: &SourceFile,
        start: usize,
        conditions: &mut Conditions,
    ) -> Result<Compiled, Vec<PolicyError>> {
        let effect = match policy.effect() {
            cedar_policy::Effect::Permit => Effect::Permit,
            cedar_policy::Effect::Forbid => Effect::Forbid,
        };
        let name = policy.annotation("id");
        let annotations = annotations::read(policy.annotations(), effect, self.names);
        let annotations = annotations.map_err(|faults| {
            let place = |key: &str| start + source.find(&format!("@{key}")).unwrap_or(0);
            let error =
                |fault: Fault| file.error(place(&fault.key), fault.code, name, fault.message);
            faults.into_iter().map(error).collect::<Vec<_>>()
        })?;
        let unreadable = |message: String| vec![file.error(start, "syntax", name, message)];
        let meaning = policy.to_json().map_err(|error| unreadable(error.to_string()))?;
        let rule = Rule::new(policy.new_id(PolicyId::new(&annotations.id)), conditions);
        let reads = rule.condition().map(context_paths::of).unwrap_or_default();
        Ok(Compiled {
            lints: lints(effect, &annotations, &rule.scope, reads.loose_tag),
            id: annotations.id.as_str().into(),
            effect,
            paths: reads.paths,
            digest: digest(&meaning),
            literals: policy.entity_literals(),
            rule: Arc::new(rule),
            annotations,
            source: source.into(),
            restated: false,
            clauses: OnceLock::new(),
        })
    }
}

fn syntax_error(file: &SourceFile, start: usize, error: &ParseError) -> PolicyError {
    let place = start + label_offset(error).unwrap_or(0);
    let said = error.to_string();
    let cure = cure(&said, file.text().get(start..place).unwrap_or_default());
    let help = error.help().map(|help| help.to_string());
    let advice = help.into_iter().chain(cure.map(str::to_owned));
    let message = std::iter::once(said).chain(advice).collect::<Vec<_>>().join("; ");
    file.error(place, "syntax", None, message)
}

/// Cure of a syntax error, from the message and the text before its place.
fn cure(message: &str, before: &str) -> Option<&'static str> {
    if message.ends_with("is not a valid method") {
        return Some(
            "texts are compared by `==` and `like \"…*\"`, and by regular expressions in facts (`matches` in \
             `facts.toml`)",
        );
    }
    let token = message.strip_prefix("unexpected token `")?;
    let before = before.trim_end();
    let is_fraction =
        before.strip_suffix('.').is_some_and(|it| it.ends_with(|c: char| c.is_ascii_digit()));
    if is_fraction {
        return Some(
            "a number with places is written `decimal(\"1000.0\")` and compared by `.greaterThan(…)` or \
             `.lessThan(…)`",
        );
    }
    // The parser may notice it only behind the word that begins the next policy.
    let effect = ["permit", "forbid"].into_iter().find_map(|effect| before.strip_suffix(effect));
    let earlier = effect.filter(|_| token == "(`").map_or(before, str::trim_end);
    let begins_policy =
        ["@`", "permit`", "forbid`"].contains(&token) || earlier.len() < before.len();
    let begins_policy = begins_policy && !earlier.is_empty() && !earlier.ends_with(';');
    begins_policy.then_some("is a `;` missing before it?")
}

fn lints(
    effect: Effect,
    annotations: &Annotations,
    scope: &RuleScope,
    loose_tag: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    if effect == Effect::Forbid && annotations.reason.is_none() {
        found.push("it has no `@reason`: callers are not told why they are refused".to_owned());
    }
    let anything = matches!(scope.resource, EntityScope::Any | EntityScope::Is(_));
    if scope.principal == EntityScope::Any && scope.action == ActionScope::Any && anything {
        found.push(
            "its scope names neither principals nor actions: it is evaluated on every call"
                .to_owned(),
        );
    }
    if let Some(group) = compared_group(scope) {
        found.push(format!("`== {group}` matches nothing: write `in`, it is a group"));
    }
    if loose_tag {
        found.push(
            "`like \"*…*\"` on a tag also matches inside other words; compare whole values"
                .to_owned(),
        );
    }
    found
}

/// A group that the scope compares with what can only be in it.
fn compared_group(scope: &RuleScope) -> Option<&EntityUid> {
    let names = entity_types();
    let principals = [&names.user, &names.service];
    let used = [&names.tool, &names.prompt, &names.resource];
    let other = |scope: &'_ EntityScope, kinds: &[&EntityTypeName]| matches!(scope, EntityScope::Eq(uid) if !kinds.contains(&uid.type_name()));
    [(&scope.principal, &principals[..]), (&scope.resource, &used[..])]
        .into_iter()
        .find(|(scope, kinds)| other(scope, kinds))
        .and_then(|(scope, _)| scope.parts().0)
}

fn duplicates(policies: &[Placed]) -> Vec<PolicyError> {
    let mut first: HashMap<&str, &Placed> = HashMap::new();
    let mut errors = Vec::new();
    for placed in policies {
        if let Some(earlier) = first.get(&*placed.policy.id) {
            let (line, _) = earlier.file.place(earlier.start);
            let message =
                format!("the name is taken by the policy at {}:{line}", earlier.file.path());
            let offset = placed.policy.offset_of("@id");
            errors.push(placed.error(offset, "duplicate_id", message));
        } else {
            first.insert(&placed.policy.id, placed);
        }
    }
    errors
}
