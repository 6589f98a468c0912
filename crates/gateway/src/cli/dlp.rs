//! `portcullis dlp`: scanning files as the gateway would scan calls, and trying one's detectors.

use std::{
    fs,
    io::{self, Read},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Subcommand, ValueEnum};
use portcullis_core::{
    dlp::{Direction, Engine, Finding, Findings, FingerprintKey, Sample, Subject, catalogue},
    id::OrgId,
    json::{Bounds, parse},
};
use serde_json::{Value, json};

use super::{Failure, Installation, output};
use crate::boot;

#[derive(Subcommand)]
pub(super) enum Dlp {
    /// Scan a file: exit code 0 when nothing is found, 1 when something is, 2 when it was not
    /// scanned
    Scan(Scan),
    /// Load the DLP settings and try every sample of the configured detectors: exit code 0 when
    /// all is well, 1 when not
    Test(Test),
    /// Print the built-in detectors, as docs/detectors.md has them
    Detectors,
}

#[derive(Args)]
pub(super) struct Scan {
    /// A file with JSON or text, or `-` for standard input
    file: PathBuf,
    #[command(flatten)]
    installation: Installation,
    /// Direction of the value, and so the default actions to show
    #[arg(long, value_enum, default_value_t = Way::Output)]
    direction: Way,
    /// The tool whose exceptions hold, such as `github:list_repos`
    #[arg(long)]
    tool: Option<String>,
    /// Show the fingerprints that this org's events have (`org_…`); needs the key file
    #[arg(long)]
    org: Option<OrgId>,
}

#[derive(Args)]
pub(super) struct Test {
    #[command(flatten)]
    installation: Installation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    Input,
    Output,
}

impl Dlp {
    pub(super) fn run(self) -> ExitCode {
        let (done, failed) = match self {
            Self::Scan(scan) => (scan.run(), 2),
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

impl Scan {
    fn run(self) -> Result<ExitCode, Failure> {
        let config = self.installation.config()?;
        let engine = config.dlp.engine()?;
        let bytes = self.read()?;
        let (value, text) = read_value(bytes)?;
        let key = match self.org {
            Some(org) => boot::fingerprint_key(&config, org)?,
            None => FingerprintKey::new([0; 32]),
        };
        let subject = match &self.tool {
            Some(tool) => Subject::of(key).calling(tool),
            None => Subject::of(key),
        };
        let findings = engine.scan_for(&value, &subject)?;
        let shown: Vec<Value> =
            findings.iter().map(|finding| self.record(&engine, finding, text.as_deref())).collect();
        let output = self.installation.output();
        if self.installation.json {
            let media = findings.media();
            output.record(&json!({ "findings": shown, "media": media }), "")?;
        } else {
            self.tell(&findings, &shown)?;
        }
        Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    fn read(&self) -> Result<Vec<u8>, Failure> {
        if self.file.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
        Ok(fs::read(&self.file)
            .map_err(|error| format!("`{}` cannot be read: {error}", self.file.display()))?)
    }

    fn direction(&self) -> Direction {
        match self.direction {
            Way::Input => Direction::Input,
            Way::Output => Direction::Output,
        }
    }

    fn record(&self, engine: &Engine, finding: &Finding, text: Option<&str>) -> Value {
        let mut record = json!({
            "detector": finding.detector(),
            "category": finding.category().as_str(),
            "likelihood": finding.likelihood().as_str(),
            "count": finding.count(),
            "action": engine.default_action(finding, self.direction()).as_str(),
            "path": finding.pointer(),
            "in_key": finding.is_in_key(),
        });
        let mut add = |name: &str, value: Value| {
            record.as_object_mut().into_iter().for_each(|members| {
                members.insert(name.to_owned(), value.clone());
            });
        };
        if let Some(text) = text {
            add("lines", Value::from(lines(text, finding)));
        }
        if self.org.is_some() {
            let prints = finding.fingerprints().iter().map(ToString::to_string);
            add("fingerprints", prints.collect());
        }
        record
    }

    fn tell(&self, findings: &Findings, shown: &[Value]) -> Result<(), Failure> {
        let output = self.installation.output();
        if findings.is_empty() {
            output.line("nothing found")?;
        } else {
            let mut columns = vec!["detector", "category", "likelihood", "count", "action"];
            columns.push(if shown.iter().any(|it| it.get("lines").is_some()) {
                "lines"
            } else {
                "path"
            });
            if self.org.is_some() {
                columns.push("fingerprints");
            }
            output.table(shown, &columns)?;
        }
        match findings.media() {
            0 => Ok(()),
            media => output.line(&format!("not looked into: {media} images or recordings")),
        }
    }
}

/// The value of a JSON text. Any other text is a value of its own, and given back for its lines.
fn read_value(bytes: Vec<u8>) -> Result<(Value, Option<String>), Failure> {
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = parse(&bytes, Bounds::UPSTREAM) {
        return Ok((value, None));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is neither JSON nor text in UTF-8")?;
    Ok((Value::String(text.clone()), Some(text)))
}

/// The lines on which the matches of a finding begin, each once.
fn lines(text: &str, finding: &Finding) -> Vec<usize> {
    let line = |at: usize| {
        let before = text.as_bytes().get(..at).unwrap_or_default();
        before.split(|byte| *byte == b'\n').count()
    };
    let mut lines: Vec<usize> = finding.ranges().map(|range| line(range.start)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

impl Test {
    fn run(self) -> Result<ExitCode, Failure> {
        let config = self.installation.config()?;
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
