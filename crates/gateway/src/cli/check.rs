//! `portcullis check`.

mod secrets;
mod trust;

use std::{path::Path, time::Duration};

use clap::Args;
use portcullis_app::{Fallback, IssuerState, ProviderState, Reloading};
use portcullis_store::{Durability, ProviderStatus, UnreadableRow};
use serde_json::{Value, json};

use self::trust::CheckedRule;
use super::{Failure, Installation};
use crate::{
    boot::{self, BootError, Node, Standing},
    config::{Config, Provider},
};

#[derive(Args)]
pub(super) struct Check {
    #[command(flatten)]
    installation: Installation,
}

impl Check {
    /// Does what `serve` does before it binds its port, looks for who authorizes access to the
    /// providers, tells what was found, and stops.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let node = Node::assemble(&config, Fallback::Refuse, Standing::Looking).await?;
        let patience = Duration::from_secs(config.server.provider_patience_seconds);
        node.app.nodes.connect_providers(patience).await;
        node.app.providers.find_authorizers(patience).await;
        // Policies are judged against the tools that are known now.
        let errors =
            node.app.policies.reload_policies(Reloading::Ordered).await.err().unwrap_or_default();
        let durability = node.store.durability().await?;
        let providers = node.app.providers.provider_states().await;
        let trusted = trust::check(node.app.access.trust(), &node.store).await?;
        let exposed = secrets::exposed(&config);
        let unreadable = node.app.providers.unreadable().await?;
        let (set, _) = node.app.policies.policy_set();
        let shown = json!({
            "database": database_json(&durability),
            "exposed_keys": exposed,
            "policy_set": set.version(),
            "policy_errors": errors,
            "providers": providers.iter().map(provider_json).collect::<Vec<_>>(),
            "trust": trusted.iter().map(CheckedRule::to_json).collect::<Vec<_>>(),
            "unreadable": unreadable.iter().map(unreadable_json).collect::<Vec<_>>(),
        });
        let weakness = boot::weakness(&config, &durability);
        let mut text = database_text(&durability);
        text.extend(exposed.iter().map(|file| exposed_text(file)));
        text.push(format!("policies    {} records, {}", set.records().len(), set.version()));
        text.extend(errors.iter().map(|error| format!("            {error}")));
        if set.summary().active == 0 {
            text.push("            no active policy: every call would be denied".to_owned());
        }
        text.extend(providers.iter().flat_map(|provider| provider_text(provider, &config)));
        text.extend(trusted.iter().flat_map(CheckedRule::to_text));
        text.extend(counters_text(&config, &node)?);
        text.extend(unreadable.iter().map(unreadable_text));
        self.installation.output().record(&shown, &text.join("\n"))?;
        node.store.close().await;
        let unusable = providers.iter().any(|it| it.status != ProviderStatus::Connected);
        let untrusted = trusted.iter().any(|rule| !rule.is_usable());
        if let Some(weakness) = weakness {
            return Err(BootError::Durability(weakness).into());
        }
        if !exposed.is_empty() {
            return Err("others can read keys of this installation".into());
        }
        if !node.app.quotas.counts() {
            return Err("the counters of the limits cannot be reached".into());
        }
        match (errors.is_empty(), unusable, untrusted) {
            (true, false, false) if !unreadable.is_empty() => {
                Err("some stored rows cannot be read".into())
            }
            (true, false, false) => Ok(()),
            (false, ..) => Err("the policies have errors".into()),
            (true, true, _) => Err("some providers cannot be used".into()),
            (true, false, true) => Err("some trust rules cannot be used".into()),
        }
    }
}

fn exposed_text(file: &Path) -> String {
    format!("key         anybody on this machine can read `{}`: chmod 600 it", file.display())
}

/// Server that counts limits, if nodes count together.
fn counters_text(config: &Config, node: &Node) -> Result<Option<String>, Failure> {
    let reached = if node.app.quotas.counts() { "reached" } else { "NOT reached" };
    let counters = config.limits.counters()?;
    Ok(counters.map(|there| format!("limits      counted at {there}: {reached}")))
}

fn database_json(database: &Durability) -> Value {
    json!({
        "engine": database.engine,
        "version": database.version,
        "journal": database.journal,
        "synchronous": database.synchronous,
        "survives_power_loss": database.survives_power_loss(),
        "weakness": database.weakness.as_ref().map(ToString::to_string),
        "whole_pages": database.whole_pages,
        "row_security": database.row_security,
    })
}

fn database_text(database: &Durability) -> Vec<String> {
    let survives = if database.survives_power_loss() { "survives" } else { "does NOT survive" };
    let mut text = vec![format!(
        "database    {} {}, synchronous {}, {survives} a power loss",
        database.engine, database.version, database.synchronous,
    )];
    if !database.whole_pages {
        text.push(format!("            {}", boot::TORN_PAGES));
    }
    if database.row_security == Some(false) {
        text.push(format!("            {}", boot::UNWALLED));
    }
    text
}

fn unreadable_json(UnreadableRow { table, row, why }: &UnreadableRow) -> Value {
    json!({ "table": table, "row": row, "why": why })
}

fn unreadable_text(UnreadableRow { table, row, why }: &UnreadableRow) -> String {
    format!("unreadable  {table}: {row}: {why}")
}

fn provider_json(provider: &ProviderState) -> Value {
    json!({
        "slug": provider.slug,
        "status": provider.status.as_str(),
        "tools": provider.tools,
        "last_error": provider.last_error,
        "issuer": provider.issuer.as_ref().map(IssuerState::name),
        "issuer_from": provider.issuer.as_ref().map(IssuerState::said_by),
    })
}

fn provider_text(provider: &ProviderState, config: &Config) -> Vec<String> {
    let ProviderState { slug, status, tools, last_error, issuer } = provider;
    let declared = config.providers.iter().find(|declared| declared.slug == slug.as_str());
    let missing = declared.and_then(Provider::missing_program);
    let missing = missing.map(|program| format!("there is no program `{program}`"));
    let why = missing.or_else(|| last_error.clone());
    let why = why.map(|error| format!(" ({error})")).unwrap_or_default();
    let mut text = vec![format!("provider    {slug}: {}, {tools} tools{why}", status.as_str())];
    text.extend(issuer.as_ref().map(|issuer| match issuer {
        IssuerState::Configured(name) => format!("            bound to the issuer {name}"),
        IssuerState::Named(name) => format!("            the MCP server names the issuer {name}"),
    }));
    text
}
