//! Provisioning over SCIM: an identity provider keeps the people and groups of its org.
//!
//! The protocol asks for the scope `scim`, which only service accounts have. **Invariant:** nothing here gives a
//! role: a new person is a member, and becomes what the trust rule of its login says. A person whose access the
//! operator or an admin ended is not let in again by a provider that repeats itself. Where the people of an org come
//! from several directories, an account changes only people and groups that it pushed.

mod groups;
mod users;
mod view;

pub use self::view::{ListedResources, ScimResource};

use std::sync::Arc;

use portcullis_core::{
    audit::{Event, EventType},
    id::PrincipalId,
    refusal::{Conflict, Refusal, Unavailable},
    scim::{Filter, ScimError, ScimProjection, ScimRejection, ScimType},
};
use portcullis_store::StoreError;
use serde_json::Value;

use super::access::Access;
use crate::{
    base::Base,
    policies::{Policies, limits::Quotas},
    request::{Ctx, screening::Screening},
};

/// Page of a list: which resources, from which on, how many, and what is told of them.
#[derive(Debug, Clone)]
pub struct ScimList {
    pub filter: Option<Filter>,
    /// Of the first resource, from 1.
    pub start_index: u32,
    pub count: u32,
    pub projection: ScimProjection,
}

impl ScimList {
    const fn offset(&self) -> u32 {
        self.start_index.saturating_sub(1)
    }
}

/// Use cases of an identity provider.
#[derive(Debug)]
pub struct Provisioning {
    base: Arc<Base>,
    screening: Arc<Screening>,
    quotas: Arc<Quotas>,
    access: Arc<Access>,
}

impl Provisioning {
    pub(crate) fn new(policies: &Policies, access: &Arc<Access>) -> Self {
        Self {
            base: Arc::clone(&policies.base),
            screening: Arc::clone(&policies.screening),
            quotas: Arc::clone(&policies.quotas),
            access: Arc::clone(access),
        }
    }

    /// Account whose people and groups alone the caller may change: its own, if a trust rule of its org names the
    /// account of a directory.
    fn confined_to(&self, ctx: &Ctx) -> Option<PrincipalId> {
        let caller = ctx.caller();
        let rules = self.access.trust().rules().iter().filter(|rule| rule.org == caller.org_id);
        let mut joins = rules.filter_map(|rule| rule.scim);
        joins.any(|join| join.account.is_some()).then_some(caller.principal_id)
    }

    /// Returns true if the caller may change what this account pushed.
    fn is_own(&self, ctx: &Ctx, pushed_by: PrincipalId) -> bool {
        self.confined_to(ctx).is_none_or(|account| account == pushed_by)
    }

    /// Rejects a change to what another account pushed.
    fn check_own(
        &self,
        ctx: &Ctx,
        what: &str,
        pushed_by: PrincipalId,
    ) -> Result<(), ScimRejection> {
        if self.is_own(ctx, pushed_by) {
            return Ok(());
        }
        let detail = format!(
            "Another service account pushed this {what}; where trust rules have `scim_account`, only that account \
             changes it."
        );
        Err(ScimError::forbidden(detail).into())
    }

    fn event(
        &self,
        ctx: &Ctx,
        kind: EventType,
        id: impl std::fmt::Display,
        change: Value,
    ) -> Event {
        let target = if kind == EventType::GroupChanged { "group" } else { "principal" };
        ctx.change_event(&self.screening, kind, target, id, Some(change))
    }
}

/// Another resource that has the same name or id.
fn reject_taken(what: &str) -> ScimRejection {
    let detail = format!("Another {what} of this org has the same name or `externalId`.");
    ScimError::new(ScimType::Uniqueness, detail).into()
}

/// A failure of the store, in which a conflict is a name or an id that is taken.
fn failed(error: StoreError, what: &str) -> ScimRejection {
    if let StoreError::Conflict(_) = error {
        return reject_taken(what);
    }
    Refusal::from(error).into()
}

fn full(what: &str) -> ScimRejection {
    let detail = format!("There are as many {what} as there may be.");
    ScimError::new(ScimType::TooMany, detail).into()
}

fn last_admin() -> ScimRejection {
    Refusal::Conflict { reason: Conflict::LastAdmin }.into()
}

/// The answer while others keep changing the same resource.
fn contended() -> ScimRejection {
    Refusal::Unavailable { reason: Unavailable::Overloaded }.into()
}

/// The values that a filter compares with `known` attributes, in their order.
///
/// # Errors
/// `invalidFilter` for other attributes, and for one that is compared twice.
fn compared<const N: usize>(
    filter: &Filter,
    known: [&str; N],
) -> Result<[Option<String>; N], ScimError> {
    let wrong = |detail: String| ScimError::new(ScimType::InvalidFilter, detail);
    let mut values = [const { None }; N];
    for comparison in &filter.comparisons {
        let name = comparison.attribute.as_str();
        let place = known.iter().zip(&mut values).find(|(known, _)| **known == name);
        let (_, place) = place.ok_or_else(|| {
            wrong(format!("A filter compares {}; it named another attribute.", known.join(", ")))
        })?;
        let value = match &comparison.value {
            portcullis_core::scim::FilterValue::Text(text) => text.clone(),
            portcullis_core::scim::FilterValue::Flag(flag) => flag.to_string(),
        };
        if place.replace(value).is_some() {
            return Err(wrong("A filter compares an attribute once.".to_owned()));
        }
    }
    Ok(values)
}
