//! An MCP server over standard input and output that behaves as badly as it is told to. Tests
//! start it as a real child process.
//!
//! `portcullis-hostile-mcp <era> <behaviour> [file]`: era is `modern`, `legacy`, `silent` (which
//! ignores what it does not know), `strict` (which ends at what it does not know) or `old` (which speaks
//! the first version only); the behaviour is what a `tools/call` meets.

use std::{env, io, process, time::Duration};

use portcullis_core::clock::{Clock, Timestamp};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Stdout};

/// A clock that stands.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut args = env::args().skip(1);
    let era = args.next().unwrap_or_default();
    let behaviour = args.next().unwrap_or_default();
    let file = args.next();
    if era == "sample" {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        return portcullis_upstream::sample::serve_stdio(input, output, &Still).await;
    }
    if behaviour == "dies_at_start" {
        note(file.as_deref(), "started").await?;
        let mut errors = tokio::io::stderr();
        errors.write_all(b"loading\nno such\x1b[31m database\n").await?;
        errors.flush().await?;
        process::exit(3);
    }
    if era == "mute" {
        note(file.as_deref(), "started").await?;
        tokio::time::sleep(Duration::from_hours(1)).await;
    }
    if era == "slow" {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
    let output = tokio::io::stdout();
    let held = Vec::new();
    let heard = Vec::new();
    Hostile { era, behaviour, file, output, held, heard, calls: 0 }.run().await
}

struct Hostile {
    era: String,
    behaviour: String,
    file: Option<String>,
    output: Stdout,
    held: Vec<Value>,
    heard: Vec<String>,
    calls: u32,
}

impl Hostile {
    async fn run(&mut self) -> io::Result<()> {
        note(self.file.as_deref(), "started").await?;
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
            note(self.file.as_deref(), method).await?;
            if self.era == "strict" && method == "server/discover" {
                process::exit(2);
            }
            let id = message.get("id").cloned();
            match (method, id) {
                ("tools/call", Some(id)) => {
                    self.calls += 1;
                    let arguments = message.pointer("/params/arguments").cloned();
                    self.called(id, arguments.unwrap_or_default()).await?;
                    if self.behaviour == "never_reads" {
                        tokio::time::sleep(Duration::from_hours(1)).await;
                    }
                }
                ("", Some(_)) => self.was_answered(&line).await?,
                (method, Some(id)) => {
                    let version =
                        message.pointer("/params/protocolVersion").and_then(Value::as_str);
                    self.answer_request(method, version.unwrap_or_default(), id).await?;
                }
                (_, None) => {}
            }
        }
        if self.behaviour == "ignores_eof" {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        Ok(())
    }

    /// As a program does behind which another one was started anew.
    fn has_forgotten_us(&self) -> bool {
        self.behaviour == "forgets_us" && self.calls > 1
    }

    async fn answer_request(&mut self, method: &str, version: &str, id: Value) -> io::Result<()> {
        let modern = self.era == "modern";
        if self.has_forgotten_us() {
            return self.fail(id, -32000).await;
        }
        if self.era == "old" && method == "initialize" && version != "2024-11-05" {
            return self.fail(id, -32602).await;
        }
        let capabilities = json!({"tools": {"listChanged": true}});
        match method {
            "server/discover" if modern => {
                let result = json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": capabilities,
                });
                self.succeed(id, result).await
            }
            "initialize" if !modern => {
                let result = json!({
                    "protocolVersion": if self.era == "old" { version } else { "2025-06-18" },
                    "capabilities": capabilities,
                    "serverInfo": {"name": "hostile", "version": "0"},
                });
                self.succeed(id, result).await
            }
            "tools/list" => {
                let schema = json!({"type": "object"});
                let tools = json!([{"name": "act", "inputSchema": schema}]);
                self.succeed(id, json!({"resultType": "complete", "tools": tools})).await
            }
            _ if self.era == "silent" || method == "subscriptions/listen" => Ok(()),
            _ => {
                let error = json!({"code": -32601, "message": "unknown"});
                self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await
            }
        }
    }

    async fn called(&mut self, id: Value, arguments: Value) -> io::Result<()> {
        match self.behaviour.as_str() {
            "hangs" | "never_reads" => Ok(()),
            "blocks" => self.block(id, &arguments).await,
            "dies" => process::exit(7),
            "dies_on_the_second" if self.calls > 1 => process::exit(7),
            "dies_in_the_middle" => {
                self.raw(b"{\"jsonrpc\":\"2.0\",\"id\":").await?;
                process::exit(7)
            }
            "garbage" => self.raw(b"this is not json\n").await,
            "garbled_answer" => {
                let head = r#"{"jsonrpc":"2.0","id":"#;
                let tail = r#","result":{"a":1,"a":2}}"#;
                self.raw(format!("{head}{id}{tail}\n").as_bytes()).await
            }
            "huge_without_id" => {
                let mut line = vec![b'x'; 100_000];
                line.push(b'\n');
                self.raw(&line).await
            }
            "endless_line" => {
                let piece = vec![b'x'; 65_536];
                loop {
                    self.raw(&piece).await?;
                }
            }
            "reversed" => self.hold_three(id, &arguments).await,
            "forgets_us" if self.has_forgotten_us() => self.fail(id, -32000).await,
            "fails_oddly" => self.fail(id, -32000).await,
            "refuses" => self.fail(id, -32602).await,
            "breaks" => self.fail(id, -32603).await,
            _ => self.talk(id, &arguments).await,
        }
    }

    /// Behaviours that are odd but well-formed.
    async fn talk(&mut self, id: Value, arguments: &Value) -> io::Result<()> {
        match self.behaviour.as_str() {
            "wrong_id" => self.succeed(json!(1), text("wrong")).await,
            "twice" => {
                self.succeed(id.clone(), text("first")).await?;
                self.succeed(id, text("second")).await
            }
            "huge" => self.succeed(id, text(&"x".repeat(100_000))).await,
            "flood" => {
                for _ in 0..2_000 {
                    self.notify("notifications/message").await?;
                }
                self.succeed(id, text("after the flood")).await
            }
            "changes" => {
                self.notify("notifications/tools/list_changed").await?;
                self.succeed(id, text("changed")).await
            }
            "asks_back" => {
                self.send(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await?;
                let method = "sampling/createMessage";
                self.send(&json!({"jsonrpc": "2.0", "id": "s", "method": method})).await?;
                self.held.push(id);
                Ok(())
            }
            "presents" => {
                let method = "elicitation/create";
                let params = arguments.get("form");
                let form = json!({"jsonrpc": "2.0", "id": "f", "method": method, "params": params});
                self.held.push(id);
                self.send(&form).await
            }
            "wants_input" => self.succeed(id, json!({"resultType": "input_required"})).await,
            "environment" => {
                let mut names: Vec<_> = env::vars().map(|(name, _)| name).collect();
                names.sort();
                self.succeed(id, text(&names.join(","))).await
            }
            _ => self.succeed(id, text(&arguments.to_string())).await,
        }
    }

    /// Does one thing at a time: for so many milliseconds it reads and answers nothing.
    async fn block(&mut self, id: Value, arguments: &Value) -> io::Result<()> {
        let pause = arguments.get("ms").and_then(Value::as_u64).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        self.succeed(id, text("at last")).await
    }

    /// Answers three calls, the last one first.
    async fn hold_three(&mut self, id: Value, arguments: &Value) -> io::Result<()> {
        self.held.push(json!([id, arguments]));
        if self.held.len() < 3 {
            return Ok(());
        }
        while let Some(held) = self.held.pop() {
            let echoed = held.get(1).map(Value::to_string).unwrap_or_default();
            let id = held.get(0).cloned().unwrap_or_default();
            self.succeed(id, text(&echoed)).await?;
        }
        Ok(())
    }

    /// Collects what it asked for, then answers the call with it.
    async fn was_answered(&mut self, line: &str) -> io::Result<()> {
        self.heard.push(line.to_owned());
        let wanted = if self.behaviour == "presents" { 1 } else { 2 };
        if self.heard.len() == wanted
            && let Some(id) = self.held.pop()
        {
            let heard = std::mem::take(&mut self.heard).join("\n");
            self.succeed(id, text(&heard)).await?;
        }
        Ok(())
    }

    async fn fail(&mut self, id: Value, code: i64) -> io::Result<()> {
        let error = json!({"code": code, "message": "the secret is hunter2"});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await
    }

    async fn notify(&mut self, method: &str) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method})).await
    }

    async fn succeed(&mut self, id: Value, result: Value) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await
    }

    async fn send(&mut self, message: &Value) -> io::Result<()> {
        self.raw(format!("{message}\n").as_bytes()).await
    }

    async fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes).await?;
        self.output.flush().await
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Adds a line to the file in which the server keeps its diary.
async fn note(file: Option<&str>, line: &str) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let mut diary = tokio::fs::OpenOptions::new().create(true).append(true).open(file).await?;
    diary.write_all(format!("{} {line}\n", process::id()).as_bytes()).await?;
    diary.flush().await
}
