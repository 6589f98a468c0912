//! False alarms of DLP in corpora, such as webhooks, answers and source code.
//!
//! Every text is cut into answers as tools give them. An answer counts as flagged when it has a
//! finding that is redacted or blocked by default: a secret, a financial or a national number.
//! Values that are only reported, such as the address of an author, are counted apart.

use std::{collections::BTreeMap, fs, path::Path};

use portcullis_core::{
    dlp::{Action, Direction, Engine, Findings, FingerprintKey, Likelihood, Settings},
    json::{Bounds, parse},
};
use serde_json::{Value, json};

use crate::{Failure, say};

/// Findings of one corpus.
#[derive(Debug, Default)]
pub(super) struct Row {
    bytes: usize,
    answers: usize,
    flagged: usize,
    reported: usize,
    grave: usize,
    /// Flagged only, and no more than possible.
    possible: usize,
    detectors: BTreeMap<String, usize>,
}

struct Counter {
    list: bool,
    engine: Engine,
    key: FingerprintKey,
}

/// Head of the table of corpora.
pub(super) const HEAD: &str = "\n| corpus | MB | answers | with grave findings | grave findings per MB | flagged as possible per MB | with others | detectors |\n|---|---|---|---|---|---|---|---|\n";

/// Bytes of an answer.
const ANSWER: usize = 2048;
/// Files larger than this are no text that a tool answers with.
const LARGEST: u64 = 4 << 20;

/// Findings in a file or in all files of a folder.
pub(super) fn measure(path: &Path, list: bool) -> Result<Row, Failure> {
    let mut row = Row::default();
    Counter::new(list)?.walk(path, &mut row)?;
    Ok(row)
}

impl Counter {
    fn new(list: bool) -> Result<Self, Failure> {
        let engine = Engine::new(&Settings::default())?;
        Ok(Self { list, engine, key: FingerprintKey::new([7; 32]) })
    }

    fn walk(&self, path: &Path, row: &mut Row) -> Result<(), Failure> {
        let about = fs::symlink_metadata(path)?;
        if about.is_dir() {
            let mut entries: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
            entries.sort_by_key(fs::DirEntry::path);
            return entries.iter().try_for_each(|entry| self.walk(&entry.path(), row));
        }
        if !about.is_file() || about.len() > LARGEST {
            return Ok(());
        }
        let name = path.display().to_string();
        let Ok(text) = String::from_utf8(fs::read(path)?) else { return Ok(()) };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => self.document(&name, &text, row),
            Some("jsonl") => text.lines().try_for_each(|line| self.document(&name, line, row)),
            Some(_) | None => self.count(&name, &text, row),
        }
    }

    /// Takes JSON as the structured answer of a tool, and what is none or too large as text.
    fn document(&self, name: &str, text: &str, row: &mut Row) -> Result<(), Failure> {
        let answer = parse(text.as_bytes(), Bounds::UPSTREAM)
            .map(|value| json!({ "structuredContent": value }))
            .ok()
            .filter(|answer| self.engine.scan(answer, &self.key).is_ok());
        match answer {
            Some(answer) => self.scan(name, &answer, text.len(), row),
            None => self.count(name, text, row),
        }
    }

    /// Cuts a text into answers at the ends of lines, where there are any.
    fn count(&self, name: &str, text: &str, row: &mut Row) -> Result<(), Failure> {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.floor_char_boundary(ANSWER);
            let line = rest.get(..end).and_then(|head| head.rfind('\n'));
            let cut = match line {
                Some(line) if end < rest.len() => line + 1,
                Some(_) | None => end,
            };
            let (answer, after) = rest.split_at(cut.max(1).min(rest.len()));
            let value = json!({ "content": [{ "type": "text", "text": answer }] });
            self.scan(name, &value, answer.len(), row)?;
            rest = after;
        }
        Ok(())
    }

    fn scan(&self, name: &str, answer: &Value, bytes: usize, row: &mut Row) -> Result<(), Failure> {
        let (findings, mut grave) = match self.engine.scan(answer, &self.key) {
            Ok(findings) => (findings, 0),
            // An answer that cannot be scanned is withheld.
            Err(error) => {
                *row.detectors.entry("cannot be scanned".to_owned()).or_default() += 1;
                if self.list {
                    say(&format!("{name}: {error}\n"));
                }
                (Findings::default(), 1)
            }
        };
        for finding in &findings {
            let count = usize::try_from(finding.count())?;
            *row.detectors.entry(finding.detector().to_owned()).or_default() += count;
            let action = self.engine.default_action(finding, Direction::Output);
            if action > Action::Flag {
                grave += count;
            } else if finding.likelihood() == Likelihood::Possible {
                row.possible += count;
            }
            if self.list {
                let text = answer.pointer(finding.pointer()).and_then(Value::as_str);
                for range in finding.ranges() {
                    let shown = text.and_then(|text| text.get(range)).unwrap_or_default();
                    say(&format!("{} {name}: {shown:?}\n", finding.detector()));
                }
            }
        }
        row.bytes += bytes;
        row.answers += 1;
        row.grave += grave;
        row.flagged += usize::from(grave > 0);
        row.reported += usize::from(grave == 0 && !findings.is_empty());
        Ok(())
    }
}

impl Row {
    /// Acted on, and flagged as possible, per megabyte.
    #[expect(clippy::cast_precision_loss, reason = "figures for people to read")]
    pub(super) fn alarms(&self) -> (f64, f64) {
        let megabytes = (self.bytes as f64 / 1e6).max(1e-6);
        (self.grave as f64 / megabytes, self.possible as f64 / megabytes)
    }

    /// The figures for machines.
    pub(super) fn json(&self) -> Value {
        let (acted_on, possible) = self.alarms();
        json!({
            "bytes": self.bytes,
            "answers": self.answers,
            "acted_on": self.grave,
            "acted_on_per_mb": acted_on,
            "possible_per_mb": possible,
            "detectors": self.detectors,
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people to read")]
    pub(super) fn say(&self, name: &str) {
        let mut detectors: Vec<_> = self.detectors.iter().collect();
        detectors.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let most = detectors.iter().take(12).map(|(name, count)| format!("{name} {count}"));
        let (grave, possible) = self.alarms();
        say(&format!(
            "| {name} | {:.2} | {} | {} | {grave:.2} | {possible:.1} | {} | {} |\n",
            self.bytes as f64 / 1e6,
            self.answers,
            self.flagged,
            self.reported,
            most.collect::<Vec<_>>().join(", ")
        ));
    }
}
