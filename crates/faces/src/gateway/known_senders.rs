//! Bodies of senders whose org is known, and of the answers to them: a budget of bytes for each, of
//! which each org has a share.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use portcullis_core::{
    id::{OrgId, PrincipalId},
    principal::Caller,
    refusal::Refusal,
};

use super::anonymous_budget::{cut_short, overloaded};
use crate::quota::{Exhausted, Permit, Quota};

/// Bytes of all such bodies of requests at once, and as many of answers.
const BUDGET: usize = 512 << 20;
/// Bytes of those of one org.
const SHARE: usize = 64 << 20;
/// Bytes of answers to one principal.
const ANSWERS_TO_ONE: usize = SHARE / 4 * 3;
/// Bytes of a body that are not charged: few bodies are larger.
const FREE: usize = 64 << 10;
/// Bodies of an org at once of which so much is free; of more, every byte is charged.
const FREE_BODIES: usize = 64;
/// Bytes of an answer up to which it is not charged.
const FREE_ANSWER: usize = 16 << 10;
/// Bytes of a file that are in memory while it is sent, read ahead and compressed.
const FILE: usize = 384 << 10;
/// Room for answers that an org needs to be asked further ones.
const ROOM: usize = 1 << 20;

/// The budgets. What is charged is what is kept in memory, when it is, whatever the sender declares.
#[derive(Debug)]
pub struct KnownSenders {
    requests: Arc<Quota>,
    free: Arc<Quota>,
    answers: Arc<Quota>,
    answers_to_one: Arc<Quota>,
}

/// An org that pays for an answer, and the principal who is to take it, if that is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Payer {
    pub(crate) org: OrgId,
    pub(crate) principal: Option<PrincipalId>,
}

impl Default for KnownSenders {
    fn default() -> Self {
        Self {
            requests: Quota::fair(BUDGET, SHARE),
            free: Quota::new(BUDGET / FREE, FREE_BODIES),
            answers: Quota::fair(BUDGET, SHARE),
            answers_to_one: Quota::new(BUDGET, ANSWERS_TO_ONE),
        }
    }
}

impl KnownSenders {
    /// The budget as it stands for one org.
    pub(crate) fn of(&self, org: OrgId) -> OrgBudget {
        OrgBudget { bytes: Arc::clone(&self.requests), free: Arc::clone(&self.free), org }
    }

    /// False while a caller, or all of its org, leave so much of their answers untaken that there is
    /// no room for another large one.
    pub(crate) fn has_room_for_answer(&self, caller: &Caller) -> bool {
        let payer = Payer { org: caller.org_id, principal: Some(caller.principal_id) };
        self.answers.holds_little(ANSWERS_TO_ONE - ROOM) || self.take(payer, ROOM).is_ok()
    }

    fn take(&self, payer: Payer, size: usize) -> Result<[Permit; 2], Exhausted> {
        let own = self.answers_to_one.take(payer.principal, size)?;
        Ok([own, self.answers.take(Some(payer.org), size)?])
    }

    /// Charges a large answer until its last byte is sent or dropped. Of a file, which is read while
    /// it is sent, the parts on their way are charged; streams of events are free.
    pub(crate) fn charge_answer(
        &self,
        payer: Payer,
        body: Body,
        is_file: bool,
    ) -> Result<Body, Exhausted> {
        let size = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
        let size = size.or(is_file.then_some(FILE));
        let Some(size) = size.filter(|size| *size > FREE_ANSWER) else { return Ok(body) };
        let permits = Arc::new(self.take(payer, size)?);
        Ok(Body::new(ChargedAnswer { body, permits }))
    }
}

/// An answer whose bytes are charged also after its body was dropped, while they wait to be sent.
struct ChargedAnswer {
    body: Body,
    permits: Arc<[Permit; 2]>,
}

struct ChargedBytes {
    bytes: Bytes,
    _permits: Arc<[Permit; 2]>,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for ChargedAnswer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, permits } = self.get_mut();
        let charged =
            |bytes| Bytes::from_owner(ChargedBytes { bytes, _permits: Arc::clone(permits) });
        let frame = Pin::new(body).poll_frame(context);
        frame.map_ok(|frame| frame.map_data(charged))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Budget that bodies of an org are charged to.
#[derive(Debug)]
pub(crate) struct OrgBudget {
    bytes: Arc<Quota>,
    free: Arc<Quota>,
    org: OrgId,
}

/// Bytes of a body, of which those beyond what is free are charged until they are dropped.
#[derive(Default)]
struct KeptBytes {
    bytes: Vec<u8>,
    permit: Option<Permit>,
    /// Place among the bodies of which a part is free.
    free: Option<Permit>,
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
        if let Some(OrgBudget { bytes, free, org }) = budget {
            if room == 0 {
                self.free = free.take(Some(*org), 1).ok();
            }
            let uncharged = if self.free.is_some() { room.max(FREE) } else { room };
            let more = wanted.saturating_sub(uncharged);
            let charged = match &mut self.permit {
                _ if more == 0 => Ok(()),
                Some(permit) => permit.grow(more),
                None => bytes.take(Some(*org), more).map(|permit| self.permit = Some(permit)),
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

/// Reads a body of at most `limit` bytes to its end. One that comes in one part, as most do, is neither
/// copied nor charged. Refuses it with 503 when the budget or the org's share of it is used up.
pub(crate) async fn whole(
    mut body: Body,
    limit: usize,
    budget: Option<&OrgBudget>,
) -> Result<Bytes, Refusal> {
    let mut kept = KeptBytes::default();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| cut_short())?.into_data() else { continue };
        let size = kept.bytes.len() + data.len();
        if size > limit {
            return Err(Refusal::PayloadTooLarge { limit_bytes: limit });
        }
        if kept.bytes.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        if size > kept.bytes.capacity() {
            kept.grow(size, limit, budget)?;
        }
        kept.bytes.extend_from_slice(&data);
    }
    Ok(Bytes::from_owner(kept))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{FutureExt, StreamExt, stream};

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

    fn payer(org: char, principal: char) -> Payer {
        let principal = format!("usr_01M754BKTKX1YB8Q05NMW9TP4{principal}").parse().ok();
        Payer { org: budget(&KnownSenders::default(), org).org, principal }
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
    async fn of_many_unfinished_bodies_every_byte_is_charged() {
        let senders = KnownSenders::default();
        let (one, other) = (budget(&senders, 'G'), budget(&senders, 'H'));
        let small = FREE - PART;
        let unfinished = || {
            let parts = stream::iter(vec![Ok::<_, Infallible>(Bytes::from(vec![b' '; PART])); 3]);
            Body::from_stream(parts.chain(stream::pending()))
        };
        let mut held = Vec::new();
        let mut refused = None;
        while refused.is_none() && held.len() < 2_000 {
            let mut reading = Box::pin(whole(unfinished(), LIMIT, Some(&one)));
            refused = (&mut reading).now_or_never();
            held.push(reading);
        }

        assert_eq!(refused, Some(Err(overloaded())));
        let most = FREE_BODIES + SHARE / small + 1;
        assert!(held.len() <= most, "{} bodies", held.len());
        assert_eq!(whole(in_parts(small), LIMIT, Some(&other)).await.unwrap().len(), small);
        let whole_part = Body::from(vec![b' '; small]);
        assert_eq!(whole(whole_part, LIMIT, Some(&one)).await.unwrap().len(), small);
        drop(held);
        assert_eq!(whole(in_parts(LIMIT), LIMIT, Some(&one)).await.unwrap().len(), LIMIT);
    }

    #[tokio::test]
    async fn an_answer_is_charged_until_its_bytes_are_sent() {
        let senders = KnownSenders::default();
        let answer = |size: usize| Body::from(vec![b' '; size]);
        let one = payer('G', 'A');
        let other = payer('G', 'B');
        let charge = |payer, size| senders.charge_answer(payer, answer(size), false);
        let has_room = |payer| senders.take(payer, ROOM).is_ok();
        let mut bodies: Vec<_> = (0..12).map(|_| charge(one, LIMIT).unwrap()).collect();

        assert!(!has_room(one));
        assert!(charge(one, LIMIT).is_err());
        assert!(charge(one, FREE_ANSWER).is_ok());
        assert!(has_room(other), "another of the same org");
        let others: Vec<_> = (0..4).map(|_| charge(other, LIMIT).unwrap()).collect();
        assert!(charge(payer('G', 'C'), LIMIT).is_err(), "the org has its share");
        assert!(charge(payer('H', 'D'), LIMIT).is_ok());
        drop(others);
        let mut last = bodies.pop().unwrap();
        assert_eq!(last.size_hint().exact(), u64::try_from(LIMIT).ok());
        let mut bytes = last.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(last);
        let part = bytes.split_to(PART);
        drop(bytes);
        assert!(!has_room(one), "a part is not sent");
        drop(part);
        assert!(has_room(one));
    }

    #[test]
    fn a_file_is_charged_for_what_is_on_its_way_and_a_stream_of_events_is_free() {
        let senders = KnownSenders::default();
        let endless = || Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        let charge = |is_file| senders.charge_answer(payer('G', 'A'), endless(), is_file);
        let files: Vec<_> = std::iter::from_fn(|| charge(true).ok()).take(1_000).collect();

        assert_eq!(files.len(), ANSWERS_TO_ONE / FILE);
        assert!(charge(false).is_ok());
        drop(files);
        assert!(charge(true).is_ok());
    }

    #[tokio::test]
    async fn a_body_that_nobody_pays_for_is_read_up_to_its_limit() {
        let read = whole(in_parts(LIMIT), LIMIT, None).await;
        let refused = whole(in_parts(LIMIT), LIMIT - 1, None).await;

        assert_eq!(read.unwrap().len(), LIMIT);
        assert_eq!(refused, Err(Refusal::PayloadTooLarge { limit_bytes: LIMIT - 1 }));
    }
}
