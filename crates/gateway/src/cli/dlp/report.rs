//! Report of a scan: findings with their places, and what was not read.

use std::{ops::Range, process::ExitCode};

use portcullis_core::dlp::{Direction, Engine, Finding, Findings, Likelihood};
use serde_json::{Map, Value, json};

use super::source::{Window, newlines};
use crate::cli::output::{Failure, Output};

/// Everything that a scan has to say.
pub(super) struct Report {
    direction: Direction,
    /// True if fingerprints are shown.
    prints: bool,
    records: Vec<Value>,
    /// Findings beyond the most that are shown.
    left_out: u64,
    unread: Vec<Value>,
    unread_in_all: u64,
    media: u64,
}

/// Matches of a text by detector, in order of appearance.
#[derive(Default)]
pub(super) struct Matches {
    kinds: Vec<DetectorCount>,
}

struct DetectorCount {
    detector: String,
    facts: Map<String, Value>,
    likelihood: Likelihood,
    count: u64,
    places: Vec<FilePlace>,
    /// Matches whose places are beyond the most that are kept.
    left_out: u64,
    prints: Vec<String>,
}

/// Bytes of the file, and the line they begin on.
struct FilePlace {
    start: u64,
    end: u64,
    line: u64,
}

/// Records, and places of one detector in a text, that are kept and shown.
const MOST: usize = 100_000;
/// Reasons for which something was not read that are shown.
const MOST_UNREAD: usize = 1_000;
/// Fingerprints of one detector in a text.
const MOST_PRINTS: usize = 16;
/// Lines of one detector in the table for people.
const MOST_LINES: usize = 20;
/// Code of the command when JSON was not read.
const UNREAD: u8 = 3;

impl Report {
    pub(super) fn new(direction: Direction, prints: bool) -> Self {
        let records = Vec::new();
        let unread = Vec::new();
        Self { direction, prints, records, left_out: 0, unread, unread_in_all: 0, media: 0 }
    }

    /// Notes that JSON was not read: on which line of JSON Lines, and the reason.
    pub(super) fn unread(&mut self, line: Option<u64>, why: &str) {
        self.unread_in_all += 1;
        if self.unread.len() < MOST_UNREAD {
            let mut record = json!({ "reason": why });
            if let (Some(line), Some(members)) = (line, record.as_object_mut()) {
                members.insert("line".to_owned(), line.into());
            }
            self.unread.push(record);
        }
    }

    /// Counts what was not looked into.
    pub(super) fn saw(&mut self, findings: &Findings) {
        self.media += u64::from(findings.media());
    }

    /// Adds the findings of a JSON value.
    pub(super) fn value(&mut self, engine: &Engine, findings: &Findings, line: Option<u64>) {
        self.saw(findings);
        for finding in findings {
            if self.records.len() >= MOST {
                self.left_out += 1;
                continue;
            }
            let mut record = self.facts(engine, finding);
            let spans =
                finding.ranges().map(|Range { start, end }| json!({ "start": start, "end": end }));
            record.insert("count".to_owned(), finding.count().into());
            record.insert("spans".to_owned(), spans.collect());
            if let Some(line) = line {
                record.insert("line".to_owned(), line.into());
            }
            if self.prints {
                record.insert("fingerprints".to_owned(), prints(finding).collect());
            }
            self.records.push(record.into());
        }
    }

    /// Adds the matches of a text.
    pub(super) fn text(&mut self, matches: Matches) {
        let records = matches.kinds.into_iter().map(|kind| kind.record(self.prints));
        self.records.extend(records);
    }

    /// The part of a report that every finding has.
    pub(super) fn facts(&self, engine: &Engine, finding: &Finding) -> Map<String, Value> {
        let action = engine.default_action(finding, self.direction);
        let facts = [
            ("detector", finding.detector().into()),
            ("category", finding.category().as_str().into()),
            ("likelihood", finding.likelihood().as_str().into()),
            ("action", action.as_str().into()),
            ("path", finding.pointer().into()),
            ("in_key", finding.is_in_key().into()),
        ];
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Prints it, and says with which code the command ends.
    pub(super) fn say(self, output: Output, json: bool) -> Result<ExitCode, Failure> {
        if json {
            let mut all = json!({ "findings": self.records, "media": self.media });
            let mut add = |name: &str, value: Value| {
                all.as_object_mut().map(|members| members.insert(name.to_owned(), value));
            };
            if self.unread_in_all > 0 {
                add("unread", self.unread.into());
            }
            if self.left_out > 0 {
                add("left_out", self.left_out.into());
            }
            output.record(&all, "")?;
        } else {
            self.tell(output)?;
        }
        Ok(match (self.unread_in_all, self.records.is_empty()) {
            (0, true) => ExitCode::SUCCESS,
            (0, false) => ExitCode::from(1),
            _ => ExitCode::from(UNREAD),
        })
    }

    fn tell(&self, output: Output) -> Result<(), Failure> {
        if self.records.is_empty() && self.unread_in_all == 0 {
            output.line("nothing found")?;
        } else if !self.records.is_empty() {
            let mut columns = vec!["detector", "category", "likelihood", "count", "action"];
            let names = ["lines", "line", "path", "fingerprints"];
            let has = |name: &str| self.records.iter().any(|record| record.get(name).is_some());
            let is_text = has("lines");
            columns.extend(
                names.into_iter().filter(|name| has(name) && !(is_text && *name == "path")),
            );
            let shown: Vec<Value> = self.records.iter().map(shortened).collect();
            output.table(&shown, &columns)?;
        }
        if self.left_out > 0 {
            output.line(&format!("{} more findings", self.left_out))?;
        }
        for record in &self.unread {
            let why = record.get("reason").and_then(Value::as_str).unwrap_or_default();
            let line = record.get("line").map(|line| format!("line {line}: ")).unwrap_or_default();
            output.warn(&format!("not scanned: {line}{why}; `--format text` reads it as text"));
        }
        match self.media {
            0 => Ok(()),
            media => output.line(&format!("not looked into: {media} images or recordings")),
        }
    }
}

impl Matches {
    /// Adds the matches of a finding that begin in what the window owns. `facts` are what is said
    /// of the finding.
    pub(super) fn add(
        &mut self,
        finding: &Finding,
        text: &str,
        window: &Window,
        facts: Map<String, Value>,
    ) {
        let mut ranges: Vec<Range<usize>> =
            finding.ranges().filter(|range| window.owned.contains(&range.start)).collect();
        if ranges.is_empty() {
            return;
        }
        let count = if ranges.len() == finding.ranges().count() {
            finding.count().into()
        } else {
            u64::try_from(ranges.len()).unwrap_or(u64::MAX)
        };
        ranges.sort_unstable_by_key(|range| range.start);
        let Some(kind) = self.kind(finding, facts) else { return };
        kind.count += count;
        let mut line = window.lines + 1;
        let mut at = 0;
        for range in ranges {
            if kind.places.len() >= MOST {
                kind.left_out += 1;
                continue;
            }
            line += newlines(text.as_bytes().get(at..range.start).unwrap_or_default());
            at = range.start;
            let place = |at: usize| window.start + u64::try_from(at).unwrap_or_default();
            kind.places.push(FilePlace { start: place(range.start), end: place(range.end), line });
        }
        for print in prints(finding) {
            if kind.prints.len() < MOST_PRINTS && !kind.prints.contains(&print) {
                kind.prints.push(print);
            }
        }
    }

    /// The kind of a finding, with the facts of its most likely match.
    fn kind(&mut self, finding: &Finding, facts: Map<String, Value>) -> Option<&mut DetectorCount> {
        if !self.kinds.iter().any(|kind| kind.detector == finding.detector()) {
            self.kinds.push(DetectorCount::new(finding));
        }
        let kind = self.kinds.iter_mut().find(|kind| kind.detector == finding.detector())?;
        if kind.facts.is_empty() || kind.likelihood < finding.likelihood() {
            kind.likelihood = finding.likelihood();
            kind.facts = facts;
        }
        Some(kind)
    }
}

impl DetectorCount {
    fn new(finding: &Finding) -> Self {
        Self {
            detector: finding.detector().to_owned(),
            facts: Map::new(),
            likelihood: finding.likelihood(),
            count: 0,
            places: Vec::new(),
            left_out: 0,
            prints: Vec::new(),
        }
    }

    fn record(self, with_prints: bool) -> Value {
        let mut lines: Vec<u64> = self.places.iter().map(|place| place.line).collect();
        lines.dedup();
        let mut record = self.facts;
        record.insert("count".to_owned(), self.count.into());
        record.insert("lines".to_owned(), lines.into());
        let spans = self.places.into_iter().map(
            |FilePlace { start, end, line }| json!({ "start": start, "end": end, "line": line }),
        );
        record.insert("spans".to_owned(), spans.collect());
        if self.left_out > 0 {
            record.insert("spans_left_out".to_owned(), self.left_out.into());
        }
        if with_prints {
            record.insert("fingerprints".to_owned(), self.prints.into());
        }
        record.into()
    }
}

fn prints(finding: &Finding) -> impl Iterator<Item = String> {
    finding.fingerprints().iter().map(ToString::to_string)
}

/// A record for people, without most of its lines.
fn shortened(record: &Value) -> Value {
    let mut record = record.clone();
    if let Some(Value::Array(lines)) = record.get_mut("lines")
        && lines.len() > MOST_LINES
    {
        let more = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("{more} more").into());
    }
    record
}
