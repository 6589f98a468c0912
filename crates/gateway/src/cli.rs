//! The command line.

mod api;
mod approvals;
mod audit;
mod backup;
mod capabilities;
mod check;
mod client_config;
mod completions;
mod consents;
mod dlp;
mod examples;
mod generate;
mod import;
mod installation;
mod keys;
mod login_link;
mod migrate;
mod orgs;
mod output;
mod policy;
mod principals;
mod providers;
mod quickstart;
mod quickstart_tour;
mod ready;
mod remote;
mod serve;
mod sessions;
mod tokens;
mod trust;

use std::{process::ExitCode, time::Duration};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::{
    output::{Failure, Output},
    remote::GatewayOptions,
};

/// A governed MCP gateway: MCP tools over REST, under policy, DLP, limits and audit.
///
/// Begin with `portcullis quickstart`: it needs nothing, starts a gateway with a sample MCP
/// server on 127.0.0.1:8080 and shows an allowed, a denied and a redacted call.
#[derive(Parser)]
#[command(name = "portcullis", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    remote: GatewayOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a gateway with a sample server and show what it does; needs no configuration
    Quickstart(quickstart::Quickstart),
    /// Serve the API as the configuration says, until SIGTERM or Ctrl-C
    Serve(serve::Serve),
    /// Check configuration, key, database, policies, providers and trust rules, and stop
    Check(check::Check),
    /// Ask the node of this configuration, on this machine, whether it is ready; for health checks
    Ready(ready::Ready),
    /// Bring the schema of the database up to date, or move an SQLite installation into PostgreSQL
    Migrate(migrate::Migrate),
    Login(remote::LoginCommand),
    Logout(remote::LogoutCommand),
    Backup(backup::Backup),
    Restore(backup::Restore),
    /// Make, list and change orgs, the tenants of an installation
    #[command(subcommand)]
    Org(orgs::Orgs),
    /// Make and list users and service accounts
    #[command(subcommand)]
    Principal(principals::Principals),
    /// Make, list and revoke tokens
    #[command(subcommand)]
    Token(tokens::Tokens),
    LoginLink(login_link::LoginLink),
    /// List the browser sessions of people, and end one
    #[command(subcommand)]
    Session(sessions::Sessions),
    /// List the providers with their state, and register the gateway with one anew
    #[command(subcommand)]
    Provider(providers::Providers),
    /// List what was accepted of tools, prompts and resources, show what changed, and accept it
    #[command(subcommand, visible_alias = "tool")]
    Capability(capabilities::Capabilities),
    /// List the calls that wait for people, show one, and decide about it
    #[command(subcommand)]
    Approval(approvals::Approvals),
    /// List what people let OAuth clients do, and withdraw it
    #[command(subcommand)]
    Consent(consents::Consents),
    /// Print what MCP clients want in their settings to use this gateway
    ClientConfig(client_config::ClientConfig),
    /// Write the servers in the settings of an MCP client as `[[providers]]`
    Import(import::Import),
    /// Explain what the trust rules make of a caller's JWT
    #[command(subcommand)]
    Trust(trust::TrustCommand),
    /// Check, test, compare and try out policies
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Make, list and rotate keys
    #[command(subcommand)]
    Key(keys::Keys),
    /// Export, watch and verify the audit log, manage what signs it, erase from it and lay holds on it
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Scan files as calls are scanned, and try the detectors of the configuration
    #[command(subcommand)]
    Dlp(dlp::Dlp),
    Completions(completions::Completions),
    /// Print the OpenAPI 3.1 document of the API
    Openapi,
    /// Speak MCP over stdio as the sample server that `quickstart` uses
    SampleMcp,
    /// Write shell completions and man pages
    #[command(hide = true)]
    Generate(generate::Generate),
}

/// Runs the command line. Exit code 0 is success, 1 a failure told on stderr, 2 wrong usage;
/// `dlp` and `audit verify` have codes of their own.
pub(crate) fn main() -> ExitCode {
    let matches = examples::added_to(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output::fail(&error),
    };
    let ended = runtime.block_on(run(cli.command));
    // What has to be finished was waited for. A thread whose result is not needed is not.
    runtime.shutdown_timeout(PATIENCE);
    match ended {
        Ok(code) => code,
        Err(error) => output::fail(&*error),
    }
}

/// Time for blocking work to end with the command that began it.
const PATIENCE: Duration = Duration::from_secs(1);

async fn run(command: Command) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Dlp(dlp) => return Ok(dlp.run().await),
        Command::Audit(audit) => return audit.run().await,
        Command::Quickstart(quickstart) => quickstart.run().await,
        Command::Serve(serve) => serve.run().await,
        Command::Check(check) => check.run().await,
        Command::Ready(ready) => ready.run().await,
        Command::Migrate(migrate) => migrate.run().await,
        Command::Login(login) => login.run().await,
        Command::Logout(logout) => logout.run().await,
        Command::Backup(backup) => backup.run().await,
        Command::Restore(restore) => restore.run().await,
        Command::Org(orgs) => orgs.run().await,
        Command::Principal(principals) => principals.run().await,
        Command::Token(tokens) => tokens.run().await,
        Command::LoginLink(link) => link.run().await,
        Command::Session(sessions) => sessions.run().await,
        Command::Provider(providers) => providers.run().await,
        Command::Capability(capabilities) => capabilities.run().await,
        Command::Approval(approvals) => approvals.run().await,
        Command::Consent(consents) => consents.run().await,
        Command::ClientConfig(command) => command.run(),
        Command::Import(import) => import.run(),
        Command::Trust(trust) => trust.run().await,
        Command::Policy(policy) => policy.run().await,
        Command::Key(keys) => keys.run().await,
        Command::Completions(completions) => completions.run(Cli::command()),
        Command::Openapi => Output::new(false).line(portcullis_faces::openapi()),
        Command::Generate(generate) => generate.run(examples::added_to(Cli::command())),
        Command::SampleMcp => {
            portcullis_upstream::sample::serve_stdio(
                tokio::io::stdin(),
                tokio::io::stdout(),
                &crate::boot::SystemClock,
            )
            .await?;
            Ok(())
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}
