//! Reading the audit log: one event by id here, pages by sequence in [`list`], events and places that do not belong
//! together in [`strays`].

mod list;
pub(crate) mod strays;

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    audit::{DlpResult, OutcomeStatus, RecordedDecision},
    clock::Timestamp,
    id::{EventId, OrgId, PrincipalId, RequestId, TokenId},
};
use serde::Deserialize;

use crate::{
    db::{Db, RecordTexts, Store, find, last_given, parse, positions_of_events, read, row},
    error::StoreError,
    filters,
};

/// Characters of a target at most.
const LONGEST_TARGET: usize = 200;

/// Events that may be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// The whole org's.
    All,
    /// Events of a principal, caused by itself or on its behalf.
    Own(PrincipalId),
    /// Of these, the events of this token's grant and of tokens made from it.
    Grant { principal: PrincipalId, token: TokenId },
}

/// In which order to read the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOrder {
    Ascending,
    Descending,
}

/// The actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum EventActor {
    Principal(PrincipalId),
    /// The bearer of this token.
    Token(TokenId),
}

impl TryFrom<String> for EventActor {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let principal = text.parse().map(Self::Principal);
        let actor = principal.or_else(|_| text.parse().map(Self::Token));
        actor.map_err(|_| "has to be a `usr_…`, `sa_…` or `tok_…` id")
    }
}

/// The target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum EventTarget {
    Is(String),
    StartsWith(String),
    /// All capabilities of this provider, whatever their kind.
    OfProvider(String),
}

impl TryFrom<String> for EventTarget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.chars().count() > LONGEST_TARGET {
            return Err(format!("may be {LONGEST_TARGET} characters long"));
        }
        Ok(match text.strip_suffix('*') {
            Some(start) => Self::StartsWith(start.to_owned()),
            None => Self::Is(text),
        })
    }
}

filters::filter! {
    /// Filter of events. Empty parts let everything through; all others must match.
    EventFilter {
        #[serde(rename = "type")]
        kinds: Vec<String> as Option<String> = "types, comma-separated", pattern = "[^, ]";
        actor: Option<EventActor> as Option<String> = "`usr_…`, `sa_…` or `tok_…`", pattern = "^(usr|sa|tok)_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
        target: Option<EventTarget> as Option<String> = "tool id, `prv_…` or name; trailing `*`", max_length = 200, pattern = "[^, ]";
        decision: Vec<RecordedDecision> as Option<String> = "`allow` or `deny`, or both, comma-separated", pattern = "^(allow|deny)(,(allow|deny))*$";
        policy: Vec<String> as Option<String> = "policy names, comma-separated", pattern = "[^, ]";
        dlp_result: Vec<DlpResult> as Option<String> = "DLP outcomes, comma-separated", pattern = "^(passed|flagged|redacted|blocked|skipped)(,(passed|flagged|redacted|blocked|skipped))*$";
        outcome: Vec<OutcomeStatus> as Option<String> = "outcomes, comma-separated", pattern = "^(success|tool_error|input_required|task|approval_pending|denied|invalid|not_found|rate_limited|upstream_error|upstream_timeout|unavailable|unknown)(,(success|tool_error|input_required|task|approval_pending|denied|invalid|not_found|rate_limited|upstream_error|upstream_timeout|unavailable|unknown))*$";
        request_id: Option<RequestId> as Option<String> = "`req_…` of a given answer", pattern = "^req_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    } at { from: Option<Timestamp>, to: Option<Timestamp> }
}

/// An event and, when it has one, its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    pub id: EventId,
    pub kind: String,
    pub occurred_at: Timestamp,
    /// The part that is hashed, as JSON, without sequence and time of recording; empty if it cannot be
    /// read.
    pub core: String,
    /// The erasable part, as JSON.
    pub detached: Option<String>,
    /// The salts of the erasable part, as JSON.
    pub salts: Option<String>,
    /// Its place in the log; `None` until sealed.
    pub seal: Option<Seal>,
}

/// An event's place in its org's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// Counted from 0 without gaps.
    pub sequence: i64,
    /// When it was committed, never before the one in front of it.
    pub recorded_at: Timestamp,
    pub leaf_hash: [u8; 32],
}

/// A page of events. It may be short or empty before the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events, in the order asked for.
    pub events: Vec<EventRecord>,
    /// The last sequence that was looked at: from here the next page goes on. `None` if there was
    /// nothing to look at.
    pub reached: Option<i64>,
    pub more: bool,
}

row!(EventRow {
    id: String,
    kind: String,
    occurred_at: i64,
    packed: Option<Vec<u8>>,
    sequence: Option<i64>,
    recorded_at: Option<i64>,
    leaf_hash: Option<Vec<u8>>,
});

impl EventRow {
    fn read(self) -> Result<EventRecord, StoreError> {
        let seal = match (self.sequence, self.recorded_at, self.leaf_hash) {
            (Some(sequence), Some(recorded_at), Some(leaf_hash)) => Some(Seal {
                sequence,
                recorded_at: Timestamp::from_micros(recorded_at),
                leaf_hash: leaf_hash
                    .try_into()
                    .map_err(|_| StoreError::Corrupt("audit_seals.leaf_hash"))?,
            }),
            _ => None,
        };
        // A record that cannot be read is empty, and told of where it is looked into.
        let texts = RecordTexts::of_row(self.packed.as_deref());
        let RecordTexts { core, detached, salts } = texts.unwrap_or_default();
        Ok(EventRecord {
            id: parse(&self.id, "audit_events.id")?,
            kind: self.kind,
            occurred_at: Timestamp::from_micros(self.occurred_at),
            core,
            detached,
            salts,
            seal,
        })
    }
}

macro_rules! seal_of_event {
    (sqlite) => {
        "s.position = e.position"
    };
    (postgres) => {
        "s.event_id = e.id"
    };
}

use seal_of_event;

/// The SQL for whether the event `e` was caused under the grant of a token of the org `$1` or what was made from
/// it. Goes up from the token of each event, which a few tokens are above: any number may be below.
macro_rules! is_under {
    ($token:literal) => {
        concat!(
            "EXISTS (",
            $crate::revocation::above!("$1", "e.token_id"),
            "SELECT 1 FROM above WHERE grant_id = (SELECT grant_id FROM tokens WHERE org_id = $1 AND id = ",
            $token,
            "))"
        )
    };
}
use is_under;

/// The SQL that narrows events `e` to the event `$2` by an index.
macro_rules! is_at {
    (sqlite) => {
        concat!("e.position IN (", positions_of_events!("= $2"), ") AND ")
    };
    (postgres) => {
        ""
    };
}

/// Pruned events are hidden, also while the rows of a month still wait to be dropped, and rows that the sealer
/// refused or does not look at: they have no place, and the head of the log is beyond them, or they are beyond
/// all positions that were given out.
macro_rules! find_sql {
    ($dialect:ident) => {
        concat!(
            "
SELECT e.id, e.type AS kind, e.occurred_at, e.packed, s.sequence, s.recorded_at, s.leaf_hash
FROM audit_events e
LEFT JOIN audit_seals s ON ",
            seal_of_event!($dialect),
            "
WHERE ",
            is_at!($dialect),
            "e.org_id = $1 AND e.id = $2 AND ($3 IS NULL OR e.actor_id = $3 OR e.via = $3)
    AND ($4 IS NULL OR ",
            is_under!("$4"),
            ")
    AND (s.sequence >= COALESCE((SELECT size FROM audit_pruned WHERE org_id = $1), 0)
        OR s.sequence IS NULL AND e.position >
            COALESCE((SELECT last_position FROM audit_heads WHERE org_id = $1), 0)
            AND e.position <= ",
            last_given!($dialect),
            ")"
        )
    };
}

impl Store {
    /// The org's event with this id, sealed or not.
    #[boxed]
    pub async fn find_event(
        &self,
        org: OrgId,
        visibility: Visibility,
        id: EventId,
    ) -> Result<Option<EventRecord>, StoreError> {
        let own = own(visibility);
        let find = match &self.db {
            Db::Sqlite { .. } => find_sql!(sqlite),
            Db::Postgres(_) => find_sql!(postgres),
        };
        let row: Option<EventRow> =
            read!(self, org, |conn| find!(conn, find => org, id, own, under(visibility)));
        row.map(EventRow::read).transpose()
    }
}

/// Principal whose events are listed, if not everybody's.
fn own(visibility: Visibility) -> Option<String> {
    match visibility {
        Visibility::All => None,
        Visibility::Own(id) | Visibility::Grant { principal: id, .. } => Some(id.to_string()),
    }
}

/// Under which token only, if it matters.
fn under(visibility: Visibility) -> Option<String> {
    match visibility {
        Visibility::All | Visibility::Own(_) => None,
        Visibility::Grant { token, .. } => Some(token.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::schema;

    #[test]
    fn an_event_is_found_by_indexes_and_in_what_is_not_sealed_yet() {
        let open = schema::in_memory();

        let plan = schema::plan_of(&open, find_sql!(sqlite));

        for search in [
            "SEARCH u USING INTEGER PRIMARY KEY (rowid>?)",
            "SEARCH i USING PRIMARY KEY (kind=? AND name=?)",
        ] {
            assert!(plan.iter().any(|step| step == search), "{search}: {plan:?}");
        }
        assert!(!plan.iter().any(|step| step.starts_with("SCAN e")), "{plan:?}");
    }
}
