//! Closed-loop load: every connection sends its next call when the last one is answered.

use std::{net::SocketAddr, time::Duration};

use http::StatusCode;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    Failure,
    client::{Connection, Template},
};

/// Results of a stretch of load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    /// Calls answered with 200.
    pub(crate) answered: u64,
    /// Calls answered with another status.
    pub(crate) refused: u64,
    /// Calls whose answer never came.
    pub(crate) lost: u64,
    pub(crate) elapsed: Duration,
    /// Duration of each answered call, in microseconds.
    pub(crate) latencies_us: Vec<u32>,
}

impl Measured {
    /// Both stretches as one.
    pub(crate) fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.refused += other.refused;
        self.lost += other.lost;
        self.elapsed += other.elapsed;
        self.latencies_us.extend(other.latencies_us);
    }

    /// Counts an answered call that took this long.
    pub(crate) fn note(&mut self, took: Duration) {
        self.answered += 1;
        self.latencies_us.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    /// Answered calls per second.
    pub(crate) fn rate(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { exact(self.answered) / seconds } else { 0.0 }
    }

    /// The latency in milliseconds that `percent` of the calls did not exceed.
    pub(crate) fn percentile_ms(&self, percent: usize) -> f64 {
        let mut sorted = self.latencies_us.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        f64::from(sorted.get(rank).copied().unwrap_or_default()) / 1_000.0
    }

    /// Calls that were not answered with 200.
    pub(crate) fn errors(&self) -> u64 {
        self.refused + self.lost
    }
}

/// A count as a float; counts here stay far below the 2⁵³ where that loses something.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub(crate) fn exact(count: u64) -> f64 {
    count as f64
}

/// Sends `call` over `connections` connections for `duration`, and waits for the last answers.
/// Fails without a listener at the beginning.
pub(crate) async fn run(
    address: SocketAddr,
    call: &Template,
    connections: usize,
    duration: Duration,
) -> Result<Measured, Failure> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(Connection::open(address).await?);
    }
    let begun = Instant::now();
    let end = begun + duration;
    let mut workers = JoinSet::new();
    for connection in open {
        workers.spawn(work(address, connection, call.clone(), end));
    }
    let mut all = Measured::default();
    while let Some(part) = workers.join_next().await {
        all.add(part?);
    }
    all.elapsed = begun.elapsed();
    Ok(all)
}

async fn work(
    address: SocketAddr,
    mut connection: Connection,
    call: Template,
    end: Instant,
) -> Measured {
    let mut part = Measured::default();
    loop {
        let sent = Instant::now();
        if sent >= end {
            return part;
        }
        match connection.send(call.clone()).await {
            Ok(answer) if answer.status == StatusCode::OK => part.note(sent.elapsed()),
            Ok(_) => part.refused += 1,
            Err(_) => {
                part.lost += 1;
                match Connection::open(address).await {
                    Ok(again) => connection = again,
                    Err(_) => return part,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_by_nearest_rank() {
        let measured = Measured {
            latencies_us: (1..=100).rev().map(|n| n * 1_000).collect(),
            ..Measured::default()
        };

        assert!((measured.percentile_ms(50) - 50.0).abs() < f64::EPSILON);
        assert!((measured.percentile_ms(99) - 99.0).abs() < f64::EPSILON);
        assert!(Measured::default().percentile_ms(99).abs() < f64::EPSILON);
    }
}
