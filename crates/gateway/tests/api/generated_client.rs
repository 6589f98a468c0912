//! Clients that generators make of `docs/openapi.json` have all of it, and their calls are governed.

use std::{os::unix::fs::symlink, process::Command};

use crate::prelude::*;

const TYPESCRIPT: [&str; 4] = ["call.ts", "globals.d.ts", "package.json", "tsconfig.json"];

/// A gateway with the tool `up:say`, and a token for it.
struct Scene {
    gateway: Gateway,
    token: String,
    _upstream: Hostile,
}

async fn scene() -> Scene {
    let result = json!({"content": [{"type": "text", "text": "hello"}]});
    let upstream = Hostile::start(vec![tool("say", Script::Result(result.to_string()))]).await;
    let gateway = gateway().http("up", &upstream.url(), "").start();
    let org = gateway.org("acme", &ENOUGH);
    let token = gateway.service(&org, ALL_SCOPES).token;
    Scene { gateway, token, _upstream: upstream }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with these files of the clients.
fn folder_of(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in names {
        let from = repository().join("tests/servers/client").join(name);
        fs::copy(from, folder.path().join(name)).expect("a copy");
    }
    folder
}

/// Runs a program in `folder` to its end, which has to be a good one.
fn run(folder: &Path, program: impl AsRef<Path>, arguments: &[&str]) -> String {
    let mut command = Command::new(program.as_ref());
    let ended = command.current_dir(folder).args(arguments).output().expect("a program");
    let out = String::from_utf8_lossy(&ended.stdout).into_owned();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{arguments:?}: {out}{err}");
    out
}

/// The answers that a client tells of.
fn call(scene: &Scene, folder: &Path, program: impl AsRef<Path>, client: &str) -> Value {
    let arguments = [client, scene.gateway.url(), &scene.token, "up:say"];
    let told = tokio::task::block_in_place(|| run(folder, program, &arguments));
    serde_json::from_str(&told).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_generated_for_typescript_compiles_and_makes_a_governed_call() {
    let folder = folder_of(&TYPESCRIPT);
    symlink(servers().join("node_modules"), folder.path().join("node_modules")).expect("a link");
    let scene = scene().await;

    let document = repository().join("docs/openapi.json");
    let document = document.to_str().expect("a path");
    let generator = ["node_modules/openapi-typescript/bin/cli.js", document, "-o", "schema.d.ts"];
    run(folder.path(), "node", &generator);
    run(folder.path(), "node", &["node_modules/typescript/bin/tsc"]);
    let told = call(&scene, folder.path(), "node", "out/call.js");

    let expected = json!({
        "access": "allow",
        "decision": "allow",
        "outcome": "success",
        "result": told["result"],
        "type": "mcp.invocation",
        "executed_by_tool": "yes",
        "code": "not_found",
        "executed": "no",
        "effects": true,
        "statuses": ["connected"],
    });
    assert_eq!(told, expected);
    assert!(told["result"].to_string().contains("hello"), "{told}");
}

/// The names of the operations in the document, sorted.
fn operations(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).expect("the document");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let paths = document["paths"].as_object().expect("paths").values();
    let methods = paths.flat_map(|path| path.as_object().expect("methods").values());
    let mut names: Vec<_> =
        methods.map(|it| it["operationId"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_generated_for_python_lacks_nothing_and_makes_a_governed_call() {
    let folder = folder_of(&["call.py"]);
    fs::write(folder.path().join("settings.yml"), "post_hooks: []\n").expect("settings");
    let document = repository().join("docs/openapi.json");
    let scene = scene().await;

    // A schema or an answer that it cannot read, and would leave out, is a warning.
    let path = document.to_str().expect("a path");
    let generate = ["generate", "--path", path, "--output-path", "generated", "--meta", "none"];
    let strictly = ["--config", "settings.yml", "--fail-on-warning"];
    let generator = servers().join("venv/bin/openapi-python-client");
    run(folder.path(), generator, &[&generate[..], &strictly].concat());
    let told = call(&scene, folder.path(), servers().join("venv/bin/python"), "call.py");

    let expected = json!({
        "tools": ["up:say"],
        "decision": "allow",
        "result": told["result"],
        "type": "mcp.invocation",
        "format": "csv",
        "days": 30,
        "code": "not_found",
        "operations": operations(&document),
    });
    assert_eq!(told, expected);
    assert!(told["result"].to_string().contains("hello"), "{told}");
}
