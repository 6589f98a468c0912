//! Bodies of callers of whom nothing is known yet: one budget of bytes for all of them.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use portcullis_app::{Origin, Screened};
use portcullis_core::refusal::{Refusal, Unavailable};
use serde_json::{Map, Value};

use super::{
    body::{self, RequestBody},
    routes::spec::SMALL_LIMIT,
};
use crate::quota::{Permit, Quota};

/// Bytes of all such bodies at once.
const BUDGET: usize = 8 << 20;
/// Bytes of those of one source.
const SHARE: usize = 1 << 20;
/// Bytes that are charged at a time, the first before anything has arrived: a stream that waits
/// for its body needs memory, too.
const STEP: usize = 4 << 10;

/// The budget. What is charged is what is kept in memory, when it is, whatever the sender declares.
#[derive(Debug)]
pub struct Strangers(Arc<Quota>);

impl Default for Strangers {
    fn default() -> Self {
        Self(Quota::new(BUDGET, SHARE))
    }
}

/// Members of a body, charged to the budget until this is dropped.
pub(super) struct ChargedMembers {
    pub(super) members: Map<String, Value>,
    _permit: Option<Permit>,
}

impl Strangers {
    /// Reads a JSON object as [`RequestBody::optional_object`] does. Refuses it with 503 when the
    /// budget or the source's share of it is used up by bodies of unknown callers.
    pub(super) async fn optional_object(
        &self,
        request: RequestBody,
        screened: Screened,
        origin: &Origin,
    ) -> Result<ChargedMembers, Refusal> {
        if screened == Screened::Known || request.body.is_end_stream() {
            let members = request.optional_object().await?;
            return Ok(ChargedMembers { members, _permit: None });
        }
        let RequestBody { headers, body, allowance } = request;
        let mut permit = self.0.take(Some(origin.source_ip), STEP).map_err(|_| overloaded())?;
        let bytes = body::bounded(&headers, allowance, collect(body, &mut permit)).await?;
        let members = body::members(&bytes)?;
        Ok(ChargedMembers { members, _permit: Some(permit) })
    }

    /// Reads a form, within the same bounds.
    pub(super) async fn form(
        &self,
        request: RequestBody,
        origin: &Origin,
    ) -> Result<ChargedForm, Refusal> {
        let RequestBody { headers, body, allowance } = request;
        let mut permit = self.0.take(Some(origin.source_ip), STEP).map_err(|_| overloaded())?;
        let bytes = body::bounded_form(&headers, allowance, collect(body, &mut permit)).await?;
        Ok(ChargedForm { bytes, _permit: permit })
    }
}

/// Bytes of a form, charged to the budget until this is dropped.
pub(super) struct ChargedForm {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for ChargedForm {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

const fn overloaded() -> Refusal {
    Refusal::Unavailable { reason: Unavailable::Overloaded }
}

/// Copies the body into memory of its own, for a frame of one byte can keep a whole buffer of the
/// connection.
async fn collect(mut body: Body, permit: &mut Permit) -> Result<Bytes, Refusal> {
    let mut bytes = Vec::with_capacity(STEP);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| body::cut_short())?;
        let Some(data) = frame.data_ref() else { continue };
        let size = bytes.len() + data.len();
        if size > SMALL_LIMIT {
            return Err(Refusal::PayloadTooLarge { limit_bytes: SMALL_LIMIT });
        }
        if size > bytes.capacity() {
            let more = (size - bytes.capacity()).next_multiple_of(STEP);
            permit.grow(more).map_err(|_| overloaded())?;
            bytes.reserve_exact(bytes.capacity() + more - bytes.len());
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_charged_as_it_is_kept_and_given_back() {
        let quota = Quota::new(4 * STEP, 4 * STEP);
        let source = Some("192.0.2.1".parse().unwrap());
        let body = || Body::from(vec![b' '; 2 * STEP + 1]);

        let mut first = quota.take(source, STEP).unwrap();
        let read = collect(body(), &mut first).await.unwrap();
        let mut second = quota.take(source, STEP).unwrap();
        let refused = collect(body(), &mut second).await;

        assert_eq!((read.len(), refused), (2 * STEP + 1, Err(overloaded())));
        drop(first);
        assert!(collect(body(), &mut second).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_no_matter_of_the_budget() {
        let quota = Quota::new(BUDGET, SHARE);
        let mut permit = quota.take(None, STEP).unwrap();

        let refused = collect(Body::from(vec![b' '; SMALL_LIMIT + 1]), &mut permit).await;

        assert_eq!(refused, Err(Refusal::PayloadTooLarge { limit_bytes: SMALL_LIMIT }));
    }
}
