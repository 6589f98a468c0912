//! `portcullis audit tail`.

use std::time::Duration;

use clap::Args;
use portcullis_app::audit::filters::event_filter;
use serde_json::Value;

use super::filters::Filters;
use crate::cli::{
    installation::Installation,
    output::{Failure, Output, json_text},
    remote::RemoteGateway,
};

/// Interval between two looks for new events.
const LOOK: Duration = Duration::from_millis(500);
/// The same over the API, where a look counts against the limit of requests.
const REMOTE_LOOK: Duration = Duration::from_secs(2);
/// Events of one look over the API at most.
const MOST: u32 = 200;

/// Shows the end of an org's log, an event a line; with `--json` the records as the API lists
/// them.
#[derive(Args)]
pub(in crate::cli) struct Tail {
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    org: Option<String>,
    /// Number of past events to begin with
    #[arg(long, short = 'n', default_value_t = 10)]
    lines: u32,
    /// Go on with what comes, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    installation: Installation,
}

impl Tail {
    pub(super) async fn run(self) -> Result<(), Failure> {
        if let Some(gateway) = self.installation.gateway(self.org.as_deref()).await? {
            return tokio::select! {
                ended = self.show_from(&gateway) => ended,
                _ = tokio::signal::ctrl_c() => Ok(()),
            };
        }
        let config = self.installation.config()?;
        let node = self.installation.node().await?;
        let output = self.installation.output();
        let json = self.installation.json;
        let following = async || -> Result<(), Failure> {
            let org = node.shell.org_or_only(self.org.as_deref()).await?;
            let given = self.filters.into_parameters(&node, org.id).await?;
            let filter = event_filter(&given).map_err(|wrong| wrong.to_string())?;
            let identity = node.log_identity(&config).await?;
            let mut tail = node.shell.log_end(&org, identity, &filter, self.lines).await?;
            while print(output, json, &tail.events)? && self.follow {
                tokio::time::sleep(LOOK).await;
                let host = config.server.public_host.as_str();
                tail = node.shell.log_after(&org, host, &filter, tail.reached).await?;
            }
            Ok(())
        };
        let ended = tokio::select! {
            ended = following() => ended,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
        node.close().await;
        ended
    }
}

impl Tail {
    /// The same over the API: one's own events, or with `audit:read` those of the org.
    async fn show_from(self, gateway: &RemoteGateway) -> Result<(), Failure> {
        let output = self.installation.output();
        let json = self.installation.json;
        let given = self.filters.into_parameters_at(gateway).await?;
        let given: Vec<(&str, String)> =
            given.iter().map(|(name, values)| (name.as_str(), values.join(","))).collect();
        let sequence = |event: &Value| event.get("sequence").and_then(Value::as_i64).unwrap_or(-1);
        let mut last = None;
        loop {
            let most = if last.is_none() { self.lines.min(MOST) } else { MOST };
            let limit = most.max(1).to_string();
            let mut asked = vec![("limit", limit.as_str())];
            asked.extend(given.iter().map(|(name, value)| (*name, value.as_str())));
            let (mut events, _) = gateway.page("/v1/audit/events", &asked).await?;
            let newest = events.first().map(sequence).or(last);
            events.retain(|event| last.is_none_or(|last| sequence(event) > last));
            events.truncate(usize::try_from(most)?);
            if last.is_some() && events.len() == usize::try_from(MOST)? {
                output.warn("events came faster than they are shown here: some are left out");
            }
            events.reverse();
            if !print(output, json, &events)? || !self.follow {
                return Ok(());
            }
            last = newest.or(Some(-1));
            tokio::time::sleep(REMOTE_LOOK).await;
        }
    }
}

/// Prints events; `false` when the reader is gone.
fn print(output: Output, json: bool, events: &[Value]) -> Result<bool, Failure> {
    for event in events {
        if !output.is_read(&if json { json_text(&event.to_string()) } else { line(event) })? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An event as a line: when, where in the log, what, who, to what, how it was decided and ended.
fn line(event: &Value) -> String {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
    let sequence = event.get("sequence").and_then(Value::as_i64).unwrap_or_default();
    let who = match (text("/detached/actor_name"), text("/actor/id")) {
        ("-", "-") => text("/actor/type"),
        ("-", id) => id,
        (name, _) => name,
    };
    let parts = [
        text("/recorded_at"),
        &sequence.to_string(),
        text("/type"),
        who,
        text("/target/id"),
        text("/governance/decision"),
        text("/governance/policy"),
        text("/outcome/status"),
    ];
    // A terminal obeys control characters.
    parts.join("  ").chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_in_an_event_moves_the_cursor() {
        let event = json!({
            "sequence": 7, "recorded_at": "2026-11-20T11:02:15.123Z", "type": "mcp.invocation",
            "actor": {"id": "sa_1", "type": "service"}, "target": {"id": "a:b\u{1b}[2J\nx"},
            "detached": {"actor_name": null}, "outcome": {"status": "denied"},
            "governance": {"decision": "deny", "policy": "p"},
        });

        assert_eq!(
            line(&event),
            "2026-11-20T11:02:15.123Z  7  mcp.invocation  sa_1  a:b?[2J?x  deny  p  denied"
        );
    }
}
