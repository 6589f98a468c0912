//! `portcullis policy simulate` and `portcullis policy test`.

use std::{
    fmt::Write,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use axum::http::Method;
use clap::Args;
use portcullis_app::{CaseFile, Simulation};
use portcullis_core::{policy::PolicyFile, refusal::Refusal};
use serde_json::{Value, json};

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

fn fail_at(file: &Path, refusal: &Refusal) -> Failure {
    format!("{}: {refusal}", file.display()).into()
}

impl Simulate {
    /// Exit code 0 when every expectation is met, 1 when not.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let asked = read(&self.file)?;
        let shown = if let Some(gateway) = self.desk.installation.gateway(None).await? {
            gateway.send(Method::POST, "/v1/policies/simulate", Some(&asked)).await?
        } else {
            let refused = |refusal| fail_at(&self.file, &refusal);
            let simulation = Simulation::read(&asked).map_err(refused)?;
            let (bench, set) = self.desk.loaded().await?;
            json!(bench.simulate(&set, &simulation).map_err(refused)?)
        };
        let lines: Vec<String> = list(&shown, "/results").iter().map(line).collect();
        self.desk.output().record(&shown, &lines.join("\n"))?;
        match shown.pointer("/summary/expectations_failed").and_then(Value::as_u64) {
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

impl Test {
    /// Exit code 0 when every case is as expected, 1 when not or when one could not be asked.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let files = if self.files.is_empty() {
            in_folder(&self.desk.folder(&self.desk.config()?))?
        } else {
            self.files.iter().map(|file| case_file(file)).collect::<Result<_, _>>()?
        };
        let (bench, set) = self.desk.loaded().await?;
        let mut passed = 0_usize;
        let mut failed = 0_usize;
        let mut shown = Vec::new();
        let mut lines = Vec::new();
        for file in &files {
            for run in CaseFile::read(file).and_then(|cases| bench.run(&set, &cases))? {
                let word = match run.passed {
                    Some(true) => "ok    ",
                    Some(false) => "FAILED",
                    None => "NOT RUN",
                };
                *(if run.passed == Some(true) { &mut passed } else { &mut failed }) += 1;
                lines.push(format!("{word}  {}:{}: {}", run.file, run.line, line(&run.result)));
                let met = run.passed == Some(true);
                shown.push(json!({ "file": run.file, "passed": met, "result": run.result }));
            }
        }
        lines.push(format!("{passed} passed, {failed} failed"));
        let record = json!({ "passed": passed, "failed": failed, "cases": shown });
        self.desk.output().record(&record, &lines.join("\n"))?;
        if failed == 0 { Ok(()) } else { Err(format!("{failed} not as expected").into()) }
    }
}

fn case_file(path: &Path) -> Result<PolicyFile, Failure> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    Ok(PolicyFile { path: path.to_string_lossy().into_owned(), text })
}

/// The files of cases in a policy folder, named as a person opens them.
fn in_folder(folder: &Path) -> Result<Vec<PolicyFile>, Failure> {
    let cases = super::read(folder)?.cases;
    if cases.is_empty() {
        return Err(format!("no cases in `{}`", folder.join("tests").display()).into());
    }
    let named = |file: PolicyFile| PolicyFile {
        path: folder.join(file.path).to_string_lossy().into_owned(),
        ..file
    };
    Ok(cases.into_iter().map(named).collect())
}
