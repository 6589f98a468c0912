//! Measures Portcullis against the upstream it guards, and kills it under load.
//!
//! Without a subcommand it compares a direct `tools/call` with the same call through the gateway,
//! side by side and in turns. `systems` is the comparison with a hop that does nothing, a bare durable
//! bracket and both databases, `builds` compares several builds of the gateway, and `count` counts the
//! instructions of a call. `overload` sends twice of what can be answered, `hostile` measures what one
//! provider's or org's misery is to another, `rolling` restarts the nodes of a cluster under load, and `kill-loop`
//! checks that `kill -9` loses no recorded answer. `console` measures pages before a long log. `dlp` measures how fast bodies are scanned, and `dlp-accuracy` what is found in them.

use std::{error::Error, io::Write as _, process::ExitCode};

use clap::Parser as _;

use self::args::{Cli, Command};

mod accuracy;
mod args;
mod audit;
mod bracket;
mod builds;
mod client;
mod compare;
mod console;
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
mod people;
mod policies;
mod process;
mod proof;
mod relay;
mod report;
mod rolling;
mod sdk_upstream;
mod spare;
mod systems;
mod upstream;

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
        None => compare::run(&cli.compare).await,
        Some(Command::KillLoop(args)) => kill_loop::run(args).await,
        Some(Command::Dlp(args)) => dlp::run(args),
        Some(Command::DlpAccuracy(args)) => accuracy::run(args),
        Some(Command::Hostile(args)) => hostile::run(args).await,
        Some(Command::Rolling(args)) => rolling::run(args).await,
        Some(Command::Systems(args)) => systems::run(args).await,
        Some(Command::Overload(args)) => overload::run(args).await,
        Some(Command::Builds(args)) => builds::run(args).await,
        Some(Command::Count(args)) => count::run(args).await,
        Some(Command::Console(args)) => console::run(args).await,
        Some(Command::ServeUpstream) => upstream::serve().await.map(holds),
        Some(Command::ServeSdkUpstream) => sdk_upstream::serve().await.map(holds),
        Some(Command::ServeHostile) => hostile::serve().await.map(holds),
        Some(Command::ServeTraps) => hostile::serve_traps().await.map(holds),
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
