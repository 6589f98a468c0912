//! Instructions of the whole gateway for a request, counted by valgrind's callgrind.
//!
//! Work that the gateway does of itself meanwhile is in the figures of both faces, which are counted in
//! turns.

use std::{net::SocketAddr, path::PathBuf};

use tokio::{fs, process::Command};

use super::{GOAL_RATIO, Requests};
use crate::{
    Failure, Verdict,
    client::{Connection, Template},
    gateway::{Installation, Running},
    load::exact,
    say,
};

/// Turns of each request; the least counts.
const TURNS: usize = 9;

/// A gateway whose instructions are counted.
pub(super) struct Counting {
    running: Running,
    /// Prefix of the files in which callgrind says what it counted.
    counts: PathBuf,
    /// Files so far.
    files: usize,
}

impl Counting {
    /// Starts the gateway under callgrind, which does not count yet.
    pub(super) async fn start(installation: &Installation) -> Result<Self, Failure> {
        let counts = installation.folder().join("counts");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--instr-atstart=no", "--dump-instr=no"]);
        valgrind.arg(format!("--callgrind-out-file={}", counts.display()));
        let running = installation.start_under(valgrind).await?;
        let counting = Self { running, counts, files: 0 };
        counting.control("--instr=on").await?;
        Ok(counting)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.running.address
    }

    async fn control(&self, word: &str) -> Result<(), Failure> {
        let pid = self.running.pid.to_string();
        let told = Command::new("callgrind_control").args([word, &pid]).output().await?;
        if told.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&told.stderr);
        Err(format!("`callgrind_control {word}` failed: {}", words.trim()).into())
    }

    /// Instructions since the last time.
    async fn taken(&mut self) -> Result<u64, Failure> {
        self.control("--dump").await?;
        self.files += 1;
        let name = format!("{}.{}", self.counts.display(), self.files);
        let told = fs::read_to_string(name).await?;
        let totals = told.lines().rev().find_map(|line| line.strip_prefix("totals: "));
        Ok(totals.ok_or("callgrind said no totals")?.trim().parse()?)
    }

    async fn of_each(&mut self, request: &Template, calls: u32) -> Result<u64, Failure> {
        let mut connection = Connection::open(self.address()).await?;
        // What is made when it is first needed is made now.
        for _ in 0..3 {
            connection.send(request.clone()).await?.ok()?;
        }
        self.taken().await?;
        for _ in 0..calls {
            connection.send(request.clone()).await?.ok()?;
        }
        Ok(self.taken().await? / u64::from(calls.max(1)))
    }
}

/// Prints the instructions of each request; `Broken` when a call over MCP takes too many.
pub(super) async fn run(
    mut counting: Counting,
    requests: &Requests,
    calls: u32,
) -> Result<Verdict, Failure> {
    let named = [
        ("call over REST", &requests.rest),
        ("call over MCP", &requests.mcp),
        ("tools/list", &requests.list),
        ("find_tools", &requests.find),
    ];
    let mut least = named.map(|(name, request)| (name, request, u64::MAX));
    for _ in 0..TURNS {
        for (_, request, least) in &mut least {
            *least = counting.of_each(request, calls).await?.min(*least);
        }
    }
    counting.running.stop().await?;
    for (name, _, count) in &least {
        say(&format!("{count:>12} instructions   {name}\n"));
    }
    let [(.., rest), (.., mcp), ..] = least;
    let ratio = exact(mcp) / exact(rest.max(1));
    say(&format!("{ratio:>12.3} of REST (goal {GOAL_RATIO:.2})\n"));
    Ok(if ratio <= GOAL_RATIO { Verdict::Holds } else { Verdict::Broken })
}
