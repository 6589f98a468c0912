//! Work that goes on when nobody waits for it any more.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

/// Runs on the task that awaits it, which saves a task and two wake-ups a call, until that one lets
/// go of it: then it goes on to its end on a task of its own.
pub(crate) struct Uninterrupted<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    work: Option<Pin<Box<F>>>,
    tasks: TaskTracker,
    /// The process does not end before it.
    _counted: TaskTrackerToken,
}

impl<F> Uninterrupted<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    pub(crate) fn new(work: Pin<Box<F>>, tasks: &TaskTracker) -> Self {
        Self { work: Some(work), tasks: tasks.clone(), _counted: tasks.token() }
    }
}

impl<F> Future for Uninterrupted<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out, so that work which panics is never gone on with.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<F> Drop for Uninterrupted<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            self.tasks.spawn_on(work, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{panic::AssertUnwindSafe, time::Duration};

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_gives_what_the_work_gives() {
        let tasks = TaskTracker::new();

        assert_eq!(Uninterrupted::new(Box::pin(async { 7 }), &tasks).await, 7);
        assert!(tasks.is_empty());
    }

    #[tokio::test]
    async fn work_that_is_let_go_of_ends_and_is_waited_for() {
        let tasks = TaskTracker::new();
        let (go, gone) = oneshot::channel::<()>();
        let (told, hear) = oneshot::channel();
        let work = Uninterrupted::new(
            Box::pin(async move {
                gone.await.unwrap();
                told.send(7).unwrap();
            }),
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

        drop(Uninterrupted::new(Box::pin(async { told.send(7) }), &tasks));

        assert_eq!(hear.await, Ok(7));
    }

    #[tokio::test]
    async fn work_that_panics_is_not_gone_on_with() {
        let tasks = TaskTracker::new();
        let work = Uninterrupted::new(Box::pin(async { std::panic::panic_any(7) }), &tasks);

        let end: Result<(), _> = AssertUnwindSafe(work).catch_unwind().await;

        assert!(end.is_err());
        assert!(tasks.is_empty());
    }
}
