//! A sealed event read back, for those who write it in another form.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::clock::Timestamp;

/// A sealed event as the store has it.
#[derive(Debug, Clone, Copy)]
pub struct Sealed<'a> {
    /// The part that is hashed, as JSON, without sequence and time of recording.
    pub core: &'a str,
    /// The erasable part, as JSON.
    pub detached: Option<&'a str>,
    /// The salts of the erasable part, as JSON.
    pub salts: Option<&'a str>,
    pub sequence: i64,
    pub recorded_at: Timestamp,
    pub leaf_hash: [u8; 32],
}

/// A stored event is not in the form it was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored event at place {0} cannot be read")]
pub struct StoredError(pub i64);

/// The hashed part of an event, as far as other forms tell it.
#[derive(Debug, Deserialize)]
pub(super) struct Stored<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) occurred_at: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) org_id: Cow<'a, str>,
    pub(super) count: Option<u64>,
    #[serde(borrow)]
    pub(super) actor: StoredActor<'a>,
    #[serde(borrow)]
    pub(super) request: Option<StoredRequest<'a>>,
    #[serde(borrow)]
    pub(super) target: Option<StoredTarget<'a>>,
    #[serde(borrow)]
    pub(super) governance: Option<StoredGovernance<'a>>,
    #[serde(borrow)]
    pub(super) outcome: StoredOutcome<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredActor<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) via: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) token_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) auth: StoredAuth<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredAuth<'a> {
    #[serde(borrow)]
    pub(super) trust: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredRequest<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) trace_id: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredTarget<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) provider_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) credential: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredGovernance<'a> {
    #[serde(borrow)]
    pub(super) decision: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) policy: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) policy_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) policy_set: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) dlp_result: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) dlp_findings: &'a RawValue,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredOutcome<'a> {
    #[serde(borrow)]
    pub(super) status: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) executed: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) error_code: Option<Cow<'a, str>>,
    pub(super) http_status: u16,
}

/// Actor and source, as far as they are kept.
#[derive(Debug, Default)]
pub(super) struct ActorAndSource {
    pub(super) actor_name: Option<String>,
    pub(super) label: Option<String>,
    pub(super) source_ip: Option<String>,
    pub(super) user_agent: Option<String>,
}

impl<'a> Sealed<'a> {
    /// The hashed part. Fails if it was not written by [`super::Event::core_json`].
    pub(super) fn stored(&self) -> Result<Stored<'a>, StoredError> {
        serde_json::from_str(self.core).map_err(|_| StoredError(self.sequence))
    }

    pub(super) fn names(&self) -> Result<ActorAndSource, StoredError> {
        let Some(detached) = self.detached else { return Ok(ActorAndSource::default()) };
        let members: BTreeMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(detached).map_err(|_| StoredError(self.sequence))?;
        let text = |name: &str| {
            members.get(name).and_then(|value| serde_json::from_str(value.get()).ok()).flatten()
        };
        Ok(ActorAndSource {
            actor_name: text("actor_name"),
            label: text("label"),
            source_ip: text("source_ip"),
            user_agent: text("user_agent"),
        })
    }
}
