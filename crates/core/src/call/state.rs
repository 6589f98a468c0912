//! State of a call whose tool asked something, sealed and given to the caller: it can be continued
//! only by the same caller, with the same call, in time.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::{
    capability::Capability,
    clock::Timestamp,
    id::{OrgId, PrincipalId, ProviderId},
    idempotency::AnswerKey,
    mcp::interaction::ClientCapabilities,
    random::Random,
};

/// Purpose for which the key of states is derived.
pub const STATES: &str = "interaction-states";
/// Seconds for which a question can be answered: 15 minutes.
const STATE_LIFE_SECONDS: i64 = 15 * 60;
/// Longest sealed state in bytes: that of the longest upstream state, however it is escaped.
const LONGEST: usize = 640 << 10;

/// Seals states and tasks of one installation.
#[derive(Debug)]
pub struct StateKey(pub(super) AnswerKey);

/// Call that a state belongs to.
#[derive(Debug, Clone, Copy)]
pub struct StateOwner<'a> {
    pub org: OrgId,
    pub principal: PrincipalId,
    /// The service that acts for it.
    pub via: Option<PrincipalId>,
    /// The tool, whose version counts.
    pub tool: &'a Capability,
    pub connection: ProviderId,
}

/// State of a call between two of its legs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallState {
    /// End of its life in microseconds since 1970.
    expires: i64,
    /// Number of legs that have ended.
    pub legs: u32,
    /// Digest of the input as it was sent.
    pub input: String,
    pub capabilities: ClientCapabilities,
    /// Names of the questions.
    pub asked: Vec<String>,
    pub upstream: Option<String>,
}

impl CallState {
    /// A state that ends 15 minutes from now.
    #[must_use]
    pub const fn new(
        now: Timestamp,
        input: String,
        capabilities: ClientCapabilities,
        asked: Vec<String>,
    ) -> Self {
        let expires = now.plus_seconds(STATE_LIFE_SECONDS).as_micros();
        Self { expires, legs: 1, input, capabilities, asked, upstream: None }
    }
}

impl StateKey {
    /// From 32 bytes that are used for nothing else.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self(AnswerKey::new(key))
    }

    /// Seals a state for its owner, as text. `None` if the cipher fails, which it does for no input.
    #[must_use]
    pub fn seal(
        &self,
        owner: StateOwner<'_>,
        state: &CallState,
        source: &dyn Random,
    ) -> Option<String> {
        let text = serde_json::to_vec(state).ok()?;
        let sealed = self.0.seal(owner.org, &subject(owner), &text, source)?;
        Some(BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a state. `None` if it was changed, is over its time, or is that of another owner.
    #[must_use]
    pub fn open(&self, owner: StateOwner<'_>, sealed: &str, now: Timestamp) -> Option<CallState> {
        if sealed.len() > LONGEST {
            return None;
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let text = self.0.open(owner.org, &subject(owner), &sealed)?;
        let state: CallState = serde_json::from_slice(&text).ok()?;
        (now.as_micros() < state.expires).then_some(state)
    }
}

/// Text of all but the org that a state is bound to. No part can hold a line feed.
fn subject(owner: StateOwner<'_>) -> String {
    let StateOwner { org: _, principal, via, tool, connection } = owner;
    let via = via.map(|via| via.to_string()).unwrap_or_default();
    format!("{STATES}\n{principal}\n{via}\n{}\n{}\n{connection}", tool.id, tool.version)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::capability::Definition;
    use crate::random::Sevens;

    fn tool(name: &str, description: &str) -> Capability {
        let definition = Definition {
            description: Some(description.to_owned()),
            ..Definition::new(name.parse().unwrap(), json!({"type": "object"}))
        };
        Capability::new(&"a".parse().unwrap(), definition, Timestamp::default()).unwrap()
    }

    fn id(kind: &str, last: char) -> String {
        format!("{kind}_01M754BKTKX1YB8Q05NMW9TP4{last}")
    }

    #[test]
    fn a_state_opens_for_its_owner_in_time_only() {
        let key = StateKey::new(&[1; 32]);
        let one = tool("x", "1");
        let other = tool("y", "1");
        let newer = tool("x", "2");
        let owner = StateOwner {
            org: id("org", 'G').parse().unwrap(),
            principal: id("usr", 'G').parse().unwrap(),
            via: None,
            tool: &one,
            connection: id("prv", 'G').parse().unwrap(),
        };
        let now = Timestamp::from_micros(7);
        let state = CallState {
            upstream: Some("their secret state".to_owned()),
            ..CallState::new(now, "sha256:1".to_owned(), ClientCapabilities::default(), Vec::new())
        };
        let end = now.plus_seconds(STATE_LIFE_SECONDS);

        let sealed = key.seal(owner, &state, &Sevens).unwrap();

        assert!(!sealed.contains("secret"));
        assert_eq!(key.open(owner, &sealed, now), Some(state));
        assert!(key.open(owner, &sealed, Timestamp::from_micros(end.as_micros() - 1)).is_some());
        assert_eq!(key.open(owner, &sealed, end), None);
        for other in [
            StateOwner { org: id("org", 'H').parse().unwrap(), ..owner },
            StateOwner { principal: id("usr", 'H').parse().unwrap(), ..owner },
            StateOwner { via: Some(id("sa", 'H').parse().unwrap()), ..owner },
            StateOwner { tool: &other, ..owner },
            StateOwner { tool: &newer, ..owner },
            StateOwner { connection: id("prv", 'H').parse().unwrap(), ..owner },
        ] {
            assert_eq!(key.open(other, &sealed, now), None, "{other:?}");
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(key.open(owner, &changed, now), None, "byte {at}");
            assert_eq!(key.open(owner, &sealed[..at], now), None, "length {at}");
        }
    }
}
