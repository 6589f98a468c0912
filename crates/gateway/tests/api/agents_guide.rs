//! `docs/agents.md`: every command, answer and program of the page, and its clients in front of what
//! stands in the way of a call.

use std::process::Output;

use futures_util::future::select;
use portcullis_testkit::tool;
use tokio::process::Command;

use crate::{
    mcp::clients::node,
    policy_guide::{Block, blocks, contains},
    prelude::*,
};

const PAGE: &str = include_str!("../../../../docs/agents.md");
const STARTER: &str = include_str!("../../assets/starter.cedar");
const CLIENTS: [&str; 2] = ["python3 portcullis.py", "node portcullis.ts"];
const SCOPES: &str = "mcps:read mcps:invoke audit:read";

/// An agent's machine: a folder with the programs of the page, and the variables that they read.
struct Agent {
    folder: TempDir,
    path: String,
    url: String,
    token: String,
}

impl Agent {
    fn of(gateway: &Gateway, who: &Principal) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for block in blocks(PAGE) {
            if let Some(file) = block.words.get("file") {
                fs::write(folder.path().join(file), block.text).unwrap();
            }
        }
        let node = node();
        let node = node.parent().unwrap_or(Path::new("")).display();
        let path = format!("{node}:{}", std::env::var("PATH").unwrap());
        Self { folder, path, url: gateway.url().to_owned(), token: who.token.clone() }
    }

    async fn output(&self, command: &str, attempts: u32) -> Output {
        let typed = Command::new("bash")
            .args(["-c", command])
            .current_dir(self.folder.path())
            .env("PATH", &self.path)
            .env("PORTCULLIS_URL", &self.url)
            .env("PORTCULLIS_TOKEN", &self.token)
            .env("ATTEMPTS", attempts.to_string())
            .kill_on_drop(true)
            .output();
        typed.await.unwrap()
    }

    /// Everything a command prints; it has to succeed.
    async fn run(&self, command: &str, attempts: u32) -> String {
        let output = self.output(command, attempts).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {told}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs the commands of a block; returns the output of the last one.
    async fn console(&self, block: &Block) -> String {
        let mut printed = String::new();
        for part in block.text.split("$ ").skip(1) {
            let mut lines = part.split_inclusive('\n');
            let mut command = lines.next().unwrap_or_default().to_owned();
            while command.ends_with("\\\n") {
                command.extend(lines.next());
            }
            printed = self.run(&command, 5).await;
            for line in lines {
                assert!(printed.contains(line.trim_end()), "line {}: {printed}", block.line);
            }
        }
        printed
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_follows_the_page_sees_what_it_says() {
    let (gateway, who) = serve_as(SCOPES, gateway().sample().policies(STARTER));
    let agent = Agent::of(&gateway, &who);
    let mut printed = String::new();

    for block in blocks(PAGE) {
        let file = block.words.contains_key("file");
        match block.language.as_str() {
            "console" => printed = agent.console(&block).await,
            "json" => {
                let place = format!("line {}", block.line);
                let read = |text| serde_json::from_str::<Value>(text).expect(&place);
                contains(&read(&printed), &read(&block.text), &place);
            }
            "sh" => {}
            language => assert!(file, "line {}: nobody runs {language}", block.line),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_known_end_is_not_sent_again() {
    let binary = env!("CARGO_BIN_EXE_portcullis");
    let (gateway, who) =
        serve_as(SCOPES, gateway().stdio("slow", &[binary, "sample-mcp"], "timeout_seconds = 1"));
    let agent = Agent::of(&gateway, &who);

    for client in CLIENTS {
        let call = format!(r#"{client} slow:slow_echo '{{"seconds": 30, "text": "late"}}'"#);
        assert_eq!(agent.run(&call, 5).await.trim_end(), "504 upstream_timeout unknown");
    }

    let events = gateway.get(&who, "/v1/audit/events?type=mcp.invocation").await;
    assert_eq!(items(&events).len(), CLIENTS.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_reached_no_tool_is_sent_again_and_given_up_in_the_end() {
    let upstream = McpServer::start(vec![tool("echo")]).await;
    let (gateway, who) = serve_as(SCOPES, gateway().http("up", &upstream.url(), ""));
    let agent = Agent::of(&gateway, &who);
    assert_eq!(gateway.invoke(&who, "up:echo", json!({})).await.status, 200);
    drop(upstream);

    for client in CLIENTS {
        let told = agent.run(&format!("{client} up:echo '{{}}'"), 2).await;
        assert_eq!(told.trim_end(), "502 upstream_error no", "{client}");
    }

    let events = gateway.get(&who, "/v1/audit/events?outcome=upstream_error").await;
    assert_eq!(items(&events).len(), 2 * CLIENTS.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_limit_is_told_when_nobody_waits_for_it() {
    let gateway = gateway().sample().start();
    let org = org_with_time_left(&gateway, &plan("1000", "1")).await;
    let who = gateway.service(&org, SCOPES);
    let agent = Agent::of(&gateway, &who);
    assert_eq!(gateway.invoke(&who, "sample:list_items", json!({})).await.status, 200);

    for client in CLIENTS {
        let told = agent.run(&format!("{client} sample:list_items '{{}}'"), 1).await;
        assert_eq!(told.trim_end(), "429 rate_limited no", "{client}");
    }
}

/// Sends two requests with the same key at once. Returns the one that is under way; the other was told so.
async fn begin<'a>(
    gateway: &'a Gateway,
    who: &'a Principal,
    key: &'a str,
    input: &'a Value,
) -> impl Future<Output = Answer> + use<'a> {
    let send = || Box::pin(gateway.invoke_keyed(who, "sample:slow_echo", key, input));
    let (told, running) = select(send(), send()).await.factor_first();
    assert_eq!(told.code(), "idempotency_in_progress", "{}", told.text);
    running
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_under_way_is_waited_for_and_made_once() {
    let (gateway, who) = serve_as(SCOPES, gateway().sample());
    let agent = Agent::of(&gateway, &who);

    for client in CLIENTS {
        let input = json!({ "seconds": 6, "text": client });
        let key = client.replace(' ', "-");
        let running = begin(&gateway, &who, &key, &input).await;
        let told = agent.run(&format!("{client} sample:slow_echo '{input}' {key}"), 20).await;
        assert!(told.starts_with("success") && told.contains(client), "{told}");
        assert_eq!(running.await.status, 200);
    }

    let made = gateway.get(&who, "/v1/audit/events?outcome=success&type=mcp.invocation").await;
    assert_eq!(items(&made).len(), CLIENTS.len());
    let replayed = gateway.get(&who, "/v1/audit/events?type=mcp.replayed").await;
    assert_eq!(items(&replayed).len(), CLIENTS.len());
}
