//! Long computations that calls should not notice.

use std::thread;

use tokio::{runtime::Handle, sync::oneshot};

/// Priority that it gives up to others, as `nice` counts.
const COURTESY: i32 = 5;

/// Does something on a thread of its own that lets all others go first. `None` if it panicked or
/// there is no room for another thread.
pub(crate) async fn at_low_priority<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = oneshot::channel();
    // What it begins besides, it begins on the runtime.
    let runtime = Handle::current();
    let thread = thread::Builder::new().name("aside".to_owned()).spawn(move || {
        let _within = runtime.enter();
        step_back();
        // The caller may be gone.
        let _ = tell.send(work());
    });
    if let Err(error) = thread {
        tracing::error!(%error, "a low-priority thread could not be started");
    }
    told.await.ok()
}

/// On Linux each thread has a priority of its own. Where it cannot be lowered, the work is done all
/// the same.
fn step_back() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        let this = Some(rustix::thread::gettid());
        let lower = getpriority_process(this).map(|nice| nice.saturating_add(COURTESY));
        let _ = lower.and_then(|lower| setpriority_process(this, lower));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_done_aside_is_told_and_a_panic_is_none() {
        let priority =
            || rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap();

        // A test may run at a low priority itself.
        let lowered = (priority() + COURTESY).min(19);
        assert_eq!(at_low_priority(priority).await, Some(lowered));
        assert_eq!(at_low_priority(|| -> u8 { panic!("on purpose") }).await, None);
    }
}
