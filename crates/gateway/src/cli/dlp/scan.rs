//! `portcullis dlp scan`.

use std::{mem, path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use portcullis_core::{
    dlp::{Direction, Engine, Findings, FingerprintKey, Subject, Unscannable},
    json::{Bounds, parse},
};
use serde_json::Value;

use super::{
    report::{Matches, Report},
    source::{Form, Line, Source},
};
use crate::{
    boot,
    cli::{installation::Installation, output::Failure},
};

#[derive(Args)]
pub(in crate::cli) struct Scan {
    /// A file with JSON, JSON Lines or text, or `-` for standard input
    file: PathBuf,
    #[command(flatten)]
    installation: Installation,
    /// Format of the file; `auto` goes by its name (`.json`, `.jsonl`, `.ndjson`) and by how it
    /// begins
    #[arg(long, value_enum, default_value_t = Form::Auto)]
    format: Form,
    /// Direction of the value, and so the default actions to show
    #[arg(long, value_enum, default_value_t = ScanDirection::Output)]
    direction: ScanDirection,
    /// The tool whose exceptions hold, such as `github:list_repos`
    #[arg(long)]
    tool: Option<String>,
    /// Show the fingerprints that this org's events have (its id or name); needs the key file
    #[arg(long)]
    org: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScanDirection {
    Input,
    Output,
}

impl From<ScanDirection> for Direction {
    fn from(way: ScanDirection) -> Self {
        match way {
            ScanDirection::Input => Self::Input,
            ScanDirection::Output => Self::Output,
        }
    }
}

impl Scan {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let config = self.installation.own_config()?;
        let key = match self.installation.org_id(self.org.as_deref()).await? {
            Some(org) => boot::fingerprint_key(&config, org)?,
            None => FingerprintKey::new([0; 32]),
        };
        let subject = match &self.tool {
            Some(tool) => Subject::of(key).calling(tool),
            None => Subject::of(key),
        };
        let engine = config.dlp.engine()?;
        let mut scanning = Scanning {
            report: Report::new(self.direction.into(), self.org.is_some()),
            engine,
            subject,
        };
        let (source, form) = Source::open(&self.file, self.format)?;
        match form {
            Form::Json => scanning.json(source)?,
            Form::Jsonl => scanning.lines(source)?,
            Form::Text | Form::Auto => scanning.text(source, config.dlp.max_bytes())?,
        }
        scanning.report.say(self.installation.output(), self.installation.json)
    }
}

/// A scan that is under way.
struct Scanning {
    engine: Engine,
    subject: Subject,
    report: Report,
}

impl Scanning {
    /// One JSON value.
    fn json(&mut self, mut source: Source) -> Result<(), Failure> {
        match source.whole()? {
            Some(bytes) => self.value(&bytes, None),
            None => self.report.unread(None, Source::TOO_LONG),
        }
        Ok(())
    }

    /// One JSON value on each line that is not blank.
    fn lines(&mut self, mut source: Source) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let mut number = 0;
        loop {
            number += 1;
            match source.line(&mut bytes)? {
                Line::Read if bytes.trim_ascii().is_empty() => {}
                Line::Read => self.value(bytes.trim_ascii(), Some(number)),
                Line::TooLong => self.report.unread(Some(number), Source::TOO_LONG),
                Line::End => return Ok(()),
            }
        }
    }

    fn value(&mut self, bytes: &[u8], line: Option<u64>) {
        let scanned = parse(bytes, Bounds::UPSTREAM)
            .map_err(|error| error.to_string())
            .and_then(|value| self.scan(&value).map_err(|error| error.to_string()));
        match scanned {
            Ok(findings) => self.report.value(&self.engine, &findings, line),
            Err(why) => self.report.unread(line, &why),
        }
    }

    /// Text in windows of at most so many bytes.
    fn text(&mut self, mut source: Source, most: usize) -> Result<(), Failure> {
        let mut matches = Matches::default();
        while let Some(mut window) = source.window(most)? {
            let value = Value::String(mem::take(&mut window.text));
            let findings = self.scan(&value)?;
            let text = value.as_str().unwrap_or_default();
            for finding in &findings {
                matches.add(finding, text, &window, self.report.facts(&self.engine, finding));
            }
            self.report.saw(&findings);
        }
        self.report.text(matches);
        Ok(())
    }

    fn scan(&self, value: &Value) -> Result<Findings, Unscannable> {
        self.engine.scan_for(value, &self.subject)
    }
}
