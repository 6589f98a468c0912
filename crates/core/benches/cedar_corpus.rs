//! Runs the public test corpus of the Cedar project through the index and its evaluation.
//!
//! `cargo bench -p portcullis-core --bench cedar_corpus -- <corpus-tests.tar.gz>` takes the archive
//! that the Cedar project publishes, or a folder it was unpacked to. Every request has to end with
//! the decision, the reasons and the errors that the corpus states.

use std::{
    collections::{BTreeSet, HashSet},
    error::Error,
    fmt, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use cedar_policy::{
    Context, Effect, Entities, EntityId, EntityUid, Policy, PolicySet, Request, Schema,
    ValidationMode, Validator,
};
use portcullis_core::policy::engine::{
    Conditions, Member, PrincipalKeys, RequestTarget, Rule, Situation, Slice,
};
use serde::Deserialize;
use serde_json::Value;

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let path = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let Some(path) = path else {
        say("Give the path of corpus-tests.tar.gz, or of the folder it was unpacked to.");
        return ExitCode::SUCCESS;
    };
    match run(Path::new(&path)) {
        Ok(tally) => {
            say(&tally.to_string());
            if tally.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(failure) => {
            say(&format!("cedar_corpus: {failure}"));
            ExitCode::from(2)
        }
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// One test of the corpus.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    policies: PathBuf,
    entities: PathBuf,
    schema: PathBuf,
    should_validate: bool,
    requests: Vec<Asked>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    principal: Named,
    action: Named,
    resource: Named,
    context: Value,
    validate_request: bool,
    decision: String,
    reason: BTreeSet<String>,
    errors: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

impl Named {
    fn uid(&self) -> Result<EntityUid, Failure> {
        Ok(EntityUid::from_type_name_and_id(self.kind.parse()?, EntityId::new(&self.id)))
    }
}

/// Number of cases, and those that did not come out as stated.
#[derive(Default)]
struct Tally {
    tests: usize,
    requests: usize,
    /// Sets that the corpus expects to be invalid and the validator accepts.
    accepted: usize,
    /// Sets that the corpus expects to be valid and the validator does not accept.
    refused: usize,
    differences: Vec<String>,
}

impl Tally {
    const fn holds(&self) -> bool {
        self.refused == 0 && self.differences.is_empty()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} tests, {} requests", self.tests, self.requests)?;
        writeln!(f, "{} differences in decision, reasons or errors", self.differences.len())?;
        writeln!(f, "{} sets accepted that the corpus expects to be invalid", self.accepted)?;
        write!(f, "{} sets refused that the corpus expects to be valid", self.refused)?;
        for difference in self.differences.iter().take(20) {
            write!(f, "\n{difference}")?;
        }
        Ok(())
    }
}

fn run(path: &Path) -> Result<Tally, Failure> {
    if path.is_dir() {
        return run_folder(path);
    }
    let folder = std::env::temp_dir().join(format!("cedar-corpus-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let unpacked = Command::new("tar").arg("-xzf").arg(path).arg("-C").arg(&folder).status()?;
    let tally = if unpacked.success() {
        run_folder(&folder)
    } else {
        Err("the archive cannot be unpacked".into())
    };
    fs::remove_dir_all(&folder)?;
    tally
}

fn run_folder(folder: &Path) -> Result<Tally, Failure> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder.join("corpus-tests"))? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".json") && !name.ends_with(".entities.json") {
            cases.push(path);
        }
    }
    cases.sort();
    let mut tally = Tally::default();
    for path in cases {
        let case: Case = serde_json::from_str(&fs::read_to_string(&path)?)?;
        run_case(folder, &path, &case, &mut tally)?;
    }
    Ok(tally)
}

fn run_case(folder: &Path, path: &Path, case: &Case, tally: &mut Tally) -> Result<(), Failure> {
    let read = |file: &Path| fs::read_to_string(folder.join(file));
    let (schema, _) = Schema::from_cedarschema_str(&read(&case.schema)?)?;
    let policies: PolicySet = read(&case.policies)?.parse()?;
    let entities = Entities::from_json_str(&read(&case.entities)?, Some(&schema))?;
    let valid = Validator::new(schema.clone())
        .validate(&policies, ValidationMode::default())
        .validation_passed();
    tally.tests += 1;
    tally.accepted += usize::from(valid && !case.should_validate);
    tally.refused += usize::from(!valid && case.should_validate);
    let mut conditions = Conditions::default();
    let rule = |policy: &Policy| Rule::new(policy.clone(), &mut conditions);
    let rules: Vec<Rule> = policies.policies().map(rule).collect();
    for asked in &case.requests {
        tally.requests += 1;
        let (said, stated) = (ask(asked, &rules, &entities, &schema)?, stated(asked));
        if said != stated {
            tally.differences.push(format!("{}: {said:?} instead of {stated:?}", path.display()));
        }
    }
    Ok(())
}

/// Decision, reasons, errors.
type Stated = (String, BTreeSet<String>, BTreeSet<String>);

fn stated(asked: &Asked) -> Stated {
    (asked.decision.clone(), asked.reason.clone(), asked.errors.clone())
}

fn ask(
    asked: &Asked,
    rules: &[Rule],
    entities: &Entities,
    schema: &Schema,
) -> Result<Stated, Failure> {
    let principal = asked.principal.uid()?;
    let action = asked.action.uid()?;
    let resource = asked.resource.uid()?;
    let context = Context::from_json_value(asked.context.clone(), Some((schema, &action)))?;
    let checked = asked.validate_request.then_some(schema);
    let request =
        Request::new(principal.clone(), action.clone(), resource.clone(), context, checked)?;
    let within = |uid: &EntityUid| -> HashSet<EntityUid> {
        entities.ancestors(uid).into_iter().flatten().cloned().collect()
    };
    let member = |uid: EntityUid| Member { within: within(&uid), near: None, uid };
    let ancestors = within(&principal);
    let place = RequestTarget { action: member(action), resource: member(resource) };
    let mut keys = PrincipalKeys::default();
    let fitting = (0..).zip(rules).filter(|(_, rule)| rule.fit(&place).is_some());
    let slice = Slice::new(fitting, &mut keys);
    let picked = keys.of(&principal, &ancestors);
    let situation = Situation { request, entities: entities.clone() };
    let found = slice.evaluate(&picked, &situation);
    let cedar = |number: &u32| rules.get(usize::try_from(*number).ok()?).map(Rule::cedar);
    let name = |policy: &Policy| policy.id().to_string();
    let (forbids, permits): (Vec<&Policy>, Vec<&Policy>) = found
        .satisfied
        .iter()
        .filter_map(cedar)
        .partition(|policy| policy.effect() == Effect::Forbid);
    let [forbids, permits] =
        [forbids, permits].map(|policies| policies.into_iter().map(name).collect::<BTreeSet<_>>());
    let errors = found.errored.iter().filter_map(|(number, _)| cedar(number)).map(name).collect();
    Ok(if !forbids.is_empty() {
        ("deny".to_owned(), forbids, errors)
    } else if permits.is_empty() {
        ("deny".to_owned(), permits, errors)
    } else {
        ("allow".to_owned(), permits, errors)
    })
}
