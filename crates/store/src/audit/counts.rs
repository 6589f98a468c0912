//! Counts of calls by minute, for plots: how they were decided, what DLP found and how long they took.
//!
//! The sealer adds those of the events that it gives places, in the same transaction: each event is
//! counted once, whatever crashes. Events sealed by versions without these counts are in none.

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, id::OrgId};

use crate::{
    db::{Db, Session, Store, all, change, read, row, run},
    error::StoreError,
};

const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;

/// Ages, in minutes, from which counts are kept in coarser steps, and those steps.
const THINNED: [(i64, i64); 2] = [(8 * DAY, HOUR), (40 * DAY, DAY)];
/// Minutes below an age that a round looks at: rounds are an hour apart.
const LOOKED_AT: i64 = 4 * DAY;

/// Upper bounds in milliseconds of the classes of [`CallCounts::latencies`]; the last has none.
pub const LATENCY_BOUNDS_MS: [u32; 12] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000];

/// The kind of the first class of latencies.
const LATENCIES: i64 = 20;

/// Counts of calls. The first four are disjoint: their sum is the number of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    pub allowed: u64,
    pub denied: u64,
    /// Waiting for people to approve them.
    pub asked: u64,
    /// Refused before policies decided: invalid, not found, over a limit.
    pub undecided: u64,
    /// Found by DLP, which acted on nothing.
    pub flagged: u64,
    pub redacted: u64,
    pub blocked: u64,
    /// Without a result: the tool, its provider or the gateway failed.
    pub failed: u64,
    /// Allowed calls by the time from the request to the record of its end.
    pub latencies: [u64; 13],
}

impl CallCounts {
    fn place(&mut self, kind: i64) -> Option<&mut u64> {
        match kind {
            1 => Some(&mut self.allowed),
            2 => Some(&mut self.denied),
            3 => Some(&mut self.asked),
            4 => Some(&mut self.undecided),
            5 => Some(&mut self.flagged),
            6 => Some(&mut self.redacted),
            7 => Some(&mut self.blocked),
            8 => Some(&mut self.failed),
            kind => self.latencies.get_mut(usize::try_from(kind - LATENCIES).ok()?),
        }
    }
}

/// Steps of time to sum counts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountsRange {
    /// The first minute since the epoch.
    pub from: i64,
    /// The first minute that is not asked for.
    pub to: i64,
    /// Minutes in a step.
    pub step: i64,
}

/// Counts of a step that has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepCounts {
    /// The first minute of the step since the epoch.
    pub minute: i64,
    pub counts: CallCounts,
}

/// Calls of a tool within an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCalls {
    pub tool: String,
    /// Since the epoch.
    pub hour: i64,
    pub calls: u64,
}

/// Hours for which calls are kept by tool.
pub const TOOL_HOURS: i64 = 48;

row!(ToolRow { tool: String, hour: i64, number: i64 });
row!(StepRow { step: i64, kind: i64, number: i64 });
row!(CountRow { minute: i64, kind: i64, number: i64 });

/// Counts the events of the org with these positions, the first excluded.
pub(super) async fn count_events(
    tx: &mut Session,
    org: &str,
    after: i64,
    last: i64,
) -> Result<(), StoreError> {
    for add in ADD_BY_POSITION {
        run!(tx, add => org, after, last);
    }
    Ok(())
}

impl Store {
    /// Counts of the org's calls in steps of time, in their order; steps without calls are left out.
    #[boxed]
    pub async fn call_counts(
        &self,
        org: OrgId,
        range: CountsRange,
    ) -> Result<Vec<StepCounts>, StoreError> {
        let rows: Vec<StepRow> = read!(self, org, |conn| {
            all!(conn, BY_STEP => org, range.from, range.to, range.step)
        });
        let mut steps: Vec<StepCounts> = Vec::new();
        for row in rows {
            let minute = row.step * range.step;
            if steps.last().is_none_or(|step| step.minute != minute) {
                steps.push(StepCounts { minute, counts: CallCounts::default() });
            }
            let place = steps.last_mut().and_then(|step| step.counts.place(row.kind));
            if let Some(place) = place {
                *place = u64::try_from(row.number).unwrap_or(0);
            }
        }
        Ok(steps)
    }

    /// Calls of these tools in hours from `from` on, by tool and hour; hours without calls are left out.
    #[boxed]
    pub async fn tool_calls(
        &self,
        org: OrgId,
        tools: &[String],
        from: i64,
    ) -> Result<Vec<ToolCalls>, StoreError> {
        let tools = serde_json::json!(tools).to_string();
        let query = match &self.db {
            Db::Sqlite { .. } => BY_TOOL_SQLITE,
            Db::Postgres(_) => BY_TOOL_POSTGRES,
        };
        let rows: Vec<ToolRow> = read!(self, org, |conn| all!(conn, query => org, &tools, from));
        let calls = |row: ToolRow| ToolCalls {
            tool: row.tool,
            hour: row.hour,
            calls: u64::try_from(row.number).unwrap_or(0),
        };
        Ok(rows.into_iter().map(calls).collect())
    }

    /// Merges the old minutes of these orgs into hours, old hours into days, and forgets what was
    /// before `forgotten`. Two at once do no harm: what one took the other finds gone.
    #[boxed]
    pub async fn thin_counts(
        &self,
        orgs: &[OrgId],
        now: Timestamp,
        forgotten: Timestamp,
    ) -> Result<(), StoreError> {
        let now = now.as_seconds().div_euclid(60);
        let forgotten = forgotten.as_seconds().div_euclid(60);
        change!(self, installation, |tx| {
            for org in orgs {
                let org = org.to_string();
                for (age, step) in THINNED {
                    // Whole steps: none is merged in two parts.
                    let to = (now - age).div_euclid(step) * step;
                    let taken: Vec<CountRow> = all!(tx, TAKE => &org, to - LOOKED_AT, to, step);
                    for row in taken {
                        run!(
                            tx, PUT => &org, row.minute.div_euclid(step) * step, row.kind,
                            row.number
                        );
                    }
                }
                run!(
                    tx, "DELETE FROM audit_tool_counts WHERE org_id = $1 AND hour < $2" => &org,
                    now.div_euclid(HOUR) - TOOL_HOURS
                );
                run!(
                    tx, "DELETE FROM audit_counts WHERE org_id = $1 AND minute < $2" => &org,
                    forgotten
                );
            }
        });
        Ok(())
    }
}

/// An event counts as up to four kinds, one for each row of `k`. The events of the org `$1` are those
/// between two positions, or, where no index has the positions of an org, between two places of its log.
macro_rules! add_sql {
    ($from:literal, $between:literal) => {
        concat!(
            "
INSERT INTO audit_counts (org_id, minute, kind, number)
SELECT org_id, minute, kind, COUNT(*) FROM (
    SELECT e.org_id, e.committed_at / 60000000 AS minute,
        CASE k.column1
        WHEN 1 THEN CASE
            WHEN e.outcome = 'approval_pending' THEN 3
            WHEN e.decision = 'allow' THEN 1
            WHEN e.decision = 'deny' THEN 2
            ELSE 4 END
        WHEN 2 THEN CASE e.dlp_result
            WHEN 'flagged' THEN 5 WHEN 'redacted' THEN 6 WHEN 'blocked' THEN 7 END
        WHEN 3 THEN CASE WHEN e.outcome IN ('tool_error', 'upstream_error', 'upstream_timeout',
            'unavailable', 'unknown') THEN 8 END
        ELSE CASE WHEN e.decision = 'allow' AND e.outcome NOT IN ('approval_pending', 'unknown')
            THEN 20 + CASE
                WHEN e.committed_at - e.occurred_at <= 1000 THEN 0
                WHEN e.committed_at - e.occurred_at <= 2000 THEN 1
                WHEN e.committed_at - e.occurred_at <= 5000 THEN 2
                WHEN e.committed_at - e.occurred_at <= 10000 THEN 3
                WHEN e.committed_at - e.occurred_at <= 25000 THEN 4
                WHEN e.committed_at - e.occurred_at <= 50000 THEN 5
                WHEN e.committed_at - e.occurred_at <= 100000 THEN 6
                WHEN e.committed_at - e.occurred_at <= 250000 THEN 7
                WHEN e.committed_at - e.occurred_at <= 500000 THEN 8
                WHEN e.committed_at - e.occurred_at <= 1000000 THEN 9
                WHEN e.committed_at - e.occurred_at <= 2500000 THEN 10
                WHEN e.committed_at - e.occurred_at <= 10000000 THEN 11
                ELSE 12 END END
        END AS kind
    FROM ",
            $from,
            " CROSS JOIN (VALUES (1), (2), (3), (4)) k
    WHERE ",
            $between,
            " AND e.type = 'mcp.invocation'
) counted WHERE kind IS NOT NULL
GROUP BY org_id, minute, kind
ON CONFLICT (org_id, minute, kind) DO UPDATE SET number = audit_counts.number + excluded.number"
        )
    };
}

/// The same by tool and hour, for calls that policies decided: without a decision, the tool may be any text
/// of a caller's.
macro_rules! add_tools_sql {
    ($from:literal, $between:literal) => {
        concat!(
            "
INSERT INTO audit_tool_counts (org_id, tool, hour, number)
SELECT e.org_id, e.target, e.committed_at / 3600000000, COUNT(*) FROM ",
            $from,
            " WHERE ",
            $between,
            " AND e.type = 'mcp.invocation' AND e.decision IS NOT NULL AND e.target IS NOT NULL
GROUP BY 1, 2, 3
ON CONFLICT (org_id, tool, hour)
    DO UPDATE SET number = audit_tool_counts.number + excluded.number"
        )
    };
}

/// Statements that add what these events count.
macro_rules! add_all_sql {
    ($from:literal, $between:literal) => {
        [add_sql!($from, $between), add_tools_sql!($from, $between)]
    };
}

/// Of events that are refused there is no seal.
const ADD_BY_POSITION: [&str; 2] = add_all_sql!(
    "audit_events e",
    "e.org_id = $1 AND e.position > $2 AND e.position <= $3 \
     AND EXISTS (SELECT 1 FROM audit_seals s WHERE s.event_id = e.id)"
);

pub(super) const ADD_BY_PLACE: [&str; 2] = add_all_sql!(
    "audit_seals s CROSS JOIN audit_events e ON e.position = s.position",
    "s.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3"
);

const BY_TOOL_SQLITE: &str = "
SELECT tool, hour, number FROM audit_tool_counts
WHERE org_id = $1 AND tool IN (SELECT value FROM json_each($2)) AND hour >= $3 ORDER BY 1, 2";

const BY_TOOL_POSTGRES: &str = "
SELECT tool, hour, number FROM audit_tool_counts
WHERE org_id = $1 AND tool IN (SELECT jsonb_array_elements_text($2::jsonb)) AND hour >= $3
ORDER BY 1, 2";

const BY_STEP: &str = "
SELECT minute / $4 AS step, kind, CAST(SUM(number) AS BIGINT) AS number FROM audit_counts
WHERE org_id = $1 AND minute >= $2 AND minute < $3
GROUP BY 1, 2 ORDER BY 1, 2";

const TAKE: &str = "
DELETE FROM audit_counts
WHERE org_id = $1 AND minute >= $2 AND minute < $3 AND minute % $4 <> 0
RETURNING minute, kind, number";

const PUT: &str = "
INSERT INTO audit_counts (org_id, minute, kind, number) VALUES ($1, $2, $3, $4)
ON CONFLICT (org_id, minute, kind) DO UPDATE SET number = audit_counts.number + excluded.number";
