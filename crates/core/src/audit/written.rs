//! The text of records, written piece by piece behind one another into memory of the caller.
//!
//! Every function writes the canonical form (RFC 8785): members in the order of their names, no
//! white space. A test holds it against what `serde` makes of the same types.

use std::fmt::{self, Write as _};

use crate::{
    audit::{
        Actor, Detached, DlpFinding, Event, EventType, Governance, Outcome, Request, SCHEMA,
        Target, UsedApproval,
        record::{Credential, RecordedDecision},
    },
    clock::Timestamp,
    id::{EventId, OrgId},
    json::write_string,
};

/// Bytes for which room is made: a record with its governance takes about as many.
const ROOM: usize = 1536;

/// The parts of an event, wherever they are kept.
#[derive(Debug, Clone, Copy)]
pub struct EventParts<'a> {
    /// Its id.
    pub id: EventId,
    /// The org whose log it belongs to.
    pub org_id: OrgId,
    /// Type of the event.
    pub kind: EventType,
    /// When the request arrived.
    pub occurred_at: Timestamp,
    /// Number of occurrences, if the event stands for several.
    pub count: Option<u64>,
    /// The actor.
    pub actor: &'a Actor,
    /// The request it came with.
    pub request: Option<&'a Request>,
    /// The object.
    pub target: Option<&'a Target>,
    /// Governance of the call.
    pub governance: Option<&'a Governance>,
    /// The outcome.
    pub outcome: &'a Outcome,
    /// The erasable part and the commitments to it.
    pub detached: &'a Detached,
}

/// The text of those members of a record that stay as they are from the intent of a call to its
/// end: actor, ids, request and target.
#[derive(Debug, Clone)]
pub struct RecordFrame {
    text: String,
    /// The ends of what stands before the commitments, and before the outcome.
    ends: [usize; 2],
}

impl RecordFrame {
    /// The frame of an event's record.
    #[must_use]
    pub fn of(event: &EventParts<'_>) -> Self {
        let mut text = String::with_capacity(ROOM / 2);
        event.write_beginning(&mut text);
        let beginning = text.len();
        event.write_middle(&mut text);
        let middle = text.len();
        event.write_end(&mut text);
        Self { text, ends: [beginning, middle] }
    }

    fn pieces(&self) -> (&str, &str, &str) {
        let [beginning, middle] = self.ends;
        let piece = |range| self.text.get(range).unwrap_or_default();
        (piece(0..beginning), piece(beginning..middle), piece(middle..self.text.len()))
    }

    /// Writes the record of an event that has this frame, as [`EventParts::write_core`] does.
    pub fn write_core(&self, event: &EventParts<'_>, out: &mut String) {
        let (beginning, middle, end) = self.pieces();
        out.push_str(beginning);
        event.write_decided(out);
        out.push_str(middle);
        write_outcome(event.outcome, out);
        out.push_str(end);
    }
}

impl EventParts<'_> {
    /// Writes the canonical JSON of everything that is hashed, but for the place in the log, which
    /// [`super::leaf_bytes`] adds when the event is sealed.
    pub fn write_core(&self, out: &mut String) {
        out.reserve(ROOM);
        self.write_beginning(out);
        self.write_decided(out);
        self.write_middle(out);
        write_outcome(self.outcome, out);
        self.write_end(out);
    }

    fn write_beginning(&self, out: &mut String) {
        out.push_str("{\"actor\":");
        write_actor(self.actor, out);
        out.push_str(",\"commitments\":");
    }

    /// Members that change from the intent to the end, but for the outcome.
    fn write_decided(&self, out: &mut String) {
        self.detached.write_commitments(out);
        if let Some(count) = self.count {
            out.push_str(",\"count\":");
            write_shown(count, out);
        }
        out.push_str(",\"governance\":");
        match self.governance {
            Some(governance) => write_governance(governance, out),
            None => out.push_str("null"),
        }
    }

    fn write_middle(&self, out: &mut String) {
        out.push_str(",\"id\":");
        write_id(self.id, out);
        out.push_str(",\"occurred_at\":");
        write_id(self.occurred_at, out);
        out.push_str(",\"org_id\":");
        write_id(self.org_id, out);
        out.push_str(",\"outcome\":");
    }

    fn write_end(&self, out: &mut String) {
        out.push_str(",\"request\":");
        match self.request {
            Some(request) => write_request(request, out),
            None => out.push_str("null"),
        }
        out.push_str(",\"schema\":");
        write_shown(SCHEMA, out);
        out.push_str(",\"target\":");
        match self.target {
            Some(target) => write_target(target, out),
            None => out.push_str("null"),
        }
        out.push_str(",\"type\":\"");
        out.push_str(self.kind.as_str());
        out.push_str("\"}");
    }
}

impl Event {
    /// Its parts.
    #[must_use]
    pub const fn parts(&self) -> EventParts<'_> {
        EventParts {
            id: self.id,
            org_id: self.org_id,
            kind: self.kind,
            occurred_at: self.occurred_at,
            count: self.count,
            actor: &self.actor,
            request: self.request.as_ref(),
            target: self.target.as_ref(),
            governance: self.governance.as_ref(),
            outcome: &self.outcome,
            detached: &self.detached,
        }
    }

    /// The record, as [`EventParts::write_core`] writes it.
    #[must_use]
    pub fn core_json(&self) -> String {
        let mut core = String::new();
        self.parts().write_core(&mut core);
        core
    }
}

fn write_actor(actor: &Actor, out: &mut String) {
    out.push('{');
    if let Some(act) = &actor.act {
        out.push_str("\"act\":");
        // Hardly anybody acts for others; maps with text keys always serialise.
        out.push_str(&serde_json::to_string(act).unwrap_or_default());
        out.push(',');
    }
    out.push_str("\"auth\":{\"method\":\"");
    out.push_str(actor.auth.method);
    out.push_str("\",\"trust\":");
    write_text(actor.auth.trust.as_deref(), out);
    out.push_str("},\"id\":");
    write_known_id(actor.id, out);
    out.push_str(",\"token_id\":");
    write_known_id(actor.token_id, out);
    out.push_str(",\"type\":\"");
    out.push_str(actor.kind);
    out.push_str("\",\"via\":");
    write_known_id(actor.via, out);
    out.push('}');
}

fn write_governance(governance: &Governance, out: &mut String) {
    out.push('{');
    if !governance.approvals.is_empty() {
        out.push_str("\"approvals\":");
        write_list(&governance.approvals, out, write_approval);
        out.push(',');
    }
    out.push_str("\"decision\":");
    write_name(governance.decision.map(RecordedDecision::as_str), out);
    out.push_str(",\"determining_policies\":");
    write_list(&governance.determining_policies, out, |policy, out| write_string(policy, out));
    out.push_str(",\"dlp_findings\":");
    write_list(&governance.dlp_findings, out, write_finding);
    out.push_str(",\"dlp_result\":");
    write_name(Some(governance.dlp_result.as_str()), out);
    out.push_str(",\"policy\":");
    write_text(governance.policy.as_deref(), out);
    out.push_str(",\"policy_set\":");
    write_text(governance.policy_set.as_deref(), out);
    out.push_str(",\"policy_version\":");
    write_text(governance.policy_version.as_deref(), out);
    out.push_str(",\"reason\":");
    write_text(governance.reason.as_deref(), out);
    out.push_str(",\"shadow\":");
    write_list(&governance.shadow, out, |policy, out| write_string(policy, out));
    out.push('}');
}

fn write_approval(approval: &UsedApproval, out: &mut String) {
    out.push_str("{\"approvers\":");
    write_list(&approval.approvers, out, |approver, out| write_string(approver, out));
    out.push_str(",\"id\":");
    write_id(approval.id, out);
    out.push('}');
}

fn write_finding(finding: &DlpFinding, out: &mut String) {
    out.push_str("{\"action\":\"");
    out.push_str(finding.action);
    out.push_str("\",\"count\":");
    write_shown(finding.count, out);
    out.push_str(",\"detector\":");
    write_string(&finding.detector, out);
    out.push_str(",\"fingerprints\":");
    write_list(&finding.fingerprints, out, |print, out| write_string(print, out));
    out.push_str(",\"path\":");
    write_string(&finding.path, out);
    out.push_str(",\"stage\":\"");
    out.push_str(finding.stage);
    out.push_str("\"}");
}

fn write_outcome(outcome: &Outcome, out: &mut String) {
    out.push_str("{\"error_code\":");
    write_name(outcome.error_code, out);
    out.push_str(",\"executed\":\"");
    out.push_str(outcome.executed.as_str());
    out.push_str("\",\"http_status\":");
    write_shown(outcome.http_status, out);
    out.push_str(",\"status\":\"");
    out.push_str(outcome.status.as_str());
    out.push_str("\"}");
}

fn write_request(request: &Request, out: &mut String) {
    out.push_str("{\"id\":");
    write_id(request.id, out);
    out.push_str(if request.idempotent { ",\"idempotent\":true" } else { ",\"idempotent\":false" });
    out.push_str(",\"trace_id\":");
    write_known_id(request.trace_id, out);
    out.push('}');
}

fn write_target(target: &Target, out: &mut String) {
    out.push_str("{\"credential\":");
    write_name(target.credential.map(Credential::as_str), out);
    out.push_str(",\"id\":");
    write_text(target.id.as_deref(), out);
    out.push_str(",\"provider_id\":");
    write_known_id(target.provider_id, out);
    out.push_str(",\"type\":\"");
    out.push_str(target.kind);
    out.push_str("\",\"version\":");
    write_text(target.version.as_deref(), out);
    out.push('}');
}

fn write_list<T>(items: &[T], out: &mut String, write: impl Fn(&T, &mut String)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

fn write_text(text: Option<&str>, out: &mut String) {
    match text {
        Some(text) => write_string(text, out),
        None => out.push_str("null"),
    }
}

/// Writes a name of ours, which needs no escapes.
fn write_name(name: Option<&str>, out: &mut String) {
    match name {
        Some(name) => write_id(name, out),
        None => out.push_str("null"),
    }
}

fn write_known_id(id: Option<impl fmt::Display>, out: &mut String) {
    match id {
        Some(id) => write_id(id, out),
        None => out.push_str("null"),
    }
}

/// Writes as a text what needs no escapes.
fn write_id(id: impl fmt::Display, out: &mut String) {
    out.push('"');
    write_shown(id, out);
    out.push('"');
}

fn write_shown(value: impl fmt::Display, out: &mut String) {
    // Writing to a string never fails.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};

    use super::*;
    use crate::{
        audit::{DlpResult, OutcomeStatus, RecordedDecision},
        lineage::Lineage,
        random::Sevens,
        refusal::Executed,
    };

    const ULID: &str = "01M754BKTKX1YB8Q05NMW9TP4G";

    fn id<T: std::str::FromStr<Err: fmt::Debug>>(prefix: &str) -> T {
        format!("{prefix}_{ULID}").parse().unwrap()
    }

    prop_compose! {
        fn findings()(
            detector in ".{0,6}", path in ".{0,6}",
            fingerprints in proptest::collection::vec(".{0,3}", 0..3), count in any::<u32>(),
        ) -> DlpFinding {
            DlpFinding { action: "flag", count, detector, fingerprints, path, stage: "input" }
        }
    }

    prop_compose! {
        fn governance()(
            approvers in proptest::collection::vec(".{0,4}", 0..3),
            decision in option::of(prop_oneof![
                Just(RecordedDecision::Allow), Just(RecordedDecision::Deny)
            ]),
            determining_policies in proptest::collection::vec(".{0,4}", 0..3),
            dlp_findings in proptest::collection::vec(findings(), 0..3),
            texts in proptest::array::uniform4(option::of(".{0,8}")),
            shadow in proptest::collection::vec(".{0,4}", 0..2),
        ) -> Governance {
            let [policy, policy_set, policy_version, reason] = texts;
            let approvals = if approvers.is_empty() {
                Vec::new()
            } else {
                vec![UsedApproval { approvers, id: id("apr") }]
            };
            Governance {
                approvals, decision, determining_policies, dlp_findings,
                dlp_result: DlpResult::Flagged, policy, policy_set, policy_version, reason, shadow,
            }
        }
    }

    prop_compose! {
        fn events()(
            governance in option::of(governance()),
            count in option::of(any::<u64>()),
            trust in option::of(".{0,6}"),
            texts in proptest::array::uniform4(option::of(".{0,8}")),
            micros in any::<i64>(),
            acted in any::<bool>(), idempotent in any::<bool>(), asked in any::<bool>(),
            credential in option::of(prop_oneof![Just(Credential::Own), Just(Credential::Org)]),
        ) -> Event {
            let [target, version, label, kept] = texts;
            let acting = Lineage::default().acted_by(id("usr"), id("sa"), &Lineage::default());
            let mut detached = Detached::default().keep("label", label, &Sevens);
            detached.commit("input", &serde_json::json!(kept), &Sevens);
            let request = Request { id: id("req"), idempotent, trace_id: None };
            let target = Target {
                credential, id: target, provider_id: Some(id("prv")), kind: "mcp", version,
            };
            Event {
                id: id("evt"),
                org_id: id("org"),
                kind: EventType::McpInvocation,
                occurred_at: Timestamp::from_micros(micros),
                count,
                actor: Actor {
                    act: acted.then(|| acting.unwrap().act().unwrap()),
                    auth: crate::audit::Auth { method: "oidc", trust },
                    id: acted.then(|| id("usr")),
                    token_id: Some(id("tok")),
                    kind: "user",
                    via: acted.then(|| id("sa")),
                },
                request: asked.then_some(request),
                target: (!acted).then_some(target),
                governance,
                outcome: Outcome {
                    error_code: acted.then_some("policy_denied"),
                    executed: Executed::Unknown,
                    http_status: 403,
                    status: OutcomeStatus::Denied,
                },
                detached,
            }
        }
    }

    proptest! {
        #[test]
        fn a_record_is_what_serde_makes_of_it(event in events()) {
            prop_assert_eq!(event.core_json(), event.serialised());
        }

        #[test]
        fn the_frame_of_an_intent_is_that_of_the_end(event in events(), later in governance()) {
            let frame = RecordFrame::of(&event.parts());
            let mut end = event;
            end.detached.commit("output", &serde_json::json!([1]), &Sevens);
            let end = Event {
                governance: Some(later), outcome: Outcome::success(Executed::Yes), ..end
            };

            let mut core = "before".to_owned();
            frame.write_core(&end.parts(), &mut core);

            prop_assert_eq!(core, format!("before{}", end.core_json()));
        }
    }
}
