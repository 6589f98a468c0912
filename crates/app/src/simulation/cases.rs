//! Files of cases: calls with what is expected of them. They stand beside the policies, and a set
//! that does not do what they expect is not taken.

use std::sync::Arc;

use portcullis_core::{
    policy::{PolicyError, PolicyFile, PolicySet},
    refusal::Refusal,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use serde_saphyr::{Location, Spanned};

use super::{Simulation, Subject, rehearsal::Rehearsal};
use crate::policies::policy_tests::{CasePlace, CaseRun};

/// A file of cases, understood.
#[derive(Debug)]
pub struct CaseFile {
    path: String,
    simulation: Simulation,
    /// Beginning of each case.
    places: Vec<CasePlace>,
}

#[derive(Deserialize)]
struct CaseEntries {
    #[serde(default)]
    defaults: Map<String, Value>,
    cases: Vec<Spanned<Map<String, Value>>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl CaseFile {
    /// Reads a file of cases, JSON or YAML. Fails with the place of the first mistake.
    pub fn read(file: &PolicyFile) -> Result<Self, PolicyError> {
        let wrong = |place: CasePlace, message| place.error(&file.path, "syntax", message);
        // Every JSON text is a YAML text too.
        let written: CaseEntries = serde_saphyr::from_str(&file.text).map_err(|error| {
            let place = error.location().map_or(CasePlace::FIRST, |location| place(&location));
            wrong(place, format!("no file of cases: {error}"))
        })?;
        let CaseEntries { defaults, cases, others: mut members } = written;
        let mut places = Vec::with_capacity(cases.len());
        let mut requests = Vec::with_capacity(cases.len());
        for Spanned { value: own, referenced, .. } in cases {
            let place = place(&referenced);
            if !own.contains_key("expect") {
                return Err(wrong(place, "the case expects nothing: add `expect`".to_owned()));
            }
            let mut request = defaults.clone();
            request.extend(own);
            requests.push(Value::Object(request));
            places.push(place);
        }
        members.insert("requests".to_owned(), Value::Array(requests));
        let simulation = Simulation::read(&Value::Object(members));
        let simulation = simulation
            .map_err(|refusal| wrong(first_place(&refusal, &places), message_of(&refusal)))?;
        Ok(Self { path: file.path.clone(), simulation, places })
    }

    /// Asks `set` every case whose tool is known.
    pub(crate) fn run(
        &self,
        set: &Arc<PolicySet>,
        rehearsal: &Rehearsal<'_>,
    ) -> Result<Vec<CaseRun>, PolicyError> {
        let Subject::Asks(asks) = &self.simulation.subject else { return Ok(Vec::new()) };
        let mut runs = Vec::with_capacity(asks.len());
        let mut known = Vec::with_capacity(asks.len());
        for (ask, place) in asks.iter().zip(&self.places) {
            let told = |why: &str| json!({ "id": ask.id, "tool": ask.tool, "cause": why });
            match rehearsal.ground.catalogue.find_tool(&ask.tool) {
                Ok(_) => known.push((ask.clone(), *place)),
                Err(why) => runs.push(self.ran(*place, None, told(why))),
            }
        }
        let (asks, places): (Vec<_>, Vec<_>) = known.into_iter().unzip();
        let simulation = Simulation { subject: Subject::Asks(asks), ..self.simulation.clone() };
        let report = rehearsal.simulate(set, &simulation).map_err(|refusal| {
            let place = first_place(&refusal, &places);
            place.error(&self.path, "syntax", message_of(&refusal))
        })?;
        let mut results = report.results.iter();
        for place in places {
            let result = results.next();
            let expectation = result.and_then(|result| result.expectation.as_ref());
            let met = expectation.is_some_and(|expectation| expectation.met);
            let late = || json!({ "cause": "there was no time left" });
            let result = result.map_or_else(late, |result| json!(result));
            runs.push(self.ran(place, Some(met), result));
        }
        runs.sort_by_key(|run| (run.line, run.column));
        Ok(runs)
    }

    fn ran(
        &self,
        CasePlace { line, column }: CasePlace,
        passed: Option<bool>,
        result: Value,
    ) -> CaseRun {
        CaseRun { file: self.path.clone(), line, column, passed, result }
    }
}

fn place(location: &Location) -> CasePlace {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).max(1);
    CasePlace { line: number(location.line()), column: number(location.column()) }
}

fn message_of(refusal: &Refusal) -> String {
    if let Refusal::InvalidRequest { message, .. } = refusal {
        return message.clone();
    }
    refusal.to_string()
}

/// The place of the case that a refusal is about.
fn first_place(refusal: &Refusal, places: &[CasePlace]) -> CasePlace {
    let Refusal::InvalidRequest { violations, .. } = refusal else { return CasePlace::FIRST };
    let path = violations.first().and_then(|first| first.path.strip_prefix("/requests/"));
    let number = path.and_then(|path| path.split('/').next()).and_then(|at| at.parse().ok());
    number.and_then(|at: usize| places.get(at)).copied().unwrap_or(CasePlace::FIRST)
}

/// Runs the cases of a file against a set. Takes as long as judging their calls does.
pub(crate) fn run_cases(
    file: &PolicyFile,
    set: &Arc<PolicySet>,
    rehearsal: &Rehearsal<'_>,
) -> Result<Vec<CaseRun>, PolicyError> {
    CaseFile::read(file)?.run(set, rehearsal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CaseFile, PolicyError> {
        CaseFile::read(&PolicyFile { path: "tests/a.yaml".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn cases_have_the_defaults_and_their_own_members() {
        let text = "defaults:\n  tool: a:b\n  input: {x: 1}\ncases:\n\
                    - expect: {decision: allow}\n- input: {x: 2}\n  expect: {decision: deny}\n";

        let file = read(text).unwrap();

        let Subject::Asks(asks) = &file.simulation.subject else { panic!("{file:?}") };
        assert_eq!(asks[0].tool, "a:b");
        assert_eq!(asks[0].input["x"].to_string(), "1");
        assert_eq!(asks[1].input["x"].to_string(), "2");
        let lines: Vec<usize> = file.places.iter().map(|place| place.line).collect();
        assert_eq!(lines, [5, 6]);
    }

    #[test]
    fn a_mistake_is_named_by_its_line() {
        for (text, line, says) in [
            ("cases: [{tool: a:b}]", 1, "expects nothing"),
            (
                "cases:\n- {tool: a:b, expect: {}}\n- {tool: a:b, inputs: {}, expect: {}}",
                3,
                "/inputs",
            ),
            ("cases: {}", 1, "no file of cases"),
            ("[]", 1, "no file of cases"),
            ("cases: [1]", 1, "no file of cases"),
            ("cases: []\nmore: 1", 1, "/more"),
            ("\n\ncases: [}", 3, "no file of cases"),
        ] {
            let error = read(text).unwrap_err();

            assert_eq!(
                (error.path.as_str(), error.line),
                ("tests/a.yaml", line),
                "{text}: {error}"
            );
            assert!(error.message.contains(says), "{text}: {error}");
        }
    }
}
