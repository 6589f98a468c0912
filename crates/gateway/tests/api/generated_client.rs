//! A client that a generator makes of `docs/openapi.json` compiles, and its calls are governed.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use portcullis_testkit::Script;
use serde_json::{Value, json};

use crate::{
    gateway,
    given::{ALL_SCOPES, ENOUGH},
    real_servers::servers,
    scene::tool,
};

const CLIENT: [&str; 4] = ["call.ts", "globals.d.ts", "package.json", "tsconfig.json"];

/// Runs a program of Node in `folder`, to its end.
fn node(folder: &Path, arguments: &[&str]) -> String {
    let ended = Command::new("node").current_dir(folder).args(arguments).output().expect("node");
    let told = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(
        ended.status.success(),
        "{arguments:?}: {told}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_generated_from_the_openapi_document_compiles_and_makes_a_governed_call() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a folder");
    let modules = servers().join("node_modules");
    symlink(&modules, folder.path().join("node_modules")).expect("a link");
    for name in CLIENT {
        let from = repository.join("tests/servers/client").join(name);
        fs::copy(from, folder.path().join(name)).expect("a copy");
    }
    let result = json!({"content": [{"type": "text", "text": "hello"}]});
    let upstream =
        portcullis_testkit::Hostile::start(vec![tool("say", Script::Result(result.to_string()))])
            .await;
    let gateway = gateway().http("up", &upstream.url(), "").start();
    let org = gateway.org("acme", &ENOUGH);
    let token = gateway.service(&org, ALL_SCOPES).token;

    let document = repository.join("docs/openapi.json");
    let document = document.to_str().expect("a path");
    let generator = ["node_modules/openapi-typescript/bin/cli.js", document, "-o", "schema.d.ts"];
    node(folder.path(), &generator);
    node(folder.path(), &["node_modules/typescript/bin/tsc"]);
    let url = gateway.url();
    let told = tokio::task::block_in_place(|| {
        node(folder.path(), &["out/call.js", url, &token, "up:say"])
    });

    let told: Value = serde_json::from_str(&told).expect("JSON");
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
