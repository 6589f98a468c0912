//! A policy whose text and annotations are understood.

use std::sync::{Arc, OnceLock};

use cedar_policy::EntityUid;
use cedar_policy_core::ast::Expr;

use crate::{
    json,
    policy::{
        engine::{ActionScope, EntityScope, Rule, RuleScope},
        files::{PolicyError, SourceFile},
        language::context_paths::Paths,
        load::annotations::Annotations,
        terms::{Effect, Status},
    },
};

/// A policy that parsed and whose annotations are understood. It does not know where it stands:
/// the same text elsewhere is the same policy.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Compiled {
    pub(in crate::policy) id: Arc<str>,
    pub(in crate::policy) effect: Effect,
    pub(in crate::policy) annotations: Annotations,
    pub(in crate::policy) rule: Arc<Rule>,
    pub(in crate::policy) paths: Paths,
    /// SHA-256 of its meaning: white space and comments do not change it.
    pub(in crate::policy) digest: Arc<str>,
    /// Every entity it names, in scope and conditions.
    pub(in crate::policy) literals: Vec<EntityUid>,
    pub(in crate::policy) source: Arc<str>,
    /// Its status is another than its text says.
    pub(in crate::policy) restated: bool,
    /// Warnings about the policy that do not depend on tools.
    pub(in crate::policy) lints: Vec<String>,
    pub(in crate::policy) clauses: OnceLock<Vec<ConditionClause>>,
}

/// One of the conditions that all have to hold.
#[derive(Debug, Clone)]
pub(in crate::policy) struct ConditionClause {
    /// As it stands in the policy.
    pub(in crate::policy) text: String,
    pub(in crate::policy) paths: Paths,
    pub(in crate::policy) expression: Expr,
}

/// A policy and where it stands.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Placed {
    pub(in crate::policy) policy: Arc<Compiled>,
    pub(in crate::policy) file: Arc<SourceFile>,
    pub(in crate::policy) start: usize,
}

impl Compiled {
    /// Returns true if it has a `when` or `unless`.
    pub(in crate::policy) fn has_condition(&self) -> bool {
        self.rule.condition().is_some()
    }

    /// Returns true if it names neither principals nor actions.
    pub(in crate::policy) fn is_unindexed(&self) -> bool {
        let RuleScope { principal, action, .. } = &self.rule.scope;
        *principal == EntityScope::Any && *action == ActionScope::Any
    }

    /// Returns true if its conditions look at what DLP found.
    pub(in crate::policy) fn reads_dlp(&self) -> bool {
        self.paths.member("dlp").is_some() || self.paths.member("dlp_output").is_some()
    }

    /// First position of `text` in the policy; its beginning if `text` is absent.
    pub(in crate::policy) fn offset_of(&self, text: &str) -> usize {
        self.source.find(text).unwrap_or(0)
    }

    /// The same policy with another status, as if `@mode` said so.
    pub(in crate::policy) fn with_status(&self, status: Status) -> Self {
        let mut meaning = self.rule.cedar().to_json().unwrap_or_default();
        if let Some(annotations) = meaning.pointer_mut("/annotations") {
            annotations["mode"] = status.as_str().into();
        }
        let annotations = Annotations { status, ..self.annotations.clone() };
        Self { annotations, digest: digest(&meaning), restated: true, ..self.clone() }
    }
}

impl Placed {
    /// An error at `offset` within the policy.
    pub(in crate::policy) fn error(
        &self,
        offset: usize,
        code: &'static str,
        message: String,
    ) -> PolicyError {
        self.file.error(self.start + offset, code, Some(&self.policy.id), message)
    }
}

pub(in crate::policy) fn digest(meaning: &serde_json::Value) -> Arc<str> {
    json::sha256(&[json::canonical(meaning).as_bytes()]).into()
}
