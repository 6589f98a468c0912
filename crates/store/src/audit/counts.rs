//! Counts of calls by minute, for plots: how they were decided, what DLP found and how long they took.
//!
//! The sealer adds those of the events that it gives places, in the same transaction: each event is
//! counted once, whatever crashes. Events sealed by versions without these counts are in none.

use std::collections::{BTreeMap, BTreeSet};

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, id::OrgId};

use crate::{
    db::{Db, NewEvent, Session, Store, all, change, events_of_seals, find, read, row, run},
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

/// Counts of the calls of a log, as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedEvents {
    /// The first place that was not read.
    pub end: i64,
    /// The first minute that counts: in front of it events may be gone, or counts.
    from: i64,
    /// Minutes and hours in front of which calls are counted by hour and by day.
    coarse: [(i64, i64); 2],
    /// The first hour in which tools are counted.
    tools_from: i64,
    calls: BTreeMap<(i64, i64), i64>,
    tools: BTreeMap<(String, i64), i64>,
}

impl CountedEvents {
    /// Nothing of a log that begins at the place `first`, of which all calls since `complete` are counted.
    #[must_use]
    pub fn new(first: i64, complete: Timestamp, now: Timestamp) -> Self {
        let now = now.as_seconds().div_euclid(60);
        let from = (complete.as_seconds().div_euclid(60 * DAY) + 1) * DAY;
        // Another node may have merged some already.
        let coarse = THINNED.map(|(age, step)| ((now - age).div_euclid(DAY) * DAY + DAY, step));
        let tools_from = (now.div_euclid(HOUR) - TOOL_HOURS + 1).max(from.div_euclid(HOUR));
        Self { end: first, from, coarse, tools_from, ..Self::default() }
    }

    /// The minute by which calls of this minute are compared, and how many minutes it stands for.
    fn step(&self, minute: i64) -> (i64, i64) {
        let coarse = self.coarse.iter().rev().find(|(before, _)| minute < *before);
        let step = coarse.map_or(1, |(_, step)| *step);
        (minute.div_euclid(step) * step, step)
    }

    fn count(&mut self, calls: Vec<CountRow>, tools: Vec<ToolRow>) {
        for row in calls.into_iter().filter(|row| row.minute >= self.from) {
            let (minute, _) = self.step(row.minute);
            let sum = self.calls.entry((minute, row.kind)).or_default();
            *sum = sum.saturating_add(row.number);
        }
        for row in tools.into_iter().filter(|row| row.hour >= self.tools_from) {
            let sum = self.tools.entry((row.tool, row.hour)).or_default();
            *sum = sum.saturating_add(row.number);
        }
    }
}

/// Keys at which two maps differ, with the values of `ours`.
fn differing<K: Ord + Clone>(ours: &BTreeMap<K, i64>, stored: &BTreeMap<K, i64>) -> Vec<(K, i64)> {
    let keys: BTreeSet<&K> = ours.keys().chain(stored.keys()).collect();
    let number = |key: &K| ours.get(key).copied().unwrap_or(0);
    let keys = keys.into_iter().filter(|key| ours.get(key) != stored.get(key));
    keys.map(|key| (key.clone(), number(key))).collect()
}

/// Reads within a session what the events of the org behind `counted` up to the place `end` count.
macro_rules! count_places {
    ($store:expr, $conn:ident, $org:expr, $counted:expr, $end:expr) => {{
        let [calls, tools] = match &$store.db {
            Db::Sqlite { .. } => counted_by_place!(sqlite),
            Db::Postgres(_) => counted_by_place!(postgres),
        };
        let calls: Vec<CountRow> = all!($conn, calls => $org, $counted.end, $end);
        let tools: Vec<ToolRow> = all!($conn, tools => $org, $counted.end, $end);
        $counted.count(calls, tools);
        $counted.end = $end;
    }};
}

impl Store {
    /// Counts the calls of the org's events up to the place `end`.
    #[boxed]
    pub async fn count_calls(
        &self,
        org: OrgId,
        counted: &mut CountedEvents,
        end: i64,
    ) -> Result<(), StoreError> {
        read!(self, org, |conn| count_places!(self, conn, org, counted, end));
        Ok(())
    }

    /// Compares the org's counts with those that were `counted`, and counts first what was sealed meanwhile; nothing
    /// is sealed until it ends. With `tell`, writes anew what differs, and the event that it makes of how many counts
    /// that were. Number of counts that differed.
    pub async fn mend_counts<T>(
        &self,
        org: OrgId,
        mut counted: CountedEvents,
        tell: Option<T>,
    ) -> Result<u64, StoreError>
    where
        T: Fn(u64) -> NewEvent + Send,
    {
        let is_sqlite = matches!(&self.db, Db::Sqlite { .. });
        let differed = change!(self, org, |tx| {
            tx.announce_writer().await?;
            let head = if is_sqlite { HEAD } else { concat!(head!(), " FOR UPDATE") };
            let end: Option<i64> = find!(tx, scalar head => org);
            if !is_sqlite {
                for lock in LOCKS {
                    let _: Vec<i64> = all!(tx, scalar lock => org);
                }
            }
            count_places!(self, tx, org, counted, end.unwrap_or(0).max(counted.end));
            let calls: Vec<CountRow> = all!(tx, CALLS => org, counted.from);
            let tools: Vec<ToolRow> = all!(tx, TOOLS => org, counted.tools_from);
            let mut stored =
                CountedEvents { calls: BTreeMap::new(), tools: BTreeMap::new(), ..counted.clone() };
            stored.count(calls, tools);
            let calls = differing(&counted.calls, &stored.calls);
            let tools = differing(&counted.tools, &stored.tools);
            let differed = u64::try_from(calls.len() + tools.len()).unwrap_or(u64::MAX);
            let (Some(tell), 1..) = (tell, differed) else { return Ok(differed) };
            for ((minute, kind), number) in calls {
                let end = minute.saturating_add(counted.step(minute).1);
                run!(tx, FORGET_CALLS => org, minute, end, kind);
                if number > 0 {
                    run!(tx, PUT => org, minute, kind, number);
                }
            }
            for ((tool, hour), number) in tools {
                run!(tx, FORGET_TOOL => org, tool.as_str(), hour);
                if number > 0 {
                    run!(tx, PUT_TOOL => org, tool.as_str(), hour, number);
                }
            }
            let event = tell(differed);
            tx.insert_events(&self.row_key, event.occurred_at.as_micros(), &[&event]).await?;
            differed
        });
        Ok(differed)
    }

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
                    tx, "DELETE FROM audit_capability_counts WHERE org_id = $1 AND hour < $2" => &org,
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

/// The SQL for what events count as: up to four kinds, one for each row of `k`. The events of the org `$1` are those
/// between two positions, or, where no index has the positions of an org, between two places of its log.
macro_rules! counted_sql {
    ($from:expr, $between:literal) => {
        concat!(
            "SELECT org_id, minute, CAST(kind AS BIGINT) AS kind, COUNT(*) AS number FROM (
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
GROUP BY org_id, minute, kind"
        )
    };
}

/// The same by tool and hour, for calls that policies decided: without a decision, the tool may be any text
/// of a caller's.
macro_rules! counted_tools_sql {
    ($from:expr, $between:literal) => {
        concat!(
            "SELECT e.org_id, e.target AS tool, e.committed_at / 3600000000 AS hour, COUNT(*) AS number FROM ",
            $from,
            " WHERE ",
            $between,
            " AND e.type = 'mcp.invocation' AND e.decision IS NOT NULL AND e.target IS NOT NULL
GROUP BY 1, 2, 3"
        )
    };
}

use {counted_sql, counted_tools_sql};

/// Statements that add what these events count.
macro_rules! add_all_sql {
    ($from:expr, $between:literal) => {
        [
            concat!(
                "INSERT INTO audit_counts (org_id, minute, kind, number) ",
                counted_sql!($from, $between),
                " ON CONFLICT (org_id, minute, kind) DO UPDATE SET number = audit_counts.number + excluded.number"
            ),
            concat!(
                "INSERT INTO audit_capability_counts (org_id, tool, hour, number) ",
                counted_tools_sql!($from, $between),
                " ON CONFLICT (org_id, tool, hour)
    DO UPDATE SET number = audit_capability_counts.number + excluded.number"
            ),
        ]
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

/// Statements that read what the events between two places count.
macro_rules! counted_by_place {
    ($dialect:ident) => {
        [
            counted_sql!(
                events_of_seals!($dialect),
                "s.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3"
            ),
            counted_tools_sql!(
                events_of_seals!($dialect),
                "s.org_id = $1 AND s.sequence >= $2 AND s.sequence < $3"
            ),
        ]
    };
}
use counted_by_place;

const BY_TOOL_SQLITE: &str = "
SELECT tool, hour, number FROM audit_capability_counts
WHERE org_id = $1 AND tool IN (SELECT value FROM json_each($2)) AND hour >= $3 ORDER BY 1, 2";

const BY_TOOL_POSTGRES: &str = "
SELECT tool, hour, number FROM audit_capability_counts
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

macro_rules! head {
    () => {
        "SELECT size FROM audit_heads WHERE org_id = $1"
    };
}
use head;

const HEAD: &str = head!();

/// What a node that merges counts changes waits for these.
const LOCKS: [&str; 2] = [
    "SELECT number FROM audit_counts WHERE org_id = $1 FOR UPDATE",
    "SELECT number FROM audit_capability_counts WHERE org_id = $1 FOR UPDATE",
];

const CALLS: &str =
    "SELECT minute, kind, number FROM audit_counts WHERE org_id = $1 AND minute >= $2";

const TOOLS: &str =
    "SELECT tool, hour, number FROM audit_capability_counts WHERE org_id = $1 AND hour >= $2";

const FORGET_CALLS: &str = "
DELETE FROM audit_counts WHERE org_id = $1 AND minute >= $2 AND minute < $3 AND kind = $4";

const FORGET_TOOL: &str =
    "DELETE FROM audit_capability_counts WHERE org_id = $1 AND tool = $2 AND hour = $3";

const PUT_TOOL: &str = "
INSERT INTO audit_capability_counts (org_id, tool, hour, number) VALUES ($1, $2, $3, $4)";
