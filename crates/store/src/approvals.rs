//! Approvals: kept by their revision, changed with an event, used with an intent.
//!
//! Changes are committed by [`crate::AuditWriter`]: a step of the state machine in the
//! transaction of its event, a use in the transaction of the call's intent. Here they are read, and
//! forgotten when they have ended long ago. **Invariant:** of an org's approvals at most one of a
//! digest is open, by a unique index.

mod rows;

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    approval::{Approval, Audience, Status},
    clock::Timestamp,
    id::{ApprovalId, OrgId, PrincipalId},
};

use serde_json::json;

use self::rows::{GlanceRow, RowWithoutInput, StoredRow};
use crate::{
    Store,
    db::{Db, Found, Readable as _, all, change, find, one, read, run, text_list},
    error::StoreError,
};

/// A change of an approval, written with its event.
#[derive(Debug, Clone)]
pub struct ApprovalChange {
    pub approval: Approval,
    /// The revision that it replaces; `None` if the approval is new.
    pub from: Option<i64>,
}

/// An approval as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredApproval {
    pub approval: Approval,
    /// Grows with each change and each use.
    pub revision: i64,
}

/// The part of an approval that lists are filtered by. What is shown is read afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalGlance {
    pub id: ApprovalId,
    /// The principal whose call it is for.
    pub principal_id: PrincipalId,
    pub tool_id: String,
    /// Its readers.
    pub audience: Audience,
    /// Bytes that it takes to read it.
    pub bytes: usize,
}

/// Extent to which approvals are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalParts {
    All,
    /// All but the input, which is `null`.
    WithoutInput,
}

/// Limits on the approvals that an org keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalLimits {
    pub count: u32,
    /// Their bytes together.
    pub bytes: u64,
}

/// Filter of a list of approvals. Empty parts let everything through.
#[derive(Debug, Clone)]
pub struct ApprovalFilter {
    /// Status at `now`: an open approval over its time is expired.
    pub status: Option<Status>,
    /// The principal whose calls they are for.
    pub requester: Option<PrincipalId>,
    /// The moment of the list.
    pub now: Timestamp,
}

/// Approvals of all orgs that wait for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingApprovals {
    pub count: u64,
    pub oldest: Option<Timestamp>,
}

/// Rows forgotten at a time, so that no other transaction waits long for the writer.
const BATCH: i64 = 500;

impl Store {
    /// The org's approval of this id.
    #[boxed]
    pub async fn find_approval(
        &self,
        org: OrgId,
        id: ApprovalId,
    ) -> Result<Option<StoredApproval>, StoreError> {
        let row: Option<StoredRow> = read!(self, unqueued org, |conn| find!(conn, FIND => org, id));
        row.map(StoredRow::read).transpose()
    }

    /// The newest approval of the call with this digest that is pending, approved or denied and not
    /// over its time.
    #[boxed]
    pub async fn find_approval_of_call(
        &self,
        org: OrgId,
        digest: &str,
        now: Timestamp,
    ) -> Result<Option<StoredApproval>, StoreError> {
        let row: Option<StoredRow> =
            read!(self, unqueued org, |conn| find!(conn, FIND_OF_CALL => org, digest, now));
        row.map(StoredRow::read).transpose()
    }

    /// Number of pending approvals for calls of the principal.
    #[boxed]
    pub async fn count_pending_approvals(
        &self,
        org: OrgId,
        principal: PrincipalId,
        now: Timestamp,
    ) -> Result<u32, StoreError> {
        let count: i64 = read!(self, unqueued org, |conn| {
            one!(
                conn, scalar "SELECT COUNT(*) FROM approvals WHERE org_id = $1 AND principal_id = $2 \
                 AND status = 'pending' AND expires_at > $3"
                => org, principal, now
            )
        });
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The pending approvals of all orgs, in numbers.
    #[boxed]
    pub async fn pending_approvals(&self, now: Timestamp) -> Result<PendingApprovals, StoreError> {
        let (count, oldest): (i64, Option<i64>) = read!(self, installation, |conn| {
            one!(
                conn, "SELECT COUNT(*), MIN(created_at) FROM approvals \
                 WHERE status = 'pending' AND expires_at > $1"
                => now
            )
        });
        let count = u64::try_from(count).unwrap_or(0);
        Ok(PendingApprovals { count, oldest: oldest.map(Timestamp::from_micros) })
    }

    /// The org's approvals that match, newest first, going on behind the approval `after`.
    #[boxed]
    pub async fn list_approvals(
        &self,
        org: OrgId,
        filter: &ApprovalFilter,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        let list = if filter.status.is_some_and(Status::is_open) { LIST_OPEN } else { LIST };
        let rows: Vec<Found<StoredRow>> = read!(self, org, |conn| {
            all!(conn, list => org, filter.status.map(Status::as_str), filter.now,
                filter.requester, after, limit)
        });
        Ok(self.readable(rows))
    }

    /// The same, as far as a list is filtered by it.
    #[boxed]
    pub async fn glance_at_approvals(
        &self,
        org: OrgId,
        filter: &ApprovalFilter,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<ApprovalGlance>, StoreError> {
        let open = filter.status.is_some_and(Status::is_open);
        let list = if open { GLANCE_OPEN } else { GLANCE };
        let rows: Vec<Found<GlanceRow>> = read!(self, org, |conn| {
            all!(conn, list => org, filter.status.map(Status::as_str), filter.now,
                filter.requester, after, limit)
        });
        Ok(self.readable(rows))
    }

    /// Approvals of the org that have these ids, newest first.
    #[boxed]
    pub async fn approvals_among(
        &self,
        org: OrgId,
        ids: &[ApprovalId],
        parts: ApprovalParts,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sqlite = match &self.db {
            Db::Sqlite { .. } => true,
            Db::Postgres(_) => false,
        };
        let ids = json!(ids).to_string();
        match parts {
            ApprovalParts::All => {
                let find = if sqlite { AMONG_SQLITE } else { AMONG_POSTGRES };
                let rows: Vec<Found<StoredRow>> =
                    read!(self, org, |conn| all!(conn, find => org, &ids));
                Ok(self.readable(rows))
            }
            ApprovalParts::WithoutInput => {
                let find = if sqlite { LIGHT_SQLITE } else { LIGHT_POSTGRES };
                let rows: Vec<Found<RowWithoutInput>> =
                    read!(self, org, |conn| all!(conn, find => org, &ids));
                Ok(self.readable(rows))
            }
        }
    }

    /// The open approvals of all orgs, those that expire first before the others, at most `limit`;
    /// with `due` only those whose time is over at that moment. For the jobs that end them; the inputs
    /// are not read.
    #[boxed]
    pub async fn open_approvals(
        &self,
        due: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        let mut skipped = 0_i64;
        loop {
            let rows: Vec<Found<RowWithoutInput>> =
                read!(self, installation, |conn| all!(conn, OPEN => due, limit, skipped));
            let found = rows.len();
            let open = self.readable(rows);
            // Those that cannot be read stay, and keep no others from being found.
            if !open.is_empty() || found == 0 {
                return Ok(open);
            }
            skipped = skipped.saturating_add(i64::try_from(found).unwrap_or(i64::MAX));
        }
    }

    /// Forgets the approvals of all orgs that have ended and whose time was over before this moment.
    /// Gives how many.
    #[boxed]
    pub async fn forget_approvals(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        loop {
            let gone = change!(self, installation, |tx| run!(tx, FORGET => before, BATCH));
            forgotten += gone;
            if gone < u64::try_from(BATCH).unwrap_or(0) {
                return Ok(forgotten);
            }
        }
    }

    /// Forgets the oldest of an org's approvals that have ended, in every org that has more than
    /// these. Gives how many.
    #[boxed]
    pub async fn forget_surplus_approvals(&self, most: ApprovalLimits) -> Result<u64, StoreError> {
        let count = i64::from(most.count);
        let bytes = i64::try_from(most.bytes).unwrap_or(i64::MAX);
        let crowded: Vec<String> =
            read!(self, installation, |conn| all!(conn, scalar CROWDED => count, bytes));
        let mut forgotten = 0;
        for org in crowded {
            loop {
                let gone = change!(self, installation, |tx| {
                    run!(tx, FORGET_SURPLUS => &org, count, bytes, BATCH)
                });
                forgotten += gone;
                if gone < u64::try_from(BATCH).unwrap_or(0) {
                    break;
                }
            }
        }
        Ok(forgotten)
    }
}

macro_rules! select {
    () => {
        "SELECT org_id, id, digest, status, revision, uses_left, expires_at, state, input \
         FROM approvals "
    };
}

macro_rules! select_without_input {
    () => {
        "SELECT org_id, id, digest, status, revision, uses_left, expires_at, state FROM approvals "
    };
}

macro_rules! glance {
    () => {
        "SELECT org_id, id, principal_id, tool_id, audience, size FROM approvals "
    };
}

macro_rules! among {
    ($dialect:ident) => {
        concat!("WHERE org_id = $1 AND id IN ", text_list!($dialect, "$2"), " ORDER BY id DESC")
    };
}

macro_rules! listed {
    () => {
        "WHERE org_id = $1 AND ($2 IS NULL OR $2 = CASE \
         WHEN status IN ('pending', 'approved') AND expires_at <= $3 THEN 'expired' ELSE status END) \
         AND ($4 IS NULL OR principal_id = $4) AND ($5 IS NULL OR id < $5) ORDER BY id DESC LIMIT $6"
    };
}

/// Ended approvals are not looked at.
macro_rules! listed_open {
    () => {
        "WHERE org_id = $1 AND status IN ('pending', 'approved') AND status = $2 AND expires_at > $3 \
         AND ($4 IS NULL OR principal_id = $4) AND ($5 IS NULL OR id < $5) ORDER BY id DESC LIMIT $6"
    };
}

const FIND: &str = concat!(select!(), "WHERE org_id = $1 AND id = $2");

const FIND_OF_CALL: &str = concat!(
    select!(),
    "WHERE org_id = $1 AND digest = $2 AND expires_at > $3 \
     AND status IN ('pending', 'approved', 'denied') ORDER BY id DESC LIMIT 1"
);

const LIST: &str = concat!(select!(), listed!());
const LIST_OPEN: &str = concat!(select!(), listed_open!());
const GLANCE: &str = concat!(glance!(), listed!());
const GLANCE_OPEN: &str = concat!(glance!(), listed_open!());

const AMONG_SQLITE: &str = concat!(select!(), among!(sqlite));
const AMONG_POSTGRES: &str = concat!(select!(), among!(postgres));
const LIGHT_SQLITE: &str = concat!(select_without_input!(), among!(sqlite));
const LIGHT_POSTGRES: &str = concat!(select_without_input!(), among!(postgres));

const OPEN: &str = concat!(
    select_without_input!(),
    "WHERE status IN ('pending', 'approved') AND ($1 IS NULL OR expires_at <= $1) \
     ORDER BY expires_at, org_id, id LIMIT $2 OFFSET $3"
);

const FORGET: &str = "
DELETE FROM approvals WHERE (org_id, id) IN (
    SELECT org_id, id FROM approvals
    WHERE status NOT IN ('pending', 'approved') AND expires_at < $1
    ORDER BY expires_at LIMIT $2
)";

const CROWDED: &str = "
SELECT org_id FROM approvals GROUP BY org_id HAVING COUNT(*) > $1 OR SUM(size) > $2";

const FORGET_SURPLUS: &str = "
DELETE FROM approvals WHERE org_id = $1 AND id IN (
    SELECT id FROM (
        SELECT id, status, ROW_NUMBER() OVER newest AS place, SUM(size) OVER newest AS bytes
        FROM approvals WHERE org_id = $1
        WINDOW newest AS (ORDER BY id DESC)
    ) AS placed
    WHERE (place > $2 OR bytes > $3) AND status NOT IN ('pending', 'approved')
    ORDER BY id LIMIT $4
)";
