//! Measures Portcullis against the upstream it guards, and kills it under load.
//!
//! `systems` compares a direct `tools/call` with the same call through a hop that does nothing, a bare
//! durable bracket, and the gateway on both databases; `builds` compares several builds of the gateway, and
//! `count` counts the instructions of a call. `overload` sends twice of what can be answered, `hostile`
//! measures what one provider's or org's misery is to another, `rolling` restarts the nodes of a cluster
//! under load, and `kill-loop` checks that `kill -9` loses no recorded answer. `dlp` measures how fast bodies
//! are scanned, and what is found in labelled cases.

use std::{error::Error, io::Write as _, process::ExitCode};

use clap::Parser as _;

use self::args::{Cli, Command};

mod args;
mod audit;
mod bracket;
mod builds;
mod client;
mod count;
mod disk;
mod dlp;
mod gateway;
mod hostile;
mod kill_loop;
mod load;
mod machine;
mod overload;
mod payload;
mod policies;
mod process;
mod proof;
mod relay;
mod rolling;
mod spare;
mod systems;
mod upstream;
mod usage;

/// The allocator of the gateway, so that what is measured here is what it costs there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Failure to carry out a run, in words.
type Failure = Box<dyn Error + Send + Sync>;

/// Verdict of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Holds,
    Broken,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let verdict = match &cli.command {
        Command::KillLoop(args) => kill_loop::run(args).await,
        Command::Dlp(args) => dlp::run(args),
        Command::Hostile(args) => hostile::run(args).await,
        Command::Rolling(args) => rolling::run(args).await,
        Command::Systems(args) => systems::run(args).await,
        Command::Overload(args) => overload::run(args).await,
        Command::Builds(args) => builds::run(args).await,
        Command::Count(args) => count::run(args).await,
        Command::ServeUpstream => upstream::serve().await.map(holds),
        Command::ServeHostile => hostile::serve().await.map(holds),
        Command::ServeTraps => hostile::serve_traps().await.map(holds),
        Command::ServePassing { upstream } => relay::pass_on(*upstream).await.map(holds),
        Command::ServeBracket { upstream, database } => {
            bracket::serve(*upstream, database).await.map(holds)
        }
    };
    match verdict {
        Ok(Verdict::Holds) => ExitCode::SUCCESS,
        Ok(Verdict::Broken) => ExitCode::FAILURE,
        Err(failure) => {
            say_aside(&format!("portcullis-bench: {failure}\n"));
            ExitCode::from(2)
        }
    }
}

fn holds((): ()) -> Verdict {
    Verdict::Holds
}

/// Writes results to standard output; a reader that went away is no reason to stop.
fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Writes progress to standard error.
fn say_aside(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
