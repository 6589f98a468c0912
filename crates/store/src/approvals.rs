//! Approvals: kept by their revision, changed with an event, used with an intent.
//!
//! Changes are committed by [`crate::AuditWriter`]: a step of the state machine in the
//! transaction of its event, a use in the transaction of the call's intent. Here they are read, and
//! forgotten when they have ended long ago. **Invariant:** of an org's approvals at most one of a
//! digest is open, by a unique index.

mod rows;

use portcullis_core::{
    approval::{Approval, Audience, Status},
    clock::Timestamp,
    id::{ApprovalId, OrgId, PrincipalId},
};

use serde_json::json;

use self::rows::WithoutInput;
use crate::{
    db::{Found, Store, all, boxed, changed, find, list, one, read},
    error::StoreError,
    filters,
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
    pub capability_id: String,
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

filters::filter! {
    /// Filter of a list of approvals at `now`, when an open one over its time is expired.
    ApprovalFilter {
        status: Option<Status> as Option<String> = "only those with this status at this moment", pattern = "^(pending|approved|denied|expired|consumed)$";
    } at { now: Timestamp }
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
        let find = select("WHERE org_id = $1 AND id = $2");
        Ok(read!(self, unqueued org, |conn| find!(conn, find => org, id)))
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
        let find = select(
            "WHERE org_id = $1 AND digest = $2 AND expires_at > $3 \
             AND status IN ('pending', 'approved', 'denied') ORDER BY id DESC LIMIT 1",
        );
        Ok(read!(self, unqueued org, |conn| find!(conn, find => org, digest, now)))
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
        let (count, oldest) = read!(self, installation, |conn| {
            one!(
                conn, "SELECT COUNT(*), MIN(created_at) FROM approvals \
                 WHERE status = 'pending' AND expires_at > $1"
                => now
            )
        });
        Ok(PendingApprovals { count, oldest })
    }

    /// The org's approvals that match, newest first, going on behind the approval `after`, as far as a list is
    /// filtered by it.
    #[boxed]
    pub async fn glance_at_approvals(
        &self,
        org: OrgId,
        filter: &ApprovalFilter,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<ApprovalGlance>, StoreError> {
        let glance =
            "SELECT org_id, id, principal_id, capability_id, audience, size FROM approvals ";
        let list = glance.to_owned() + listed(filter);
        Ok(list!(self, org, list => org, filter.status.map(Status::as_str), filter.now,
            after, limit))
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
        let among = format!("WHERE org_id = $1 AND id IN {} ORDER BY id DESC", self.db.texts("$2"));
        let ids = json!(ids).to_string();
        Ok(match parts {
            ApprovalParts::All => list!(self, org, select(&among) => org, &ids),
            ApprovalParts::WithoutInput => {
                let find = select_without_input(&among);
                let found: Vec<Found<WithoutInput>> =
                    read!(self, org, |conn| all!(conn, find => org, &ids));
                self.readable(found)
            }
        })
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
        let find = select_without_input(
            "WHERE status IN ('pending', 'approved') AND ($1 IS NULL OR expires_at <= $1) \
             ORDER BY expires_at, org_id, id LIMIT $2 OFFSET $3",
        );
        let mut skipped = 0_i64;
        loop {
            let rows: Vec<Found<WithoutInput>> =
                read!(self, installation, |conn| all!(conn, find.clone() => due, limit, skipped));
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
            let gone = changed!(self, installation, FORGET => before, BATCH);
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
        let crowded: Vec<String> = read!(self, installation, |conn| {
            all!(conn, scalar CROWDED => most.count, most.bytes)
        });
        let mut forgotten = 0;
        for org in crowded {
            loop {
                let gone = changed!(self, installation, FORGET_SURPLUS => &org, most.count, most.bytes,
                    BATCH);
                forgotten += gone;
                if gone < u64::try_from(BATCH).unwrap_or(0) {
                    break;
                }
            }
        }
        Ok(forgotten)
    }
}

fn select(rest: &str) -> String {
    format!(
        "SELECT org_id, id, digest, status, revision, uses_left, expires_at, state, input \
         FROM approvals {rest}"
    )
}

fn select_without_input(rest: &str) -> String {
    format!(
        "SELECT org_id, id, digest, status, revision, uses_left, expires_at, state \
         FROM approvals {rest}"
    )
}

/// The SQL for the approvals of a list. Ended ones are not looked at for those that are open.
fn listed(filter: &ApprovalFilter) -> &'static str {
    if filter.status.is_some_and(Status::is_open) {
        "WHERE org_id = $1 AND status IN ('pending', 'approved') AND status = $2 AND expires_at > $3 \
         AND ($4 IS NULL OR id < $4) ORDER BY id DESC LIMIT $5"
    } else {
        "WHERE org_id = $1 AND ($2 IS NULL OR $2 = CASE \
         WHEN status IN ('pending', 'approved') AND expires_at <= $3 THEN 'expired' ELSE status END) \
         AND ($4 IS NULL OR id < $4) ORDER BY id DESC LIMIT $5"
    }
}

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
