//! Waiting for what comes by itself.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The longest that something takes on a machine with other work. It bounds a test that fails, and
/// is no time that anything has to keep.
const AT_LAST: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until there is what is looked for, and gives it. Panics with `what` if it never comes.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + AT_LAST;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "there is never {what}");
        sleep(PAUSE).await;
    }
}
