//! A server of the tests as a child process that is told what to do and answers, a JSON object a line
//! each way. Whatever it does, it keeps no test waiting for ever.

use std::{
    env,
    ffi::OsStr,
    fs::File,
    io::{BufRead, BufReader, Read, Seek, Write},
    path::PathBuf,
    process::{ChildStdin, Command, Stdio},
    sync::{
        Mutex,
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::programs::KilledOnDrop;

/// The longest it may take to answer, on the slowest machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The child; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Driven {
    name: &'static str,
    _running: KilledOnDrop,
    talk: Mutex<(ChildStdin, Receiver<String>)>,
    /// Its complaints.
    errors: File,
}

impl Driven {
    /// Starts a script of `tests/servers` with what `./test` has installed for it.
    pub(crate) fn start(program: impl AsRef<OsStr>, script: &'static str, args: &[&str]) -> Self {
        let errors = tempfile::tempfile().expect("a file");
        let mut child = Command::new(program)
            .arg(format!("{}/../../tests/servers/{script}", env!("CARGO_MANIFEST_DIR")))
            .args(args)
            .env("PORTCULLIS_TEST_SERVERS", servers())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().expect("the file"))
            .spawn()
            .unwrap_or_else(|error| panic!("{script}: {error}"));
        let commands = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (told, lines) = mpsc::channel();
        // Ends with the child, or with its owner's interest.
        thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| told.send(line))
        });
        Self {
            name: script,
            _running: KilledOnDrop(child),
            talk: Mutex::new((commands, lines)),
            errors,
        }
    }

    /// The next line it says without being asked.
    pub(crate) fn line(&self) -> String {
        let talk = self.talk.lock().expect("the child");
        self.next(&talk.1, "its start")
    }

    /// Its description of itself at its start.
    pub(crate) fn description(&self) -> Value {
        self.object(&self.line())
    }

    /// Its answer to a command.
    pub(crate) fn command(&self, command: &Value) -> Value {
        let mut talk = self.talk.lock().expect("the child");
        writeln!(talk.0, "{command}").expect("a child that listens");
        let line = self.next(&talk.1, &command["do"].to_string());
        self.object(&line)
    }

    fn next(&self, lines: &Receiver<String>, after: &str) -> String {
        let line = lines.recv_timeout(PATIENCE);
        line.unwrap_or_else(|error| {
            panic!("{} says nothing after {after}: {error}\n{}", self.name, self.complaints())
        })
    }

    fn complaints(&self) -> String {
        let mut errors = &self.errors;
        let mut text = String::new();
        let _ = errors.rewind().and_then(|()| errors.read_to_string(&mut text));
        text
    }

    fn object(&self, line: &str) -> Value {
        let answer: Value = serde_json::from_str(line).unwrap_or_default();
        let fine = answer.is_object() && answer.get("error").is_none();
        assert!(fine, "{} says `{line}`", self.name);
        answer
    }
}

/// Folder of the servers that `./test` installs.
pub fn servers() -> PathBuf {
    let folder = env::var_os("PORTCULLIS_TEST_SERVERS");
    let folder = PathBuf::from(folder.expect(
        "PORTCULLIS_TEST_SERVERS is not set: run the tests with `./test -- cargo test …`, which \
         installs the servers they need",
    ));
    assert!(folder.join("node_modules").is_dir(), "no servers in {}", folder.display());
    folder
}

pub(crate) fn text(answer: &Value, member: &str) -> String {
    let found = answer.get(member).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no `{member}`")).to_owned()
}
