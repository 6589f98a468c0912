//! Starting a process, and ending it together with all it has started.

use std::{
    env,
    io::ErrorKind,
    process::{ExitStatus, Stdio as Handle},
    sync::Arc,
    time::Duration,
};

use portcullis_core::capability::ProviderSlug;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::Instant,
};

use super::last_words::LastWords;
use crate::{settings::Program, text};

/// Variables that a child inherits.
const INHERITED: [&str; 9] =
    ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "USER", "LOGNAME"];
const MAX_LOG_LINE_BYTES: usize = 2048;
/// A second.
const MAX_LOG_LINES: u32 = 100;

/// A process and the ends of its pipes.
#[derive(Debug)]
pub(super) struct StartedChild {
    pub(super) process: Process,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// A process that leads a group of its own. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Group,
    has_ended: bool,
}

/// The group of a process and whatever it has started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(Option<Pid>);

/// Starts the program. Fails if it does not exist or may not be started.
pub(super) fn start(program: &Program) -> Result<StartedChild, String> {
    let mut command = Command::new(&program.command);
    command
        .args(&program.args)
        .env_clear()
        .envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))))
        .envs(program.env.iter().map(|(name, value)| (name, value.expose())))
        .stdin(Handle::piped())
        .stdout(Handle::piped())
        .stderr(Handle::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(folder) = &program.cwd {
        command.current_dir(folder);
    }
    let mut child = command.spawn().map_err(|error| not_started(program, error.kind()))?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let group = Group(id.and_then(Pid::from_raw));
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("the program has no input or output".to_owned());
    };
    Ok(StartedChild { process: Process { child, group, has_ended: false }, stdin, stdout, stderr })
}

fn not_started(program: &Program, kind: ErrorKind) -> String {
    let command = &program.command;
    if program.is_missing() {
        format!("there is no program `{command}`")
    } else {
        format!("the program `{command}` cannot be started: {kind}")
    }
}

impl Process {
    pub(super) const fn group(&self) -> Group {
        self.group
    }

    /// Waits until the process itself has ended; others of its group may live on.
    pub(super) async fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await;
        self.has_ended = true;
        status.ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The number of a group that is gone may belong to another one by now.
        if !self.has_ended {
            self.group.kill();
        }
    }
}

impl Group {
    /// Asks all of the group to end.
    pub(super) fn terminate(self) {
        self.signal(Signal::TERM);
    }

    /// Ends all of the group.
    pub(super) fn kill(self) {
        self.signal(Signal::KILL);
    }

    fn signal(self, signal: Signal) {
        if let Some(leader) = self.0 {
            // It fails when no process is left, which is what was wanted.
            let _ = kill_process_group(leader, signal);
        }
    }
}

/// Reader of a child's error output: its last lines are kept, and at debug level all are logged: one
/// line each, cut, and without characters that a terminal obeys. The output is always read, so that no child waits
/// for the log; beyond 100 lines a second, lines are left out there.
pub(super) struct Errors {
    slug: ProviderSlug,
    last_words: Arc<LastWords>,
    budget: LogBudget,
}

impl Errors {
    pub(super) fn new(slug: ProviderSlug, last_words: Arc<LastWords>) -> Self {
        Self { slug, last_words, budget: LogBudget { since: Instant::now(), lines: 0 } }
    }

    pub(super) async fn read<R: AsyncRead + Unpin>(mut self, output: R) {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        loop {
            let piece = output.fill_buf().await.unwrap_or_default();
            if piece.is_empty() {
                self.take(&line);
                return;
            }
            let end = memchr::memchr(b'\n', piece);
            let part = end.map_or(piece, |end| piece.get(..end).unwrap_or_default());
            let room = MAX_LOG_LINE_BYTES.saturating_sub(line.len());
            line.extend_from_slice(part.get(..room).unwrap_or(part));
            let used = end.map_or(piece.len(), |end| end + 1);
            output.consume(used);
            if end.is_some() {
                self.take(&line);
                line.clear();
            }
        }
    }

    fn take(&mut self, line: &[u8]) {
        let shown = text::one_line(&String::from_utf8_lossy(line), MAX_LOG_LINE_BYTES);
        self.last_words.record_line(&shown);
        if tracing::enabled!(target: "portcullis::stdio", tracing::Level::DEBUG)
            && self.budget.allows_one_more()
            && !line.is_empty()
        {
            tracing::debug!(target: "portcullis::stdio", provider = %self.slug, "{shown}");
        }
    }
}

/// Lines logged in the current second.
struct LogBudget {
    since: Instant,
    lines: u32,
}

impl LogBudget {
    fn allows_one_more(&mut self) -> bool {
        if self.since.elapsed() > Duration::from_secs(1) {
            *self = Self { since: Instant::now(), lines: 0 };
        }
        self.lines += 1;
        self.lines <= MAX_LOG_LINES
    }
}
