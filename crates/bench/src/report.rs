//! The figures, as a table for people and as JSON for programs.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use crate::{
    Failure, Verdict,
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

/// The figures at one number of connections.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) connections: usize,
    pub(crate) direct: Usage,
    pub(crate) governed: Option<Usage>,
}

/// Figures of the gateway after all loads.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) idle_kib: u64,
    pub(crate) loaded_kib: u64,
    /// Calls it answered with 200, warm-up included.
    pub(crate) answered: u64,
    /// Invocation events in its audit log.
    pub(crate) events: u64,
    /// Durations of syncing a write to its disk.
    pub(crate) disk: Measured,
}

/// Everything that was measured in one run.
#[derive(Debug)]
pub(crate) struct Report {
    payload: usize,
    duration: Duration,
    rounds: usize,
    pub(crate) rows: Vec<Row>,
    pub(crate) gateway: Option<Gateway>,
}

impl Report {
    /// A report without figures yet.
    pub(crate) fn new(payload: usize, duration: Duration, rounds: usize) -> Self {
        Self { payload, duration, rounds, rows: Vec::new(), gateway: None }
    }

    /// `Holds` when no call failed and every answered call has its event.
    pub(crate) fn verdict(&self) -> Verdict {
        let failed = |usage: &Usage| usage.load.errors() > 0 || usage.load.answered == 0;
        let rows_hold = self
            .rows
            .iter()
            .all(|row| !failed(&row.direct) && !row.governed.as_ref().is_some_and(failed));
        let recorded = self.gateway.as_ref().is_none_or(|known| known.events == known.answered);
        if rows_hold && recorded { Verdict::Holds } else { Verdict::Broken }
    }

    /// The figures as one JSON object.
    pub(crate) fn json(&self) -> String {
        let rows: Vec<Value> = self.rows.iter().map(|row| {
            json!({
                "connections": row.connections,
                "direct": row.direct.json(),
                "governed": row.governed.as_ref().map(Usage::json),
                "ratio": row.governed.as_ref().map(|governed| rounded(ratio(governed, &row.direct))),
            })
        }).collect();
        let gateway = self.gateway.as_ref().map(|known| {
            json!({
                "rss_idle_kib": known.idle_kib,
                "rss_loaded_kib": known.loaded_kib,
                "calls_answered": known.answered,
                "audit_events": known.events,
                "disk_sync_p50_ms": rounded(known.disk.percentile_ms(50)),
                "disk_sync_p99_ms": rounded(known.disk.percentile_ms(99)),
            })
        });
        let report = json!({
            "payload_bytes": self.payload,
            "duration_s": self.duration.as_secs_f64(),
            "rounds": self.rounds,
            "rows": rows,
            "gateway": gateway,
            "holds": self.verdict() == Verdict::Holds,
        });
        format!("{report:#}\n")
    }

    /// The figures as a table with a line on memory and audit below.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "payload {} bytes each way, {} rounds of {:.1} s\n\n\
             connections  call         req/s    p50 ms    p99 ms  ratio CPU µs/call  errors\n",
            self.payload,
            self.rounds,
            self.duration.as_secs_f64(),
        );
        for row in &self.rows {
            line(&mut text, row.connections, "direct", &row.direct, "");
            if let Some(governed) = &row.governed {
                let ratio = format!("{:.2}", ratio(governed, &row.direct));
                line(&mut text, row.connections, "governed", governed, &ratio);
            }
        }
        if let Some(known) = &self.gateway {
            let mib = |kib: u64| exact(kib) / 1_024.0;
            let _ = write!(
                text,
                "\ndisk: {:.3} ms to sync a write (p50), {:.3} ms (p99)\n\
                 gateway memory: {:.1} MiB idle, {:.1} MiB after load\n\
                 audit: {} calls answered, {} events written: {}\n",
                known.disk.percentile_ms(50),
                known.disk.percentile_ms(99),
                mib(known.idle_kib),
                mib(known.loaded_kib),
                known.answered,
                known.events,
                if known.answered == known.events { "equal" } else { "NOT EQUAL" },
            );
        }
        text
    }
}

fn ratio(governed: &Usage, direct: &Usage) -> f64 {
    let direct = direct.load.rate();
    if direct > 0.0 { governed.load.rate() / direct } else { 0.0 }
}

/// CPU is that of the process that answers: the upstream when direct, the gateway when governed.
fn line(text: &mut String, connections: usize, call: &str, usage: &Usage, ratio: &str) {
    let _ = writeln!(
        text,
        "{connections:>11}  {call:<8} {:>9.0} {:>9.3} {:>9.3} {ratio:>6} {:>11.1} {:>7}",
        usage.load.rate(),
        usage.load.percentile_ms(50),
        usage.load.percentile_ms(99),
        usage.cpu_us_per_call(),
        usage.load.errors(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(answered: u64, refused: u64) -> Usage {
        let load = Measured {
            answered,
            refused,
            elapsed: Duration::from_secs(1),
            latencies_us: vec![1_000],
            ..Measured::default()
        };
        Usage { load, cpu: Duration::from_millis(1) }
    }

    fn report(refused: u64, events: u64) -> Report {
        let mut report = Report::new(1_024, Duration::from_secs(1), 1);
        let governed = Some(usage(50, refused));
        report.rows.push(Row { connections: 1, direct: usage(100, 0), governed });
        report.gateway = Some(Gateway {
            idle_kib: 1_024,
            loaded_kib: 2_048,
            answered: 50,
            events,
            disk: Measured::default(),
        });
        report
    }

    #[test]
    fn the_ratio_is_governed_over_direct() {
        let report = report(0, 50);

        assert_eq!(report.verdict(), Verdict::Holds);
        assert!(report.table().contains(" 0.50 "));
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["rows"][0]["governed"]["cpu_us_per_call"].to_string(), "20.0");
    }

    #[test]
    fn a_missing_event_or_a_refused_call_breaks_the_run() {
        assert_eq!(report(0, 49).verdict(), Verdict::Broken);
        assert_eq!(report(1, 50).verdict(), Verdict::Broken);
    }
}
