//! `portcullis check`.

mod login;
mod secrets;
mod trust;

use std::path::Path;

use clap::Args;
use portcullis_app::{Awaited, Fallback, IssuerState, ProviderState, Reloading};
use portcullis_core::policy::{PolicyError, PolicySet};
use portcullis_store::{Durability, ProviderStatus, UnreadableRow};
use serde_json::{Value, json};

use self::trust::CheckedRule;
use super::{
    installation::Installation,
    output::Failure,
    policy::unknown_approvers,
    providers::{NO_PROVIDER, reach, status_of},
};
use crate::{
    boot::{self, BootError, Mode, Node},
    config::{Config, Provider},
    serve::BindError,
    tls::TlsAcceptor,
};

#[derive(Args)]
pub(super) struct Check {
    #[command(flatten)]
    installation: Installation,
    /// Start the programs of providers although their tools are known from a gateway that ran
    #[arg(long)]
    start: bool,
}

impl Check {
    /// Does what `serve` does before it binds its port, looks for who authorizes access to the
    /// providers, tells what was found, and stops.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.installation.own_config()?.of_installation()?;
        self.installation.warn_if_outdated(&config);
        let node = Node::assemble(&config, Fallback::Nothing, Mode::Check).await?;
        let recalled = reach(&node, &config, self.start, self.installation.output()).await?;
        node.app.providers.find_authorizers(config.server.command_patience()).await;
        // Policies are judged against the tools that are known now.
        let errors =
            node.app.policies.reload_policies(Reloading::Ordered).await.err().unwrap_or_default();
        let durability = node.store.durability().await?;
        let providers = node.app.providers.provider_states().await?;
        let trusted = trust::check(node.app.access.trust(), &node.store).await?;
        let issuers = node.app.logins.issuer_states().await;
        let exposed = secrets::exposed(&config);
        let unreadable = node.app.providers.unreadable().await?;
        let (set, _) = node.app.policies.policy_set();
        let restart = boot::needing_restart(&config);
        let many = config.mcp.told_of_many(node.app.providers.count_tools());
        let warnings = warnings(&config, &node, &set).await?;
        let shown = json!({
            "database": database_json(&durability),
            "exposed_keys": exposed,
            "many_tools": many,
            "needing_restart": restart,
            "login": issuers.iter().map(login::to_json).collect::<Vec<_>>(),
            "policy_set": set.version(),
            "policy_errors": errors,
            "providers": providers.iter().map(|it| provider_json(it, &recalled)).collect::<Vec<_>>(),
            "trust": trusted.iter().map(CheckedRule::to_json).collect::<Vec<_>>(),
            "unreadable": unreadable.iter().map(unreadable_json).collect::<Vec<_>>(),
            "warnings": warnings,
        });
        let mut text = database_text(&durability);
        text.extend(exposed.iter().map(|file| exposed_text(file)));
        text.extend(restart_text(&restart));
        text.extend(policies_text(&set, &errors, &config.policy_folder()));
        text.extend(providers_text(&providers, &config, &recalled));
        text.extend(many.map(|many| format!("mcp         {many}")));
        text.extend(trusted.iter().flat_map(CheckedRule::to_text));
        text.extend(issuers.iter().map(login::to_text));
        text.extend(counters_text(&config, &node)?);
        text.extend(unreadable.iter().map(unreadable_text));
        text.extend(warnings.iter().map(|warning| format!("warning     {warning}")));
        self.installation.output().record(&shown, &text.join("\n"))?;
        node.store.close().await;
        let wrong = [
            (!exposed.is_empty(), "others can read keys of this installation"),
            (!node.app.quotas.counts(), "the counters of the limits cannot be reached"),
            (providers.iter().any(is_unusable), "some providers cannot be used"),
            (trusted.iter().any(|rule| !rule.is_usable()), "some trust rules cannot be used"),
            (issuers.iter().any(|it| it.error.is_some()), "people cannot log in at some issuers"),
            (!unreadable.is_empty(), "some stored rows cannot be read"),
        ];
        let weak = boot::weakness(&config, &durability);
        let weak = weak.map(|it| BootError::Durability(it).to_string()).into_iter();
        let policies = errors.first().map(|error| format!("the policies have errors: {error}"));
        let wrong = wrong.iter().filter(|(is_so, _)| *is_so).map(|(_, what)| (*what).to_owned());
        let wrong: Vec<_> = weak.chain(tls_fault(&config)).chain(policies).chain(wrong).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
    }
}

/// Reason that `serve` could not speak TLS.
fn tls_fault(config: &Config) -> Option<String> {
    let error = TlsAcceptor::load(config.server.tls.as_ref()?).err()?;
    Some(BindError::Tls(error).to_string())
}

/// Warnings about unknown groups of approvers, and about exceptions of DLP for unknown tools.
async fn warnings(config: &Config, node: &Node, set: &PolicySet) -> Result<Vec<String>, Failure> {
    let approvers = unknown_approvers(set, config, &node.store).await?;
    let approvers = approvers.iter().map(|(it, text)| format!("the policy `{}`: {text}", it.id));
    let slugs: Vec<&str> = config.providers.iter().map(|it| it.slug.as_str()).collect();
    Ok(approvers.chain(config.dlp.idle_allows(&slugs)).collect())
}

/// The policies of the folder, or those that were last in force if it does not load.
fn policies_text(set: &PolicySet, errors: &[PolicyError], folder: &Path) -> Vec<String> {
    let built_in = set.records().iter().filter(|record| record.builtin).count();
    let written = set.records().len() - built_in;
    if written == 0 && !folder.exists() {
        let folder = folder.display();
        return vec![format!(
            "policies    there is no folder `{folder}` yet, and `serve` does not start without one; \
             `portcullis policy init` makes it"
        )];
    }
    let mut text = vec![format!("policies    {written}, built in {built_in}: {}", set.version())];
    if !errors.is_empty() {
        let kept = "they were last in force; the folder as it is would not be loaded:";
        text.push(format!("            {kept}"));
        text.extend(errors.iter().map(|error| format!("            {error}")));
    } else if set.summary().active == 0 {
        text.push("            no active policy: every call would be denied".to_owned());
    }
    text
}

/// Settings that the node which serves here has not taken.
fn restart_text(changed: &[String]) -> Option<String> {
    let names = changed.join(", ");
    let text =
        format!("settings    changed since the node here started, which needs a restart: {names}");
    (!changed.is_empty()).then_some(text)
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

/// A provider without a connection is not broken.
fn is_unusable(provider: &ProviderState) -> bool {
    match provider.status {
        ProviderStatus::Connected => false,
        ProviderStatus::Pending => provider.waits_for.is_none(),
        ProviderStatus::Starting | ProviderStatus::NeedsAuth | ProviderStatus::Error => true,
    }
}

fn provider_json(provider: &ProviderState, recalled: &[String]) -> Value {
    json!({
        "slug": provider.slug,
        "status": status_of(provider, recalled),
        "tools": provider.tools,
        "last_error": provider.last_error,
        "waits_for": provider.waits_for.map(Awaited::as_str),
        "issuer": provider.issuer.as_ref().map(IssuerState::name),
        "issuer_from": provider.issuer.as_ref().map(IssuerState::said_by),
    })
}

fn providers_text(
    providers: &[ProviderState],
    config: &Config,
    recalled: &[String],
) -> Vec<String> {
    if providers.is_empty() {
        return vec![format!("provider    {NO_PROVIDER}")];
    }
    providers.iter().flat_map(|it| provider_text(it, config, recalled)).collect()
}

fn provider_text(provider: &ProviderState, config: &Config, recalled: &[String]) -> Vec<String> {
    let ProviderState { slug, dropped, tools, last_error, waits_for, issuer, .. } = provider;
    let declared = config.providers.iter().find(|declared| declared.slug == slug.as_str());
    let missing = declared.and_then(Provider::missing_program);
    let missing = missing.map(|program| format!("there is no program `{program}`"));
    let why = missing.or_else(|| last_error.clone());
    let unasked = recalled.contains(slug).then(|| "not started; `--start` does".to_owned());
    let awaited = waits_for.map(|it| {
        let it = it.as_str();
        format!(
            "waits for a {it}: `POST /v1/providers/{slug}/connect`, or Providers in the console"
        )
    });
    let why = why.or(awaited).or(unasked).map(|error| format!(" ({error})")).unwrap_or_default();
    let status = status_of(provider, recalled);
    let mut text = vec![format!("provider    {slug}: {status}, {tools} tools{why}")];
    if !dropped.is_empty() {
        text.push(format!("            offers what does not pass: {}", dropped.join(", ")));
    }
    text.extend(issuer.as_ref().map(|issuer| match issuer {
        IssuerState::Configured(name) => format!("            bound to the issuer {name}"),
        IssuerState::Named(name) => format!("            the MCP server names the issuer {name}"),
    }));
    text
}
