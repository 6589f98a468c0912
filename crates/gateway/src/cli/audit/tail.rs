//! `portcullis audit tail`.

use std::time::Duration;

use clap::Args;
use portcullis_app::audit::filters::event_filter;
use serde_json::Value;

use super::filters::Filters;
use crate::cli::{Failure, Installation, output::Output};

/// Interval between two looks for new events.
const LOOK: Duration = Duration::from_millis(500);

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
        let config = self.installation.config()?;
        let office = self.installation.office().await?;
        let output = self.installation.output();
        let json = self.installation.json;
        let following = async || -> Result<(), Failure> {
            let org = office.shell.org_or_only(self.org.as_deref()).await?;
            let given = self.filters.given(&office, org.id).await?;
            let filter = event_filter(&given).map_err(|wrong| wrong.to_string())?;
            let identity = office.log_identity(&config).await?;
            let mut tail = office.shell.log_end(&org, identity, &filter, self.lines).await?;
            while print(output, json, &tail.events)? && self.follow {
                tokio::time::sleep(LOOK).await;
                let host = config.server.public_host.as_str();
                tail = office.shell.log_after(&org, host, &filter, tail.reached).await?;
            }
            Ok(())
        };
        let ended = tokio::select! {
            ended = following() => ended,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
        office.close().await;
        ended
    }
}

/// Prints events; `false` when the reader is gone.
fn print(output: Output, json: bool, events: &[Value]) -> Result<bool, Failure> {
    for event in events {
        if !output.is_read(&if json { event.to_string() } else { line(event) })? {
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
