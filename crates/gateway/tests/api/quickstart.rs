//! `portcullis quickstart`: what a person meets first.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::prelude::*;

/// A quickstart that serves; it is killed when it is dropped.
struct Quickstart {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    said: String,
}

impl Drop for Quickstart {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &Path, port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["quickstart", "--port", &port.to_string(), "--data-dir"]).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Quickstart {
    /// Runs it on a free port until it has shown everything.
    fn run(folder: &Path) -> Self {
        let mut child = command(folder, 0).spawn().expect("a quickstart");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut quickstart = Self { child, output, said: String::new() };
        while !quickstart.said.contains("until Ctrl-C") {
            let read = quickstart.output.read_line(&mut quickstart.said).expect("a line");
            if read == 0 {
                let errors = quickstart.errors();
                panic!("it ended: {}{errors}", quickstart.said);
            }
        }
        quickstart
    }

    fn errors(&mut self) -> String {
        let mut errors = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut errors).expect("its log");
        }
        errors
    }

    /// The answers it printed, with their statuses.
    fn answers(&self) -> Vec<(String, Value)> {
        let mut pieces = self.said.split("\n  HTTP ");
        pieces.next();
        pieces
            .map(|piece| {
                let (status, rest) = piece.split_once('\n').expect("a status line");
                let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
                (status.to_owned(), values.next().expect("an answer").expect("JSON"))
            })
            .collect()
    }

    /// The commands it printed, each on one line.
    fn commands(&self) -> Vec<String> {
        let joined = self.said.replace("\\\n", " ");
        joined
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("curl "))
            .map(str::to_owned)
            .collect()
    }

    fn token(&self) -> &str {
        let line = self.said.lines().find_map(|line| line.trim().strip_prefix("export TOKEN="));
        line.expect("a token")
    }

    /// Ctrl-C; gives the exit code.
    fn interrupt(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("a signal");
        self.child.wait().expect("an end").code()
    }
}

fn curl(command: &str, token: &str) -> Value {
    let output = Command::new("bash").args(["-c", command]).env("TOKEN", token).output();
    let output = output.expect("curl");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn it_shows_an_allowed_a_denied_and_a_redacted_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");

    let quickstart = Quickstart::run(&data);

    let answers = quickstart.answers();
    let [(allowed, first), (denied, second), (redacted, third)] = answers.as_slice() else {
        panic!("three calls: {}", quickstart.said)
    };
    assert!(allowed.starts_with("200"), "{allowed}");
    assert_eq!(first["governance"]["decision"], "allow");
    assert_eq!(first["result"]["items"].as_array().map(Vec::len), Some(2), "{first}");
    assert!(denied.starts_with("403"), "{denied}");
    has!(second, "/error/code": "policy_denied", "/governance/policy": "no-bulk-listing");
    assert!(redacted.starts_with("200"), "{redacted}");
    has!(third, "/governance/dlp_result": "redacted", "/result/email": "[REDACTED:email]",
        "/result/card_number": "[REDACTED:credit_card]");
    assert_eq!(quickstart.interrupt(), Some(0));
}

#[test]
fn its_commands_work_when_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let quickstart = Quickstart::run(folder.path());
    let commands = quickstart.commands();
    assert_eq!(commands.len(), 4, "{commands:#?}");

    let answers: Vec<Value> =
        commands.iter().map(|command| curl(command, quickstart.token())).collect();

    for (copied, (_, shown)) in answers.iter().zip(quickstart.answers()) {
        has!(copied, "/result": shown["result"], "/error": shown["error"],
            "/governance/policy": shown["governance"]["policy"]);
    }
    let explain = quickstart.said.lines().map(str::trim).find(|it| it.contains("policy explain"));
    let binary = env!("CARGO_BIN_EXE_portcullis");
    let explain = explain.expect("a command").replacen("portcullis", binary, 1);
    let explained = Command::new("bash").args(["-c", &explain]).output().expect("an explanation");
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(explained.contains("false") || explained.contains("true"), "{explain}: {explained}");
    assert!(explained.contains("no-bulk-listing"), "{explain}: {explained}");
    // The last one lists the events of the three before.
    let events = answers[3]["data"]["items"].as_array().expect("events");
    assert_eq!(events.len(), 3);
    for (event, answer) in events.iter().rev().zip(&answers) {
        assert_eq!(event["id"], answer["governance"]["audit_event_id"]);
    }
    assert_eq!(quickstart.interrupt(), Some(0));
}

/// Path, body, a place in the answer, and what stands there.
const KINDS: &[[&str; 4]] = &[
    ["/v1/mcps?limit=50", "", "/data/items/2/id", "sample:get_customer"],
    ["/v1/prompts", "", "/data/items/0/id", "sample:customer_letter"],
    [
        "/v1/prompts/sample:customer_letter/get",
        r#"{"input":{"customer":"cus_1001"}}"#,
        "/result/messages/0/role",
        "user",
    ],
    ["/v1/resources", "", "/data/items/0/uri_template", "sample://customers/{id}"],
    ["/v1/resources", "", "/data/items/1/uri", "sample://guide"],
    [
        "/v1/resources/read", r#"{"uri":"sample://guide"}"#, "/result/contents/0/mimeType",
        "text/markdown",
    ],
    [
        "/v1/resources/read",
        r#"{"uri":"sample://customers/cus_1001"}"#,
        "/governance/dlp_result",
        "redacted",
    ],
    ["/v1/skills", "", "/data/items/0/frontmatter/name", "refund-policy"],
    [
        "/v1/resources/read",
        r#"{"uri":"skill://refund-policy/SKILL.md"}"#,
        "/governance/policy",
        "read-only-tools-for-services",
    ],
];

#[tokio::test(flavor = "multi_thread")]
async fn it_offers_one_of_each_kind_that_can_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let quickstart = Quickstart::run(folder.path());
    let url = quickstart.said.split_whitespace().find(|it| it.starts_with("http://"));
    let url = url.expect("an address").to_owned();
    let ask = |path: &str, headers: &str, body: &str| {
        let body = if body.is_empty() { String::new() } else { format!("-d '{body}'") };
        let auth = "-H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json'";
        curl(&format!("curl -s '{url}{path}' {auth} {headers} {body}"), quickstart.token())
    };
    for [path, body, place, value] in KINDS {
        has!("{path} {body}"; ask(path, "", body), "/error": null, (*place): value);
    }

    // A call that its client follows as a task.
    let rpc = |method: &str, name: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "8"},
            "io.modelcontextprotocol/clientCapabilities": {
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
        });
        let headers = format!(
            "-H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
             -H 'Mcp-Method: {method}' -H 'Mcp-Name: {name}'"
        );
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        ask("/mcp/sample", &headers, &message.to_string())
    };
    let echo = json!({"name": "slow_echo", "arguments": {"seconds": 0.1, "text": "hi"}});
    let begun = rpc("tools/call", "slow_echo", echo);
    has!(begun, "/result/resultType": "task", "/result/status": "working");
    let id = begun["result"]["taskId"].as_str().expect("an id");
    let done = eventually("an end of the task", async || {
        let told = rpc("tasks/get", id, json!({ "taskId": id }));
        (told["result"]["status"] != "working").then_some(told)
    });
    has!(done.await, "/result/status": "completed",
        "/result/result/structuredContent": {"text": "hi"});
    assert_eq!(quickstart.interrupt(), Some(0));
}

#[test]
fn a_second_run_uses_the_folder_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let org = |quickstart: &Quickstart| {
        let commands = quickstart.commands();
        let answer = curl(commands.last().expect("a command"), quickstart.token());
        answer["data"]["items"][0]["org_id"].clone()
    };
    let contents = || {
        let mut names: Vec<_> = ["", "policies"]
            .iter()
            .flat_map(|sub| fs::read_dir(data.join(sub)).expect("a folder"))
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        names.sort();
        names
    };
    let first = Quickstart::run(&data);
    let first_org = org(&first);
    let made = first.said.contains("made ");
    assert_eq!(first.interrupt(), Some(0));
    let before = contents();
    let policy = data.join("policies/starter.cedar");
    let edited = fs::read_to_string(&policy).expect("a policy").replace("> 100", "> 1");
    fs::write(&policy, edited).expect("an edited policy");

    let second = Quickstart::run(&data);

    assert!(made && second.said.contains("using again"), "{}", second.said);
    assert_eq!(org(&second), first_org);
    let (status, answer) = &second.answers()[0];
    assert!(status.starts_with("403"), "the edited policy holds: {answer}");
    assert_eq!(second.interrupt(), Some(0));
    assert_eq!(contents(), before);
}

#[test]
fn a_taken_port_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port();

    let output = command(folder.path(), port).output().expect("a quickstart that ends");

    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains(&port.to_string()) && errors.contains("--port 0"), "{errors}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}
