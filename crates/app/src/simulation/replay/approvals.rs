//! Approvals that a candidate would have asked for, over the calls of a replay.

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{clock::Timestamp, id::EventId};
use portcullis_store::EventRecord;
use serde::Serialize;
use utoipa::ToSchema;

/// Examples of calls that are named for each policy.
const MAX_EXAMPLES: usize = 5;
/// Seconds of a day.
const DAY_S: u32 = 86_400;

/// Recorded calls that would have needed an approval.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    calls: usize,
    by_policy: BTreeMap<Arc<str>, ApprovalCount>,
}

#[derive(Debug, Default)]
struct ApprovalCount {
    calls: usize,
    examples: Vec<EventId>,
}

/// Approvals that the candidate would have asked for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReplayedApprovals)]
pub struct ApprovalsReport {
    /// Recorded calls that would have needed an approval. One that was made again while it waited counts
    /// each time.
    pub calls: usize,
    /// Such calls of one day: the average over the span that was replayed, which counts as a day at
    /// least. A sample is extrapolated.
    pub per_day: f64,
    /// The policies with the most calls first.
    pub policies: Vec<PolicyApprovals>,
}

/// Approvals that a policy would have asked for.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyApprovals {
    /// The policy.
    #[schema(value_type = String)]
    pub policy: Arc<str>,
    /// Number of calls that would have needed its approval.
    pub calls: usize,
    /// At most five of them.
    pub example_event_ids: Vec<EventId>,
}

impl Approvals {
    /// Counts a call for which these policies ask for an approval.
    pub(super) fn count(&mut self, event: &EventRecord, policies: Vec<Arc<str>>) {
        self.calls += usize::from(!policies.is_empty());
        for policy in policies {
            let asked = self.by_policy.entry(policy).or_default();
            asked.calls += 1;
            if asked.examples.len() < MAX_EXAMPLES {
                asked.examples.push(event.id);
            }
        }
    }

    /// The report over events of this span, of which a share was taken.
    pub(super) fn report(
        self,
        span: Option<(Timestamp, Timestamp)>,
        share: Option<f64>,
    ) -> ApprovalsReport {
        let policies = self.by_policy.into_iter().map(|(policy, asked)| PolicyApprovals {
            policy,
            calls: asked.calls,
            example_event_ids: asked.examples,
        });
        let mut policies: Vec<PolicyApprovals> = policies.collect();
        // A stable sort: equals stay in the order of their names.
        policies.sort_by_key(|it| std::cmp::Reverse(it.calls));
        let per_day = per_day(self.calls, span, share.unwrap_or(1.0));
        ApprovalsReport { calls: self.calls, per_day, policies }
    }
}

/// To a tenth.
fn per_day(calls: usize, span: Option<(Timestamp, Timestamp)>, share: f64) -> f64 {
    let seconds = span.map_or(0, |(from, to)| to.as_seconds() - from.as_seconds());
    let seconds = u32::try_from(seconds).unwrap_or(u32::MAX).max(DAY_S);
    let days = f64::from(seconds) / f64::from(DAY_S);
    let calls = f64::from(u32::try_from(calls).unwrap_or(u32::MAX));
    let all = if share > 0.0 { calls / share } else { calls };
    (all / days * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_day_are_an_average_over_the_span_and_never_over_less_than_a_day() {
        let from = Timestamp::from_micros(1_800_000_000_000_000);
        let span = |days: i64| Some((from, from.plus_seconds(days * 86_400)));

        for (calls, span, share, expected) in [
            (0, None, 1.0, 0.0),
            (3, span(0), 1.0, 3.0),
            (14, span(7), 1.0, 2.0),
            (1, span(7), 1.0, 0.1),
            (14, span(7), 0.1, 20.0),
        ] {
            let told = per_day(calls, span, share);
            assert!((told - expected).abs() < 0.01, "{calls} {span:?} {share}: {told}");
        }
    }
}
