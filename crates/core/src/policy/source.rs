//! Policy files as compiled policies, with every error and where it stands.

use std::{collections::HashMap, sync::Arc};

use cedar_policy::{EntityUid, ParseError, Policy, PolicyId};
use miette::Diagnostic;

use super::{
    Effect, PolicyError, PolicyFile,
    annotations::{self, Annotations},
    nesting,
    reads::{self, Paths},
    scope::{ActionScope, EntityScope, Scope},
};
use crate::json;

/// The largest policy file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// A file and where its lines begin.
#[derive(Debug)]
pub(super) struct SourceFile {
    path: String,
    text: String,
    lines: Vec<usize>,
}

impl SourceFile {
    fn new(file: PolicyFile) -> Self {
        let text = match file.text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => file.text,
        };
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Self { path: file.path, text, lines }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Line and column of a byte offset, both from 1; columns count characters.
    pub(super) fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    pub(super) fn error(
        &self,
        offset: usize,
        code: &'static str,
        policy: Option<&str>,
        message: String,
    ) -> PolicyError {
        let (line, column) = self.place(offset);
        let policy = policy.map(str::to_owned);
        PolicyError { path: self.path.clone(), line, column, code, policy, message }
    }
}

/// A policy that parsed and whose annotations are understood.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) id: Arc<str>,
    pub(super) effect: Effect,
    pub(super) annotations: Annotations,
    pub(super) scope: Scope,
    pub(super) paths: Paths,
    /// Whether it has a `when` or `unless`.
    pub(super) has_condition: bool,
    /// SHA-256 of its meaning: white space and comments do not change it.
    pub(super) digest: Arc<str>,
    /// Every entity it names, in scope and conditions.
    pub(super) literals: Vec<EntityUid>,
    pub(super) cedar: Policy,
    pub(super) file: Arc<SourceFile>,
    /// Where it begins in its file.
    pub(super) start: usize,
    pub(super) source: String,
    /// What is doubtful about it whatever tools there are.
    pub(super) lints: Vec<String>,
}

impl Compiled {
    /// Whether its conditions look at what DLP found.
    pub(super) fn reads_dlp(&self) -> bool {
        self.paths.member("dlp").is_some() || self.paths.member("dlp_output").is_some()
    }

    pub(super) fn error(&self, offset: usize, code: &'static str, message: String) -> PolicyError {
        self.file.error(offset, code, Some(&self.id), message)
    }

    /// Where `text` first stands in the policy; its beginning when it does not.
    pub(super) fn offset_of(&self, text: &str) -> usize {
        self.start + self.source.find(text).unwrap_or(0)
    }
}

/// Parses all files. Policies of files with errors elsewhere are given too, so that one run finds
/// every error.
pub(super) fn parse(
    files: Vec<PolicyFile>,
    detectors: &[&str],
) -> (Vec<Compiled>, Vec<PolicyError>) {
    let mut policies = Vec::new();
    let mut errors = Vec::new();
    for file in files {
        parse_file(&Arc::new(SourceFile::new(file)), detectors, &mut policies, &mut errors);
    }
    errors.extend(duplicates(&policies));
    policies.sort_by(|a: &Compiled, b| a.id.cmp(&b.id));
    policies.dedup_by(|a, b| a.id == b.id);
    (policies, errors)
}

fn parse_file(
    file: &Arc<SourceFile>,
    detectors: &[&str],
    policies: &mut Vec<Compiled>,
    errors: &mut Vec<PolicyError>,
) {
    if file.text.len() > MAX_FILE_BYTES {
        let message = format!("the file is larger than {MAX_FILE_BYTES} bytes; split it");
        errors.push(file.error(0, "file_too_large", None, message));
        return;
    }
    if let Some(offset) = nesting::too_deep(&file.text) {
        let message = "the policy nests too deeply here; split it".to_owned();
        errors.push(file.error(offset, "too_deep", None, message));
        return;
    }
    let set: cedar_policy::PolicySet = match file.text.parse() {
        Ok(set) => set,
        Err(found) => {
            errors.extend(found.iter().map(|error| syntax_error(file, error)));
            return;
        }
    };
    for template in set.templates() {
        let start = template.as_ref().loc().map_or(0, |loc| loc.span.offset());
        let message = "templates with `?principal` or `?resource` cannot be used".to_owned();
        errors.push(file.error(start, "template", None, message));
    }
    for policy in set.policies() {
        match compile(policy, file, detectors) {
            Ok(compiled) => policies.push(compiled),
            Err(found) => errors.extend(found),
        }
    }
}

fn syntax_error(file: &SourceFile, error: &ParseError) -> PolicyError {
    let mut message = error.to_string();
    if let Some(help) = error.help() {
        message = format!("{message}; {help}");
    }
    file.error(label_offset(error).unwrap_or(0), "syntax", None, message)
}

/// Where a diagnostic points.
pub(super) fn label_offset(diagnostic: &dyn Diagnostic) -> Option<usize> {
    diagnostic.labels()?.next().map(|label| label.offset())
}

fn compile(
    policy: &Policy,
    file: &Arc<SourceFile>,
    detectors: &[&str],
) -> Result<Compiled, Vec<PolicyError>> {
    let start = policy.as_ref().loc().map_or(0, |loc| loc.span.offset());
    let source = policy.to_string();
    let effect = match policy.effect() {
        cedar_policy::Effect::Permit => Effect::Permit,
        cedar_policy::Effect::Forbid => Effect::Forbid,
    };
    let name = policy.annotation("id");
    let annotations =
        annotations::read(policy.annotations(), effect, detectors).map_err(|faults| {
            let place = |key: &str| start + source.find(&format!("@{key}")).unwrap_or(0);
            let error = |fault: annotations::Fault| {
                file.error(place(&fault.key), fault.code, name, fault.message)
            };
            faults.into_iter().map(error).collect::<Vec<_>>()
        })?;
    let unreadable = |message: String| vec![file.error(start, "syntax", name, message)];
    let tree = policy.to_pst().map_err(|error| unreadable(error.to_string()))?;
    let cedar_policy::pst::Policy::Static(tree) = tree else {
        return Err(unreadable("templates cannot be used".to_owned()));
    };
    let reads = reads::of(tree.body().clauses());
    let meaning = policy.to_json().map_err(|error| unreadable(error.to_string()))?;
    let scope = Scope::of(policy);
    Ok(Compiled {
        lints: lints(effect, &annotations, &scope, reads.loose_tag),
        id: annotations.id.as_str().into(),
        effect,
        scope,
        paths: reads.paths,
        has_condition: policy.has_non_scope_constraint(),
        digest: json::sha256(&[json::canonical(&meaning).as_bytes()]).into(),
        literals: policy.entity_literals(),
        cedar: policy.new_id(PolicyId::new(&annotations.id)),
        annotations,
        file: Arc::clone(file),
        start,
        source,
    })
}

fn lints(effect: Effect, annotations: &Annotations, scope: &Scope, loose_tag: bool) -> Vec<String> {
    let mut found = Vec::new();
    if effect == Effect::Forbid && annotations.reason.is_none() {
        found.push("it has no `@reason`: callers are not told why they are refused".to_owned());
    }
    if scope.principal == EntityScope::Any && scope.action == ActionScope::Any {
        found.push(
            "its scope names neither principals nor actions: it is evaluated on every call"
                .to_owned(),
        );
    }
    if loose_tag {
        found.push(
            "`like \"*…*\"` on a tag also matches inside other words; compare whole values"
                .to_owned(),
        );
    }
    found
}

fn duplicates(policies: &[Compiled]) -> Vec<PolicyError> {
    let mut first: HashMap<&str, &Compiled> = HashMap::new();
    let mut errors = Vec::new();
    for policy in policies {
        if let Some(earlier) = first.get(&*policy.id) {
            let (line, _) = earlier.file.place(earlier.start);
            let message =
                format!("the name is taken by the policy at {}:{line}", earlier.file.path);
            errors.push(policy.error(policy.offset_of("@id"), "duplicate_id", message));
        } else {
            first.insert(&policy.id, policy);
        }
    }
    errors
}
