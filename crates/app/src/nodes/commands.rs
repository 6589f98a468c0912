//! Work of the operator that is no request: which org and principal a command means, and the log as it is stored. The
//! operator is the first root of trust; all its actions are recorded with the actor `system`.

mod audit;
mod logs;
mod orgs;
mod principals;
mod reindex;
mod tools;
mod verification;

pub use self::{
    audit::{ERASABLE, ErasureRequest},
    logs::LogIdentity,
    reindex::{ReindexMode, Reindexed},
    verification::{Indexed, Witnessed},
};

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, Detached, Event, EventType, Outcome, Target, export::Fault},
    clock::Clock,
    id::{EventId, Ids, OrgId},
    random::Random,
    refusal::Executed,
};
use portcullis_store::{AuditWriter, Store, StoreError};

use crate::audit::holds::HoldError;

/// Reason that a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error("there is no org `{0}`; `portcullis org list` shows those there are")]
    NoOrg(String),
    #[error("there is no org yet; `portcullis org create` makes one")]
    NoOrgs,
    #[error("there are several orgs; name one with `--org`")]
    OrgNotNamed,
    #[error("there is no principal `{0}`; `portcullis principal list` shows those there are")]
    NoPrincipal(String),
    #[error("several orgs have a principal `{name}`; name one with `--org`, or give the id: {}", found.join(", "))]
    SeveralPrincipals {
        name: String,
        /// The principals, each as its id and its org.
        found: Vec<String>,
    },
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The log does not prove what was to be erased.
    #[error(
        "nothing more is erased, for the log was changed in the database: {0}; see `portcullis audit verify`"
    )]
    Unproven(Fault),
    #[error("`{0}` cannot be erased; these can: {ERASABLE:?}")]
    NotErasable(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The operator of an installation, at its store.
#[derive(Debug)]
pub struct Operator {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub store: Store,
    /// Writes the events.
    pub writer: AuditWriter,
    /// The user of the operating system, recorded as the actor's name.
    pub os_user: Option<String>,
}

impl Operator {
    /// The clock and the random source of new ids.
    #[must_use]
    pub fn ids(&self) -> Ids<'_> {
        Ids { clock: &*self.clock, random: &*self.random }
    }

    fn event(&self, kind: EventType, org: OrgId, target: Target) -> Event {
        let os_user = self.os_user.as_deref();
        Event {
            id: EventId::new(self.ids()),
            org_id: org,
            kind,
            occurred_at: self.clock.now(),
            count: None,
            actor: Actor::operator(),
            request: None,
            target: Some(target),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: Detached::default().keep("actor_name", os_user, &*self.random),
        }
    }
}
