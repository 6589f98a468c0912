//! A real authorization server and a real MCP server that takes nothing but its tokens: npm's
//! `oidc-provider` and `fastmcp` of `PyPI`, as child processes.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Mutex,
};

use serde_json::{Value, json};

fn servers() -> PathBuf {
    let folder = env::var_os("PORTCULLIS_TEST_SERVERS");
    PathBuf::from(folder.expect(
        "PORTCULLIS_TEST_SERVERS is not set: run the tests with `./test -- cargo test …`, which \
         installs the servers they need",
    ))
}

fn script(name: &str) -> String {
    format!("{}/../../tests/servers/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A child that is ended with its owner.
#[derive(Debug)]
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The authorization server; it ends when it is dropped.
#[derive(Debug)]
pub struct Authorizer {
    issuer: String,
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _child: Ended,
}

impl Authorizer {
    /// Starts it. Needs the services of `./test`.
    pub fn start() -> Self {
        let mut child = Command::new("node")
            .arg(script("authorizer.mjs"))
            .env("PORTCULLIS_TEST_SERVERS", servers())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node");
        let commands = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        let mut talk = (commands, answers);
        let issuer = text(&answer(&mut talk.1), "issuer");
        Self { issuer, talk: Mutex::new(talk), _child: Ended(child) }
    }

    /// Its `iss`.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Plays the browser of `subject` from an authorization URL on, until it is sent to an address
    /// that begins with `until`; gives that.
    pub fn consent(&self, url: &str, subject: &str, until: &str) -> String {
        let command = json!({"do": "consent", "url": url, "subject": subject, "until": until});
        text(&self.command(&command), "url")
    }

    /// Access tokens live so long from now on.
    pub fn set_life(&self, seconds: u32) {
        self.command(&json!({"do": "life", "seconds": seconds}));
    }

    /// Ends the account of somebody: nothing is renewed for it.
    pub fn end(&self, subject: &str) {
        self.command(&json!({"do": "end", "subject": subject}));
    }

    /// Holds a document at an https address that does not exist.
    pub fn set_document(&self, url: &str, text: &str) {
        self.command(&json!({"do": "document", "url": url, "text": text}));
    }

    /// How many clients have registered.
    pub fn registered(&self) -> usize {
        let answer = self.command(&json!({"do": "clients"}));
        answer.get("clients").and_then(Value::as_array).map_or(0, Vec::len)
    }

    fn command(&self, command: &Value) -> Value {
        let mut talk = self.talk.lock().expect("the server");
        writeln!(talk.0, "{command}").expect("a server that listens");
        answer(&mut talk.1)
    }
}

fn answer(answers: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    answers.read_line(&mut line).expect("an answer of the server");
    let answer: Value = serde_json::from_str(&line).unwrap_or_default();
    assert!(answer.is_object() && answer.get("error").is_none(), "the server: `{line}`");
    answer
}

fn text(answer: &Value, member: &str) -> String {
    let found = answer.get(member).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no `{member}`")).to_owned()
}

/// The MCP server; it ends when it is dropped. Its tool `whoami` says whose token a call came with,
/// and remembers when the call said otherwise; `foreign` tells.
#[derive(Debug)]
pub struct Guarded {
    port: u16,
    _child: Ended,
}

impl Guarded {
    /// Starts it for the tokens of this issuer.
    pub fn start(issuer: &str) -> Self {
        let mut child = Command::new(servers().join("venv/bin/python"))
            .args([&script("guarded.py"), issuer])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python");
        let mut told = BufReader::new(child.stdout.take().expect("its output"));
        let child = Ended(child);
        let mut port = String::new();
        told.read_line(&mut port).expect("a port");
        Self { port: port.trim().parse().expect("a port"), _child: child }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}
