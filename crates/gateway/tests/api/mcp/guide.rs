//! `docs/mcp.md`: its programs with the official SDKs, run as they stand there.

mod agent;

use std::os::unix::fs::symlink;

use tokio::process::Command;

use super::clients::node;
use crate::{policy_guide::blocks, prelude::*};

/// The longest that a program may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

const PAGE: &str = include_str!("../../../../../docs/mcp.md");
const RUST: &str = include_str!("guide/agent.rs");

/// The gateway that the programs of the page speak to.
struct GuideGateway {
    gateway: Gateway,
    who: Principal,
    upstream: Hostile,
}

impl GuideGateway {
    async fn start() -> Self {
        let upstream = Hostile::start(vec![tool("list_repos", Script::Echo)]).await;
        let (gateway, who) =
            serve_as("mcps:read mcps:invoke", gateway().http("github", &upstream.url(), ""));
        Self { gateway, who, upstream }
    }

    /// Output of a program.
    async fn printed(&self, mut command: Command) -> Value {
        command
            .env("PORTCULLIS_URL", self.gateway.url())
            .env("PORTCULLIS_TOKEN", &self.who.token)
            .kill_on_drop(true);
        let output = timeout(PATIENCE, command.output()).await.expect("an end in time");
        let output = output.expect("a program that starts");
        let failed = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {failed}"))
    }

    /// Fails unless the tool was called once, with what stands on the page.
    async fn check(&self, printed: &Value) {
        assert_eq!(printed, &json!({"limit": 10}));
        assert_eq!(self.upstream.count("list_repos"), 1);
        let events = list(&self.gateway, &self.who, "target=github:list_repos").await;
        assert_eq!(events.len(), 1, "{events:#?}");
    }
}

/// The program that the page saves under this name.
fn program(file: &str) -> String {
    let of = |name: &String| name == file;
    let block = blocks(PAGE).into_iter().find(|block| block.words.get("file").is_some_and(of));
    block.unwrap_or_else(|| panic!("no {file} on the page")).text
}

fn saved(file: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(file), program(file)).expect("a file");
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_program_of_the_page_calls_a_tool() {
    let followed = GuideGateway::start().await;
    let folder = saved("agent.ts");
    symlink(servers().join("node_modules"), folder.path().join("node_modules")).expect("packages");
    let mut command = Command::new(node());
    command.arg("agent.ts").current_dir(folder.path());

    let printed = followed.printed(command).await;

    followed.check(&printed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_program_of_the_page_calls_a_tool() {
    let followed = GuideGateway::start().await;
    let folder = saved("agent.py");
    let mut command = Command::new(servers().join("venv/bin/python"));
    command.arg("agent.py").current_dir(folder.path());

    let printed = followed.printed(command).await;

    followed.check(&printed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_program_of_the_page_calls_a_tool() {
    assert!(RUST.contains(&program("agent.rs")), "the page shows what is compiled here");
    let followed = GuideGateway::start().await;

    let printed = agent::answer(followed.gateway.url(), &followed.who.token).await;

    followed.check(&printed).await;
}

#[test]
fn each_program_of_the_page_is_run() {
    for block in blocks(PAGE) {
        let run = block.words.get("file").is_some_and(|file| file.starts_with("agent."));
        assert!(block.language.is_empty() || run, "line {}: nobody runs it", block.line);
    }
}
