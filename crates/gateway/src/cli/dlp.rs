//! `portcullis dlp`: scanning files as the gateway would scan calls, and trying one's detectors.

mod report;
mod scan;
mod source;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use portcullis_core::dlp::{Sample, catalogue};
use serde_json::{Value, json};

use super::{
    installation::Installation,
    output::{self, Failure},
};

#[derive(Subcommand)]
pub(super) enum Dlp {
    /// Scan a file: exit code 0 when nothing is found, 1 when something is, 2 when it was not
    /// scanned, 3 when JSON was not read
    ///
    /// JSON is scanned as one answer, within the bounds of an answer; JSON Lines line by line.
    /// Other text is scanned in windows of `dlp.limits.max_bytes` that overlap by up to 64 KiB, so a
    /// file may have any size: a match is reported once, and words count up to half of the overlap
    /// away. The head of a table counts within its window. Invalid JSON, and JSON beyond the bounds,
    /// is reported with exit code 3 and is not read as text; of JSON Lines the other lines are
    /// scanned all the same.
    Scan(scan::Scan),
    /// Load the DLP settings and try every sample of the configured detectors: exit code 0 when
    /// all is well, 1 when not
    Test(Test),
    /// Print the built-in detectors, as docs/detectors.md has them
    Detectors,
}

#[derive(Args)]
pub(super) struct Test {
    #[command(flatten)]
    installation: Installation,
}

impl Dlp {
    pub(super) async fn run(self) -> ExitCode {
        let (done, failed) = match self {
            Self::Scan(scan) => (scan.run().await, 2),
            Self::Test(test) => (test.run(), 1),
            Self::Detectors => (detectors(), 1),
        };
        done.unwrap_or_else(|error| {
            output::fail(&*error);
            ExitCode::from(failed)
        })
    }
}

fn detectors() -> Result<ExitCode, Failure> {
    output::Output::new(false).line(&catalogue())?;
    Ok(ExitCode::SUCCESS)
}

impl Test {
    fn run(self) -> Result<ExitCode, Failure> {
        let config = self.installation.own_config()?;
        // An engine whose samples do not hold is none: the error names them.
        let engine = config.dlp.engine()?;
        let samples = engine.samples();
        let shown: Vec<Value> = samples.iter().map(record).collect();
        let names = engine.names();
        let text = format!("{} detectors, {} samples hold", names.len(), samples.len());
        let all = json!({ "detectors": names, "samples": shown });
        self.installation.output().record(&all, &text)?;
        let holds = samples.iter().all(Sample::holds);
        Ok(if holds { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}

fn record(sample: &Sample) -> Value {
    json!({
        "detector": sample.detector,
        "list": if sample.must_match { "must_match" } else { "must_not_match" },
        "number": sample.number,
        "holds": sample.holds(),
    })
}
