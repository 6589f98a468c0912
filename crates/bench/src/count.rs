//! Instructions, cache misses and allocations of the whole gateway for a request, counted by valgrind's
//! callgrind: the same call over REST and over MCP, and a list and a search of a large catalogue.
//!
//! An allocation is a call to an allocator from outside of it, growing what was allocated before
//! included: mimalloc, which Rust code calls, and that of the C library, which SQLite calls. It is known by
//! its name, so a stripped binary has none.
//!
//! Hashing is counted apart: under valgrind there are no instructions for SHA-256, so it takes some 24 for a
//! byte that a processor of today does without.
//!
//! Work that the gateway does of itself meanwhile is in the figures of all requests, which are counted in
//! turns.

use std::{collections::HashMap, net::SocketAddr, path::PathBuf};

use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::{fs, process::Command};

use crate::{
    Failure, Verdict,
    args::CountArgs,
    client::{Connection, Template, governed_call, mcp_call, mcp_message},
    gateway::{Installation, Running, Setup},
    load::exact,
    payload, say,
    upstream::Upstream,
};

/// A call over MCP may take so many times what it takes over REST.
const GOAL_RATIO: f64 = 1.10;
/// Besides the policies of every benchmark, of which one permits the called tool only.
const ALL_TOOLS: &str = "@id(\"bench-all\") permit (principal is Mcp::Service, action, resource);";

/// Turns of each request; the least counts.
const TURNS: usize = 9;
/// Functions that allocate.
const ENTRIES: [&str; 10] = [
    "mi_malloc", "mi_malloc_aligned", "mi_zalloc", "mi_zalloc_aligned", "mi_realloc",
    "mi_realloc_aligned", "malloc", "calloc", "realloc", "posix_memalign",
];

/// Part of the names of functions that hash in software.
const HASHING: &str = "sha256_block_data_order";

/// Prints the work of each request; `Broken` when a call over MCP takes too many instructions.
pub(crate) async fn run(args: &CountArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let setup = Setup { more_tools: args.tools.saturating_sub(1), ..Setup::default() };
    let binary = args.binary.as_deref();
    let installation = Installation::set_up(binary, upstream.address, &setup).await?;
    fs::write(installation.folder().join("policies/all.cedar"), ALL_TOOLS).await?;
    let mut counting = Counting::start(&installation).await?;
    let arguments = payload::of_size(args.payload);
    let requests = requests(counting.address(), &installation.token, &arguments)?;
    let mut least = requests.map(|(name, request)| (name, request, Work::MOST));
    for _ in 0..TURNS {
        for (_, request, least) in &mut least {
            *least = counting.of_each(request, args.calls).await?.least(*least);
        }
    }
    counting.running.stop().await?;
    say("instructions   without SHA-256   L1i misses   L1d misses   allocations   request\n");
    for (name, _, Work { instructions, hashing, l1i, l1d, allocations }) in &least {
        let others = instructions.saturating_sub(*hashing);
        let caches = format!("{l1i:>12} {l1d:>12}");
        say(&format!("{instructions:>12} {others:>17} {caches} {allocations:>13}   {name}\n"));
    }
    let [(.., rest), (.., mcp), ..] = least;
    let ratio = exact(mcp.instructions) / exact(rest.instructions.max(1));
    say(&format!("{ratio:>12.3} of REST (goal {GOAL_RATIO:.2})\n"));
    Ok(if ratio <= GOAL_RATIO { Verdict::Holds } else { Verdict::Broken })
}

/// The requests that are counted, each with its name.
fn requests(
    address: SocketAddr,
    token: &str,
    arguments: &Value,
) -> Result<[(&'static str, Template); 4], Failure> {
    let question = json!({ "query": "take the number of a thing" });
    let find = mcp_message("tools/call", json!({ "name": "find_tools", "arguments": question }));
    let list = mcp_message("tools/list", json!({}));
    let mut all = mcp_call(address, token, arguments)?;
    *all.uri_mut() = Uri::from_static("/mcp?tools=list");
    let about = |method: &'static str, name: Option<&'static str>, message: &Value| {
        let mut request = all.clone();
        let headers = request.headers_mut();
        headers.insert("mcp-method", HeaderValue::from_static(method));
        match name {
            Some(name) => headers.insert("mcp-name", HeaderValue::from_static(name)),
            None => headers.remove("mcp-name"),
        };
        *request.body_mut() = Full::from(Bytes::from(message.to_string()));
        request
    };
    Ok([
        ("call over REST", governed_call(address, token, arguments)?),
        ("call over MCP", mcp_call(address, token, arguments)?),
        ("tools/list", about("tools/list", None, &list)),
        ("find_tools", about("tools/call", Some("find_tools"), &find)),
    ])
}

/// A gateway whose work is counted.
struct Counting {
    running: Running,
    /// Prefix of the files in which callgrind says what it counted.
    counts: PathBuf,
    files: usize,
}

impl Counting {
    /// Starts the gateway under callgrind, which does not count yet.
    async fn start(installation: &Installation) -> Result<Self, Failure> {
        let counts = installation.folder().join("counts");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--instr-atstart=no", "--cache-sim=yes"]);
        valgrind.arg(format!("--callgrind-out-file={}", counts.display()));
        let running = installation.start_under(valgrind).await?;
        let counting = Self { running, counts, files: 0 };
        counting.control("--instr=on").await?;
        Ok(counting)
    }

    fn address(&self) -> SocketAddr {
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

    /// Work since the last time.
    async fn take(&mut self) -> Result<Work, Failure> {
        self.control("--dump").await?;
        self.files += 1;
        let name = format!("{}.{}", self.counts.display(), self.files);
        let told = fs::read_to_string(name).await?;
        Ok(Work::read(&told).ok_or("callgrind said no totals")?)
    }

    async fn of_each(&mut self, request: &Template, calls: u32) -> Result<Work, Failure> {
        let mut connection = Connection::open(self.address()).await?;
        // What is made when it is first needed is made now.
        for _ in 0..3 {
            connection.send(request.clone()).await?.ok()?;
        }
        self.take().await?;
        for _ in 0..calls {
            connection.send(request.clone()).await?.ok()?;
        }
        let taken = self.take().await?;
        let calls = u64::from(calls.max(1));
        Ok(taken.map(|count| count / calls))
    }
}

/// Counted work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    instructions: u64,
    /// Instructions that hash.
    hashing: u64,
    /// Instructions that a first cache of 32 KiB would not have.
    l1i: u64,
    /// Reads and writes that it would not have.
    l1d: u64,
    allocations: u64,
}

impl Work {
    const MOST: Self = Self {
        instructions: u64::MAX,
        hashing: u64::MAX,
        l1i: u64::MAX,
        l1d: u64::MAX,
        allocations: u64::MAX,
    };

    /// The work in a file of callgrind, whose totals stand in the order that `events:` names.
    fn read(told: &str) -> Option<Self> {
        let line = |name: &str| told.lines().find_map(|line| line.strip_prefix(name));
        let totals = line("totals:")?.split_whitespace().map(|count| number(Some(count)));
        let totals: HashMap<_, _> = line("events:")?.split_whitespace().zip(totals).collect();
        let total = |event: &str| totals.get(event).copied();
        let CallgrindCounts { hashing, allocations } = CallgrindCounts::read(told);
        let l1d = total("D1mr")? + total("D1mw")?;
        Some(Self { instructions: total("Ir")?, hashing, l1i: total("I1mr")?, l1d, allocations })
    }

    fn map(self, count: impl Fn(u64) -> u64) -> Self {
        Self {
            instructions: count(self.instructions),
            hashing: count(self.hashing),
            l1i: count(self.l1i),
            l1d: count(self.l1d),
            allocations: count(self.allocations),
        }
    }

    fn least(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.min(other.instructions),
            hashing: self.hashing.min(other.hashing),
            l1i: self.l1i.min(other.l1i),
            l1d: self.l1d.min(other.l1d),
            allocations: self.allocations.min(other.allocations),
        }
    }
}

/// Contents of a file of callgrind.
#[derive(Debug, Default, PartialEq, Eq)]
struct CallgrindCounts {
    /// Instructions of functions that hash.
    hashing: u64,
    /// Calls of allocators.
    allocations: u64,
}

impl CallgrindCounts {
    /// Reads a file. A function is `(number) name` where it is first named, and `(number)` from then on; a
    /// line of costs is a place and its costs, instructions first, and the one behind `calls=` has those of
    /// the function that is called.
    fn read(told: &str) -> Self {
        let mut known = HashMap::new();
        let mut side = |text: &str| {
            let (number, name) = text.split_once(' ').unwrap_or((text, ""));
            let known = known.entry(number.to_owned()).or_insert_with(|| Side::of(name));
            *known
        };
        let mut from = Side::Outside;
        let mut to = Side::Outside;
        let mut of_called = false;
        let mut read = Self::default();
        for line in told.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                from = side(name);
            } else if let Some(name) = line.strip_prefix("cfn=") {
                to = side(name);
            } else if let Some(calls) = line.strip_prefix("calls=") {
                of_called = true;
                if (from, to) == (Side::Outside, Side::Entry) {
                    read.allocations += number(calls.split(' ').next());
                }
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                if from == Side::Hashing && !of_called {
                    read.hashing += number(line.split(' ').nth(1));
                }
                of_called = false;
            }
        }
        read
    }
}

fn number(text: Option<&str>) -> u64 {
    text.and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// Kind of a function: its relation to allocators, and whether it hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Functions that allocate.
    Entry,
    Within,
    /// Functions that hash in software.
    Hashing,
    Outside,
}

impl Side {
    fn of(name: &str) -> Self {
        // Recursive calls and threads are told apart after this mark.
        let name = name.split('\'').next().unwrap_or(name);
        if ENTRIES.contains(&name) {
            Self::Entry
        } else if name.starts_with("mi_") || name.starts_with("_mi_") {
            Self::Within
        } else if name.contains(HASHING) {
            Self::Hashing
        } else {
            Self::Outside
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
fn=(1) portcullis::call
7 100
cfn=(2) mi_malloc_aligned
calls=3 0
0 30
cfn=(3) sqlite3Malloc
calls=7 0
0 70
fn=(2)
cfn=(4) mi_malloc
calls=3 0
0 9
fn=(3)
cfn=(5) malloc
calls=2 0
0 20
cfn=(2)
calls=1 0
0 10
fn=(6) aws_lc_sha256_block_data_order_avx
+3 240 1 1
* 60
cfn=(7) memcpy
calls=1 0
* 500
-2 5 2
fn=(7)
0 500
events: Ir Dr Dw I1mr D1mr D1mw
totals: 139 8 7 6 5 4
";

    #[test]
    fn allocators_are_counted_where_they_are_entered_and_hashing_without_calls() {
        let work = Work {
            instructions: 139,
            hashing: 240 + 60 + 5,
            l1i: 6,
            l1d: 5 + 4,
            allocations: 3 + 2 + 1,
        };
        assert_eq!(Work::read(TOLD), Some(work));
        assert_eq!(Work::read("events: Ir\n"), None);
    }
}
