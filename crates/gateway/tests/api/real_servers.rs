//! Real MCP servers of other people, driven through the API.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command},
};

use crate::{
    mcp::clients::{node, script},
    prelude::*,
};

/// The entry point of an npm server.
pub(crate) fn npm(server: &str) -> String {
    let path = format!("node_modules/@modelcontextprotocol/{server}/dist/index.js");
    servers().join(path).to_string_lossy().into_owned()
}

pub(crate) fn python(program: &str) -> String {
    servers().join("venv/bin").join(program).to_string_lossy().into_owned()
}

/// A gateway that waits long enough for servers that start slowly, and a caller.
pub(crate) fn start(builder: Builder) -> (Gateway, Principal) {
    serve_as("mcps:read mcps:invoke", builder.config("[server]\nprovider_patience_seconds = 60"))
}

/// A server that listens on a port; it ends when it is dropped.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of an npm package that can be told a port but not tell one.
#[derive(Clone, Copy)]
struct OnAPort {
    script: &'static str,
    argument: &'static str,
    port_variable: &'static str,
}

const EVERYTHING: OnAPort = OnAPort {
    script: "server-everything/dist/index.js",
    argument: "streamableHttp",
    port_variable: "PORT",
};

/// Example of a server with sessions in the TypeScript SDK.
const EXAMPLE: OnAPort = OnAPort {
    script: "sdk/dist/esm/examples/server/simpleStreamableHttp.js",
    argument: "",
    port_variable: "MCP_PORT",
};

impl OnAPort {
    fn start_anywhere(self) -> (u16, Listening) {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        (port, self.start(port))
    }

    /// Returns once it listens.
    fn start(self, port: u16) -> Listening {
        let script = servers().join("node_modules/@modelcontextprotocol").join(self.script);
        let mut server = Command::new("sh")
            .args(["-c", "exec node \"$@\" 2>&1", "sh"])
            .arg(script)
            .arg(self.argument)
            .env(self.port_variable, port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node");
        let log = BufReader::new(server.stdout.take().expect("its log"));
        let server = Listening(server);
        let mut lines = log.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("listening on port")), "it does not listen");
        let _drained = std::thread::spawn(move || lines.count());
        server
    }
}

fn text(answer: &Answer) -> &str {
    answer.at("/result/content/0/text").as_str().expect("a text block")
}

/// Calls of `server-everything`, over any transport.
async fn everything(gateway: &Gateway, who: &Principal) {
    let echo = gateway.invoke(who, "everything:echo", json!({"message": "hällo"})).await;
    let input = json!({"location": "Chicago"});
    let structured = gateway.invoke(who, "everything:get-structured-content", input).await;
    let wrong = gateway.invoke(who, "everything:get-structured-content", json!({})).await;
    let image = gateway.invoke(who, "everything:get-tiny-image", json!({})).await;
    let input = json!({"resourceType": "Text", "resourceId": -1});
    let failing = gateway.invoke(who, "everything:get-resource-reference", input).await;

    check(gateway, who, &echo, SUCCESS).await;
    assert_eq!(text(&echo), "Echo: hällo");
    check(gateway, who, &structured, SUCCESS).await;
    assert_eq!(structured.at("/result/temperature"), 36);
    assert_eq!(wrong.code(), "invalid_input", "{}", wrong.text);
    check(gateway, who, &image, SUCCESS).await;
    assert_eq!(image.at("/result/content/1/type"), "image", "{}", image.text);
    check(gateway, who, &failing, TOOL_ERROR).await;
    assert_eq!(failing.at("/result/isError"), true);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_over_stdio() {
    let server = npm("server-everything");
    let command = ["node", &server, "stdio"];
    let builder = gateway().stdio("everything", &command, "");
    let (gateway, who) = start(builder.stdio("impatient", &command, "timeout_seconds = 2"));

    everything(&gateway, &who).await;
    let long = |seconds: u32| json!({"duration": seconds, "steps": 2});
    let tool = "trigger-long-running-operation";
    let done = gateway.invoke(&who, &format!("everything:{tool}"), long(1)).await;
    let given_up = gateway.invoke(&who, &format!("impatient:{tool}"), long(30)).await;
    let after = gateway.invoke(&who, "impatient:echo", json!({"message": "still here"})).await;

    check(&gateway, &who, &done, SUCCESS).await;
    check(&gateway, &who, &given_up, TIMED_OUT).await;
    assert_eq!(given_up.at("/error/details/timeout_ms"), 2000);
    check(&gateway, &who, &after, SUCCESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_over_streamable_http() {
    let (port, _server) = EVERYTHING.start_anywhere();
    let url = format!("http://127.0.0.1:{port}/mcp");

    let (gateway, who) = start(gateway().http("everything", &url, ""));

    everything(&gateway, &who).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_with_sessions_are_well_again_after_one_call_when_they_were_restarted() {
    for (program, tool, input) in [
        (EXAMPLE, "greet", json!({"name": "Ana"})),
        (EVERYTHING, "echo", json!({"message": "Ana"})),
    ] {
        let (port, server) = program.start_anywhere();
        let url = format!("http://127.0.0.1:{port}/mcp");
        let (gateway, who) = start(gateway().http("real", &url, ""));
        let tool = format!("real:{tool}");
        let call = || gateway.invoke(&who, &tool, input.clone());
        let before = call().await;
        drop(server);
        let _server = program.start(port);

        let _first = call().await;
        let second = call().await;

        check(&gateway, &who, &before, SUCCESS).await;
        check(&gateway, &who, &second, SUCCESS).await;
        assert!(second.text.contains("Ana"), "{}", second.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_stay_within_their_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("its path");
    fs::write(root.join("note.txt"), "hello from a file").expect("a file");
    let server = npm("server-filesystem");
    let root = root.to_string_lossy().into_owned();
    let (gateway, who) = start(gateway().stdio("files", &["node", &server, &root], ""));
    let ask = |tool, path: &str| gateway.invoke(&who, tool, json!({ "path": path }));

    let list = ask("files:list_directory", &root).await;
    let inside = ask("files:read_text_file", &format!("{root}/note.txt")).await;
    let outside = ask("files:read_text_file", "/etc/passwd").await;
    let escaping = ask("files:read_text_file", &format!("{root}/../../etc/passwd")).await;

    check(&gateway, &who, &list, SUCCESS).await;
    assert!(list.text.contains("note.txt"), "{}", list.text);
    check(&gateway, &who, &inside, SUCCESS).await;
    assert!(inside.text.contains("hello from a file"), "{}", inside.text);
    for refused in [outside, escaping] {
        check(&gateway, &who, &refused, TOOL_ERROR).await;
        assert!(!refused.text.contains("root:"), "{}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_server_over_stdio() {
    let server = python("mcp-server-time");
    let (gateway, who) = start(gateway().stdio("time", &[&server, "--local-timezone=UTC"], ""));

    let input = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let converted = gateway.invoke(&who, "time:convert_time", input).await;
    let nowhere =
        gateway.invoke(&who, "time:get_current_time", json!({"timezone": "Mars/Olympus"})).await;

    check(&gateway, &who, &converted, SUCCESS).await;
    assert!(converted.text.contains("21:00"), "{}", converted.text);
    check(&gateway, &who, &nowhere, TOOL_ERROR).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fastmcp_server_over_streamable_http() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/servers/weather.py");
    let mut server = Command::new(python("python"))
        .arg(script)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python");
    let mut port = String::new();
    let mut told = BufReader::new(server.stdout.take().expect("its output"));
    let _server = Listening(server);
    told.read_line(&mut port).expect("a port");
    let url = format!("http://127.0.0.1:{}/mcp", port.trim());

    let policies = r#"
        @id("all") permit (principal, action, resource);
        @id("mask") @phase("response") @redact("output: email")
        forbid (principal, action in Mcp::Action::"*:*", resource)
        when { context has dlp_output && context.dlp_output.findings.contains("email") };
    "#;
    let (gateway, who) = start(gateway().policies(policies).http("weather", &url, ""));

    let ask = |tool, input| gateway.invoke(&who, tool, input);
    let forecast = ask("weather:forecast", json!({"city": "Oslo", "days": 2})).await;
    let contact = ask("weather:contact", json!({"name": "ada"})).await;
    let storm = ask("weather:storm", json!({})).await;
    let headers = ask("weather:headers", json!({})).await;
    let wrong = ask("weather:forecast", json!({"city": 7})).await;

    check(&gateway, &who, &forecast, SUCCESS).await;
    assert_eq!(forecast.at("/result/days/1/sky"), "clear", "{}", forecast.text);
    check(&gateway, &who, &contact, SUCCESS).await;
    assert!(!contact.text.contains("ada@"), "{}", contact.text);
    assert!(contact.text.contains("[REDACTED:email]"), "{}", contact.text);
    check(&gateway, &who, &storm, TOOL_ERROR).await;
    check(&gateway, &who, &headers, SUCCESS).await;
    let names = headers.at("/result").to_string();
    assert!(names.contains("mcp-protocol-version"), "{names}");
    assert!(!names.contains("authorization"), "{names}");
    assert_eq!(wrong.code(), "invalid_input");
    assert_ne!(wrong.at("/error/details/violations"), &Value::Null);
}

/// The offer of a server beside tools with its answers, as the official client is told.
fn offer(era: &str, wanted: &Value, server: &[&str], token: &str) -> Value {
    let mut client = Command::new(node());
    client.args([&script("offer.mjs"), era, &wanted.to_string()]);
    told(client, server, token)
}

/// JSON that a client tells of a server.
pub(crate) fn told(mut client: Command, server: &[&str], token: &str) -> Value {
    let client = client.args(server).env("PORTCULLIS_TEST_SERVERS", servers()).env("TOKEN", token);
    let told = client.output().expect("a client that starts");
    let why = String::from_utf8_lossy(&told.stderr);
    serde_json::from_slice(&told.stdout).unwrap_or_else(|_| panic!("{server:?}: {why}"))
}

/// Prompts, resources, templates, completions and pages of real servers reach clients of both eras as the servers give them.
#[tokio::test(flavor = "multi_thread")]
async fn what_real_servers_offer_beside_tools_is_the_same_through_the_gateway() {
    let everything = npm("server-everything");
    let library = (python("python"), script("library.py"));
    let app = npm("server-basic-vanillajs");
    let names = |argument: &str, value: &str, others: Value| {
        json!({"ref": {"type": "ref/prompt", "name": "completable-prompt"},
            "argument": {"name": argument, "value": value}, "context": {"arguments": others}})
    };
    for (slug, command, wanted) in [
        (
            "everything",
            vec!["node", &everything, "stdio"],
            json!({
                "prompts": {
                    "args-prompt": {"city": "Oslo"},
                    "completable-prompt": {"department": "Engineering", "name": "Alice"},
                    "resource-prompt": {"resourceType": "Text", "resourceId": "1"},
                },
                "uris": ["demo://resource/dynamic/text/3"],
                "completions": [
                    names("department", "E", json!({})),
                    names("name", "A", json!({"department": "Engineering"})),
                    {"ref": {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"},
                        "argument": {"name": "resourceId", "value": "1"}},
                ],
            }),
        ),
        (
            "library",
            vec![&*library.0, &*library.1],
            json!({"prompts": {"review": {"title": "Emma"}}, "uris": ["library://books/Emma/one"]}),
        ),
        ("app", vec!["node", &app, "--stdio"], json!({})),
    ] {
        let mut direct = offer("legacy", &wanted, &command, "");
        assert_ne!(direct["read"], json!({}), "{direct}");
        // Where skills pass, their files are among these alone.
        let is_of_skill = |uri: &str| uri.starts_with("skill://");
        let listed = direct["resources"].as_array_mut().expect("a list");
        listed.retain(|it| !it["uri"].as_str().is_some_and(is_of_skill));
        direct["read"].as_object_mut().expect("what was read").retain(|uri, _| !is_of_skill(uri));
        let builder = gateway().policies(r#"@id("all") permit (principal, action, resource);"#);
        let exposed = "expose = [\"apps\", \"prompts\", \"resources\", \"skills\", \"tools\"]";
        let (gateway, who) = start(builder.stdio(slug, &command, exposed));
        for era in ["legacy", "modern"] {
            let url = format!("{}/mcp/{slug}", gateway.url());
            let through = offer(era, &wanted, &[&url], &who.token);
            for (part, given) in direct.as_object().expect("an offer") {
                assert_eq!(&through[part], given, "{slug} {era} {part}");
            }
        }
    }
}

/// The skills of a server with their files, as a client is told that holds these against their digests.
fn skills(server: &[&str], token: &str) -> Value {
    let mut client = Command::new(python("python"));
    client.arg(script("skills.py"));
    told(client, server, token)
}

/// A skill of a real server reaches a client as the server gives it, in bytes that its digests are of.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_skill_is_the_same_through_the_gateway() {
    let library = (python("python"), script("library.py"));
    let command = [&*library.0, &*library.1];
    let direct = skills(&command, "");
    let builder = gateway().policies(r#"@id("all") permit (principal, action, resource);"#);
    let (gateway, who) = start(builder.stdio("library", &command, "expose = [\"skills\"]"));

    let through = skills(&[&format!("{}/mcp/library", gateway.url())], &who.token);
    let renamed = skills(&[&format!("{}/mcp", gateway.url())], &who.token);

    assert_eq!(through, direct);
    let known = "skill://lending/SKILL.md";
    assert_eq!(direct[known]["files"]["terms.md"], "Four weeks, and once more.\n");
    let files = &renamed[format!("library+{known}")]["files"];
    assert_eq!(files, &direct[known]["files"]);
}
