//! Answers over HTTP/2 that their client does not take.
//!
//! A client grants each answer a window, and may ask for others meanwhile. Bytes that it never makes
//! room for stay in memory, so that the connection has to end although it is not silent.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
};

use bytes::Bytes;

use super::Connection;

/// Answers of a connection that wait for their client, by the period of their last progress.
#[derive(Debug, Default)]
pub(super) struct UnsentAnswers {
    is_odd: AtomicBool,
    odd: AtomicUsize,
    even: AtomicUsize,
}

impl UnsentAnswers {
    /// Begins the next period. Says whether an answer made no progress in all of the last one.
    pub(super) fn begin_period(&self) -> bool {
        let is_odd = !self.is_odd.load(Ordering::Acquire);
        let stalled = self.count(is_odd).load(Ordering::Acquire) > 0;
        self.is_odd.store(is_odd, Ordering::Release);
        stalled
    }

    /// The number of those whose last progress was in the last odd period, or even one.
    const fn count(&self, is_odd: bool) -> &AtomicUsize {
        if is_odd { &self.odd } else { &self.even }
    }
}

/// An answer over HTTP/2, until its body is dropped and all of its parts are sent.
#[derive(Debug)]
pub struct Unsent(Arc<Answer>);

#[derive(Debug)]
struct Answer {
    connection: Arc<Connection>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The gateway has more of it.
    has_more: bool,
    /// Parts that are not sent yet.
    parts: usize,
    /// The period that the answer is counted in, if it waits for its client.
    in_odd: Option<bool>,
}

impl Unsent {
    /// Counts an answer over this connection, of which nothing was sent yet.
    #[must_use]
    pub fn begin(connection: Arc<Connection>) -> Self {
        let answer = Answer { connection, progress: Mutex::default() };
        answer.change(|progress| progress.has_more = true);
        Self(Arc::new(answer))
    }

    /// Notes whether the gateway had the next part when it was asked for.
    pub fn note<T>(&self, part: &Poll<T>) {
        self.0.change(|progress| progress.has_more = part.is_ready());
    }

    /// A part of the answer, which counts until it is sent or dropped.
    #[must_use]
    pub fn part(&self, bytes: Bytes) -> Bytes {
        self.0.change(|progress| {
            progress.has_more = true;
            progress.parts += 1;
        });
        Bytes::from_owner(Part { bytes, answer: Arc::clone(&self.0) })
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.change(|progress| progress.has_more = false);
    }
}

impl Answer {
    /// Every change is progress.
    fn change(&self, change: impl FnOnce(&mut Progress)) {
        let answers = &self.connection.answers;
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut progress);
        let waits = progress.has_more || progress.parts > 0;
        let now = waits.then(|| answers.is_odd.load(Ordering::Acquire));
        if let Some(is_odd) = now {
            answers.count(is_odd).fetch_add(1, Ordering::AcqRel);
        }
        if let Some(was_odd) = std::mem::replace(&mut progress.in_odd, now) {
            answers.count(was_odd).fetch_sub(1, Ordering::AcqRel);
        }
    }
}

struct Part {
    bytes: Bytes,
    answer: Arc<Answer>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.answer.change(|progress| progress.parts = progress.parts.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;
    use crate::connection::Use;

    fn answer() -> (Arc<Connection>, Unsent) {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let connection = Arc::new(Connection::new(peer, Use::All));
        (Arc::clone(&connection), Unsent::begin(connection))
    }

    #[test]
    fn an_answer_stalls_when_it_makes_no_progress_in_a_whole_period() {
        let (connection, unsent) = answer();
        let periods = |count: usize| {
            let begun = std::iter::repeat_with(|| connection.answers.begin_period());
            begun.take(count).collect::<Vec<_>>()
        };

        assert_eq!(periods(2), [false, true]);
        let part = unsent.part(Bytes::from_static(b"a"));
        assert_eq!(periods(1), [false], "a part was asked for");
        unsent.note(&Poll::<()>::Pending);
        assert_eq!(periods(2), [false, true], "the part is not sent");
        drop(part);
        assert_eq!(periods(4), [false; 4], "the client waits for the gateway");
        unsent.note(&Poll::Ready(()));
        let part = unsent.part(Bytes::from_static(b"b"));
        drop(unsent);
        assert_eq!(periods(2), [false, true], "the last part is not sent");
        drop(part);
        assert_eq!(periods(4), [false; 4]);
    }
}
