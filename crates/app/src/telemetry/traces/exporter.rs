//! Handing traces over: a batch at a time, tried a few times, then dropped and counted. Nothing
//! waits for it but the next batch.

use std::{mem, time::Duration};

use portcullis_upstream::{OtlpReceiver, ReceiverError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Trace, otlp};
use crate::telemetry::counters;

/// Traces of a batch at most.
const BATCH: usize = 64;
/// Time that a batch which is not full waits for more.
const LINGER: Duration = Duration::from_millis(500);
/// The pauses between attempts; after the last one, a batch is dropped.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// The longest pause that a receiver can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Exporter {
    receiver: OtlpReceiver,
    node: String,
    waiting: mpsc::Receiver<Trace>,
    failing: bool,
}

impl Exporter {
    pub(super) const fn new(
        receiver: OtlpReceiver,
        node: String,
        waiting: mpsc::Receiver<Trace>,
    ) -> Self {
        Self { receiver, node, waiting, failing: false }
    }

    /// Sends what comes until `stop`, and then, once, what is left.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(1..) =
            stop.run_until_cancelled(self.waiting.recv_many(&mut batch, BATCH)).await
        {
            if batch.len() < BATCH {
                let _ = stop.run_until_cancelled(tokio::time::sleep(LINGER)).await;
                self.fill(&mut batch);
            }
            self.deliver(mem::take(&mut batch), &stop).await;
        }
        self.waiting.close();
        while !self.failing {
            self.fill(&mut batch);
            if batch.is_empty() {
                return;
            }
            self.deliver(mem::take(&mut batch), &stop).await;
        }
        // A receiver that is gone does not keep the node from ending.
        while let Ok(trace) = self.waiting.try_recv() {
            counters::spans_dropped(trace.spans.len());
        }
    }

    fn fill(&mut self, batch: &mut Vec<Trace>) {
        while batch.len() < BATCH
            && let Ok(trace) = self.waiting.try_recv()
        {
            batch.push(trace);
        }
    }

    async fn deliver(&mut self, batch: Vec<Trace>, stop: &CancellationToken) {
        let spans = batch.iter().map(|trace| trace.spans.len()).sum();
        let body = otlp::request(&self.node, &batch);
        drop(batch);
        let mut pauses = PAUSES.into_iter();
        loop {
            let error = match self.receiver.send(body.clone()).await {
                Ok(unusable) => return self.delivered(spans, unusable),
                Err(error) => error,
            };
            self.failed(error);
            let pause = pauses.next().filter(|_| error.may_pass() && !stop.is_cancelled());
            let Some(pause) = pause else { return counters::spans_dropped(spans) };
            let asked = error.pause(pause).min(LONGEST_PAUSE);
            let _ = stop.run_until_cancelled(tokio::time::sleep(asked)).await;
        }
    }

    fn delivered(&mut self, spans: usize, unusable: u64) {
        let unusable = usize::try_from(unusable).unwrap_or(spans).min(spans);
        counters::spans_exported(spans - unusable);
        counters::spans_dropped(unusable);
        if mem::take(&mut self.failing) {
            tracing::info!("the receiver accepts traces again");
        }
    }

    fn failed(&mut self, error: ReceiverError) {
        if !mem::replace(&mut self.failing, true) {
            tracing::warn!(%error, "sending traces failed; some are lost");
        }
    }
}
