//! The figures of a load: calls, their durations and their processor time.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    Failure,
    load::{Measured, exact},
    process,
};

/// A load and the processor time that the process answering it spent.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) load: Measured,
    pub(crate) cpu: Duration,
}

impl Usage {
    /// Adds a load that the process `pid` answers, and gives the number of calls it answered.
    pub(crate) async fn add(
        &mut self,
        pid: u32,
        load: impl Future<Output = Result<Measured, Failure>>,
    ) -> Result<u64, Failure> {
        let before = process::cpu_time(pid)?;
        let measured = load.await?;
        self.cpu += process::cpu_time(pid)?.saturating_sub(before);
        let answered = measured.answered;
        self.load.add(measured);
        Ok(answered)
    }

    /// Processor time per answered call, in microseconds.
    pub(crate) fn cpu_us_per_call(&self) -> f64 {
        self.cpu.as_secs_f64() * 1_000_000.0 / exact(self.load.answered.max(1))
    }

    /// The figures as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "requests_per_second": rounded(self.load.rate()),
            "p50_ms": rounded(self.load.percentile_ms(50)),
            "p99_ms": rounded(self.load.percentile_ms(99)),
            "cpu_us_per_call": rounded(self.cpu_us_per_call()),
            "calls": self.load.answered,
            "errors": self.load.errors(),
        })
    }
}

fn rounded(figure: f64) -> f64 {
    (figure * 1_000.0).round() / 1_000.0
}
