//! `portcullis provider`: what the declared providers are like, and how the gateway is known to them.

mod test;

use clap::{Args, Subcommand};
use portcullis_app::{Fallback, ProviderState};
use serde_json::{Value, json};

use super::{Failure, Installation, client_config};
use crate::boot::{Node, Standing};

/// Sentence where there is nothing to connect.
pub(super) const NO_PROVIDER: &str = "nothing to connect: the configuration has no `[[providers]]`";

/// Commands about providers.
#[derive(Subcommand)]
pub(super) enum Providers {
    /// Connect every provider once and say what came of it
    #[command(after_help = "Example: portcullis provider list --json")]
    List {
        #[command(flatten)]
        installation: Installation,
    },
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
            Self::List { installation } => {
                let config = installation.config()?;
                let node = Node::assemble(&config, Fallback::Refuse, Standing::Looking).await?;
                let patience = config.server.command_patience();
                node.app.nodes.connect_providers(patience, &[]).await;
                let states = node.app.providers.provider_states().await;
                node.store.close().await;
                if states.is_empty() {
                    installation.output().note(NO_PROVIDER);
                }
                let records: Vec<Value> = states.iter().map(record).collect();
                installation.output().table(&records, &["slug", "status", "tools", "last_error"])
            }
            Self::Test(test) => test.run().await,
            Self::Register(register) => register.run().await,
        }
    }
}

impl Register {
    async fn run(self) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let node = Node::assemble(&config, Fallback::Refuse, Standing::Looking).await?;
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

fn record(state: &ProviderState) -> Value {
    json!({
        "slug": state.slug, "status": state.status.as_str(), "tools": state.tools,
        "last_error": state.last_error,
    })
}
