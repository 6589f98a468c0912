//! Questions of tools: the part of a `tools/call` that answers them, and the result that asks them.

use portcullis_app::{Conversation, Questions};
use portcullis_core::mcp::{
    Era, ProtocolError,
    interaction::{ClientCapabilities, responses},
    meta,
};
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

/// Takes what a call says about questions out of its parameters. Answers without a state are ignored,
/// whatever they are: the call begins anew. Clients of the older era are asked nothing, for they need
/// an open stream for it.
pub(super) fn taken(
    params: &mut Map<String, Value>,
    meta: &Map<String, Value>,
    era: Era,
) -> Result<Conversation, ProtocolError> {
    let answers = params.remove("inputResponses");
    let state = match (params.remove("requestState"), era) {
        (None, _) => None,
        (Some(Value::String(state)), Era::Modern) => Some(state),
        (Some(_), Era::Modern) => {
            return Err(ProtocolError::bad_params("`requestState` has to be a text."));
        }
        (Some(_), Era::Legacy(_)) => {
            return Err(ProtocolError::bad_params("`requestState` is none of this gateway."));
        }
    };
    if era != Era::Modern {
        return Ok(Conversation::default());
    }
    let responses = match (answers, &state) {
        (Some(answers), Some(_)) => responses(answers).ok_or_else(|| {
            let form = "`inputResponses` has to be an object of at most 16 objects.";
            ProtocolError::bad_params(form)
        })?,
        (Some(_) | None, _) => Map::new(),
    };
    let declared = meta.get(meta::CLIENT_CAPABILITIES);
    let capabilities = declared.map(ClientCapabilities::read).unwrap_or_default();
    Ok(Conversation { capabilities, questions: Questions::Declared, state, responses })
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
