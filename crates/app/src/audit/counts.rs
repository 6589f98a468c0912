//! Counts of an org's calls over time, as plots show them.

use std::collections::BTreeMap;

use portcullis_core::{clock::Timestamp, refusal::Refusal};
use portcullis_store::{CallCounts, CountsRange, LATENCY_BOUNDS_MS, StoreError};
use serde::Serialize;
use utoipa::ToSchema;

use super::Audit;
use crate::request::Ctx;

/// The most steps of one answer.
const MOST_STEPS: i64 = 1_500;
/// Orgs whose counts are thinned in one transaction.
const TOGETHER: usize = 100;

portcullis_core::words! {
    /// A step of time by which calls are counted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum CountStep {
        Minute = "minute",
        Hour = "hour",
        Day = "day",
    }
}

impl CountStep {
    /// The names of all, the finest first.
    pub const NAMES: [&str; 3] = ["minute", "hour", "day"];

    /// The step of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Minute, Self::Hour, Self::Day].into_iter().find(|step| step.as_str() == name)
    }

    /// Its minutes, the number of steps that are shown unless more are asked for, and the days for
    /// which counts are kept by it.
    const fn terms(self) -> StepTerms {
        match self {
            Self::Minute => StepTerms { minutes: 1, usual: 60, days: 8 },
            Self::Hour => StepTerms { minutes: 60, usual: 48, days: 40 },
            Self::Day => StepTerms { minutes: 1_440, usual: 30, days: MOST_STEPS },
        }
    }
}

struct StepTerms {
    minutes: i64,
    usual: i64,
    days: i64,
}

/// Counts of calls over time.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CallCounts)]
pub struct CountsView {
    /// Beginning of the first step.
    pub from: Timestamp,
    /// End of the last step.
    pub to: Timestamp,
    /// `minute`, `hour` or `day`, in UTC.
    #[schema(example = "minute")]
    pub step: &'static str,
    /// Every step in its order, those without calls too.
    pub steps: Vec<StepView>,
}

/// Counts of the calls that were recorded within a step. `allowed`, `denied`, `asked` and `undecided`
/// add up to `calls`.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = CallCountsStep)]
pub struct StepView {
    /// Beginning of the step.
    pub at: Timestamp,
    pub calls: u64,
    pub allowed: u64,
    pub denied: u64,
    /// Told to wait for an approval.
    pub asked: u64,
    /// Refused before a decision: invalid, not found, over a limit.
    pub undecided: u64,
    /// With findings of DLP on which nothing acted.
    pub flagged: u64,
    /// With findings that were masked.
    pub redacted: u64,
    /// Stopped by findings.
    pub blocked: u64,
    /// Without a result: the tool, its provider or the gateway failed.
    pub failed: u64,
    /// Median time of an allowed call in milliseconds, estimated from 13 classes; absent without one.
    pub p50_ms: Option<f64>,
    /// The time that 99 of 100 allowed calls stay below, estimated likewise; at most 10,000.
    pub p99_ms: Option<f64>,
}

impl StepView {
    fn of(minute: i64, counts: &CallCounts) -> Self {
        Self {
            at: moment(minute),
            calls: counts.allowed + counts.denied + counts.asked + counts.undecided,
            allowed: counts.allowed,
            denied: counts.denied,
            asked: counts.asked,
            undecided: counts.undecided,
            flagged: counts.flagged,
            redacted: counts.redacted,
            blocked: counts.blocked,
            failed: counts.failed,
            p50_ms: quantile(&counts.latencies, 50),
            p99_ms: quantile(&counts.latencies, 99),
        }
    }
}

/// Calls by tool over the last hours.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ToolCallCounts)]
pub struct ToolCountsView {
    /// Beginning of the first hour, in UTC.
    pub from: Timestamp,
    /// The tools that were asked for, in that order.
    pub items: Vec<ToolCounts>,
}

/// Calls of a tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ToolCallCount)]
pub struct ToolCounts {
    #[schema(example = "github:list_issues")]
    pub tool: String,
    /// Calls that policies decided, in each of 24 hours; the last is the present one.
    pub calls: Vec<u64>,
}

/// Hours of calls by tool in one answer.
const HOURS: usize = 24;

impl Audit {
    /// Calls of these tools in the last 24 hours.
    pub async fn tool_calls(
        &self,
        ctx: &Ctx,
        tools: Vec<String>,
    ) -> Result<ToolCountsView, Refusal> {
        let last = self.base.clock.now().as_seconds().div_euclid(3_600);
        let from = last + 1 - i64::try_from(HOURS).unwrap_or(i64::MAX);
        let found = self.base.store.tool_calls(ctx.caller().org_id, &tools, from).await?;
        let mut hours: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for counted in &found {
            let calls = hours.entry(&counted.tool).or_insert_with(|| vec![0; HOURS]);
            let place = usize::try_from(counted.hour - from).ok();
            if let Some(place) = place.and_then(|place| calls.get_mut(place)) {
                *place = counted.calls;
            }
        }
        let items = tools.into_iter().map(|tool| {
            let calls = hours.get(&*tool).cloned().unwrap_or_else(|| vec![0; HOURS]);
            ToolCounts { tool, calls }
        });
        let items = items.collect();
        Ok(ToolCountsView { from: moment(from * 60), items })
    }

    /// Counts of the org's calls between two moments, widened to whole steps: up to now, and as far
    /// back as is usual for the step, unless told otherwise. Rejects more steps than fit an answer and
    /// moments for which the step is no longer kept.
    pub async fn call_counts(
        &self,
        ctx: &Ctx,
        step: CountStep,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Result<CountsView, Refusal> {
        let terms = step.terms();
        let range = range(step, from, to, self.base.clock.now())?;
        let found = self.base.store.call_counts(ctx.caller().org_id, range).await?;
        let mut found = found.into_iter().peekable();
        let mut steps = Vec::new();
        let mut minute = range.from;
        while minute < range.to {
            let counts = found.next_if(|step| step.minute == minute).map(|step| step.counts);
            steps.push(StepView::of(minute, &counts.unwrap_or_default()));
            minute += terms.minutes;
        }
        Ok(CountsView {
            from: moment(range.from),
            to: moment(range.to),
            step: step.as_str(),
            steps,
        })
    }

    /// Keeps old counts in coarser steps, and none for longer than events.
    pub(super) async fn thin_counts(&self) -> Result<(), StoreError> {
        let now = self.base.clock.now();
        let forgotten = now.plus_seconds(-self.retention.events);
        let orgs: Vec<_> = self.base.store.list_orgs().await?.iter().map(|org| org.id).collect();
        for orgs in orgs.chunks(TOGETHER) {
            self.base.store.thin_counts(orgs, now, forgotten).await?;
        }
        Ok(())
    }
}

/// The whole steps around these moments.
fn range(
    step: CountStep,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    now: Timestamp,
) -> Result<CountsRange, Refusal> {
    let terms = step.terms();
    let floor = |moment: Timestamp| {
        moment.as_seconds().div_euclid(60).div_euclid(terms.minutes) * terms.minutes
    };
    // The step of the last moment that is asked for is the last.
    let last = floor(Timestamp::from_micros(to.unwrap_or(now).as_micros().saturating_sub(1)));
    let to = last + terms.minutes;
    let from = from.map_or(to - terms.usual * terms.minutes, floor);
    if from >= to {
        return Err(Refusal::bad_parameter("to", "`to` has to be later than `from`."));
    }
    if (to - from) / terms.minutes > MOST_STEPS {
        let message = format!("From `from` to `to` are more than {MOST_STEPS} steps.");
        return Err(Refusal::bad_parameter("from", message));
    }
    if from < floor(now.plus_seconds(-terms.days * 86_400)) {
        let message = format!(
            "Counts by {} are kept for {} days; ask by a longer `step`.",
            step.as_str(),
            terms.days
        );
        return Err(Refusal::bad_parameter("from", message));
    }
    Ok(CountsRange { from, to, step: terms.minutes })
}

fn moment(minute: i64) -> Timestamp {
    Timestamp::default().plus_seconds(minute.saturating_mul(60))
}

/// The time below which this percentage of calls stays, in milliseconds: between the bounds of its
/// class as if its calls were spread evenly there.
fn quantile(classes: &[u64; 13], percent: u64) -> Option<f64> {
    let all: u64 = classes.iter().sum();
    let rank = (all * percent).div_ceil(100);
    let mut before = 0;
    let mut lower = 0.0;
    for (calls, upper) in classes.iter().zip(LATENCY_BOUNDS_MS) {
        let upper = f64::from(upper);
        if rank <= before + calls && *calls > 0 {
            let share = lossy(rank - before) / lossy(*calls);
            return Some(((lower + (upper - lower) * share) * 100.0).round() / 100.0);
        }
        before += calls;
        lower = upper;
    }
    (all > 0).then_some(lower)
}

fn lossy(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn moments_are_widened_to_whole_steps_and_bounded() {
        let now = at("2026-11-26T17:03:08Z");
        let shown = |step, from: Option<&str>, to: Option<&str>| {
            let range = range(step, from.map(at), to.map(at), now).ok()?;
            Some((moment(range.from).to_string(), moment(range.to).to_string()))
        };
        for (step, from, to, expected) in [
            (CountStep::Minute, None, None, Some(("26T16:04", "26T17:04"))),
            (CountStep::Hour, None, None, Some(("24T18:00", "26T18:00"))),
            (CountStep::Day, Some("2026-11-20T11:00:00Z"), None, Some(("20T00:00", "27T00:00"))),
            (CountStep::Minute, None, Some("2026-11-26T12:00:00Z"), Some(("26T11:00", "26T12:00"))),
            (CountStep::Minute, Some("2026-11-26T17:04:00Z"), None, None),
            (CountStep::Minute, Some("2026-11-25T15:00:00Z"), None, None),
            (CountStep::Hour, Some("2026-10-01T00:00:00Z"), None, None),
        ] {
            let range = shown(step, from, to);
            let range = range.as_ref().map(|(from, to)| (&from[8..16], &to[8..16]));

            assert_eq!(range, expected, "{step:?} {from:?} {to:?}");
        }
    }

    #[test]
    fn quantiles_lie_within_the_class_of_their_call() {
        let classes = |given: &[(usize, u64)]| {
            let mut classes = [0; 13];
            for (class, calls) in given {
                classes[*class] = *calls;
            }
            classes
        };
        for (given, p50, p99) in [
            (classes(&[]), None, None),
            (classes(&[(2, 1)]), Some(5.0), Some(5.0)),
            (classes(&[(0, 50), (4, 50)]), Some(1.0), Some(24.7)),
            (classes(&[(12, 3)]), Some(10_000.0), Some(10_000.0)),
        ] {
            assert_eq!((quantile(&given, 50), quantile(&given, 99)), (p50, p99), "{given:?}");
        }
    }
}
