//! Measures Portcullis against the upstream it guards, and kills it under load.
//!
//! Without a subcommand it compares a direct `tools/call` with the same call through the gateway,
//! side by side and in turns. With `kill-loop` it checks that `kill -9` loses no recorded answer;
//! with `replay` it measures how long recorded calls take to be asked again, with `reload` what calls
//! notice of policies that change, with `authenticate` what it costs to find out who asks, with
//! `dlp` how fast bodies are scanned, with `recording` what it costs to record a call, with `audit` what
//! sealing, proving and verifying cost as a log grows, with `export` what exporting it takes beside
//! calls; with `upstream` what a call costs the client of upstreams, with `hostile` what one provider's
//! misery is to another. `systems` is the comparison with a hop that does nothing, a bare durable bracket
//! and both databases, `growth` lets what is around a call grow, `overload` sends twice of what can be answered, `soak` looks for
//! leaks, `builds` compares several builds of the gateway, and `faces` REST with MCP.

use std::{error::Error, io::Write as _, process::ExitCode};

use clap::Parser as _;

use self::args::{Cli, Command};

mod accuracy;
mod args;
mod audit;
mod authenticate;
mod bracket;
mod builds;
mod clean;
mod client;
mod client_cost;
mod compare;
mod disk;
mod dlp;
mod evidence;
mod export;
mod faces;
mod gateway;
mod growth;
mod hostile;
mod kill_loop;
mod load;
mod machine;
mod overload;
mod payload;
mod people;
mod policies;
mod process;
mod recording;
mod relay;
mod reload;
mod replay;
mod report;
mod sdk_upstream;
mod soak;
mod spare;
mod systems;
mod upstream;

/// That of the gateway, so that what is measured here is what it costs there.
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
        None => compare::run(&cli.compare).await,
        Some(Command::KillLoop(args)) => kill_loop::run(args).await,
        Some(Command::Recording(args)) => recording::run(args).await,
        Some(Command::Audit(args)) => evidence::run(args).await,
        Some(Command::Authenticate(args)) => authenticate::run(args).await,
        Some(Command::Reload(args)) => reload::run(args).await,
        Some(Command::Replay(args)) => replay::run(args).await,
        Some(Command::Export(args)) => export::run(args).await,
        Some(Command::Dlp(args)) => dlp::run(args),
        Some(Command::DlpAccuracy(args)) => accuracy::run(args),
        Some(Command::DlpClean(args)) => clean::run(args),
        Some(Command::Upstream(args)) => client_cost::run(args).await,
        Some(Command::Hostile(args)) => hostile::run(args).await,
        Some(Command::Systems(args)) => systems::run(args).await,
        Some(Command::Growth(args)) => growth::run(args).await,
        Some(Command::Soak(args)) => soak::run(args).await,
        Some(Command::Overload(args)) => overload::run(args).await,
        Some(Command::Builds(args)) => builds::run(args).await,
        Some(Command::Faces(args)) => faces::run(args).await,
        Some(Command::ServeUpstream { listen }) => upstream::serve(*listen).await.map(holds),
        Some(Command::ServeSdkUpstream) => sdk_upstream::serve().await.map(holds),
        Some(Command::ServeHostile) => hostile::serve().await.map(holds),
        Some(Command::ServeTraps) => hostile::serve_traps().await.map(holds),
        Some(Command::ServeProgram) => upstream::serve_program().await.map(holds),
        Some(Command::ServePassing { upstream }) => relay::pass_on(*upstream).await.map(holds),
        Some(Command::ServeBracket { upstream, database }) => {
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
