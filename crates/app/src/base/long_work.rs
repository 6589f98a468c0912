//! Long computations that a request starts: few at once, at low priority, and stopped when they are
//! late, when the request is given up, or when the node ends.

use std::sync::Arc;

use portcullis_core::{
    id::OrgId,
    refusal::{Refusal, Unavailable},
};
use portcullis_lanes::{FairLimits, FairSlot, FairSlots};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::low_priority::at_low_priority;

/// Owner of a computation: an org, or the installation.
pub(crate) type WorkOwner = Option<OrgId>;

/// Slots for computations of one kind.
///
/// **Invariant:** a slot belongs to the computation. A request that is given up lets go of it only
/// once its computation has ended.
#[derive(Debug)]
pub(crate) struct LongWork {
    slots: Arc<FairSlots<WorkOwner>>,
    ending: CancellationToken,
}

/// Slot of a request. Dropping it tells its computations to stop.
#[derive(Debug)]
pub(crate) struct LongTurn {
    slot: Arc<FairSlot<WorkOwner>>,
    stop: Stop,
    ending: CancellationToken,
    _left: DropGuard,
}

/// Signal that a computation has to stop.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    deadline: Instant,
    left: CancellationToken,
}

impl Stop {
    /// Returns true once the time is over or no request waits for the result.
    pub(crate) fn is_due(&self) -> bool {
        self.left.is_cancelled() || Instant::now() >= self.deadline
    }

    /// At `deadline` and not before.
    pub(crate) fn at(deadline: Instant) -> Self {
        Self { deadline, left: CancellationToken::new() }
    }
}

impl LongWork {
    /// All slots are free; computations stop once `ending` is cancelled.
    pub(crate) fn new(limits: FairLimits, ending: CancellationToken) -> Self {
        Self { slots: Arc::new(FairSlots::new(limits)), ending }
    }

    /// A slot of `owner`, whose computations stop at `deadline`. `None` if none is free in time.
    pub(crate) async fn turn(&self, owner: WorkOwner, deadline: Instant) -> Option<LongTurn> {
        let slot = timeout_at(deadline, self.slots.take(owner)).await.ok().flatten()?;
        let left = self.ending.child_token();
        Some(LongTurn {
            slot: Arc::new(slot),
            stop: Stop { deadline, left: left.clone() },
            ending: self.ending.clone(),
            _left: left.drop_guard(),
        })
    }
}

impl LongWork {
    /// Computes something that is of use to others, too: it goes on when its waiters leave. `None`
    /// if it panics.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        owner: WorkOwner,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let slot = loop {
            if let Some(slot) = self.slots.take(owner).await {
                break slot;
            }
        };
        at_low_priority(move || {
            let _held = slot;
            work()
        })
        .await
    }
}

impl LongTurn {
    /// Computes something. Fails when the node ends, whether or not the computation has noticed.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let slot = Arc::clone(&self.slot);
        let stop = self.stop.clone();
        let computed = at_low_priority(move || {
            let _held = slot;
            work(&stop)
        });
        tokio::select! {
            biased;
            // First: a computation that stopped because of it is not answered as one that was late.
            () = self.ending.cancelled() => {
                Err(Refusal::Unavailable { reason: Unavailable::Shutdown })
            }
            computed = computed => computed.ok_or_else(|| {
                tracing::error!("a long computation ended in a panic");
                Refusal::Internal
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;

    const ONE: FairLimits =
        FairLimits { slots: 1, reserve: 0, waiting: 4, patience: Duration::from_mins(5) };

    fn later() -> Instant {
        Instant::now() + Duration::from_mins(5)
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_leaves_its_slot_to_the_computation() {
        let work = LongWork::new(ONE, CancellationToken::new());
        let turn = work.turn(None, later()).await.unwrap();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (go, gone) = mpsc::channel::<()>();
        let (stopped, noticed) = tokio::sync::oneshot::channel();
        let request = async move {
            let computed = turn.run(move |stop| {
                begun.send(()).unwrap();
                // Deaf until it is let go on: what a computation is between two looks.
                gone.recv().unwrap();
                stopped.send(stop.is_due()).unwrap();
            });
            computed.await
        };
        let mut request = Box::pin(request);
        tokio::select! {
            _ = &mut request => panic!("it cannot end yet"),
            begun = begins => begun.unwrap(),
        }

        drop(request);
        let soon = Instant::now() + Duration::from_millis(50);
        let refused = work.turn(None, soon).await.is_none();
        go.send(()).unwrap();

        assert!(refused, "the slot was free while the computation went on");
        assert!(noticed.await.unwrap(), "the computation was not told to stop");
        assert!(work.turn(None, later()).await.is_some());
    }

    #[tokio::test]
    async fn a_node_that_ends_waits_for_no_computation() {
        let ending = CancellationToken::new();
        let work = LongWork::new(ONE, ending.clone());
        let turn = work.turn(None, later()).await.unwrap();
        let (_never, gone) = mpsc::channel::<()>();
        let computed = turn.run(move |_| {
            let _ = gone.recv_timeout(Duration::from_mins(5));
        });

        ending.cancel();

        let refused = Refusal::Unavailable { reason: Unavailable::Shutdown };
        assert_eq!(computed.await, Err(refused));
        assert!(turn.stop.is_due());
    }

    #[tokio::test(start_paused = true)]
    async fn a_computation_is_told_that_it_is_late() {
        let work = LongWork::new(ONE, CancellationToken::new());
        let turn = work.turn(None, Instant::now() + Duration::from_secs(1)).await.unwrap();
        assert!(!turn.stop.is_due());

        tokio::time::advance(Duration::from_secs(1)).await;

        assert!(turn.stop.is_due());
        assert!(work.turn(None, Instant::now() + Duration::from_secs(1)).await.is_none());
    }
}
