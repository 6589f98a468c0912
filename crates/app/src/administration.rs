//! Administration of an org by its own admins: what the operator does on the node, over the
//! API and for the caller's org alone.
//!
//! The protocol asks for the scope `admin`, which only the role admin has, and service accounts to
//! which it was listed. **Invariant:** a program gives no more than its token may do.

mod holds;
mod installation;
mod org;
mod overrides;
mod principals;
mod tokens;
mod tools;

pub use self::{
    holds::{HoldView, ListedHolds},
    installation::{NewLoginLink, OrgChange},
    org::{OrgLimits, OrgUsage, OrgView, WindowUsage},
    overrides::{MAX_OVERRIDE_SECONDS, OverrideRequest, OverrideView},
    principals::{ListedPrincipals, PrincipalKindName, PrincipalView},
    tokens::{InspectedToken, ListedTokens, MadeToken, TokenView},
    tools::{AcceptedTool, ListedTools, PinnedTools, ShownDefinition, ToolPlace, WaitingTool},
};

use std::{fmt, sync::Arc};

use portcullis_core::{
    audit::{Event, EventType},
    principal::{Caller, Role, ScopeSet},
    refusal::Refusal,
};
use serde_json::Value;

use crate::{
    audit::Audit,
    base::Base,
    identity::{access::Access, directory::DirectoryError},
    policies::{Policies, limits::Quotas},
    request::{Ctx, screening::Screening},
};

/// Use cases of an org's admins.
#[derive(Debug)]
pub struct Administration {
    base: Arc<Base>,
    screening: Arc<Screening>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    access: Arc<Access>,
    policies: Arc<Policies>,
    /// True if only the operator makes changes.
    read_only: bool,
}

impl Administration {
    pub(crate) fn new(access: &Arc<Access>, policies: &Arc<Policies>, read_only: bool) -> Self {
        Self {
            base: Arc::clone(&policies.base),
            screening: Arc::clone(&policies.screening),
            audit: Arc::clone(&policies.audit),
            quotas: Arc::clone(&policies.quotas),
            access: Arc::clone(access),
            policies: Arc::clone(policies),
            read_only,
        }
    }

    /// Refuses every change where the operator switched them off.
    ///
    /// # Errors
    /// `read_only`.
    pub const fn writable(&self) -> Result<(), Refusal> {
        if self.read_only { Err(Refusal::ReadOnly) } else { Ok(()) }
    }

    /// The event of a change by the caller to `id`, with its particulars.
    fn event(
        &self,
        ctx: &Ctx,
        kind: EventType,
        target: &'static str,
        id: impl fmt::Display,
        change: Option<Value>,
    ) -> Event {
        ctx.change_event(&self.screening, kind, target, id, change)
    }
}

/// The answer to a request that breaks a rule.
fn broken(error: DirectoryError) -> Refusal {
    match error {
        DirectoryError::TooMuch { asked, allowed } => {
            Refusal::InvalidScope { scope: asked.difference(allowed).to_string(), allowed }
        }
        DirectoryError::Name
        | DirectoryError::TooManyGroups
        | DirectoryError::Lifetime
        | DirectoryError::RoleMismatch => Refusal::bad_request(sentence(&error.to_string())),
    }
}

/// The text as a sentence of an answer.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

/// Rejects scopes that this caller must not give. An admin may give all there are; a program what its
/// token has, its own or that of an admin, so that one which is taken over cannot make itself more.
fn check_grant(caller: &Caller, given: ScopeSet) -> Result<(), Refusal> {
    let is_admin = caller.role == Role::Admin && caller.is_person();
    let allowed = if is_admin { ScopeSet::ALL } else { caller.scopes };
    if given.is_subset_of(allowed) {
        return Ok(());
    }
    Err(Refusal::InvalidScope { scope: given.difference(allowed).to_string(), allowed })
}
