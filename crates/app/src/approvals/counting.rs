//! Figures about approvals, for operators.

use std::sync::{Arc, LazyLock};

use portcullis_core::{
    approval::{Approval, Status},
    audit::EventType,
    clock::Timestamp,
};

use crate::telemetry::{
    counters,
    histograms::{DAYS, Family, Times},
};

static FAMILY: Family = Family {
    name: "portcullis_approval_decision_seconds",
    help: "Time from the request of an approval to the decision that approved or denied it",
    label: "",
    bounds: &DAYS,
};

static TIMES: LazyLock<Arc<Times>> = LazyLock::new(|| Times::of(&FAMILY, ""));

/// Counts a change of an approval that was written with an event of this kind. Of several who have to
/// say yes, the last one grants it.
pub(super) fn count(kind: EventType, approval: &Approval, now: Timestamp) {
    let granted = kind == EventType::ApprovalGranted && approval.status == Status::Approved;
    let denied = kind == EventType::ApprovalDenied;
    if granted || denied {
        TIMES.count(approval.created_at, now);
    }
    let changes = [
        (kind == EventType::ApprovalRequested, "requested"),
        (granted, "granted"),
        (denied, "denied"),
        (kind == EventType::ApprovalExpired, "expired"),
        (kind == EventType::ApprovalConsumed, "consumed"),
    ];
    for (_, change) in changes.into_iter().filter(|(happened, _)| *happened) {
        counters::approval(change);
    }
}
