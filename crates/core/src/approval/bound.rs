//! The call that an approval is bound to.

use serde_json::json;

use crate::{
    id::{EventId, OrgId, PrincipalId, ProviderId},
    json::{self, Node},
};

/// The call that an approval is bound to: whatever differs in one of these is another call.
#[derive(Debug, Clone, Copy)]
pub struct BoundCall<'a> {
    pub org: OrgId,
    pub principal: PrincipalId,
    /// The service that acts for it.
    pub via: Option<PrincipalId>,
    /// Id of the client that makes it, if that is another than the principal's own.
    pub client: Option<&'a str>,
    pub tool: &'a str,
    /// Digest of the tool's definition.
    pub tool_version: &'a str,
    pub connection: ProviderId,
    /// The input as it is sent, which is after masking.
    pub input: Node<'a>,
    /// Answers to questions of the tool that are sent with it.
    pub responses: Option<Node<'a>>,
    /// The event of the call whose task they are answers to, if it went on as one.
    pub task: Option<EventId>,
    /// Name of the policy that asks.
    pub policy: &'a str,
    /// Digest of that policy's meaning.
    pub policy_version: &'a str,
}

impl BoundCall<'_> {
    /// `sha256:…` over the canonical JSON (RFC 8785, numbers as they were written) of the object with
    /// the members `client` if there is one, `connection`, `input`, `org_id`, `policy`, `policy_version`,
    /// `principal_id`, `responses` if there are some, `task` if they are answers to one, `tool`, `tool_version` and `via`.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut call = json!({
            "connection": self.connection,
            "org_id": self.org,
            "policy": self.policy,
            "policy_version": self.policy_version,
            "principal_id": self.principal,
            "tool": self.tool,
            "tool_version": self.tool_version,
            "via": self.via,
        });
        if let Some(members) = call.as_object_mut() {
            members.insert("input".to_owned(), self.input.to_value());
            if let Some(client) = self.client {
                members.insert("client".to_owned(), client.into());
            }
            if let Some(responses) = self.responses {
                members.insert("responses".to_owned(), responses.to_value());
            }
            if let Some(task) = self.task {
                members.insert("task".to_owned(), task.to_string().into());
            }
        }
        json::sha256(&[json::canonical(&call).as_bytes()])
    }
}
