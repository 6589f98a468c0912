//! Progress of each sink in each org's log, and the node that feeds it.

use portcullis_core::{clock::Timestamp, id::OrgId};

use crate::{
    db::{Store, boxed, changed, list, one, read, record},
    error::StoreError,
};

/// A log of which a sink has not everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    pub org_id: OrgId,
    /// The sequence with which the sink goes on.
    pub next: i64,
    /// Number of sealed events.
    pub size: i64,
    /// When the event was recorded that is next.
    pub since: Option<Timestamp>,
}

record!(Behind in "sink_cursors", |row| org_id, size, since,
    next = row.get("sink_cursors.next_sequence")?);

impl Store {
    /// The logs of which `sink` has not everything.
    #[boxed]
    pub async fn behind(&self, sink: &str) -> Result<Vec<Behind>, StoreError> {
        Ok(list!(self, installation, BEHIND => sink))
    }

    /// The position of an event that was sealed lately: as long as it stays the same, hardly
    /// anything was sealed in any log.
    #[boxed]
    pub async fn last_sealed(&self) -> Result<i64, StoreError> {
        let sql = self.db.pick(
            "SELECT COALESCE(MAX(position), 0) FROM audit_seals",
            "SELECT COALESCE(MAX(last_position), 0) FROM audit_heads",
        );
        Ok(read!(self, installation, |conn| one!(conn, scalar sql)))
    }

    /// The sink has everything of the org before `next`. It never goes back.
    #[boxed]
    pub async fn advance_sink(&self, sink: &str, org: OrgId, next: i64) -> Result<(), StoreError> {
        let advance = "INSERT INTO sink_cursors (sink, org_id, next_sequence) VALUES ($1, $2, $3) \
                       ON CONFLICT (sink, org_id) DO UPDATE SET next_sequence = $3 \
                       WHERE sink_cursors.next_sequence < $3";
        changed!(self, org, advance => sink, org, next);
        Ok(())
    }

    /// Makes `node` the one that feeds the sink until `ends_at`. `false` while another one does.
    #[boxed]
    pub async fn lease_sink(
        &self,
        sink: &str,
        node: &str,
        now: Timestamp,
        ends_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let lease = "INSERT INTO sink_leases (sink, node, ends_at) VALUES ($1, $2, $4) \
                     ON CONFLICT (sink) DO UPDATE SET node = $2, ends_at = $4 \
                     WHERE sink_leases.node = $2 OR sink_leases.ends_at <= $3";
        Ok(changed!(self, installation, lease => sink, node, now, ends_at) == 1)
    }

    /// Another node may feed the sink from now on.
    #[boxed]
    pub async fn release_sink(&self, sink: &str, node: &str) -> Result<(), StoreError> {
        let release = "DELETE FROM sink_leases WHERE sink = $1 AND node = $2";
        changed!(self, installation, release => sink, node);
        Ok(())
    }
}

const BEHIND: &str = "
SELECT h.org_id, COALESCE(c.next_sequence, 0) AS next_sequence, h.size,
    (SELECT s.recorded_at FROM audit_seals s
     WHERE s.org_id = h.org_id AND s.sequence >= COALESCE(c.next_sequence, 0)
     ORDER BY s.sequence LIMIT 1) AS since
FROM audit_heads h
LEFT JOIN sink_cursors c ON c.org_id = h.org_id AND c.sink = $1
WHERE h.size > COALESCE(c.next_sequence, 0)
ORDER BY h.org_id";
