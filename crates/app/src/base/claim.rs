//! An idempotency key and the request it is to stand for.

use portcullis_core::{
    capability::CapabilityId,
    clock::Timestamp,
    id::{ApprovalId, OrgId, RequestId},
    idempotency::{IdempotencyKey, KeyScope, LIFE_SECONDS, fingerprint},
    json::{JsonValue, Node},
    principal::Caller,
    refusal::Refusal,
};
use portcullis_store::NewKey;

use super::Base;

/// The endpoints in whose scopes keys mean something.
const INVOKE: &str = "invoke";
const EXPORT: &str = "export";
const TASK: &str = "task";

/// A key and the request it is to stand for.
#[derive(Debug, Clone)]
pub struct Claim {
    pub(crate) digest: String,
    pub(crate) fingerprint: String,
    /// Until when every end of the request is kept, also one that reached no tool.
    kept_until: Option<Timestamp>,
}

impl Claim {
    /// The claim of a call, with the part of the request that is about the leg of its conversation.
    pub(crate) fn of_call(
        caller: &Caller,
        key: &IdempotencyKey,
        tool: &CapabilityId,
        view: &str,
        input: Node<'_>,
        leg: &str,
    ) -> Self {
        let hands = caller.hands();
        let scope = KeyScope {
            org: caller.org_id,
            principal: caller.principal_id,
            via: caller.via,
            hands: hands.as_deref(),
            endpoint: INVOKE,
            target: tool.as_str(),
        };
        // Members in the order of their names; ids of tools need no escape.
        let input = input.canonical();
        let request = format!(r#"{{"input":{input},"tool":"{tool}","view":"{view}"{leg}}}"#);
        Self { digest: scope.digest(key), fingerprint: fingerprint(&request), kept_until: None }
    }

    /// The claim of a task that ends at this moment: of those that wait for one approval one call is made.
    pub(crate) fn of_task(
        caller: &Caller,
        tool: &CapabilityId,
        approval: ApprovalId,
        ends_at: Timestamp,
    ) -> Self {
        let scope = KeyScope {
            org: caller.org_id,
            principal: caller.principal_id,
            via: caller.via,
            // The approval and the sealed id say whose task it is.
            hands: None,
            endpoint: TASK,
            target: tool.as_str(),
        };
        let approval = approval.to_string();
        // Ids are visible ASCII.
        let digest = IdempotencyKey::parse(&approval).map(|key| scope.digest(&key));
        Self {
            digest: digest.unwrap_or_default(),
            fingerprint: fingerprint(&approval),
            kept_until: Some(ends_at),
        }
    }

    /// True if the key stands for every end of the request, also one that reached no tool.
    pub(crate) const fn keeps_every_end(&self) -> bool {
        self.kept_until.is_some()
    }

    /// The claim of an export with this body in canonical form.
    #[must_use]
    pub fn of_export(caller: &Caller, key: &IdempotencyKey, body: &str) -> Self {
        let hands = caller.hands();
        let scope = KeyScope {
            org: caller.org_id,
            principal: caller.principal_id,
            via: caller.via,
            hands: hands.as_deref(),
            endpoint: EXPORT,
            target: "",
        };
        Self { digest: scope.digest(key), fingerprint: fingerprint(body), kept_until: None }
    }

    /// The export that the key of this claim stands for, if it does.
    pub(crate) async fn export(&self, base: &Base, org: OrgId) -> Result<Option<String>, Refusal> {
        let found = base.store.find_idempotency_key(org, &self.digest, base.clock.now()).await;
        let found = found?;
        match found {
            Some(known) if known.fingerprint != self.fingerprint => {
                Err(Refusal::IdempotencyKeyReused { first: known.request_id })
            }
            Some(known) => Ok(Some(known.subject)),
            None => Ok(None),
        }
    }

    /// The row by which an intent takes the key.
    pub(crate) fn row(&self, request_id: RequestId, now: Timestamp) -> NewKey {
        NewKey {
            digest: self.digest.clone(),
            fingerprint: self.fingerprint.clone(),
            request_id,
            expires_at: now.plus_seconds(LIFE_SECONDS).max(self.kept_until.unwrap_or(now)),
        }
    }
}
