//! Accuracy of DLP in labelled cases, by kind and by detector.
//!
//! A case is found when a finding of the same sort, secret or not, covers part of what is
//! expected. A number without a word beside it could be anything, which is why it never fires;
//! such cases are tried once more below a key that is called like their kind.

use std::{collections::BTreeMap, fs, ops::Range, process::Command};

use portcullis_core::dlp::{Category, Engine, Finding, FingerprintKey, Settings};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Failure, Verdict, args::AccuracyArgs, say};

/// One labelled text.
#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    entity: String,
    tier: Tier,
    text: String,
    #[serde(default)]
    expected: Vec<Expected>,
    /// Other kinds that a look-alike of one kind is.
    #[serde(default)]
    other_rule_fires: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tier {
    Strong,
    Weak,
    Negative,
}

#[derive(Debug, Deserialize)]
struct Expected {
    bstart: usize,
    bend: usize,
}

/// Results of the cases of one kind.
#[derive(Debug, Default)]
struct Row {
    strong: usize,
    found: usize,
    /// Strong ones that are bare digits, and how many of them are found below a key.
    bare: usize,
    bare_found: usize,
    weak: usize,
    weak_found: usize,
    negative: usize,
    flagged: usize,
}

/// Goal.
const LEAST_RECALL: f64 = 0.95;
const MOST_FLAGGED: f64 = 0.02;

/// Kinds that DLP does not look for: dates, addresses of pages, plates, company registers.
const BEYOND: &[&str] = &["DATE_TIME", "URL", "VEHICLE", "LICENSE_PLATE", "HANDELSREGISTER", "KFZ"];

/// Prints recall by kind and precision by detector, and whether the goals hold.
pub(crate) fn run(args: &AccuracyArgs) -> Result<Verdict, Failure> {
    let engine = Engine::new(&Settings::default())?;
    let key = FingerprintKey::new([7; 32]);
    let mut kinds: BTreeMap<String, Row> = BTreeMap::new();
    let mut detectors: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    // What is no secret of one vendor may be one of another.
    for case in read(args)?.into_iter().filter(|case| case.other_rule_fires.is_empty()) {
        let found = engine.scan(&json!(case.text), &key)?;
        let is_found = case.is_found(found.iter());
        let row = kinds.entry(case.entity.clone()).or_default();
        let wrong = match case.tier {
            Tier::Strong => {
                row.strong += 1;
                row.found += usize::from(is_found);
                if case.is_bare() && !is_found {
                    row.bare += 1;
                    let below: Value = json!({ case.key(): case.text });
                    row.bare_found += usize::from(case.is_found(engine.scan(&below, &key)?.iter()));
                }
                !is_found
            }
            Tier::Weak => {
                row.weak += 1;
                row.weak_found += usize::from(is_found);
                false
            }
            Tier::Negative => {
                let flagged = found.iter().any(|finding| case.is_of_its_sort(finding));
                row.negative += 1;
                row.flagged += usize::from(flagged);
                flagged
            }
        };
        if args.list && wrong {
            let names = found.detectors().join(" ");
            say(&format!(
                "{:?} {} {}: {:?} [{names}]\n",
                case.tier, case.id, case.entity, case.text
            ));
        }
        for finding in &found {
            let counts = detectors.entry(finding.detector().to_owned()).or_default();
            if finding.ranges().any(|range| case.expects(&range)) {
                counts.0 += 1;
            } else {
                counts.1 += 1;
            }
        }
    }
    Ok(report(&kinds, &detectors))
}

fn read(args: &AccuracyArgs) -> Result<Vec<Case>, Failure> {
    let bytes = if args.cases.extension().is_some_and(|extension| extension == "gz") {
        Command::new("gzip").arg("-dc").arg(&args.cases).output()?.stdout
    } else {
        fs::read(&args.cases)?
    };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
}

impl Case {
    fn is_secret(&self) -> bool {
        self.entity.starts_with("secret/")
    }

    fn is_of_its_sort(&self, finding: &Finding) -> bool {
        (finding.category() == Category::Secret) == self.is_secret()
    }

    fn expects(&self, range: &Range<usize>) -> bool {
        self.expected.iter().any(|span| range.start < span.bend && span.bstart < range.end)
    }

    fn is_found<'a>(&self, mut findings: impl Iterator<Item = &'a Finding>) -> bool {
        findings.any(|finding| {
            self.is_of_its_sort(finding) && finding.ranges().any(|range| self.expects(&range))
        })
    }

    /// Returns true if it is only a number or a short code.
    fn is_bare(&self) -> bool {
        let is_code = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-' | b'.');
        !self.is_secret() && self.text.len() < 24 && self.text.bytes().all(is_code)
    }

    /// The key a program would give it.
    fn key(&self) -> String {
        self.entity.to_ascii_lowercase()
    }
}

fn report(kinds: &BTreeMap<String, Row>, detectors: &BTreeMap<String, (usize, usize)>) -> Verdict {
    say(
        "\n| kind | strong | found | bare | found below a key | weak | found | negative | flagged |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for (kind, row) in kinds {
        say(&row.line(kind));
    }
    let is_beyond = |kind: &str| BEYOND.iter().any(|beyond| kind.contains(beyond));
    let mut total = Row::default();
    let mut bare_in_all = 0;
    for (_, row) in kinds.iter().filter(|(kind, _)| !is_beyond(kind)) {
        total.add(row);
        bare_in_all += row.bare;
    }
    say(&total.line("all that DLP looks for"));
    say("\n| detector | right | wrong |\n|---|---|---|\n");
    for (detector, (right, wrong)) in detectors {
        say(&format!("| {detector} | {right} | {wrong} |\n"));
    }
    let named = share(total.found + total.bare_found, total.strong);
    let flagged = share(total.flagged, total.negative);
    say(&format!(
        "\nrecall on strong cases {:.3}; without the {bare_in_all} bare numbers {:.3}; with those below a key {named:.3}; flagged negatives {:.3}\n",
        share(total.found, total.strong),
        share(total.found, total.strong - total.bare),
        flagged,
    ));
    if named >= LEAST_RECALL && flagged <= MOST_FLAGGED { Verdict::Holds } else { Verdict::Broken }
}

impl Row {
    fn line(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            self.strong,
            self.found,
            self.bare,
            self.bare_found,
            self.weak,
            self.weak_found,
            self.negative,
            self.flagged
        )
    }

    fn add(&mut self, other: &Row) {
        self.strong += other.strong;
        self.found += other.found;
        self.bare += other.bare;
        self.bare_found += other.bare_found;
        self.weak += other.weak;
        self.weak_found += other.weak_found;
        self.negative += other.negative;
        self.flagged += other.flagged;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for people to read")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
