//! The header `Idempotency-Key`.

use axum::http::{HeaderMap, HeaderValue};
use portcullis_core::{idempotency::IdempotencyKey, refusal::Refusal};

const NAME: &str = "Idempotency-Key";

/// The key of a request, if it has one. Rejects what is no key, and several.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Refusal> {
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Refusal::bad_parameter(NAME, "Send one `Idempotency-Key`."));
    }
    let wrong = "An `Idempotency-Key` has 1 to 255 visible ASCII characters, bare or in quotes.";
    let key = HeaderValue::to_str(value).ok().and_then(IdempotencyKey::parse);
    key.map(Some).ok_or_else(|| Refusal::bad_parameter(NAME, wrong))
}
