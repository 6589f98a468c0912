//! From a stored record to the leaf of the log.

use std::fmt::Write as _;

use crate::clock::Timestamp;

/// The stored record does not have the form that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored record is not in the form it was written in")]
pub struct LeafError;

/// The canonical record with its place in the log: `core` as [`super::Event::core_json`] wrote
/// it, with `recorded_at` and `sequence` put where the order of names wants them.
///
/// A quote inside a string is always escaped, so `,"request":` can only be the member itself. It is
/// looked for from the end, where it is near.
pub fn leaf_bytes(core: &str, sequence: i64, recorded_at: Timestamp) -> Result<String, LeafError> {
    let target = core.rfind(",\"target\":").ok_or(LeafError)?;
    let (rest, after) = core.split_at_checked(target).ok_or(LeafError)?;
    let request = rest.rfind(",\"request\":").ok_or(LeafError)?;
    let (before, middle) = rest.split_at_checked(request).ok_or(LeafError)?;
    let mut leaf = String::with_capacity(core.len() + 96);
    leaf.push_str(before);
    // Writing to a string never fails.
    let _ = write!(leaf, ",\"recorded_at\":\"{recorded_at}\"");
    leaf.push_str(middle);
    let _ = write!(leaf, ",\"sequence\":{sequence}");
    leaf.push_str(after);
    Ok(leaf)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        audit::{
            Actor, Credential, Detached, DlpFinding, DlpResult, Event, EventType, Governance,
            Outcome, RecordedDecision, Request, Target, leaf_hash,
        },
        json::{Bounds, canonical, parse, sha256},
        random::Sevens,
        refusal::Executed,
    };

    fn event(reason: &str) -> Event {
        let mut detached = Detached::default()
            .keep("label", Some("alice's"), &Sevens)
            .keep("actor_name", Some("alice"), &Sevens)
            .keep("user_agent", None::<String>, &Sevens);
        detached.commit("input", &json!({"limit": 10}), &Sevens);
        Event {
            id: "evt_01M7W9Y2TKP17G0AVDQZTD2P3X".parse().unwrap(),
            org_id: "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap(),
            kind: EventType::McpInvocation,
            occurred_at: Timestamp::from_micros(1_795_172_535_123_000),
            count: Some(3),
            actor: Actor::system(),
            request: Some(Request {
                id: "req_01M7W9Y2TKRFVVVX9QRHKJ8E9C".parse().unwrap(),
                idempotent: false,
                trace_id: None,
            }),
            target: Some(Target {
                capability: None,
                credential: Some(Credential::Org),
                id: Some("github:list_repos".to_owned()),
                provider_id: None,
                kind: "mcp",
                version: None,
            }),
            governance: Some(Governance {
                approvals: Vec::new(),
                decision: Some(RecordedDecision::Deny),
                determining_policies: vec!["a".to_owned()],
                dlp_findings: vec![DlpFinding {
                    action: "flag",
                    count: 1,
                    detector: "email".to_owned(),
                    fingerprints: vec!["00".to_owned()],
                    path: "/a".to_owned(),
                    stage: "input",
                }],
                dlp_result: DlpResult::Flagged,
                policy: Some("a".to_owned()),
                policy_set: None,
                policy_version: None,
                reason: Some(reason.to_owned()),
                shadow: Vec::new(),
            }),
            outcome: Outcome::success(Executed::Yes),
            detached,
        }
    }

    #[test]
    fn a_leaf_is_canonical_whatever_its_strings_hold() {
        for reason in ["plain", ",\"request\":{\"target\":1}", "ü \u{1} \"\\\" ,\"target\":"] {
            let core = event(reason).core_json();

            let leaf =
                leaf_bytes(&core, 48_212, Timestamp::from_micros(1_795_172_535_535_000)).unwrap();

            let parsed = parse(leaf.as_bytes(), Bounds::REQUEST).unwrap();
            assert_eq!(canonical(&parsed), leaf);
            assert_eq!(parsed["sequence"], json!(48_212));
            assert_eq!(parsed["recorded_at"], json!("2026-11-20T11:02:15.535Z"));
            assert_eq!(parsed["governance"]["reason"], json!(reason));
        }
    }

    #[test]
    fn the_published_leaf_hashes_to_the_published_value() {
        let leaf = concat!(
            r#"{"actor":{"id":"usr_01M754BKTKFVJC7V0B9VHVKZBP","type":"user"},"#,
            r#""commitments":{"actor_name":"sha256:a728f1a0cdd511d9997abdca50f93b5d808b0128bda2e2b2e1e52bfa2877804a","#,
            r#""input":"sha256:cabf99614e0bf87c353fa1a6461b15fc2993da60dd45f9f4e067919575207041"},"#,
            r#""governance":{"decision":"allow","dlp_result":"passed","policy":"engineering-read"},"#,
            r#""id":"evt_01M7W9Y2TK0000000000000000","occurred_at":"2026-11-20T11:02:10.123Z","#,
            r#""org_id":"org_01M754BKTKX1YB8Q05NMW9TP4G","#,
            r#""outcome":{"executed":"yes","http_status":200,"status":"success"},"#,
            r#""schema":1,"sequence":0,"target":{"id":"github:list_repos","type":"mcp"},"#,
            r#""type":"mcp.invocation"}"#,
        );

        let digest = sha256(&[&[0], leaf.as_bytes()]);

        assert_eq!(
            digest,
            "sha256:c7a6245881a100d1dd957d24c43c986095751eccad96ef91bb1b07e865e78bf7"
        );
        assert_eq!(leaf_hash(leaf.as_bytes())[..2], [0xc7, 0xa6]);
    }
}
