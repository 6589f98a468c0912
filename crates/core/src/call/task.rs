//! A call that waits for people, sealed into the id of its task: the client that asks for the
//! answer brings the call back, and has to be the caller who made it. The id of a call that its provider goes on
//! with is sealed alike; of such a call the store keeps the rest.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::StateKey;
use crate::{
    clock::Timestamp,
    id::{ApprovalId, EventId, OrgId, PrincipalId, ProviderId},
    random::Random,
};

/// Longest id of a task in bytes. It travels in a header, and usual proxies take lines of 8 KiB.
pub const LONGEST_TASK_ID: usize = 7 << 10;

/// Form of an id: how it begins, and the purpose in the subject of what is sealed, so that a task is no state.
#[derive(Clone, Copy)]
struct IdForm {
    prefix: &'static str,
    purpose: &'static str,
}

const WAITING: IdForm = IdForm { prefix: "tsk_", purpose: "tasks" };
const PROVIDED: IdForm = IdForm { prefix: "ptk_", purpose: "provider-tasks" };
/// Purpose of what the store keeps.
const KEPT: &str = "kept-provider-tasks";

/// Caller that a task belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOwner {
    pub org: OrgId,
    pub principal: PrincipalId,
    /// Everybody who acts for it, the newest first.
    pub actors: Vec<PrincipalId>,
}

/// A call that waits for an approval, as it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskCall {
    pub approval: ApprovalId,
    /// Size in bytes of the request that made it.
    pub bytes: u64,
    /// When the approval was asked for.
    pub created_at: Timestamp,
    /// Until when its answer can be asked for.
    pub ends_at: Timestamp,
    /// The input as the caller sent it.
    pub input: Value,
    /// Id of the tool.
    pub tool: String,
}

/// A call that its provider goes on with as a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderTask {
    /// The event of the call.
    pub call: EventId,
    pub connection: ProviderId,
    pub created_at: Timestamp,
    /// Until when it can be asked about.
    pub ends_at: Timestamp,
    /// Id of the tool.
    pub tool: String,
}

/// Parts of such a call that are kept beside its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptTask {
    pub task: ProviderTask,
    /// Size in bytes of the request that made the call.
    pub bytes: u64,
    /// The input as the caller sent it.
    pub input: Value,
    /// The id that the provider gave.
    pub upstream: String,
}

impl StateKey {
    /// The id of a task for its owner. `None` if the call does not fit into one.
    #[must_use]
    pub fn seal_task(
        &self,
        owner: &TaskOwner,
        call: &TaskCall,
        source: &dyn Random,
    ) -> Option<String> {
        self.seal_id(WAITING, owner, call, source)
    }

    /// The call of a task. `None` if its id was changed, is over its time, or is that of another owner.
    #[must_use]
    pub fn open_task(&self, owner: &TaskOwner, id: &str, now: Timestamp) -> Option<TaskCall> {
        self.open_id(WAITING, owner, id).filter(|call: &TaskCall| now < call.ends_at)
    }

    /// The id of a provider's task for its owner. `None` if the cipher fails, which it does for no input.
    #[must_use]
    pub fn seal_provider_task(
        &self,
        owner: &TaskOwner,
        task: &ProviderTask,
        source: &dyn Random,
    ) -> Option<String> {
        self.seal_id(PROVIDED, owner, task, source)
    }

    /// The provider's task of this id, as [`Self::open_task`].
    #[must_use]
    pub fn open_provider_task(
        &self,
        owner: &TaskOwner,
        id: &str,
        now: Timestamp,
    ) -> Option<ProviderTask> {
        self.open_id(PROVIDED, owner, id).filter(|task: &ProviderTask| now < task.ends_at)
    }

    /// Seals what is kept of a provider's task.
    #[must_use]
    pub fn seal_kept_task(
        &self,
        org: OrgId,
        kept: &KeptTask,
        source: &dyn Random,
    ) -> Option<Vec<u8>> {
        let text = serde_json::to_vec(kept).ok()?;
        self.0.seal(org, &format!("{KEPT}\n{}", kept.task.call), &text, source)
    }

    /// Opens what is kept of the task of this call. `None` if it was changed.
    #[must_use]
    pub fn open_kept_task(&self, org: OrgId, call: EventId, sealed: &[u8]) -> Option<KeptTask> {
        let text = self.0.open(org, &format!("{KEPT}\n{call}"), sealed)?;
        serde_json::from_slice(&text).ok()
    }

    fn seal_id<T: Serialize>(
        &self,
        form: IdForm,
        owner: &TaskOwner,
        held: &T,
        source: &dyn Random,
    ) -> Option<String> {
        let text = serde_json::to_vec(held).ok()?;
        if text.len() > LONGEST_TASK_ID {
            return None;
        }
        let sealed = self.0.seal(owner.org, &subject(form, owner), &text, source)?;
        let id = format!("{}{}", form.prefix, BASE64_URL_SAFE_NO_PAD.encode(sealed));
        (id.len() <= LONGEST_TASK_ID).then_some(id)
    }

    fn open_id<T: DeserializeOwned>(&self, form: IdForm, owner: &TaskOwner, id: &str) -> Option<T> {
        if id.len() > LONGEST_TASK_ID {
            return None;
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(id.strip_prefix(form.prefix)?).ok()?;
        let text = self.0.open(owner.org, &subject(form, owner), &sealed)?;
        serde_json::from_slice(&text).ok()
    }
}

/// Text of all but the org that a task is bound to. No part can hold a line feed.
fn subject(form: IdForm, owner: &TaskOwner) -> String {
    let actors = owner.actors.iter().map(|actor| format!("\n{actor}"));
    format!("{}\n{}{}", form.purpose, owner.principal, actors.collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{json, random::Sevens};

    fn id(kind: &str, last: char) -> String {
        format!("{kind}_01M754BKTKX1YB8Q05NMW9TP4{last}")
    }

    fn owner() -> TaskOwner {
        TaskOwner {
            org: id("org", 'G').parse().unwrap(),
            principal: id("usr", 'G').parse().unwrap(),
            actors: vec![id("sa", 'G').parse().unwrap()],
        }
    }

    fn call(input: Value) -> TaskCall {
        TaskCall {
            approval: id("apr", 'G').parse().unwrap(),
            bytes: 7,
            created_at: Timestamp::from_micros(1_000_000),
            ends_at: Timestamp::from_micros(9_000_000),
            input,
            tool: "bank:pay".to_owned(),
        }
    }

    #[test]
    fn a_task_opens_for_its_owner_in_time_only() {
        let key = StateKey::new(&[1; 32]);
        let now = Timestamp::from_micros(8_999_999);
        let text = br#"{"amount":1.50,"big":123456789012345678901234567890,"to":"hunter2"}"#;
        let call = call(json::parse(text, json::Bounds::REQUEST).unwrap());

        let sealed = key.seal_task(&owner(), &call, &Sevens).unwrap();

        assert!(sealed.starts_with("tsk_") && !sealed.contains("hunter2"));
        assert_eq!(key.open_task(&owner(), &sealed, now), Some(call.clone()));
        assert_eq!(key.open_task(&owner(), &sealed, call.ends_at), None);
        assert_eq!(StateKey::new(&[2; 32]).open_task(&owner(), &sealed, now), None);
        let service = || id("sa", 'H').parse().unwrap();
        for other in [
            TaskOwner { org: id("org", 'H').parse().unwrap(), ..owner() },
            TaskOwner { principal: id("usr", 'H').parse().unwrap(), ..owner() },
            TaskOwner { actors: vec![], ..owner() },
            TaskOwner { actors: vec![service()], ..owner() },
            TaskOwner { actors: vec![owner().actors[0], service()], ..owner() },
        ] {
            assert_eq!(key.open_task(&other, &sealed, now), None, "{other:?}");
        }
    }

    #[test]
    fn a_task_of_a_provider_is_no_other_one_and_no_ones_else() {
        let key = StateKey::new(&[1; 32]);
        let [now, ends_at] = [1_000_000, 9_000_000].map(Timestamp::from_micros);
        let task = ProviderTask {
            call: id("evt", 'G').parse().unwrap(),
            connection: id("prv", 'G').parse().unwrap(),
            created_at: now,
            ends_at,
            tool: "bank:pay".to_owned(),
        };

        let sealed = key.seal_provider_task(&owner(), &task, &Sevens).unwrap();

        assert_eq!(key.open_provider_task(&owner(), &sealed, now), Some(task.clone()));
        assert_eq!(key.open_provider_task(&owner(), &sealed, ends_at), None);
        let alone = TaskOwner { actors: vec![], ..owner() };
        assert_eq!(key.open_provider_task(&alone, &sealed, now), None);
        let renamed = sealed.replacen("ptk_", "tsk_", 1);
        assert_eq!(key.open_task(&owner(), &renamed, now), None);
        let waiting = key.seal_task(&owner(), &call(json!({})), &Sevens).unwrap();
        let renamed = waiting.replacen("tsk_", "ptk_", 1);
        assert_eq!(key.open_provider_task(&owner(), &renamed, now), None);

        let org = owner().org;
        let input = json!({"to": "hunter2"});
        let upstream = "their task".to_owned();
        let kept = KeptTask { task, bytes: 7, input, upstream };
        let call = kept.task.call;
        let mut sealed = key.seal_kept_task(org, &kept, &Sevens).unwrap();
        assert_eq!(key.open_kept_task(org, call, &sealed), Some(kept));
        assert_eq!(key.open_kept_task(org, id("evt", 'H').parse().unwrap(), &sealed), None);
        assert_eq!(key.open_kept_task(id("org", 'H').parse().unwrap(), call, &sealed), None);
        sealed[20] ^= 1;
        assert_eq!(key.open_kept_task(org, call, &sealed), None);
    }

    #[test]
    fn an_id_that_was_changed_or_cut_opens_nothing() {
        let key = StateKey::new(&[1; 32]);
        let now = Timestamp::default();
        let sealed = key.seal_task(&owner(), &call(json!({"n": 1})), &Sevens).unwrap();

        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(key.open_task(&owner(), &changed, now), None, "byte {at}");
            assert_eq!(key.open_task(&owner(), &sealed[..at], now), None, "length {at}");
        }
    }

    #[test]
    fn a_call_that_fits_into_no_header_has_no_task() {
        let key = StateKey::new(&[1; 32]);
        let sealed = |letters: usize| {
            key.seal_task(&owner(), &call(json!({"text": "x".repeat(letters)})), &Sevens)
        };

        assert!(sealed(4_900).is_some_and(|id| id.len() <= LONGEST_TASK_ID));
        for letters in [5_400, 1 << 20] {
            assert_eq!(sealed(letters), None, "{letters}");
        }
    }
}
