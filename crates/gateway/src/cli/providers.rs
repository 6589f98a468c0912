//! `portcullis provider`: what the declared providers are like, and how the gateway is known to them. Without `--url`,
//! `list` reaches them from here and shows what is declared, which no org's list of connections is.

mod test;

use clap::{Args, Subcommand};
use portcullis_app::{Awaited, Fallback, ProviderState};
use serde_json::{Value, json};

use super::{
    api::{Api, Shape},
    client_config,
    installation::Installation,
    output::{Failure, Output},
};
use crate::{
    boot::{Mode, Node},
    config::Config,
};

/// Sentence where there is nothing to connect.
pub(super) const NO_PROVIDER: &str = "nothing to connect: the configuration has no `[[providers]]`";

/// State of a provider whose program was not started, because its tools are known.
const KNOWN: &str = "known";

/// Commands about providers.
#[derive(Subcommand)]
pub(super) enum Providers {
    /// List the providers with their states and what those without a connection wait for
    ///
    /// With `--url`, the gateway there is asked. Otherwise providers are asked from here, but for programs whose
    /// tools are known from a gateway that ran.
    #[command(after_help = "Example: portcullis provider list --json")]
    List(List),
    Test(test::Test),
    /// Register the gateway with the authorization server of a provider
    #[command(
        after_help = "Example: portcullis provider register --again tickets\n\nAn authorization server that forgot \
                      the gateway often says so only on the page that people see. Connections of people who \
                      connected before have to be made anew."
    )]
    Register(Register),
}

#[derive(Args)]
pub(super) struct List {
    #[command(flatten)]
    installation: Installation,
    /// Start the programs of providers although their tools are known from a gateway that ran
    #[arg(long)]
    start: bool,
}

#[derive(Args)]
pub(super) struct Register {
    /// Slug of the provider
    #[arg(value_name = "SLUG")]
    slug: String,
    /// In the place of the registration that there is
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    installation: Installation,
}

impl Providers {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run().await,
            Self::Test(test) => test.run().await,
            Self::Register(register) => register.run().await,
        }
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let records = match self.installation.gateway(None).await? {
            Some(_) if self.start => {
                return Err("leave out `--start`: it is about programs of this machine".into());
            }
            Some(gateway) => listed_there(&gateway).await?,
            None => self.listed_here().await?,
        };
        self.installation.output().table(&records, SHAPE.columns)
    }

    async fn listed_here(&self) -> Result<Vec<Value>, Failure> {
        let config = self.installation.config()?;
        let output = self.installation.output();
        let node = Node::assemble(&config, Fallback::Refuse, Mode::Check).await?;
        let recalled = reach(&node, &config, self.start, output).await?;
        let states = node.app.providers.provider_states().await?;
        node.store.close().await;
        if states.is_empty() {
            output.note(NO_PROVIDER);
        }
        Ok(states.iter().map(|state| record(state, &recalled)).collect())
    }
}

/// A connection, or a provider without one.
const SHAPE: Shape = Shape {
    members: &["slug", "status", "exposes", "tools", "dropped", "waits_for", "last_error"],
    columns: &["slug", "status", "exposes", "tools", "dropped", "waits_for", "last_error"],
    add: |members| {
        members.entry("status").or_insert_with(|| json!("pending"));
        members.entry("tools").or_insert_with(|| json!(0));
        members.entry("dropped").or_insert_with(|| json!([]));
    },
};

/// Connections that the gateway shows to the token, and the providers without a connection.
async fn listed_there(gateway: &Api<'_>) -> Result<Vec<Value>, Failure> {
    let mut all = gateway.list("/v1/providers", &[]).await?;
    all.extend(gateway.list("/v1/providers/waiting", &[]).await?);
    gateway.records(all, &SHAPE).await
}

/// Reaches the providers. Gives those whose tools are known, and whose programs were left alone.
pub(super) async fn reach(
    node: &Node,
    config: &Config,
    start: bool,
    output: Output,
) -> Result<Vec<String>, Failure> {
    let patience = config.server.command_patience();
    let missing = config.providers.iter().filter(|it| it.missing_program().is_some());
    let missing: Vec<&str> = missing.map(|it| it.slug.as_str()).collect();
    let nodes = &node.app.nodes;
    let recalled = if start { Vec::new() } else { nodes.recall_programs(&missing).await? };
    if recalled.len() < config.providers.len() {
        output.note(&format!(
            "asking the providers, for at most {} s (`server.provider_patience_seconds`)",
            patience.as_secs()
        ));
    }
    nodes.connect_providers(patience, &recalled).await;
    Ok(recalled)
}

impl Register {
    async fn run(self) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let node = Node::assemble(&config, Fallback::Refuse, Mode::Check).await?;
        node.app.providers.found_at(&client_config::origin(&config.server)?);
        let registered = node.app.providers.register(&self.slug, self.again).await;
        node.store.close().await;
        let registered = registered?;
        let shown = json!({
            "slug": self.slug, "issuer": registered.issuer, "client_id": registered.client_id,
        });
        let text = format!("registered with {} as {}", registered.issuer, registered.client_id);
        self.installation.output().record(&shown, &text)
    }
}

/// State of a provider in a word; `recalled` are those whose programs were left alone.
pub(super) fn status_of(state: &ProviderState, recalled: &[String]) -> &'static str {
    if recalled.contains(&state.slug) { KNOWN } else { state.status.as_str() }
}

fn record(state: &ProviderState, recalled: &[String]) -> Value {
    json!({
        "slug": state.slug, "status": status_of(state, recalled), "exposes": state.exposes, "dropped": state.dropped,
        "tools": state.tools, "waits_for": state.waits_for.map(Awaited::as_str), "last_error": state.last_error,
    })
}
