//! Events that a stranger or a runaway client could multiply. The first one is recorded at once,
//! then at most one a minute for each org, kind, code and sender, with the count of all that it
//! stands for. Senders are networks, and tokens in a bounded number. So the log tells of every flood
//! and is flooded by none.

use std::net::IpAddr;

use portcullis_core::{
    audit::{Actor, Detached, Event, EventType, Outcome},
    id::{EventId, OrgId, PrincipalId, TokenId},
    principal::Caller,
    refusal::{Executed, Refusal},
};

use super::{
    Audit,
    events::{patience, row_of},
    outcome::outcome_of,
    repeats::{Noted, Runs},
};
use crate::{base::tenants::sources::subnet, request::Origin};

/// Seconds for which one event stands for all of its kind.
const SPAN: i64 = 60;
/// Runs of tokens of one principal that are told apart; those of further tokens are told as one.
const MOST_OF_TOKENS: usize = 20;

/// Identity of a repeated refusal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    org: OrgId,
    kind: EventType,
    code: &'static str,
    sender: Sender,
}

/// Sender of refused requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sender {
    Network(IpAddr),
    /// A token of a known caller, from wherever it comes; `None` is a browser session.
    Token(PrincipalId, Option<TokenId>),
    /// Further tokens of a principal.
    Principal(PrincipalId),
}

impl Sender {
    /// True if it is a token of the principal.
    fn is_token_of(self, principal: PrincipalId) -> bool {
        match self {
            Self::Token(of, _) => of == principal,
            Self::Network(_) | Self::Principal(_) => false,
        }
    }
}

/// The refusals of this node, by what they were.
pub(crate) type Coalesced = Runs<Key, (Actor, Outcome)>;

/// No refusals yet.
pub(crate) fn no_refusals() -> Coalesced {
    Runs::lasting(SPAN)
}

impl Audit {
    /// Notes that a request of a known org was refused before anything was looked at.
    pub(crate) fn note_refused(
        &self,
        kind: EventType,
        org: OrgId,
        actor: Actor,
        refusal: &Refusal,
        origin: &Origin,
    ) {
        let sender = Sender::Network(subnet(origin.source_ip));
        let key = Key { org, kind, code: refusal.code(), sender };
        self.note_repeated(key, actor, refusal, origin);
    }

    /// Notes that a caller asked for what it may not do. The event names its token: what a client or an agent asks for
    /// is not told as its principal's own. But whoever makes many tokens makes no more events by that.
    pub fn note_forbidden(&self, caller: &Caller, refusal: &Refusal, origin: &Origin) {
        let principal = caller.principal_id;
        let sender = Sender::Token(principal, caller.token_id);
        let kind = EventType::AccessRefused;
        let key = Key { org: caller.org_id, kind, code: refusal.code(), sender };
        let is_alike = |other: &Key| other.sender.is_token_of(principal);
        let key = if self.coalesced.has_room(&key, MOST_OF_TOKENS, is_alike) {
            key
        } else {
            Key { sender: Sender::Principal(principal), ..key }
        };
        self.note_repeated(key, Actor::of(caller), refusal, origin);
    }

    fn note_repeated(&self, key: Key, actor: Actor, refusal: &Refusal, origin: &Origin) {
        let Key { org, kind, code, .. } = key;
        let outcome = outcome_of(refusal, Executed::No);
        match self.coalesced.note(key, &(actor.clone(), outcome), origin.arrived) {
            Noted::First => {}
            Noted::Again => return,
            Noted::TooMany => {
                return tracing::warn!(code, "too many senders to record each of their refusals");
            }
        }
        let mut event = self.refused_event(org, kind, actor, outcome, 1);
        event.request = origin.noted();
        event.detached = origin.detached(&self.screening);
        let writer = self.writer.clone();
        self.base.tasks.spawn(async move {
            if let Err(error) = writer.append(row_of(&event), patience()).await {
                tracing::error!(%error, event = kind.as_str(), "an event could not be recorded");
            }
        });
    }

    fn refused_event(
        &self,
        org_id: OrgId,
        kind: EventType,
        actor: Actor,
        outcome: Outcome,
        count: u64,
    ) -> Event {
        Event {
            id: EventId::new(self.base.ids()),
            org_id,
            kind,
            occurred_at: self.base.clock.now(),
            count: Some(count),
            actor,
            request: None,
            target: None,
            governance: None,
            outcome,
            detached: Detached::default(),
        }
    }

    /// Records what was counted in the minutes that are over.
    pub(crate) async fn record_coalesced(&self) {
        for (key, (actor, outcome), count) in self.coalesced.due(self.base.clock.now()) {
            let mut event = self.refused_event(key.org, key.kind, actor, outcome, count);
            let source = match key.sender {
                Sender::Network(network) => Some(network.to_string()),
                Sender::Token(..) | Sender::Principal(_) => None,
            };
            event.detached = Detached::default().keep("source_ip", source, &*self.base.random);
            if let Err(error) = self.writer.append(row_of(&event), patience()).await {
                let kind = key.kind.as_str();
                tracing::error!(%error, event = kind, count, "refusals could not be recorded");
            }
        }
    }
}
