//! An event as it is recorded, in canonical form (RFC 8785): members are declared in the order of their
//! names.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::{
    audit::{
        Actor, Detached, EventType, Governance, Outcome, Request, SCHEMA, Target,
        commitment::Commitments,
    },
    clock::Timestamp,
    id::{EventId, OrgId},
};

/// Bytes for which room is made: a record with its governance takes about as many.
const ROOM: usize = 1536;

/// A whole event before it has a place in the log.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: EventId,
    /// The org whose log it belongs to.
    pub org_id: OrgId,
    pub kind: EventType,
    /// When the request arrived.
    pub occurred_at: Timestamp,
    /// Number of occurrences, if the event stands for several.
    pub count: Option<u64>,
    pub actor: Actor,
    pub request: Option<Request>,
    pub target: Option<Target>,
    pub governance: Option<Governance>,
    pub outcome: Outcome,
    /// The erasable part and the commitments to it.
    pub detached: Detached,
}

/// Microseconds that a call spent in stages of its way, by the names of those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations(Vec<(&'static str, u64)>);

impl Durations {
    /// Durations of stages, each with a name of its own.
    #[must_use]
    pub fn new(mut stages: Vec<(&'static str, u64)>) -> Self {
        stages.sort_unstable();
        Self(stages)
    }
}

impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// Part of an event that is hashed, but for its place in the log.
#[derive(Serialize, ToSchema)]
pub struct RecordedEvent<'a> {
    actor: &'a Actor,
    /// The event of the call that it is about, if it is none itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<EventId>,
    /// SHA-256 of each member of `detached` with its salt.
    #[schema(value_type = BTreeMap<String, String>)]
    commitments: Commitments<'a>,
    /// The number of occurrences that it stands for, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Of calls: microseconds spent in each stage in front of the record of the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, u64>>)]
    durations: Option<&'a Durations>,
    governance: Option<&'a Governance>,
    id: EventId,
    /// When the request arrived.
    occurred_at: Timestamp,
    org_id: OrgId,
    outcome: &'a Outcome,
    request: Option<&'a Request>,
    /// Version of the record's shape.
    schema: u32,
    target: Option<&'a Target>,
    #[serde(rename = "type")]
    kind: EventType,
}

/// The parts of an event, wherever they are kept.
#[derive(Debug, Clone, Copy)]
pub struct EventParts<'a> {
    pub id: EventId,
    /// The org whose log it belongs to.
    pub org_id: OrgId,
    pub kind: EventType,
    /// The call that it is about, if it is none itself.
    pub call: Option<EventId>,
    /// When the request arrived.
    pub occurred_at: Timestamp,
    /// Number of occurrences, if the event stands for several.
    pub count: Option<u64>,
    pub durations: Option<&'a Durations>,
    pub actor: &'a Actor,
    pub request: Option<&'a Request>,
    pub target: Option<&'a Target>,
    pub governance: Option<&'a Governance>,
    pub outcome: &'a Outcome,
    /// The erasable part and the commitments to it.
    pub detached: &'a Detached,
}

impl EventParts<'_> {
    /// The canonical JSON of everything that is hashed, but for the place in the log, which
    /// [`super::leaf_bytes`] adds when the event is sealed.
    #[must_use]
    pub fn core_json(&self) -> String {
        self.record(self.detached.commitments())
    }

    /// The same without the commitments that follow from the values that are kept beside it:
    /// [`super::restore`] adds them.
    #[must_use]
    pub fn kept_json(&self) -> String {
        self.record(self.detached.bare_commitments())
    }

    fn record(&self, commitments: Commitments<'_>) -> String {
        let core = RecordedEvent {
            actor: self.actor,
            call: self.call,
            commitments,
            count: self.count,
            durations: self.durations,
            governance: self.governance,
            id: self.id,
            occurred_at: self.occurred_at,
            org_id: self.org_id,
            outcome: self.outcome,
            request: self.request,
            schema: SCHEMA,
            target: self.target,
            kind: self.kind,
        };
        let mut text = Vec::with_capacity(ROOM);
        // Texts, numbers, and maps with text keys always serialise, to UTF-8.
        let written = serde_json::to_writer(&mut text, &core);
        written.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_default()
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
            call: None,
            occurred_at: self.occurred_at,
            count: self.count,
            durations: None,
            actor: &self.actor,
            request: self.request.as_ref(),
            target: self.target.as_ref(),
            governance: self.governance.as_ref(),
            outcome: &self.outcome,
            detached: &self.detached,
        }
    }

    /// The record, as [`EventParts::core_json`] makes it.
    #[must_use]
    pub fn core_json(&self) -> String {
        self.parts().core_json()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};

    use super::*;
    use crate::{
        audit::{
            ActorClient, Credential, DlpFinding, DlpResult, OutcomeStatus, RecordedDecision,
            UsedApproval, restore,
        },
        authorization::ClientKind,
        json,
        lineage::Lineage,
        random::Sevens,
        refusal::Executed,
    };

    const ULID: &str = "01M754BKTKX1YB8Q05NMW9TP4G";

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(prefix: &str) -> T {
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
            acted in any::<bool>(), client in any::<bool>(), idempotent in any::<bool>(), asked in any::<bool>(),
            credential in option::of(prop_oneof![Just(Credential::Own), Just(Credential::Org)]),
        ) -> Event {
            let [target, version, label, kept] = texts;
            let acting = Lineage::default().acted_by(id("usr"), id("sa"), &Lineage::default());
            let mut detached = Detached::default().keep("label", label, &Sevens);
            detached.commit("input", &serde_json::json!(kept), &Sevens);
            let request = Request { id: id("req"), idempotent, trace_id: None };
            let target = Target {
                capability: None,
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
                    client: client.then(|| ActorClient {
                        id: "reg_1".to_owned(),
                        kind: ClientKind::Registered,
                    }),
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
        fn a_record_is_in_canonical_form(event in events()) {
            let parts = EventParts { call: event.request.is_some().then_some(event.id), ..event.parts() };
            let record = parts.core_json();

            let read: serde_json::Value = serde_json::from_str(&record).unwrap();
            prop_assert_eq!(json::canonical(&read), record);
        }

        #[test]
        fn a_record_follows_from_what_is_kept_of_it(event in events()) {
            let mut seed = String::new();
            event.detached.write_seed(&mut seed);
            let kept = event.parts().kept_json();

            let restored = restore(&kept, &event.detached.values_json(), &seed);

            let record = event.core_json();
            prop_assert!(kept.len() <= record.len());
            if event.detached.values_json() == "{}" {
                prop_assert_eq!((kept, seed.as_str()), (record, "{}"));
            } else {
                let restored = restored.unwrap();
                prop_assert_eq!(restored.core, record);
                prop_assert_eq!(restored.salts, event.detached.salts_json());
            }
        }
    }
}
