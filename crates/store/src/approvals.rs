//! Approvals: kept by their revision, changed with an event, used with an intent.
//!
//! Changes are committed by [`crate::AuditWriter`]: a step of the state machine in the
//! transaction of its event, a use in the transaction of the call's intent. Here they are read, and
//! forgotten when they have ended long ago. **Invariant:** of an org's approvals at most one of a
//! digest is open, by a unique index.

mod rows;
mod uses;

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    approval::{Approval, Status},
    clock::Timestamp,
    id::{ApprovalId, OrgId, PrincipalId},
};

use self::rows::StoredRow;
pub(crate) use self::{
    rows::{ApprovalRow, INSERT, TAKE, UPDATE},
    uses::{TakenUses, Uses},
};
use crate::{
    Store,
    db::{change, read},
    error::StoreError,
    unreadable::{Found, Readable as _},
};

/// A change of an approval, written with its event.
#[derive(Debug, Clone)]
pub struct ApprovalChange {
    /// The approval after it.
    pub approval: Approval,
    /// The revision that it replaces; `None` if the approval is new.
    pub from: Option<i64>,
}

/// An approval as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredApproval {
    /// The approval.
    pub approval: Approval,
    /// Grows with each change and each use.
    pub revision: i64,
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

/// Approvals of all orgs that somebody has to decide about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingApprovals {
    /// Number of them.
    pub count: u64,
    /// When the oldest of them was requested.
    pub oldest: Option<Timestamp>,
}

/// A use of an approval by a call, taken with the call's intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalUse {
    /// The approval.
    pub id: ApprovalId,
    /// Digest of the call.
    pub digest: String,
}

/// Rows forgotten at a time, so that nobody waits long for the writer.
const BATCH: i64 = 500;

impl Store {
    /// The org's approval of this id.
    #[boxed]
    pub async fn find_approval(
        &self,
        org: OrgId,
        id: ApprovalId,
    ) -> Result<Option<StoredApproval>, StoreError> {
        let row: Option<StoredRow> = read!(self, org, |conn| {
            sqlx::query_as(FIND)
                .bind(org.to_string())
                .bind(id.to_string())
                .fetch_optional(&mut *conn)
                .await?
        });
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
        let row: Option<StoredRow> = read!(self, org, |conn| {
            sqlx::query_as(FIND_OF_CALL)
                .bind(org.to_string())
                .bind(digest)
                .bind(now.as_micros())
                .fetch_optional(&mut *conn)
                .await?
        });
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
        let count: i64 = read!(self, org, |conn| {
            sqlx::query_scalar(
                "SELECT COUNT(*) FROM approvals WHERE org_id = $1 AND principal_id = $2 \
                 AND status = 'pending' AND expires_at > $3",
            )
            .bind(org.to_string())
            .bind(principal.to_string())
            .bind(now.as_micros())
            .fetch_one(&mut *conn)
            .await?
        });
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The pending approvals of all orgs, in numbers.
    #[boxed]
    pub async fn pending_approvals(&self, now: Timestamp) -> Result<PendingApprovals, StoreError> {
        let (count, oldest): (i64, Option<i64>) = read!(self, installation, |conn| {
            sqlx::query_as(
                "SELECT COUNT(*), MIN(created_at) FROM approvals \
                 WHERE status = 'pending' AND expires_at > $1",
            )
            .bind(now.as_micros())
            .fetch_one(&mut *conn)
            .await?
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
            sqlx::query_as(list)
                .bind(org.to_string())
                .bind(filter.status.map(Status::as_str))
                .bind(filter.now.as_micros())
                .bind(filter.requester.map(|id| id.to_string()))
                .bind(after.map(|id| id.to_string()))
                .bind(i64::from(limit))
                .fetch_all(&mut *conn)
                .await?
        });
        Ok(self.readable(rows))
    }

    /// The open approvals of all orgs, those that expire first before the others, at most `limit`;
    /// with `due` only those whose time is over at that moment. For the jobs that end them.
    #[boxed]
    pub async fn open_approvals(
        &self,
        due: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<StoredApproval>, StoreError> {
        let mut skipped = 0_i64;
        loop {
            let rows: Vec<Found<StoredRow>> = read!(self, installation, |conn| {
                sqlx::query_as(OPEN)
                    .bind(due.map(Timestamp::as_micros))
                    .bind(i64::from(limit))
                    .bind(skipped)
                    .fetch_all(&mut *conn)
                    .await?
            });
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
            let gone = change!(self, installation, |tx| {
                sqlx::query(FORGET)
                    .bind(before.as_micros())
                    .bind(BATCH)
                    .execute(&mut *tx)
                    .await?
                    .rows_affected()
            });
            forgotten += gone;
            if gone < u64::try_from(BATCH).unwrap_or(0) {
                return Ok(forgotten);
            }
        }
    }
}

macro_rules! select {
    () => {
        "SELECT org_id, id, digest, status, revision, uses_left, expires_at, state FROM approvals "
    };
}

const FIND: &str = concat!(select!(), "WHERE org_id = $1 AND id = $2");

const FIND_OF_CALL: &str = concat!(
    select!(),
    "WHERE org_id = $1 AND digest = $2 AND expires_at > $3 \
     AND status IN ('pending', 'approved', 'denied') ORDER BY id DESC LIMIT 1"
);

const LIST: &str = concat!(
    select!(),
    "WHERE org_id = $1 AND ($2 IS NULL OR $2 = CASE \
     WHEN status IN ('pending', 'approved') AND expires_at <= $3 THEN 'expired' ELSE status END) \
     AND ($4 IS NULL OR principal_id = $4) AND ($5 IS NULL OR id < $5) ORDER BY id DESC LIMIT $6"
);

/// Like [`LIST`]; ended approvals are not looked at.
const LIST_OPEN: &str = concat!(
    select!(),
    "WHERE org_id = $1 AND status IN ('pending', 'approved') AND status = $2 AND expires_at > $3 \
     AND ($4 IS NULL OR principal_id = $4) AND ($5 IS NULL OR id < $5) ORDER BY id DESC LIMIT $6"
);

const OPEN: &str = concat!(
    select!(),
    "WHERE status IN ('pending', 'approved') AND ($1 IS NULL OR expires_at <= $1) \
     ORDER BY expires_at, org_id, id LIMIT $2 OFFSET $3"
);

const FORGET: &str = "
DELETE FROM approvals WHERE (org_id, id) IN (
    SELECT org_id, id FROM approvals
    WHERE status NOT IN ('pending', 'approved') AND expires_at < $1
    ORDER BY expires_at LIMIT $2
)";
