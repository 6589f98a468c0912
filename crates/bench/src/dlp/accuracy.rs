//! Accuracy of DLP: recall and false alarms in labelled cases, and false alarms in corpora.
//!
//! A case is found when a finding of the same sort, secret or not, covers part of what is
//! expected. Acted on is what is redacted or blocked in one direction by default.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use portcullis_core::dlp::{Engine, FingerprintKey, Settings};
use serde_json::{Value, json};

use crate::{Failure, Verdict, args::DlpArgs, say};

mod case;
mod corpus;
mod goals;

use case::{Case, Kind, Outcome, Tier};
use goals::Goal;

/// Results of the cases of one kind.
#[derive(Debug, Default, Clone, Copy)]
struct Row {
    cases: usize,
    found: usize,
    acted_on: usize,
}

/// Results of everything that was measured.
#[derive(Default)]
struct Results {
    kinds: BTreeMap<(Kind, String), Row>,
    weak: Row,
    /// Evasions whose text is acted on without its spelling: what decoders have to answer for.
    decodable: Row,
    corpora: Vec<(String, corpus::Row)>,
}

/// Prints the tables, and whether the goals hold.
pub(super) fn run(args: &DlpArgs) -> Result<Verdict, Failure> {
    let engine = Engine::new(&Settings::default())?;
    let key = FingerprintKey::new([7; 32]);
    let mut results = Results::default();
    // What is no secret of one vendor may be one of another.
    for case in read(&args.cases)?.into_iter().filter(|case| case.other_rule_fires.is_empty()) {
        let value = case.value()?;
        let outcome = case.outcome(&engine, &engine.scan(&value, &key)?);
        results.add(&case, &outcome, args.list);
        if let Some(plain) = case.unspelled() {
            let without = plain.outcome(&engine, &engine.scan(&plain.value()?, &key)?);
            results.decodable.count_if(without.acted_on, &outcome);
        }
        if case.kind() == Kind::BareNumber && case.kind.is_none() {
            let named = case.below_its_key();
            let outcome =
                named.outcome(&engine, &engine.scan(&json!({ named.key(): case.text }), &key)?);
            results.add(&named, &outcome, args.list);
        }
    }
    for corpus in &args.corpora {
        let (name, path) = corpus.split_once('=').ok_or("a corpus is written NAME=PATH")?;
        results.corpora.push((name.to_owned(), corpus::measure(&PathBuf::from(path), args.list)?));
    }
    let goals = results.goals();
    if args.json {
        say(&format!("{}\n", results.json(&goals)));
    } else {
        results.say(&goals, args.entities);
    }
    let holds = goals.iter().all(Goal::holds);
    Ok(if holds { Verdict::Holds } else { Verdict::Broken })
}

fn read(paths: &[PathBuf]) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for path in paths {
        let bytes = if path.extension().is_some_and(|extension| extension == "gz") {
            Command::new("gzip").arg("-dc").arg(path).output()?.stdout
        } else {
            fs::read(path)?
        };
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            cases.push(serde_json::from_slice(line)?);
        }
    }
    Ok(cases)
}

impl Results {
    fn add(&mut self, case: &Case, outcome: &Outcome, list: bool) {
        let row = match case.tier {
            Tier::Weak => &mut self.weak,
            Tier::Strong | Tier::Negative => {
                self.kinds.entry((case.kind(), case.group().to_owned())).or_default()
            }
        };
        row.count_if(true, outcome);
        if list && case.is_missed(outcome) {
            say(&case.line(outcome));
        }
    }

    /// The sum of the cases that are wanted.
    fn sum(&self, wanted: impl Fn(Kind, &str) -> bool) -> Row {
        let rows = self.kinds.iter().filter(|((kind, group), _)| wanted(*kind, group));
        rows.fold(Row::default(), |sum, (_, row)| sum.and(row))
    }

    fn say(&self, goals: &[Goal], entities: bool) {
        say(
            "\n| kind | cases | found | acted on | share found | share acted on |\n|---|---|---|---|---|---|\n",
        );
        for kind in Kind::ALL {
            self.sum(|other, _| other == kind).say(kind.name());
            let groups = self.kinds.iter().filter(|((other, _), _)| *other == kind);
            for ((_, group), row) in groups.filter(|_| entities) {
                row.say(&format!("– {group}"));
            }
        }
        self.decodable.say("evasions of what is acted on unspelled");
        self.weak.say("weak: nothing says for certain what it is");
        if !self.corpora.is_empty() {
            say(corpus::HEAD);
        }
        for (name, row) in &self.corpora {
            row.say(name);
        }
        say("\n| goal | wanted | measured | holds |\n|---|---|---|---|\n");
        for goal in goals {
            say(&goal.line());
        }
    }

    fn json(&self, goals: &[Goal]) -> Value {
        let kinds = Kind::ALL
            .map(|kind| (kind.name().to_owned(), self.sum(|other, _| other == kind).json()));
        let groups = self
            .kinds
            .iter()
            .map(|((kind, group), row)| (format!("{}/{group}", kind.name()), row.json()));
        let corpora = self.corpora.iter().map(|(name, row)| (name.clone(), row.json()));
        json!({
            "decodable": self.decodable.json(),
            "kinds": kinds.into_iter().collect::<serde_json::Map<_, _>>(),
            "groups": groups.collect::<serde_json::Map<_, _>>(),
            "corpora": corpora.collect::<serde_json::Map<_, _>>(),
            "goals": goals.iter().map(Goal::json).collect::<Value>(),
        })
    }
}

impl Row {
    /// Counts an outcome, if it is one of these.
    fn count_if(&mut self, counts: bool, outcome: &Outcome) {
        self.cases += usize::from(counts);
        self.found += usize::from(counts && outcome.found);
        self.acted_on += usize::from(counts && outcome.acted_on);
    }

    fn and(self, other: &Self) -> Self {
        Self {
            cases: self.cases + other.cases,
            found: self.found + other.found,
            acted_on: self.acted_on + other.acted_on,
        }
    }

    fn share_found(self) -> f64 {
        share(self.found, self.cases)
    }

    fn share_acted_on(self) -> f64 {
        share(self.acted_on, self.cases)
    }

    fn say(self, name: &str) {
        if self.cases > 0 {
            say(&format!(
                "| {name} | {} | {} | {} | {:.3} | {:.3} |\n",
                self.cases,
                self.found,
                self.acted_on,
                self.share_found(),
                self.share_acted_on()
            ));
        }
    }

    fn json(self) -> Value {
        json!({ "cases": self.cases, "found": self.found, "acted_on": self.acted_on })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for people to read")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome of a case, and whether it counts as missed.
    fn outcome(case: Value) -> (bool, bool, bool) {
        let engine = Engine::new(&Settings::default()).expect("the default settings");
        let case: Case = serde_json::from_value(case).expect("a case");
        let value = case.value().expect("JSON");
        let findings = engine.scan(&value, &FingerprintKey::new([7; 32])).expect("findings");
        let outcome = case.outcome(&engine, &findings);
        (outcome.found, outcome.acted_on, case.is_missed(&outcome))
    }

    #[test]
    fn a_case_is_found_where_it_is_expected_only() {
        let case = |start: usize| {
            json!({
                "id": "1", "entity": "CREDIT_CARD", "tier": "strong", "kind": "named",
                "text": "card 4111111111111111 of Grace",
                "expected": [{ "bstart": start, "bend": start + 5 }],
            })
        };

        assert_eq!(outcome(case(5)), (true, true, false));
        assert_eq!(outcome(case(25)), (false, false, true));
    }

    #[test]
    fn json_is_expected_at_a_pointer_and_findings_of_another_sort_do_not_count() {
        let case = |entity: &str, pointer: &str| {
            json!({
                "id": "1", "entity": entity, "tier": "strong", "kind": "named", "json": true,
                "text": "{\"a\": {\"card\": \"4111111111111111\"}}",
                "expected": [{ "pointer": pointer }],
            })
        };

        assert_eq!(outcome(case("CREDIT_CARD", "/a")), (true, true, false));
        assert_eq!(outcome(case("CREDIT_CARD", "/b")), (false, false, true));
        assert_eq!(outcome(case("secret/password", "/a")), (false, false, true));
    }

    #[test]
    fn a_negative_is_missed_when_something_is_done_about_it() {
        let case =
            |text: &str| json!({ "id": "1", "entity": "none", "tier": "negative", "text": text });

        assert_eq!(outcome(case("card 4111111111111111")), (true, true, true));
        assert_eq!(outcome(case("mail ada@example.org")), (true, false, false));
        assert_eq!(outcome(case("nothing")), (false, false, false));
    }
}
