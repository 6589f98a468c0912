//! Report of `check` on the trust rules.

use portcullis_app::Trust;
use portcullis_core::{
    id::{OrgId, PrincipalId},
    trust::{RuleSubject, TrustRule},
};
use portcullis_store::{Store, StoreError};
use serde_json::{Value, json};

/// Findings about one rule.
pub(super) struct CheckedRule {
    name: String,
    issuer: String,
    /// Faults that keep it from working.
    errors: Vec<String>,
    /// Settings that are allowed and rarely meant.
    warnings: Vec<String>,
    keys: Option<usize>,
}

/// Looks at every rule: whether those it names are there, and whether its keys are.
pub(super) async fn check(trust: &Trust, store: &Store) -> Result<Vec<CheckedRule>, StoreError> {
    let mut checked = Vec::new();
    for rule in trust.rules().iter() {
        let mut found = CheckedRule {
            name: rule.name.clone(),
            issuer: rule.issuer.clone(),
            errors: missing(rule, store).await?,
            warnings: rule.warnings(),
            keys: None,
        };
        match trust.try_keys(&rule.issuer).await {
            Ok(keys) if keys.is_empty() => {
                found.errors.push("the issuer publishes no key that can be used".to_owned());
            }
            Ok(keys) => found.keys = Some(keys.ids().count()),
            Err(error) => found.errors.push(error.to_string()),
        }
        checked.push(found);
    }
    Ok(checked)
}

/// Principals that the rule names and that do not exist.
async fn missing(rule: &TrustRule, store: &Store) -> Result<Vec<String>, StoreError> {
    let Some(org) = store.find_org(rule.org).await? else {
        return Ok(vec![format!("there is no org {}", rule.org)]);
    };
    let mut found = Vec::new();
    if org.disabled_at.is_some() {
        found.push(format!("the org {} is disabled", rule.org));
    }
    let principal = match &rule.who {
        RuleSubject::Fixed(principal) => Some(principal),
        RuleSubject::User { .. } => None,
    };
    for principal in principal.into_iter().chain(&rule.delegation) {
        found.extend(absent(rule.org, *principal, store).await?);
    }
    Ok(found)
}

async fn absent(
    org: OrgId,
    principal: PrincipalId,
    store: &Store,
) -> Result<Option<String>, StoreError> {
    Ok(match store.find_principal(org, principal).await? {
        None => Some(format!("there is no principal {principal} in its org")),
        Some(found) if found.disabled_at.is_some() => {
            Some(format!("the principal {principal} is disabled"))
        }
        Some(_) => None,
    })
}

impl CheckedRule {
    pub(super) fn is_usable(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "issuer": self.issuer,
            "keys": self.keys,
            "errors": self.errors,
            "warnings": self.warnings,
        })
    }

    pub(super) fn to_text(&self) -> Vec<String> {
        let keys = self.keys.map(|count| format!(", {count} keys")).unwrap_or_default();
        let mut lines = vec![format!("trust       {}: {}{keys}", self.name, self.issuer)];
        lines.extend(self.errors.iter().map(|error| format!("            error: {error}")));
        lines.extend(self.warnings.iter().map(|it| format!("            warning: {it}")));
        lines
    }
}
