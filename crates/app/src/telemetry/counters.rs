//! Counters for operators. Labels come from closed sets of the gateway and from the operator's
//! configuration, never from a caller.

mod zero;

use metrics::{Counter, Unit, counter, describe_counter, describe_gauge, gauge};
use portcullis_core::{
    audit::{Outcome, OutcomeStatus},
    clock::Timestamp,
    dlp::{Category, Direction, Findings},
    policy::Channel,
    refusal::Executed,
};
use portcullis_store::{AuditProgress, PendingApprovals, ProviderStatus};
use portcullis_upstream::FAILURES;

pub(crate) use self::zero::{
    start_anchor_file, start_channel, start_provider, start_sink, start_witness,
};

const INVOCATIONS: &str = "portcullis_invocations_total";
const REPLAYS: &str = "portcullis_replays_total";
const OFFLOADED: &str = "portcullis_calls_offloaded_total";
const PROVIDER_UP: &str = "portcullis_provider_up";
const CIRCUITS_OPEN: &str = "portcullis_provider_circuits_open";
const ISSUER_UP: &str = "portcullis_issuer_up";
const RELOAD_FAILURES: &str = "portcullis_policy_reload_failures_total";
const APPROVALS: &str = "portcullis_approvals_total";
const APPROVALS_PENDING: &str = "portcullis_approvals_pending";
const APPROVALS_OLDEST: &str = "portcullis_approvals_oldest_pending_seconds";
const NOTICES: &str = "portcullis_policy_notices_total";
const DLP_RELOAD_FAILURES: &str = "portcullis_dlp_reload_failures_total";
const TLS_RELOAD_FAILURES: &str = "portcullis_tls_reload_failures_total";
const EXTERNAL_FAILURES: &str = "portcullis_external_detector_failures_total";
const SINK_LAG_EVENTS: &str = "portcullis_audit_sink_lag_events";
const SINK_LAG_SECONDS: &str = "portcullis_audit_sink_lag_seconds";
const SINK_UP: &str = "portcullis_audit_sink_up";
const SINK_DELIVERED: &str = "portcullis_audit_sink_delivered_total";
const SINK_FAILURES: &str = "portcullis_audit_sink_failures_total";
const SINK_REJECTED: &str = "portcullis_audit_sink_rejected_total";
const NODES: &str = "portcullis_nodes";
const POLICY_SETS: &str = "portcullis_nodes_policy_sets";
const AUDIT_COMMITS: &str = "portcullis_audit_commits_total";
const AUDIT_RECORDS: &str = "portcullis_audit_records_total";
const AUDIT_WAITING: &str = "portcullis_audit_waiting";
const AUDIT_SEALED: &str = "portcullis_audit_sealed_total";
const AUDIT_FORKED: &str = "portcullis_audit_log_forked_total";
const AUDIT_REFUSED: &str = "portcullis_audit_refused_rows_total";
const AUDIT_STOPPED: &str = "portcullis_audit_stopped_removals_total";
const AUDIT_MISMATCHED: &str = "portcullis_audit_mismatched_reads_total";
const AUDIT_ANCHORED: &str = "portcullis_audit_anchored_total";
const AUDIT_ANCHOR_BEHIND: &str = "portcullis_audit_anchor_behind";
const FINDINGS: &str = "portcullis_dlp_findings_total";
const TOKEN_LOOKUPS: &str = "portcullis_token_lookups_total";
const TOKEN_RENEWALS: &str = "portcullis_token_renewals_total";
const UPSTREAM_FAILURES: &str = "portcullis_upstream_failures_total";
const OUTPUT_MISMATCHES: &str = "portcullis_output_mismatches_total";
const TRACE_SPANS: &str = "portcullis_trace_spans_total";
const UNREADABLE: &str = "portcullis_unreadable_rows_total";

/// Says what each figure means, and starts the counters whose labels are known; called once, before anything
/// is counted.
pub fn describe() {
    describe_counter!(INVOCATIONS, "Invocations by how they ended and whether the tool ran");
    describe_counter!(REPLAYS, "Answers given again for the same idempotency key");
    describe_counter!(OFFLOADED, "Calls that were too large for the threads that serve");
    describe_gauge!(PROVIDER_UP, "1 while the provider can be used, 0 otherwise");
    describe_gauge!(
        CIRCUITS_OPEN,
        "Tools of the provider that calls of some org do not go to for a while because they kept \
         failing, and the provider itself"
    );
    describe_gauge!(ISSUER_UP, "1 if the issuer's keys could be fetched the last time, 0 if not");
    describe_counter!(RELOAD_FAILURES, "Policy folders that could not be loaded");
    describe_counter!(DLP_RELOAD_FAILURES, "DLP settings that could not be loaded");
    describe_counter!(TLS_RELOAD_FAILURES, "Changed TLS certificates that could not be used");
    describe_counter!(EXTERNAL_FAILURES, "Questions an external detector did not answer");
    describe_counter!(APPROVALS, "Approvals by what became of them");
    describe_gauge!(APPROVALS_PENDING, Unit::Count, "Approvals that somebody has to decide about");
    describe_gauge!(APPROVALS_OLDEST, Unit::Seconds, "Age of the oldest of them");
    describe_counter!(NOTICES, "Notices that policies asked for, by channel and how they fared");
    describe_gauge!(SINK_LAG_EVENTS, Unit::Count, "Events a sink has not taken yet");
    describe_gauge!(SINK_LAG_SECONDS, Unit::Seconds, "Age of the oldest of them");
    describe_gauge!(SINK_UP, "1 if a sink took events the last time, 0 if not");
    describe_counter!(SINK_DELIVERED, "Events a sink has taken");
    describe_counter!(SINK_FAILURES, "Batches a sink has not taken");
    describe_counter!(SINK_REJECTED, "Events that a sink does not take and does not get again");
    describe_gauge!(NODES, Unit::Count, "Nodes that serve from the database, this one included");
    describe_gauge!(POLICY_SETS, "Different policy sets that these nodes decide by");
    describe_counter!(AUDIT_COMMITS, "Transactions of the audit writer");
    describe_counter!(AUDIT_RECORDS, "Intents and events in them");
    describe_counter!(AUDIT_SEALED, "Events that got their place in a log");
    describe_counter!(AUDIT_REFUSED, "Rows that were not sealed; must stay 0");
    describe_counter!(
        AUDIT_STOPPED,
        "Rounds in which a log did not prove what retention would have removed; must stay 0"
    );
    describe_counter!(AUDIT_FORKED, "Times a stored log was not what was signed; must stay 0");
    describe_counter!(
        AUDIT_MISMATCHED,
        "Events that were read and are not those of the log; must stay 0"
    );
    describe_counter!(AUDIT_ANCHORED, "Checkpoints published, by anchor and how that went");
    describe_gauge!(AUDIT_ANCHOR_BEHIND, Unit::Count, "Logs whose latest tree an anchor lacks");
    describe_gauge!(AUDIT_WAITING, Unit::Count, "Intents and events that wait to be written");
    describe_counter!(FINDINGS, "Values that DLP found, by direction and category");
    describe_counter!(TOKEN_LOOKUPS, "Tokens that were looked up in the store: not remembered yet");
    describe_counter!(TOKEN_RENEWALS, "Tokens in use that were looked up again ahead of time");
    describe_counter!(UPSTREAM_FAILURES, "Calls that a provider did not answer, by why");
    describe_counter!(OUTPUT_MISMATCHES, "Results that do not fit the tool's output schema");
    describe_counter!(
        UNREADABLE,
        "Rows that were left out because they cannot be read, by table; must stay 0"
    );
    describe_counter!(TRACE_SPANS, "Spans of traced requests, exported or dropped");
    zero::start();
}

/// Clean texts cost nothing here.
pub(crate) fn found(direction: Direction, found: &Findings) {
    for finding in found {
        findings(direction, finding.category()).increment(finding.count().into());
    }
}

fn findings(direction: Direction, category: Category) -> Counter {
    let direction = match direction {
        Direction::Input => "input",
        Direction::Output => "output",
    };
    counter!(FINDINGS, "direction" => direction, "category" => category.as_str())
}

pub(crate) fn token_looked_up() {
    counter!(TOKEN_LOOKUPS).increment(1);
}

pub(crate) fn tokens_renewed(tokens: usize) {
    counter!(TOKEN_RENEWALS).increment(u64::try_from(tokens).unwrap_or(u64::MAX));
}

pub(crate) fn upstream_failed(slug: &str, why: &'static str) {
    debug_assert!(FAILURES.contains(&why), "`{why}` does not start at zero");
    counter!(UPSTREAM_FAILURES, "provider" => slug.to_owned(), "reason" => why).increment(1);
}

pub(crate) fn output_mismatched(slug: &str) {
    counter!(OUTPUT_MISMATCHES, "provider" => slug.to_owned()).increment(1);
}

pub(crate) fn unreadable(table: &'static str) {
    debug_assert!(zero::TABLES.contains(&table), "`{table}` does not start at zero");
    counter!(UNREADABLE, "table" => table).increment(1);
}

pub(crate) fn spans_exported(spans: usize) {
    spans_ended(spans, "exported");
}

pub(crate) fn spans_dropped(spans: usize) {
    spans_ended(spans, "dropped");
}

fn spans_ended(spans: usize, outcome: &'static str) {
    let spans = u64::try_from(spans).unwrap_or(u64::MAX);
    counter!(TRACE_SPANS, "outcome" => outcome).increment(spans);
}

pub(crate) fn invocation(outcome: &Outcome) {
    invocations(outcome.status, outcome.executed).increment(1);
}

fn invocations(outcome: OutcomeStatus, executed: Executed) -> Counter {
    counter!(INVOCATIONS, "outcome" => outcome.as_str(), "executed" => executed.as_str())
}

pub(crate) fn nodes(alive: usize, policy_sets: usize) {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    gauge!(NODES).set(count(alive));
    gauge!(POLICY_SETS).set(count(policy_sets));
}

pub(crate) fn replayed() {
    counter!(REPLAYS).increment(1);
}

/// A call that ended on a worker.
pub(crate) fn offloaded() {
    counter!(OFFLOADED).increment(1);
}

pub(crate) fn provider(slug: &str, status: ProviderStatus) {
    let up = if status == ProviderStatus::Connected { 1.0 } else { 0.0 };
    gauge!(PROVIDER_UP, "provider" => slug.to_owned()).set(up);
}

pub(crate) fn circuits(slug: &str, open: usize) {
    let open = f64::from(u32::try_from(open).unwrap_or(u32::MAX));
    gauge!(CIRCUITS_OPEN, "provider" => slug.to_owned()).set(open);
}

pub(crate) fn issuer(issuer: &str, up: bool) {
    gauge!(ISSUER_UP, "issuer" => issuer.to_owned()).set(if up { 1.0 } else { 0.0 });
}

pub(crate) fn reload_failed() {
    counter!(RELOAD_FAILURES).increment(1);
}

pub(crate) fn approval(change: &'static str) {
    debug_assert!(zero::CHANGES.contains(&change), "`{change}` does not start at zero");
    counter!(APPROVALS, "change" => change).increment(1);
}

pub(crate) fn approvals_pending(pending: PendingApprovals, now: Timestamp) {
    gauge!(APPROVALS_PENDING).set(f64::from(u32::try_from(pending.count).unwrap_or(u32::MAX)));
    let age = pending.oldest.map_or(0, |oldest| now.as_seconds() - oldest.as_seconds());
    gauge!(APPROVALS_OLDEST).set(f64::from(u32::try_from(age).unwrap_or(0)));
}

pub(crate) fn notice(channel: &Channel, outcome: &'static str) {
    counter!(NOTICES, "channel" => channel.to_string(), "outcome" => outcome).increment(1);
}

/// DLP settings could not be loaded while the gateway runs.
pub fn dlp_reload_failed() {
    counter!(DLP_RELOAD_FAILURES).increment(1);
}

/// A changed certificate of the listener could not be used.
pub fn tls_reload_failed() {
    counter!(TLS_RELOAD_FAILURES).increment(1);
}

pub(crate) fn external_detector_failed() {
    counter!(EXTERNAL_FAILURES).increment(1);
}

pub(crate) fn sink_lag(sink: &str, events: i64, micros: i64) {
    let float = |number: i64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    gauge!(SINK_LAG_EVENTS, "sink" => sink.to_owned()).set(float(events));
    let seconds = float(micros / 1_000) / 1_000.0;
    gauge!(SINK_LAG_SECONDS, "sink" => sink.to_owned()).set(seconds);
}

pub(crate) fn sink_up(sink: &str, up: bool) {
    gauge!(SINK_UP, "sink" => sink.to_owned()).set(if up { 1.0 } else { 0.0 });
}

pub(crate) fn sink_delivered(sink: &str, events: u64, rejected: u64) {
    counter!(SINK_DELIVERED, "sink" => sink.to_owned()).increment(events);
    counter!(SINK_REJECTED, "sink" => sink.to_owned()).increment(rejected);
}

pub(crate) fn sink_failed(sink: &str) {
    counter!(SINK_FAILURES, "sink" => sink.to_owned()).increment(1);
}

pub(crate) fn sealed(events: u64) {
    counter!(AUDIT_SEALED).increment(events);
}

pub(crate) fn rows_refused(rows: usize) {
    counter!(AUDIT_REFUSED).increment(u64::try_from(rows).unwrap_or(u64::MAX));
}

pub(crate) fn removal_stopped() {
    counter!(AUDIT_STOPPED).increment(1);
}

pub(crate) fn log_forked() {
    counter!(AUDIT_FORKED).increment(1);
}

pub(crate) fn mismatched(events: u64) {
    counter!(AUDIT_MISMATCHED).increment(events);
}

pub(crate) fn anchored(anchor: &str, outcome: &'static str) {
    debug_assert!(zero::WITNESSED.contains(&outcome), "`{outcome}` does not start at zero");
    counter!(AUDIT_ANCHORED, "anchor" => anchor.to_owned(), "outcome" => outcome).increment(1);
}

pub(crate) fn anchor_behind(anchor: &str, logs: usize) {
    let logs = f64::from(u32::try_from(logs).unwrap_or(u32::MAX));
    gauge!(AUDIT_ANCHOR_BEHIND, "anchor" => anchor.to_owned()).set(logs);
}

pub(crate) fn audit(progress: AuditProgress) {
    counter!(AUDIT_COMMITS).absolute(progress.commits);
    counter!(AUDIT_RECORDS).absolute(progress.jobs);
    gauge!(AUDIT_WAITING).set(f64::from(u32::try_from(progress.waiting).unwrap_or(u32::MAX)));
}
