//! Portcullis: a governed MCP gateway in one binary.

mod boot;
mod cli;
mod config;
mod reload_report;
mod serve;
mod telemetry;
mod tls;
mod watch;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
