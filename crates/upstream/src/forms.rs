//! Forms that a server of the older era presents while it works (`elicitation/create`).
//!
//! By default none is answered. For a provider whose operator says so, a form whose answer is in its own
//! defaults is answered with these; any other one ends the call. **Invariant:** an answer holds nothing
//! but what the server itself sent in the form.
//!
//! In the stream of a call's own answer it is known which call a form belongs to. Over stdio, and in the
//! stream of a session, it is not: there it counts for every call that waits.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use portcullis_core::{capability::form, mcp::interaction::ClientCapabilities};
use tokio_util::sync::CancellationToken;

use crate::{
    error::CallError,
    mcp::reply::{Reply, ServerRequest},
};

/// Forms that are answered during one call.
const MOST_FORMS: u32 = 8;
/// Longest form in bytes.
const LONGEST_FORM: usize = 32 << 10;

/// Answer to forms of a server of the older era.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Forms {
    /// None is answered, and the server is told so.
    #[default]
    Refuse,
    /// Forms whose answer is in their own defaults, with these (SEP-1034).
    Defaults,
}

impl Forms {
    /// Capabilities that a server of the older era is told.
    pub(crate) fn capabilities(self) -> ClientCapabilities {
        ClientCapabilities { form: self == Self::Defaults, ..ClientCapabilities::default() }
    }
}

/// The forms of one call. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FormTally(Arc<Tally>);

#[derive(Debug, Default)]
struct Tally {
    accepted: AtomicU32,
    refused: AtomicU32,
    ended: CancellationToken,
}

impl FormTally {
    /// Number of forms that were answered with their defaults.
    #[must_use]
    pub fn accepted(&self) -> u32 {
        self.0.accepted.load(Ordering::Relaxed)
    }

    /// Number of forms that were refused.
    #[must_use]
    pub fn refused(&self) -> u32 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Ends once a form of this call, and certainly of this one, was refused.
    pub(crate) async fn ended(&self) {
        self.0.ended.cancelled().await;
    }

    fn has_room(&self) -> bool {
        self.accepted() < MOST_FORMS
    }
}

/// Reply to a request that comes while these calls wait, to one of which it belongs. Counts the forms,
/// and ends the call whose form is refused, if it can be only one.
pub(crate) fn reply(request: &ServerRequest, calls: &[FormTally]) -> Result<Vec<u8>, CallError> {
    if request.method != "elicitation/create" || calls.is_empty() {
        return request.plain_reply();
    }
    let fits = request.bytes <= LONGEST_FORM && calls.iter().all(FormTally::has_room);
    if let Some(answer) = fits.then(|| form::defaults(&request.params)).flatten() {
        for call in calls {
            call.0.accepted.fetch_add(1, Ordering::Relaxed);
        }
        return request.reply(Reply::Accepted(answer));
    }
    for call in calls {
        call.0.refused.fetch_add(1, Ordering::Relaxed);
    }
    if let [call] = calls {
        call.0.ended.cancel();
    }
    let is_form = request.params.get("mode").is_none_or(|mode| mode == "form");
    request.reply(if is_form { Reply::Cancelled } else { Reply::NoForm })
}

/// The calls that wait in one session, by the id of their request.
#[derive(Debug, Default)]
pub(crate) struct FormCalls(Mutex<HashMap<u64, FormTally>>);

impl FormCalls {
    /// Adds a call until the guard is dropped.
    pub(crate) fn add(self: &Arc<Self>, id: u64, call: &FormTally) -> FormCall {
        self.lock().insert(id, call.clone());
        FormCall { calls: Arc::clone(self), id }
    }

    /// Forms that wait now.
    pub(crate) fn waiting(&self) -> Vec<FormTally> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, FormTally>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits.
#[derive(Debug)]
pub(crate) struct FormCall {
    calls: Arc<FormCalls>,
    id: u64,
}

impl Drop for FormCall {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn asking(method: &str, params: &Value, bytes: usize) -> ServerRequest {
        let params = params.as_object().cloned().unwrap_or_default();
        ServerRequest { id: json!(3), method: method.to_owned(), params, bytes }
    }

    fn form(property: &Value) -> ServerRequest {
        let schema = json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
        asking("elicitation/create", &json!({"message": "?", "requestedSchema": schema}), 200)
    }

    fn replied(request: &ServerRequest, calls: &[FormTally]) -> Value {
        serde_json::from_slice(&reply(request, calls).unwrap()).unwrap()
    }

    fn tally_of(call: &FormTally) -> (u32, u32, bool) {
        (call.accepted(), call.refused(), call.0.ended.is_cancelled())
    }

    fn good() -> ServerRequest {
        form(&json!({"type": "string", "default": "x"}))
    }

    #[test]
    fn without_a_call_that_has_forms_answered_nothing_is_offered() {
        assert_eq!(replied(&good(), &[])["error"]["code"], -32601);
        let call = FormTally::default();
        let other = asking("sampling/createMessage", &json!({}), 20);
        assert_eq!(replied(&other, std::slice::from_ref(&call))["error"]["code"], -32601);
        assert_eq!(tally_of(&call), (0, 0, false));
    }

    #[test]
    fn a_form_is_answered_with_its_defaults_until_there_were_too_many() {
        let call = FormTally::default();
        let calls = std::slice::from_ref(&call);

        for _ in 0..MOST_FORMS {
            let answer = replied(&good(), calls);
            let expected = json!({"action": "accept", "content": {"a": "x"}});
            assert_eq!((&answer["id"], &answer["result"]), (&json!(3), &expected));
        }
        assert_eq!(tally_of(&call), (MOST_FORMS, 0, false));

        assert_eq!(replied(&good(), calls)["result"], json!({"action": "cancel"}));
        assert_eq!(tally_of(&call), (MOST_FORMS, 1, true));
    }

    #[test]
    fn a_form_that_is_refused_ends_the_call_that_it_belongs_to() {
        let large = ServerRequest { bytes: LONGEST_FORM + 1, ..good() };
        let url =
            asking("elicitation/create", &json!({"mode": "url", "url": "https://a.example"}), 90);
        let bare = ServerRequest { params: Map::new(), ..good() };
        for (request, pointer, expected) in [
            (form(&json!({"type": "string"})), "/result/action", json!("cancel")),
            (large, "/result/action", json!("cancel")),
            (bare, "/result/action", json!("cancel")),
            (url, "/error/code", json!(-32602)),
        ] {
            let call = FormTally::default();

            let answer = replied(&request, std::slice::from_ref(&call));

            assert_eq!(answer.pointer(pointer), Some(&expected), "{answer}");
            assert_eq!(tally_of(&call), (0, 1, true), "{answer}");
        }
    }

    #[test]
    fn of_several_calls_it_is_not_known_which_one_a_form_belongs_to() {
        let calls = Arc::new(FormCalls::default());
        let one = FormTally::default();
        let other = FormTally::default();
        let first = calls.add(1, &one);
        let second = calls.add(2, &other);

        replied(&good(), &calls.waiting());
        replied(&form(&json!({"type": "string"})), &calls.waiting());
        drop(first);
        replied(&form(&json!({"type": "string"})), &calls.waiting());
        drop(second);

        assert_eq!((tally_of(&one), tally_of(&other)), ((1, 1, false), (1, 2, true)));
        assert!(calls.waiting().is_empty());
    }
}
