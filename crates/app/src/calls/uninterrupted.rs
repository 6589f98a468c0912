//! Work that goes on when its caller has left.

use std::{
    panic::resume_unwind,
    pin::Pin,
    task::{Context, Poll},
};

use portcullis_core::id::OrgId;
use portcullis_lanes::{Polling, Workers};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

/// Runs on the task that awaits it, which saves a task and two wake-ups a call, until that one lets
/// go of it: then it goes on to its end on a task of the workers. So does what asked to be offloaded.
pub(crate) struct Uninterrupted<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    work: Option<Pin<Box<F>>>,
    /// The task of a worker that goes on with it.
    offloaded: Option<JoinHandle<F::Output>>,
    org: OrgId,
    workers: Workers<OrgId>,
    tasks: TaskTracker,
    /// The process does not end before it.
    _counted: TaskTrackerToken,
}

impl<F> Uninterrupted<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    pub(crate) fn new(
        work: Pin<Box<F>>,
        org: OrgId,
        workers: &Workers<OrgId>,
        tasks: &TaskTracker,
    ) -> Self {
        let workers = workers.clone();
        let counted = tasks.token();
        let work = Some(work);
        let tasks = tasks.clone();
        Self { work, offloaded: None, org, workers, tasks, _counted: counted }
    }
}

impl<F> Future for Uninterrupted<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if this.offloaded.is_none() {
            match this.workers.poll(this.org, &mut this.work, &this.tasks, cx) {
                Polling::Ready(done) => return Poll::Ready(done),
                Polling::Pending => return Poll::Pending,
                Polling::Offloaded(task) => this.offloaded = Some(task),
            }
        }
        let Some(task) = &mut this.offloaded else { return Poll::Pending };
        match Pin::new(task).poll(cx) {
            Poll::Ready(Ok(done)) => Poll::Ready(done),
            Poll::Ready(Err(ended)) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Workers end with the process only.
                Err(_) => Poll::Pending,
            },
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<F> Drop for Uninterrupted<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        if let (Some(work), Ok(_)) = (self.work.take(), Handle::try_current()) {
            // With the workers, which offload what is large of it.
            drop(self.workers.spawn(self.org, &self.tasks, work));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{panic::AssertUnwindSafe, sync::LazyLock, time::Duration};

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use portcullis_lanes::offload;

    use super::*;

    fn uninterrupted<F>(work: F, tasks: &TaskTracker) -> Uninterrupted<F>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        // Workers end with the last who holds them, as the app does.
        static WORKERS: LazyLock<Workers<OrgId>> = LazyLock::new(Workers::start);
        let org = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        Uninterrupted::new(Box::pin(work), org, &WORKERS, tasks)
    }

    #[tokio::test]
    async fn it_gives_what_the_work_gives() {
        let tasks = TaskTracker::new();

        assert_eq!(uninterrupted(async { 7 }, &tasks).await, 7);
        assert!(tasks.is_empty());
    }

    #[tokio::test]
    async fn work_that_is_let_go_of_ends_and_is_waited_for() {
        let tasks = TaskTracker::new();
        let (go, gone) = oneshot::channel::<()>();
        let (told, hear) = oneshot::channel();
        let work = uninterrupted(
            async move {
                gone.await.unwrap();
                told.send(7).unwrap();
            },
            &tasks,
        );
        let waited = tokio::time::timeout(Duration::from_millis(5), work).await;
        assert!(waited.is_err());
        tasks.close();

        assert_eq!(tasks.len(), 1);
        go.send(()).unwrap();
        assert_eq!(hear.await, Ok(7));
        tasks.wait().await;
    }

    #[tokio::test]
    async fn work_never_polled_is_done_too() {
        let tasks = TaskTracker::new();
        let (told, hear) = oneshot::channel();

        drop(uninterrupted(async { told.send(7) }, &tasks));

        assert_eq!(hear.await, Ok(7));
    }

    #[tokio::test]
    async fn work_that_panics_is_not_gone_on_with() {
        let tasks = TaskTracker::new();
        let here = uninterrupted(async { std::panic::panic_any(7) }, &tasks);
        let offloaded = async {
            offload().await;
            std::panic::panic_any(7)
        };
        let there = uninterrupted(offloaded, &tasks);

        let here: Result<(), _> = AssertUnwindSafe(here).catch_unwind().await;
        let there: Result<(), _> = AssertUnwindSafe(there).catch_unwind().await;

        assert!(here.is_err() && there.is_err());
        assert!(tasks.is_empty());
    }

    #[tokio::test]
    async fn offloaded_work_that_is_let_go_of_ends_too() {
        let tasks = TaskTracker::new();
        let (go, gone) = oneshot::channel::<()>();
        let (told, hear) = oneshot::channel();
        let work = async move {
            offload().await;
            gone.await.unwrap();
            told.send(7).unwrap();
        };

        let waited = tokio::time::timeout(Duration::from_millis(5), uninterrupted(work, &tasks));
        assert!(waited.await.is_err());
        go.send(()).unwrap();

        assert_eq!(hear.await, Ok(7));
        tasks.close();
        tasks.wait().await;
    }
}
