//! Portcullis: a governed MCP gateway in one binary.

mod boot;
mod cli;
mod config;
mod dlp_watch;
mod policy_watch;
mod reload_report;
mod serve;
mod telemetry;
mod tls;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
