//! `portcullis policy simulate` and `portcullis policy test`.

use std::{
    fmt::Write,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use clap::Args;
use portcullis_app::Simulation;
use portcullis_core::refusal::Refusal;
use serde_json::{Map, Value, json};

use super::{Desk, Failure};

#[derive(Args)]
pub(in crate::cli) struct Simulate {
    #[command(flatten)]
    desk: Desk,
    /// A body of POST /v1/policies/simulate in JSON or YAML; `-` reads standard input
    file: PathBuf,
}

#[derive(Args)]
pub(in crate::cli) struct Test {
    #[command(flatten)]
    desk: Desk,
    /// Files of cases; without any, those in the folder's `tests`
    files: Vec<PathBuf>,
}

/// Reads JSON or YAML: every JSON text is a YAML text too.
fn read(file: &Path) -> Result<Value, Failure> {
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        text
    } else {
        fs::read_to_string(file).map_err(|error| format!("`{}`: {error}", file.display()))?
    };
    serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", file.display()).into())
}

fn told(file: &Path, refusal: &Refusal) -> Failure {
    format!("{}: {refusal}", file.display()).into()
}

impl Simulate {
    /// Exit code 0 when every expectation is met, 1 when not.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let simulation =
            Simulation::read(&read(&self.file)?).map_err(|refusal| told(&self.file, &refusal))?;
        let (bench, set) = self.desk.loaded().await?;
        let answer =
            bench.simulate(&set, &simulation).map_err(|refusal| told(&self.file, &refusal))?;
        let results = list(&answer, "/results");
        let lines: Vec<String> = results.iter().map(line).collect();
        self.desk.output().record(&answer, &lines.join("\n"))?;
        match answer.pointer("/summary/expectations_failed").and_then(Value::as_u64) {
            Some(0) | None => Ok(()),
            Some(failed) => Err(format!("{failed} not as expected").into()),
        }
    }
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `sample:list_items: deny by short-lists (explicit_deny): Lists are short`.
fn line(result: &Value) -> String {
    let text = |name: &str| result.get(name).and_then(Value::as_str);
    let name = text("id").or(text("tool")).unwrap_or_default();
    let decision = text("decision").unwrap_or("not decided");
    let by = text("policy").map(|policy| format!(" by {policy}")).unwrap_or_default();
    let cause = text("cause").unwrap_or_default();
    let reason = text("reason").map(|reason| format!(": {reason}")).unwrap_or_default();
    let mut line = format!("{name}: {decision}{by} ({cause}){reason}");
    for violation in list(result, "/violations") {
        let part = |name: &str| violation.get(name).and_then(Value::as_str).unwrap_or_default();
        let _ = write!(line, "\n  {} {}", part("path"), part("message"));
    }
    for unmet in list(result, "/expectation/unmet") {
        let _ = write!(line, "\n  {}", unmet.as_str().unwrap_or_default());
    }
    line
}

/// A file of cases: the body of a simulation that is made of them.
fn body(file: &Path, value: Value) -> Result<Value, Failure> {
    let wrong = |what: &str| -> Failure { format!("{}: {what}", file.display()).into() };
    let Value::Object(mut members) = value else {
        return Err(wrong("has to hold `cases`, and may hold `defaults` and `policies`"));
    };
    let defaults = match members.remove("defaults") {
        None => Map::new(),
        Some(Value::Object(defaults)) => defaults,
        Some(_) => return Err(wrong("`defaults` has to hold members of cases")),
    };
    let Some(Value::Array(cases)) = members.remove("cases") else {
        return Err(wrong("`cases` has to be a list"));
    };
    let mut requests = Vec::with_capacity(cases.len());
    for (at, case) in cases.into_iter().enumerate() {
        let Value::Object(own) = case else { return Err(wrong("a case has to hold members")) };
        if !own.contains_key("expect") {
            return Err(wrong(&format!("case {at} expects nothing: add `expect`")));
        }
        let mut request = defaults.clone();
        request.extend(own);
        requests.push(Value::Object(request));
    }
    members.insert("requests".to_owned(), Value::Array(requests));
    Ok(Value::Object(members))
}

/// The files of cases below a policy folder.
fn found(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let tests = folder.join("tests");
    let entries = fs::read_dir(&tests)
        .map_err(|error| format!("no cases in `{}`: {error}", tests.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let wanted = path.extension().and_then(|it| it.to_str());
        if wanted.is_some_and(|it| ["yaml", "yml", "json"].contains(&it)) {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("no cases in `{}`", tests.display()).into());
    }
    Ok(files)
}

impl Test {
    /// Exit code 0 when every case is as expected, 1 when not.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let files = if self.files.is_empty() {
            found(&self.desk.folder(&self.desk.config()?))?
        } else {
            self.files.clone()
        };
        let (bench, set) = self.desk.loaded().await?;
        let (mut passed, mut failed) = (0_usize, 0_usize);
        let (mut shown, mut lines) = (Vec::new(), Vec::new());
        for file in &files {
            let simulation = Simulation::read(&body(file, read(file)?)?)
                .map_err(|refusal| told(file, &refusal))?;
            let answer =
                bench.simulate(&set, &simulation).map_err(|refusal| told(file, &refusal))?;
            for result in list(&answer, "/results") {
                let met = result.pointer("/expectation/met") == Some(&Value::Bool(true));
                *(if met { &mut passed } else { &mut failed }) += 1;
                let word = if met { "ok    " } else { "FAILED" };
                lines.push(format!("{word}  {}: {}", file.display(), line(result)));
                shown.push(json!({ "file": file, "passed": met, "result": result }));
            }
        }
        lines.push(format!("{passed} passed, {failed} failed"));
        let record = json!({ "passed": passed, "failed": failed, "cases": shown });
        self.desk.output().record(&record, &lines.join("\n"))?;
        if failed == 0 { Ok(()) } else { Err(format!("{failed} not as expected").into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn cases_have_the_defaults_and_their_own_members() {
        let text = "defaults:\n  tool: a:b\n  input: {x: 1}\ncases:\n\
                    - expect: {decision: allow}\n- input: {x: 2}\n  expect: {decision: deny}\n";

        let body = body(Path::new("a.yaml"), yaml(text)).unwrap();

        assert_eq!(body["requests"][0]["tool"], "a:b");
        assert_eq!(body["requests"][0]["input"]["x"].to_string(), "1");
        assert_eq!(body["requests"][1]["input"]["x"].to_string(), "2");
        assert!(Simulation::read(&body).is_ok());
    }

    #[test]
    fn a_case_that_expects_nothing_is_a_mistake() {
        for text in ["cases: [{tool: a:b}]", "cases: {}", "[]", "cases: [1]"] {
            assert!(body(Path::new("a.yaml"), yaml(text)).is_err(), "{text}");
        }
    }
}
