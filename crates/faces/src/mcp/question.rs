//! Questions of tools: the part of a `tools/call` that answers them, and the result that asks them.

use portcullis_app::{Conversation, Questions};
use portcullis_core::{
    approval::Status,
    json::{JsonValue as _, Node},
    mcp::{
        Era, ProtocolError,
        interaction::{APPROVAL, ClientCapabilities, responses},
        meta, uris,
    },
    refusal::Refusal,
};
use serde::ser::SerializeMap;
use serde_json::{Map, Value, json};

use crate::exchange::Failure;

/// Takes what a call says about questions out of its parameters. Answers without a state are ignored,
/// whatever they are: the call begins anew. Clients of the older era are asked nothing, for they need
/// an open stream for it.
pub(super) fn take_conversation(
    params: Node<'_>,
    meta: Node<'_>,
    era: Era,
) -> Result<Conversation, ProtocolError> {
    let answers = params.get("inputResponses");
    let state = match (params.get("requestState"), era) {
        (None, _) => None,
        (Some(state), Era::Modern) => {
            let wrong = || ProtocolError::bad_params("`requestState` has to be a text.");
            Some(state.text().ok_or_else(wrong)?.to_owned())
        }
        (Some(_), Era::Legacy(_)) => {
            return Err(ProtocolError::bad_params("`requestState` is none of this gateway."));
        }
    };
    if era != Era::Modern {
        return Ok(Conversation::default());
    }
    let responses = match (answers, &state) {
        (Some(answers), Some(_)) => responses(answers.to_value())
            .ok_or_else(|| ProtocolError::bad_params("`inputResponses` has to be an object."))?,
        (Some(_) | None, _) => Map::new(),
    };
    let declared = meta.get(meta::CLIENT_CAPABILITIES);
    let capabilities = declared.map(ClientCapabilities::read).unwrap_or_default();
    Ok(Conversation { capabilities, questions: Questions::Declared, state, responses })
}

/// True if the client opens addresses for its user, and does not go on with a conversation: a question
/// of the gateway would take the place of its state.
pub(super) const fn may_open_urls(conversation: &Conversation) -> bool {
    conversation.capabilities.url && conversation.state.is_none()
}

/// Answer of a client that was asked to open the address of an approval. It is not asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressReply {
    /// Its user opened the address: people may be deciding.
    Opened,
    Declined,
}

impl AddressReply {
    /// Reads the answer among the parameters of a call.
    pub(super) fn of(params: Node<'_>) -> Option<Self> {
        let answer = params.get("inputResponses")?.get(APPROVAL)?;
        let opened = answer.get("action").and_then(Node::text) == Some("accept");
        Some(if opened { Self::Opened } else { Self::Declined })
    }
}

/// The question in place of the refusal of a call that waits for an approval: the address at which
/// people learn how to decide. The client calls again without a state, so the call begins anew; then it
/// is held for a while, and never asked a second time.
pub(super) fn approval(failure: &Failure, opens_urls: bool) -> Option<Value> {
    let Failure::Refused(refusal @ Refusal::AwaitsApproval { approval, .. }) = failure else {
        return None;
    };
    let url = approval.url.as_ref().filter(|_| opens_urls)?;
    let request = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "url",
            "elicitationId": approval.id,
            "url": url,
            "message": refusal.to_string(),
        },
    });
    (approval.status == Status::Pending).then(|| json!({ "requests": { (APPROVAL): request } }))
}

/// Questions of a provider, in which its URIs carry it.
pub(super) fn carrying(asks: Node<'_>, carried: Option<&str>) -> Value {
    let mut told = asks.to_value();
    let requests = told.get_mut("requests").and_then(Value::as_object_mut);
    for (name, request) in requests.into_iter().flatten() {
        let params = asks.get("requests").and_then(|all| all.get(name)?.get("params"));
        let renamed = params.zip(carried).and_then(|(params, slug)| uris::renamed(params, slug));
        if let (Some(params), Some(renamed)) = (request.get_mut("params"), renamed) {
            *params = renamed;
        }
    }
    told
}

/// Writes the members of a result that asks.
pub(super) fn write<M: SerializeMap>(out: &mut M, asks: &Value) -> Result<(), M::Error> {
    out.serialize_entry("resultType", "input_required")?;
    let requests = asks.get("requests").and_then(Value::as_object);
    if let Some(requests) = requests.filter(|requests| !requests.is_empty()) {
        out.serialize_entry("inputRequests", requests)?;
    }
    if let Some(state) = asks.get("state") {
        out.serialize_entry("requestState", state)?;
    }
    Ok(())
}
