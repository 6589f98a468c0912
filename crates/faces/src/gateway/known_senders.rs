//! Bodies of senders whose org is known: one budget of bytes for all of them, of which each org has a share.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use portcullis_core::{id::OrgId, refusal::Refusal};

use super::anonymous_budget::{cut_short, overloaded};
use crate::quota::{Permit, Quota};

/// Bytes of all such bodies at once.
const BUDGET: usize = 512 << 20;
/// Bytes of those of one org.
const SHARE: usize = 64 << 20;
/// Bytes of each body that are not charged. Few bodies are larger, and the plan bounds their number.
const FREE: usize = 64 << 10;

/// The budget. What is charged is what is kept in memory, when it is, whatever the sender declares.
#[derive(Debug)]
pub struct KnownSenders(Arc<Quota>);

impl Default for KnownSenders {
    fn default() -> Self {
        Self(Quota::fair(BUDGET, SHARE))
    }
}

impl KnownSenders {
    /// The budget as it stands for one org.
    pub(crate) fn of(&self, org: OrgId) -> OrgBudget {
        OrgBudget { quota: Arc::clone(&self.0), org }
    }
}

/// Budget that a large body of an org is charged to.
#[derive(Debug)]
pub(crate) struct OrgBudget {
    quota: Arc<Quota>,
    org: OrgId,
}

/// Bytes of a body, of which those beyond what is free are charged until they are dropped.
#[derive(Default)]
struct KeptBytes {
    bytes: Vec<u8>,
    permit: Option<Permit>,
}

impl KeptBytes {
    /// Makes room for `size` bytes, of `limit` at most: twice what there was, so that the copies of a
    /// body take linear time.
    fn grow(
        &mut self,
        size: usize,
        limit: usize,
        budget: Option<&OrgBudget>,
    ) -> Result<(), Refusal> {
        let room = self.bytes.capacity();
        let wanted = size.max(room * 2).min(limit);
        let more = wanted.saturating_sub(room.max(FREE));
        if let Some(OrgBudget { quota, org }) = budget.filter(|_| more > 0) {
            let charged = match &mut self.permit {
                Some(permit) => permit.grow(more),
                None => quota.take(Some(*org), more).map(|permit| self.permit = Some(permit)),
            };
            charged.map_err(|_| overloaded())?;
        }
        self.bytes.reserve_exact(wanted - self.bytes.len());
        Ok(())
    }
}

impl AsRef<[u8]> for KeptBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body of at most `limit` bytes to its end. One that comes in one part, as most do, is not
/// copied. Refuses it with 503 when the budget or the org's share of it is used up.
pub(crate) async fn whole(
    mut body: Body,
    limit: usize,
    budget: Option<&OrgBudget>,
) -> Result<Bytes, Refusal> {
    let mut first = Bytes::new();
    let mut kept = KeptBytes::default();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| cut_short())?.into_data() else { continue };
        let size = first.len() + kept.bytes.len() + data.len();
        if size > limit {
            return Err(Refusal::PayloadTooLarge { limit_bytes: limit });
        }
        if size == data.len() {
            first = data;
            continue;
        }
        if size > kept.bytes.capacity() {
            kept.grow(size, limit, budget)?;
        }
        kept.bytes.extend_from_slice(&std::mem::take(&mut first));
        kept.bytes.extend_from_slice(&data);
    }
    Ok(if kept.bytes.is_empty() { first } else { Bytes::from_owner(kept) })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    const LIMIT: usize = 4 << 20;
    const PART: usize = 16 << 10;

    fn in_parts(size: usize) -> Body {
        let part = Ok::<_, Infallible>(Bytes::from(vec![b' '; PART]));
        Body::from_stream(stream::iter(vec![part; size / PART]))
    }

    fn budget(senders: &KnownSenders, org: char) -> OrgBudget {
        senders.of(format!("org_01M754BKTKX1YB8Q05NMW9TP4{org}").parse().unwrap())
    }

    #[tokio::test]
    async fn an_org_has_its_share_and_others_and_small_bodies_go_through() {
        let senders = KnownSenders::default();
        let (one, other) = (budget(&senders, 'G'), budget(&senders, 'H'));
        let mut held = Vec::new();
        for _ in 0..16 {
            held.push(whole(in_parts(LIMIT), LIMIT, Some(&one)).await.unwrap());
        }

        assert_eq!(whole(in_parts(LIMIT), LIMIT, Some(&one)).await, Err(overloaded()));
        assert_eq!(whole(in_parts(FREE), LIMIT, Some(&one)).await.unwrap().len(), FREE);
        assert_eq!(whole(in_parts(LIMIT), LIMIT, Some(&other)).await.unwrap().len(), LIMIT);
        held.pop();
        assert_eq!(whole(in_parts(LIMIT), LIMIT, Some(&one)).await.unwrap().len(), LIMIT);
    }

    #[tokio::test]
    async fn a_body_that_nobody_pays_for_is_read_up_to_its_limit() {
        let read = whole(in_parts(LIMIT), LIMIT, None).await;
        let refused = whole(in_parts(LIMIT), LIMIT - 1, None).await;

        assert_eq!(read.unwrap().len(), LIMIT);
        assert_eq!(refused, Err(Refusal::PayloadTooLarge { limit_bytes: LIMIT - 1 }));
    }
}
