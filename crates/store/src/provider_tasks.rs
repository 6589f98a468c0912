//! Calls that their providers go on with. The end of one is written with the event that tells of it
//! ([`crate::AuditWriter::end_provider_task`]).

use portcullis_core::{
    clock::Timestamp,
    id::{EventId, OrgId, PrincipalId},
};

use crate::{
    db::{Bound, RowChange, Store, Value as _, boxed, changed, find, list, one, read, record},
    error::StoreError,
};

/// A call that its provider goes on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    pub org_id: OrgId,
    /// The event of the call.
    pub event_id: EventId,
    pub principal_id: PrincipalId,
    /// Until when it can be asked about.
    pub ends_at: Timestamp,
    /// The rest of it, sealed.
    pub sealed: Vec<u8>,
    /// Digest of what was told of it and recorded last.
    pub told: Option<String>,
    /// The answer that ended it, sealed.
    pub ended: Option<Vec<u8>>,
}

record!(StoredTask in "provider_tasks", |row| org_id, event_id, principal_id, ends_at, sealed, told, ended);

macro_rules! select {
    () => {
        "SELECT org_id, event_id, principal_id, ends_at, sealed, told, ended FROM provider_tasks "
    };
}

/// Tasks that are kept of a principal at most.
const MOST: i64 = 1_000;
/// Bytes of their answers.
const MOST_BYTES: i64 = 64 << 20;

impl RowChange {
    /// The end of the task of this call, whose answer is kept until then at most.
    pub(crate) fn of_task_end(
        org: OrgId,
        call: EventId,
        answer: Vec<u8>,
        until: Timestamp,
    ) -> Self {
        let (org_id, id) = (org.to_string(), call.to_string());
        let bytes = Bound::Bytes(Some(answer));
        let values = vec![bytes, until.bound(), org_id.clone().bound(), id.clone().bound()];
        Self { org_id, digest: id.clone(), id, new_of: None, sql: END, values }
    }
}

// The numbers of its values stand in their order.
const END: &str = "UPDATE provider_tasks SET ended = $1, \
                   ends_at = CASE WHEN ends_at < $2 THEN ends_at ELSE $2 END \
                   WHERE org_id = $3 AND event_id = $4 AND ended IS NULL";

impl Store {
    /// Returns true if a principal may have one more task.
    #[boxed]
    pub async fn may_have_provider_task(
        &self,
        org: OrgId,
        principal: PrincipalId,
    ) -> Result<bool, StoreError> {
        let [tasks, bytes] = read!(self, org, |conn| {
            let tasks: i64 = one!(conn, scalar COUNT => org, principal);
            let bytes: i64 = one!(conn, scalar BYTES => org, principal);
            [tasks, bytes]
        });
        Ok(tasks < MOST && bytes < MOST_BYTES)
    }

    /// Keeps a task that begins.
    #[boxed]
    pub async fn keep_provider_task(&self, task: &StoredTask) -> Result<(), StoreError> {
        let StoredTask { org_id, event_id, principal_id, ends_at, sealed, .. } = task;
        let keep = "INSERT INTO provider_tasks (org_id, event_id, principal_id, ends_at, sealed) \
                    VALUES ($1, $2, $3, $4, $5)";
        let org = *org_id;
        changed!(self, org, keep => org, *event_id, *principal_id, *ends_at, sealed.as_slice());
        Ok(())
    }

    /// The task of the org's call with this event.
    #[boxed]
    pub async fn find_provider_task(
        &self,
        org: OrgId,
        event: EventId,
    ) -> Result<Option<StoredTask>, StoreError> {
        Ok(read!(self, org, |conn| find!(
            conn, concat!(select!(), "WHERE org_id = $1 AND event_id = $2") => org, event
        )))
    }

    /// Notes the digest of what was told of a task and recorded.
    #[boxed]
    pub async fn note_provider_task(
        &self,
        org: OrgId,
        event: EventId,
        told: &str,
    ) -> Result<(), StoreError> {
        let note = "UPDATE provider_tasks SET told = $3 WHERE org_id = $1 AND event_id = $2";
        changed!(self, org, note => org, event, told);
        Ok(())
    }

    /// Tasks of all orgs that are over their time and have not ended, the oldest first.
    #[boxed]
    pub async fn overdue_provider_tasks(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<StoredTask>, StoreError> {
        Ok(list!(self, installation, OVERDUE => now, limit))
    }

    /// Forgets the tasks of all orgs that have ended and are over their time.
    #[boxed]
    pub async fn forget_provider_tasks(&self, now: Timestamp) -> Result<u64, StoreError> {
        let forget = "DELETE FROM provider_tasks WHERE (org_id, event_id) IN \
                      (SELECT org_id, event_id FROM provider_tasks \
                      WHERE ended IS NOT NULL AND ends_at <= $1 ORDER BY ends_at LIMIT 500)";
        Ok(changed!(self, installation, forget => now))
    }
}

const COUNT: &str = "SELECT COUNT(*) FROM provider_tasks WHERE org_id = $1 AND principal_id = $2";
const BYTES: &str = "SELECT CAST(COALESCE(SUM(LENGTH(ended)), 0) AS BIGINT) \
                     FROM provider_tasks WHERE org_id = $1 AND principal_id = $2";
const OVERDUE: &str =
    concat!(select!(), "WHERE ends_at <= $1 AND ended IS NULL ORDER BY ends_at LIMIT $2");
