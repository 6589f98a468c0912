//! Arguments of the command line.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures Portcullis against the upstream it guards.
#[derive(Debug, Parser)]
#[command(name = "portcullis-bench")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Kills the gateway again and again under load and looks for lost answers.
    KillLoop(KillLoopArgs),
    /// Measures how fast DLP scans clean, dirty and hostile bodies; with cases or a corpus, what it finds in
    /// them and what it should not.
    Dlp(DlpArgs),
    /// Measures calls of a healthy provider alone and beside one that hangs and floods.
    Hostile(HostileArgs),
    /// Restarts three nodes behind a load balancer one by one under load, and counts calls that are refused or lost;
    /// the status is 1 if there is one (needs `haproxy`, PostgreSQL and Redis).
    Rolling(RollingArgs),
    /// Measures the same call directly, passed on, in a bare durable bracket, and through Portcullis on
    /// either database.
    Systems(SystemsArgs),
    /// Calls at twice of what is possible and measures what is answered, and how fast the rest is not.
    Overload(OverloadArgs),
    /// Measures several builds of the gateway in very short turns, for small differences.
    Builds(BuildsArgs),
    /// Counts instructions, cache misses and allocations of a call over REST and over MCP, and of lists and searches
    /// of 1,000 tools (needs valgrind).
    Count(CountArgs),
    /// The MCP server that the gateway guards; runs until its standard input ends.
    #[command(hide = true)]
    ServeUpstream,
    /// One that hangs, drips and floods.
    #[command(hide = true)]
    ServeHostile,
    /// One whose schemas are slow to check or large.
    #[command(hide = true)]
    ServeTraps,
    /// A server that passes everything on to one address; runs until its standard input ends.
    #[command(hide = true)]
    ServePassing {
        /// Address of the upstream
        upstream: SocketAddr,
    },
    /// The same, but it parses, judges, scans and durably records each call.
    #[command(hide = true)]
    ServeBracket {
        /// Address of the upstream
        upstream: SocketAddr,
        /// The database of its records, which is made
        database: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SystemsArgs {
    /// Seconds of load per measurement
    #[arg(long, default_value = "4", value_parser = seconds)]
    pub(crate) duration: Duration,
    /// Connections at a time
    #[arg(long, default_value = "1,32,256", value_delimiter = ',')]
    pub(crate) connections: Vec<usize>,
    /// Bytes of JSON that the tool is given and gives back
    #[arg(long = "payload", default_value = "1024,65536", value_delimiter = ',')]
    pub(crate) payloads: Vec<usize>,
    /// Measurements of each kind, in turns
    #[arg(long, default_value_t = 2)]
    pub(crate) rounds: usize,
    /// The URL of an empty PostgreSQL database; without it that system is left out
    #[arg(long, requires = "redis")]
    pub(crate) postgres: Option<String>,
    /// The URL of a Redis or Valkey server where limits are counted then
    #[arg(long, requires = "postgres")]
    pub(crate) redis: Option<String>,
    /// The gateway to measure; by default it is built by cargo, like this program
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
    /// Print the figures as JSON besides
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OverloadArgs {
    /// Seconds of each load
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) duration: Duration,
    /// Connections with which it is found out what is possible
    #[arg(long, default_value_t = 256)]
    pub(crate) connections: usize,
    /// Multiple of the possible rate
    #[arg(long, default_value_t = 2.0)]
    pub(crate) factor: f64,
    /// Bytes of JSON that the tool is given and gives back
    #[arg(long, default_value_t = 1024)]
    pub(crate) payload: usize,
    /// The gateway to measure; by default it is built by cargo, like this program
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BuildsArgs {
    /// A build to measure; give it once for each. All are compared with the first
    #[arg(long = "binary", required = true)]
    pub(crate) binaries: Vec<PathBuf>,
    /// The URL of an empty PostgreSQL database for a build, in the same order; SQLite for those without
    #[arg(long)]
    pub(crate) postgres: Vec<String>,
    /// Seconds of load for each build
    #[arg(long, default_value = "12", value_parser = seconds)]
    pub(crate) duration: Duration,
    /// Connections at a time
    #[arg(long, default_value = "32,256", value_delimiter = ',')]
    pub(crate) connections: Vec<usize>,
    /// Bytes of JSON that the tool is given and gives back
    #[arg(long, default_value_t = 1024)]
    pub(crate) payload: usize,
}

#[derive(Debug, Args)]
pub(crate) struct CountArgs {
    /// Calls and requests of each kind in a turn
    #[arg(long, default_value_t = 100)]
    pub(crate) calls: u32,
    /// Bytes of JSON that the tool is given and gives back
    #[arg(long, default_value_t = 1024)]
    pub(crate) payload: usize,
    /// Tools of the catalogue that is listed and searched
    #[arg(long, default_value_t = 1_000)]
    pub(crate) tools: usize,
    /// The gateway to measure; by default it is built by cargo, like this program
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
}

/// An attack on the gateway; each has a file below `hostile/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// Calls of a provider beside one that hangs, drips and floods
    Neighbour,
    /// Bodies and schemas of one org that are slow to check, beside plain calls of another
    Schema,
    /// Patterns that are large or slow to match, at listing and in calls, beside plain calls of another org
    Patterns,
    /// Bodies of unknown callers that never end, on 100 streams of 100 connections
    Bodies,
    /// Slow sockets of one address beside a client of another
    Sockets,
    /// Calls of a tool beside those of another org that makes it fail
    Circuit,
    /// Small calls of one org, and health, beside large bodies of another
    Large,
    /// The memory of a server that renames its tools at each listing
    Renaming,
    /// Long lines of names and values of one org, which DLP reads, beside plain calls of another
    Assignments,
    /// Simulations with large drafts, whose clients leave, beside plain calls of another org
    Drafts,
    /// Lists of many large approvals that their caller may not see, beside plain calls of another org
    Approvals,
    /// A thousand strangers a second who begin authorizations, beside plain calls of an org
    Strangers,
}

#[derive(Debug, Args)]
pub(crate) struct HostileArgs {
    /// The attack to run
    #[arg(long, value_enum, default_value = "neighbour")]
    pub(crate) attack: Attack,
    /// Calls per measurement
    #[arg(long, default_value_t = 2_000)]
    pub(crate) calls: usize,
    /// Measurements of each kind, in turns
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Callers of the other provider
    #[arg(long, default_value_t = 32)]
    pub(crate) callers: usize,
    /// Listings of the server that renames its tools
    #[arg(long, default_value_t = 40)]
    pub(crate) listings: usize,
    /// Attacks of the other provider, in turns
    #[arg(long, value_delimiter = ',', default_value = "hangs,drips,floods",
          value_parser = ["hangs", "drips", "floods", "answers"])]
    pub(crate) kinds: Vec<String>,
    /// The gateway to measure; by default it is built by cargo, like this program
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RollingArgs {
    /// URL of an empty PostgreSQL database
    #[arg(long)]
    pub(crate) postgres: String,
    /// URL of a Redis or Valkey server where limits are counted
    #[arg(long)]
    pub(crate) redis: String,
    /// Connections at a time
    #[arg(long, default_value_t = 32)]
    pub(crate) connections: usize,
    /// Bytes of JSON that the tool is given and gives back
    #[arg(long, default_value_t = 1024)]
    pub(crate) payload: usize,
    /// The load balancer
    #[arg(long, default_value = "haproxy")]
    pub(crate) haproxy: PathBuf,
    /// The gateway to measure; by default it is built by cargo, like this program
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DlpArgs {
    /// Cases, one JSON object a line: `id`, `entity`, `tier` (strong, weak, negative), `text` and
    /// `expected` with `bstart`, `bend`; also `kind`, and `json` for texts that are JSON, with a
    /// `pointer` each in `expected`; may be compressed with gzip
    pub(crate) cases: Vec<PathBuf>,
    /// A file or folder that holds nothing to be found, as NAME=PATH; `.json` and `.jsonl` are read as
    /// JSON
    #[arg(long = "corpus", value_name = "NAME=PATH")]
    pub(crate) corpora: Vec<String>,
    /// Print the cases that were missed or wrongly acted on, and what was found in corpora
    #[arg(long)]
    pub(crate) list: bool,
    /// Print a row for each entity, and for each decoder of evasions
    #[arg(long)]
    pub(crate) entities: bool,
    /// Measurements of the speed of each body; the least time counts
    #[arg(long, default_value_t = 15)]
    pub(crate) rounds: usize,
    /// Only the speed of bodies whose name holds this
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KillLoopArgs {
    /// Number of kills
    #[arg(long, default_value_t = 24)]
    pub(crate) kills: u32,
    /// Seconds in which that happens
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub(crate) within: Duration,
    /// Connections that invoke all the while
    #[arg(long, default_value_t = 16)]
    pub(crate) connections: usize,
    /// Bytes of JSON that the tool is given and gives back
    #[arg(long, default_value_t = 256)]
    pub(crate) payload: usize,
    /// The gateway to kill; by default it is built by cargo, like this program
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "is not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_duration_is_refused() {
        assert!(Cli::try_parse_from(["portcullis-bench", "overload", "--duration=-1"]).is_err());
    }
}
