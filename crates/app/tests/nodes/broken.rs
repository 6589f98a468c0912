//! A provider that stays broken, and how often the log tells of it.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portcullis_testkit::{McpServer, tool};
use tracing_subscriber::fmt::MakeWriter;

use crate::node::{Node, node};

const PATIENCE: Duration = Duration::from_secs(30);
const HOUR: i64 = 3_600;

/// The log of this thread, on which the whole node runs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    fn warnings(&self) -> usize {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter(|it| it.contains("WARN") && it.contains("cannot be used")).count()
    }
}

/// The warnings so far, once the provider was asked for its tools so many seconds later.
async fn warnings_after(seconds: i64, node: &Node, log: &Log) -> usize {
    node.clock.forward(seconds);
    node.app.nodes.connect_providers(PATIENCE, &[]).await;
    log.warnings()
}

#[tokio::test]
async fn a_provider_that_stays_broken_is_told_of_at_once_and_then_once_an_hour() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = McpServer::start(vec![tool("a")]).await;
    let folder = tempfile::tempdir().unwrap();
    let node = node(folder.path(), Some(&server.url())).await;

    server.fail("502".parse().ok());
    let at_once = warnings_after(0, &node, &log).await;
    let within_the_hour = warnings_after(HOUR - 1, &node, &log).await;
    let after_an_hour = warnings_after(1, &node, &log).await;
    let within_the_next = warnings_after(HOUR - 1, &node, &log).await;
    server.fail(None);
    server.fail_lists(true);
    let otherwise_broken = warnings_after(0, &node, &log).await;
    server.fail_lists(false);
    let healed = warnings_after(1, &node, &log).await;
    server.fail_lists(true);
    let broken_again = warnings_after(1, &node, &log).await;

    assert_eq!((at_once, within_the_hour), (1, 1));
    assert_eq!((after_an_hour, within_the_next), (2, 2));
    assert_eq!((otherwise_broken, healed, broken_again), (3, 3, 4));
}
