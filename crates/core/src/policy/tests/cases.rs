//! The folders of `policy/cases`: policies, tools, and calls with their decisions. `portcullis policy test` takes them
//! too, and is stricter about what a case may say.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Map;

use super::*;
use crate::{
    dlp::{Engine, Findings, Settings},
    id::PrincipalKind,
};

#[derive(Deserialize)]
struct CaseFile {
    #[serde(default)]
    defaults: Map<String, Value>,
    cases: Vec<Map<String, Value>>,
}

/// A text, or all of a list.
fn texts(value: &Value) -> Vec<String> {
    let one = value.as_str().into_iter();
    let all = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    one.chain(all).map(str::to_owned).collect()
}

fn principal(case: &Value) -> Principal {
    let text = |value: &Value| value.as_str().unwrap_or("somebody").to_owned();
    let who = &case["principal"];
    let is_service = who["type"] == "service";
    let kind = if is_service { PrincipalKind::Service } else { PrincipalKind::User };
    let [roles, scopes, groups] = ["roles", "scopes", "groups"].map(|name| texts(&who[name]));
    let claims = who["claims"].as_object().into_iter().flatten();
    let claims = claims.map(|(name, values)| (name.clone(), texts(values).into_iter().collect()));
    let agent = &case["agent"];
    let agent =
        agent.is_object().then(|| Agent { id: text(&agent["id"]), kind: text(&agent["kind"]) });
    let nobody = Identity::new(kind, text(&who["id"]), "org_simulated".to_owned());
    let claims = claims.collect();
    Principal::new(Identity { roles, scopes, groups, claims, agent, ..nobody })
}

fn decide(engine: &Engine, set: &PolicySet, tool: &Capability, case: &Value) -> Decision {
    let found = ["dlp", "dlp_output"].map(|name| engine.supposed(&texts(&case[name]["findings"])));
    let names = found.each_ref().map(Findings::detectors);
    let facts = |at: usize| DlpFacts {
        detectors: &names[at],
        count: found[at].count().try_into().unwrap(),
        max_severity: found[at].max_severity(),
        media: 0,
    };
    let input = case.get("input").cloned().unwrap_or_else(|| json!({}));
    let context = &case["context"];
    let time = context["time"].as_str().map(|time| Timestamp::parse_rfc3339(time).unwrap());
    let answered = case["phase"] == "response";
    set.decide(&Question {
        phase: if answered { Phase::Response } else { Phase::Request },
        dlp: facts(0),
        output: case.get("output").map(node),
        dlp_output: answered.then(|| facts(1)),
        time: time.unwrap_or_default(),
        source_ip: context["ip"].as_str().map(|ip| ip.parse().unwrap()),
        bytes: json!({ "input": input }).to_string().len().try_into().unwrap(),
        mfa: context["mfa"] == true,
        ..question(&principal(case), tool, &input)
    })
}

fn tools_of(folder: &Path) -> Vec<Arc<Capability>> {
    let described = fs::read(folder.join("tools.json")).unwrap();
    let described: Vec<Value> = serde_json::from_slice(&described).unwrap();
    let tool = |item: Value| {
        let id: CapabilityId = item["id"].as_str().unwrap().parse().unwrap();
        let name = CapabilityName::of_kind(id.kind(), id.name()).unwrap();
        let definition = Definition {
            kind: id.kind(),
            annotations: item["annotations"].clone(),
            output_schema: item.get("output_schema").cloned(),
            ..Definition::new(name, item["input_schema"].clone())
        };
        let provider = id.provider().parse().unwrap();
        Arc::new(Capability::new(&provider, definition, Timestamp::default()).unwrap())
    };
    described.into_iter().map(tool).collect()
}

/// The files directly in a folder.
fn files_in(folder: &Path) -> Vec<PolicyFile> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        PolicyFile { path: name, text: fs::read_to_string(path).unwrap() }
    };
    paths.filter(|path| path.is_file()).map(file).collect()
}

#[test]
fn policies_decide_as_the_cases_beside_them_say() {
    let engine = Engine::new(&Settings::default()).unwrap();
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/policy/cases");
    let mut met = 0;
    for folder in fs::read_dir(folders).unwrap().map(|entry| entry.unwrap().path()) {
        let tools = tools_of(&folder);
        let mut policies = files_in(&folder);
        policies.retain(|file| file.path != "tools.json");
        let set = load_files(policies, &tools).unwrap_or_else(|errors| panic!("{errors:#?}"));
        let warned = set.records().iter().flat_map(|record| &record.validation.warnings);
        assert_eq!(warned.filter(|it| it.contains("it is a group")).count(), 0, "{folder:?}");
        for file in files_in(&folder.join("tests")) {
            let CaseFile { defaults, cases } = serde_saphyr::from_str(&file.text).unwrap();
            for own in cases {
                let case = Value::Object(defaults.clone().into_iter().chain(own).collect());
                let tool = tools.iter().find(|tool| case["tool"] == tool.id.as_str()).unwrap();
                let [decision, policy] =
                    ["decision", "policy"].map(|name| case["expect"][name].as_str().unwrap());

                let decided = decide(&engine, &set, tool, &case);

                assert_eq!(said(&decided), format!("{decision} {policy}"), "{}: {case}", file.path);
                met += 1;
            }
        }
    }
    assert_eq!(met, 152, "a case is lost, or the number here is old");
}
