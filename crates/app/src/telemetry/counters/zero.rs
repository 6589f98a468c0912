//! Series that are known beforehand start at zero: `increase` and `rate` do not see an event that makes
//! its own series.

use metrics::counter;
use portcullis_core::{
    audit::OutcomeStatus,
    dlp::{Category, Direction},
    policy::Channel,
    refusal::Executed,
};
use portcullis_upstream::FAILURES;

/// Counters without labels.
const UNLABELLED: [&str; 15] = [
    super::REPLAYS,
    super::OFFLOADED,
    super::RELOAD_FAILURES,
    super::DLP_RELOAD_FAILURES,
    super::TLS_RELOAD_FAILURES,
    super::EXTERNAL_FAILURES,
    super::AUDIT_COMMITS,
    super::AUDIT_RECORDS,
    super::AUDIT_SEALED,
    super::AUDIT_FORKED,
    super::AUDIT_MISMATCHED,
    super::AUDIT_REFUSED,
    super::AUDIT_STOPPED,
    super::TOKEN_LOOKUPS,
    super::TOKEN_RENEWALS,
];

/// Outcomes of calls, each with the states of the upstream effect that it goes with.
const OUTCOMES: [(OutcomeStatus, &[Executed]); 13] = [
    (OutcomeStatus::Success, &[Executed::Yes]),
    (OutcomeStatus::ToolError, &[Executed::Yes]),
    (OutcomeStatus::InputRequired, &[Executed::Yes]),
    (OutcomeStatus::Task, &[Executed::Yes]),
    (OutcomeStatus::ApprovalPending, &[Executed::No]),
    (OutcomeStatus::Denied, &[Executed::No, Executed::Yes]),
    (OutcomeStatus::Invalid, &[Executed::No]),
    (OutcomeStatus::NotFound, &[Executed::No]),
    (OutcomeStatus::RateLimited, &[Executed::No]),
    (OutcomeStatus::UpstreamError, &EFFECTS),
    (OutcomeStatus::UpstreamTimeout, &EFFECTS),
    (OutcomeStatus::Unavailable, &EFFECTS),
    (OutcomeStatus::Unknown, &EFFECTS),
];
const EFFECTS: [Executed; 3] = [Executed::No, Executed::Yes, Executed::Unknown];

/// Changes of approvals.
pub(super) const CHANGES: [&str; 5] = ["requested", "granted", "denied", "expired", "consumed"];
/// Ends of spans.
const SPANS: [&str; 2] = ["exported", "dropped"];
/// Ends of notices to the program's log and to a webhook.
const LOGGED: [&str; 1] = ["logged"];
const POSTED: [&str; 3] = ["sent", "failed", "dropped"];
/// Ends of the publication of a checkpoint, in a file and at a witness.
const FILED: [&str; 3] = ["published", "failed", "set_back"];
pub(super) const WITNESSED: [&str; 8] = [
    "published", "failed", "set_back", "unreachable", "refused", "inconsistent", "malformed",
    "bad_signature",
];
/// Tables whose rows can be left out of an answer.
pub(super) const TABLES: [&str; 15] = [
    "approvals", "audit_checkpoints", "audit_heads", "audit_intents", "connect_attempts", "orgs",
    "principals", "provider_tasks", "providers", "secrets", "sink_cursors", "tokens",
    "capability_lists", "capability_pins", "capability_surplus",
];

/// Starts the series whose labels the gateway itself has.
pub(super) fn start() {
    for name in UNLABELLED {
        counter!(name).increment(0);
    }
    for (outcome, effects) in OUTCOMES {
        for executed in effects {
            super::invocations(outcome, *executed).increment(0);
        }
    }
    for direction in [Direction::Input, Direction::Output] {
        for category in Category::ALL {
            super::findings(direction, category).increment(0);
        }
    }
    for change in CHANGES {
        counter!(super::APPROVALS, "change" => change).increment(0);
    }
    for outcome in SPANS {
        counter!(super::TRACE_SPANS, "outcome" => outcome).increment(0);
    }
    for table in TABLES {
        counter!(super::UNREADABLE, "table" => table).increment(0);
    }
}

/// Starts the series of a declared provider.
pub(crate) fn start_provider(slug: &str) {
    counter!(super::OUTPUT_MISMATCHES, "provider" => slug.to_owned()).increment(0);
    for reason in FAILURES {
        let labels = [("provider", slug.to_owned()), ("reason", reason.to_owned())];
        counter!(super::UPSTREAM_FAILURES, &labels).increment(0);
    }
}

/// Starts the series of a declared sink.
pub(crate) fn start_sink(name: &str) {
    for counted in [super::SINK_DELIVERED, super::SINK_FAILURES, super::SINK_REJECTED] {
        counter!(counted, "sink" => name.to_owned()).increment(0);
    }
}

/// Starts the series of the file that checkpoints are published in.
pub(crate) fn start_anchor_file(name: &str) {
    start_anchor(name, &FILED);
}

/// Starts the series of a declared witness.
pub(crate) fn start_witness(name: &str) {
    start_anchor(name, &WITNESSED);
}

fn start_anchor(name: &str, outcomes: &[&'static str]) {
    for outcome in outcomes {
        counter!(super::AUDIT_ANCHORED, "anchor" => name.to_owned(), "outcome" => *outcome)
            .increment(0);
    }
}

/// Starts the series of a channel that notices can go to.
pub(crate) fn start_channel(channel: &Channel) {
    let outcomes: &[&'static str] = match channel {
        Channel::Log => &LOGGED,
        Channel::Webhook(_) => &POSTED,
    };
    for outcome in outcomes {
        counter!(super::NOTICES, "channel" => channel.to_string(), "outcome" => *outcome)
            .increment(0);
    }
}
