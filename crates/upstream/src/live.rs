//! The caller's side of a call under way: it hears of progress, and it may give the call up.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Map, Number, Value};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Progress notifications that may wait for the caller, and that may come at once.
const BURST: u32 = 16;
/// Time after which one more may come.
const REFILL: Duration = Duration::from_millis(125);
/// Longest text of a notification in bytes. A longer one is left out, because a part of it might
/// hide from DLP.
const LONGEST_MESSAGE: usize = 2048;
/// Longest number in bytes.
const LONGEST_NUMBER: usize = 32;

/// Progress as a tool tells it, not scanned yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Progress so far, which only grows.
    pub progress: Number,
    /// Progress at the end, if it is known.
    pub total: Option<Number>,
    /// A text for people.
    pub message: Option<String>,
}

/// A call that its caller attends. Cheap to clone.
///
/// **Invariant:** of what an upstream tells, at most 16 notifications wait, and at most 16 and 8 more
/// each second get that far; the others are dropped.
#[derive(Debug, Clone)]
pub struct Live(Arc<LiveCall>);

#[derive(Debug)]
struct LiveCall {
    gate: Mutex<Gate>,
    heard: mpsc::Sender<Progress>,
    dispatched: CancellationToken,
    given_up: CancellationToken,
}

/// Bound on the rate of notifications.
#[derive(Debug)]
struct Gate {
    left: u32,
    refilled: Instant,
    last: Option<f64>,
}

impl Live {
    /// A call, and the end at which its progress arrives.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<Progress>) {
        let (heard, receiver) = mpsc::channel(BURST as usize);
        let gate = Mutex::new(Gate { left: BURST, refilled: Instant::now(), last: None });
        let dispatched = CancellationToken::new();
        let given_up = CancellationToken::new();
        (Self(Arc::new(LiveCall { gate, heard, dispatched, given_up })), receiver)
    }

    /// Gives the call up once the guard is dropped.
    #[must_use]
    pub fn guard(&self) -> DropGuard {
        self.0.given_up.clone().drop_guard()
    }

    /// Returns true if the caller gave the call up.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.0.given_up.is_cancelled()
    }

    /// Ends once the caller gives the call up.
    pub(crate) async fn given_up(&self) {
        self.0.given_up.cancelled().await;
    }

    /// The call is recorded and goes out now.
    pub fn dispatch(&self) {
        self.0.dispatched.cancel();
    }

    /// Ends once the call goes out.
    pub async fn dispatched(&self) {
        self.0.dispatched.cancelled().await;
    }

    /// Passes on what the upstream told, if there is room and time for it.
    pub(crate) fn hear(&self, progress: Progress) {
        let passes = {
            let mut gate = self.0.gate.lock().unwrap_or_else(PoisonError::into_inner);
            gate.passes(&progress, Instant::now())
        };
        if passes {
            // A caller that does not read hears less.
            let _ = self.0.heard.try_send(progress);
        }
    }
}

impl Gate {
    fn passes(&mut self, progress: &Progress, now: Instant) -> bool {
        let Some(value) = progress.progress.as_f64() else { return false };
        if self.last.is_some_and(|last| value <= last) {
            return false;
        }
        let elapsed = now.saturating_duration_since(self.refilled);
        let more = u32::try_from(elapsed.as_millis() / REFILL.as_millis()).unwrap_or(BURST);
        if more > 0 {
            self.left = self.left.saturating_add(more).min(BURST);
            self.refilled += REFILL * more;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.last = Some(value);
        true
    }
}

impl Progress {
    /// The progress that `notifications/progress` tells, and the token it is told under; `None` if
    /// it is none of ours.
    pub(crate) fn read(params: Option<&Map<String, Value>>) -> Option<(u64, Self)> {
        let params = params?;
        let token = params.get("progressToken")?.as_u64()?;
        let number = |name: &str| {
            let number = params.get(name)?.as_number()?;
            (number.to_string().len() <= LONGEST_NUMBER).then(|| number.clone())
        };
        let progress = number("progress")?;
        let message = params.get("message").and_then(Value::as_str);
        let message = message.filter(|text| !text.is_empty() && text.len() <= LONGEST_MESSAGE);
        Some((
            token,
            Self { progress, total: number("total"), message: message.map(str::to_owned) },
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn progress(value: u32) -> Progress {
        Progress { progress: value.into(), total: None, message: None }
    }

    fn received(heard: &mut mpsc::Receiver<Progress>) -> usize {
        std::iter::from_fn(|| heard.try_recv().ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_passes_at_the_allowed_rate_and_nothing_piles_up() {
        let (live, mut heard) = Live::new();

        (0..10_000).for_each(|value| live.hear(progress(value)));
        let at_once = received(&mut heard);
        tokio::time::advance(Duration::from_secs(1)).await;
        (10_000..20_000).for_each(|value| live.hear(progress(value)));
        let in_a_second = received(&mut heard);
        tokio::time::advance(Duration::from_hours(1)).await;
        (20_000..30_000).for_each(|value| live.hear(progress(value)));

        assert_eq!((at_once, in_a_second, received(&mut heard)), (16, 8, 16));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_only_grows() {
        let (live, mut heard) = Live::new();

        for value in [3, 2, 3, 4] {
            live.hear(progress(value));
        }

        assert_eq!(received(&mut heard), 2);
    }

    #[test]
    fn only_bounded_members_under_a_token_of_ours_are_read() {
        let read = |params: Value| Progress::read(params.as_object());
        let whole = json!({"progressToken": 7, "progress": 1.5, "total": 3, "message": "half"});
        let long = json!({"progressToken": 7, "progress": 1, "message": "x".repeat(2049)});

        let (token, found) = read(whole).unwrap();
        let (_, cut) = read(long).unwrap();

        assert_eq!((token, found.message.as_deref()), (7, Some("half")));
        assert_eq!((found.progress.as_f64(), found.total.unwrap().as_u64()), (Some(1.5), Some(3)));
        assert_eq!(cut, progress(1));
        for params in [
            json!({"progressToken": "7", "progress": 1}),
            json!({"progress": 1}),
            json!({"progressToken": 7, "progress": "1"}),
            json!({"progressToken": 7}),
        ] {
            assert_eq!(read(params.clone()), None, "{params}");
        }
    }
}
