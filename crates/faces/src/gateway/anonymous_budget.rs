//! Bodies of senders of whom nothing is known yet: one budget of bytes for all of them.

use std::{net::IpAddr, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use portcullis_core::refusal::{Refusal, Unavailable};

use crate::quota::{Permit, Quota};

/// Bytes of all such bodies at once, besides the reserve.
const BUDGET: usize = (8 << 20) - RESERVE;
/// Bytes of those of one source.
const SHARE: usize = 1 << 20;
/// Bytes that are charged at a time, the first before anything has arrived: a stream that waits
/// for its body needs memory, too.
const STEP: usize = 4 << 10;
/// Bytes for one small body of each source that finds the budget used up.
const RESERVE: usize = 512 << 10;

/// The budget. What is charged is what is kept in memory, when it is, whatever the sender declares.
#[derive(Debug)]
pub struct Strangers {
    quota: Arc<Quota>,
    reserve: Arc<Quota>,
}

impl Default for Strangers {
    fn default() -> Self {
        Self { quota: Quota::fair(BUDGET, SHARE), reserve: Quota::new(RESERVE, STEP) }
    }
}

impl Strangers {
    /// The budget as it stands for one source.
    pub(crate) fn of(&self, source: IpAddr) -> SourceBudget {
        let Self { quota, reserve } = self;
        SourceBudget { quota: Arc::clone(quota), reserve: Arc::clone(reserve), source }
    }
}

/// Budget that the body of a request is charged to.
#[derive(Debug)]
pub(crate) struct SourceBudget {
    quota: Arc<Quota>,
    reserve: Arc<Quota>,
    source: IpAddr,
}

impl SourceBudget {
    /// Reads a body of at most `limit` bytes, which are charged until they are dropped. Refuses it
    /// with 503 when the budget or the source's share of it is used up.
    ///
    /// Copies the body into memory of its own, for a frame of one byte can keep a whole buffer of
    /// the connection.
    pub(crate) async fn read(self, mut body: Body, limit: usize) -> Result<Bytes, Refusal> {
        let taken = self.quota.take(Some(self.source), STEP);
        let taken = taken.or_else(|_| self.reserve.take(Some(self.source), STEP));
        let permit = taken.map_err(|_| overloaded())?;
        let mut charged = ChargedBytes { bytes: Vec::with_capacity(STEP), permit };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| cut_short())?;
            let Some(data) = frame.data_ref() else { continue };
            let ChargedBytes { bytes, permit } = &mut charged;
            let size = bytes.len() + data.len();
            if size > limit {
                return Err(Refusal::PayloadTooLarge { limit_bytes: limit });
            }
            if size > bytes.capacity() {
                let more = (size - bytes.capacity()).next_multiple_of(STEP);
                permit.grow(more).map_err(|_| overloaded())?;
                bytes.reserve_exact(bytes.capacity() + more - bytes.len());
            }
            bytes.extend_from_slice(data);
        }
        Ok(Bytes::from_owner(charged))
    }
}

/// Bytes that are charged to the budget until they are dropped.
struct ChargedBytes {
    bytes: Vec<u8>,
    permit: Permit,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The refusal of a body for which there is no budget.
pub(crate) const fn overloaded() -> Refusal {
    Refusal::Unavailable { reason: Unavailable::Overloaded }
}

/// The refusal of a body whose sender stopped before its end.
pub(crate) fn cut_short() -> Refusal {
    Refusal::bad_request("The body did not arrive whole.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64 << 10;

    fn budget(quota: &Arc<Quota>) -> SourceBudget {
        let strangers = Strangers { quota: Arc::clone(quota), reserve: Quota::new(0, 0) };
        strangers.of("192.0.2.1".parse().unwrap())
    }

    #[tokio::test]
    async fn a_body_is_charged_as_it_is_kept_and_given_back() {
        let quota = Quota::new(4 * STEP, 4 * STEP);
        let body = || Body::from(vec![b' '; 2 * STEP + 1]);

        let first = budget(&quota).read(body(), LIMIT).await.unwrap();
        let refused = budget(&quota).read(body(), LIMIT).await;

        assert_eq!((first.len(), refused), (2 * STEP + 1, Err(overloaded())));
        drop(first);
        assert!(budget(&quota).read(body(), LIMIT).await.is_ok());
    }

    #[tokio::test]
    async fn a_source_has_one_small_body_when_the_budget_is_used_up() {
        let strangers = Strangers { quota: Quota::new(0, 0), ..Strangers::default() };
        let of = |source: &str| strangers.of(source.parse().unwrap());
        let body = |bytes: usize| Body::from(vec![b' '; bytes]);

        let large = of("192.0.2.1").read(body(STEP + 1), LIMIT).await;
        let held = of("192.0.2.1").read(body(STEP), LIMIT).await;
        let second = of("192.0.2.1").read(body(1), LIMIT).await;
        let other = of("192.0.2.2").read(body(1), LIMIT).await;

        assert_eq!((large, second), (Err(overloaded()), Err(overloaded())));
        assert_eq!((held.unwrap().len(), other.unwrap().len()), (STEP, 1));
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_no_matter_of_the_budget() {
        let quota = Quota::new(BUDGET, SHARE);

        let refused = budget(&quota).read(Body::from(vec![b' '; LIMIT + 1]), LIMIT).await;

        assert_eq!(refused, Err(Refusal::PayloadTooLarge { limit_bytes: LIMIT }));
    }
}
