//! `portcullis audit tail`.

use clap::Args;
use serde_json::Value;

use super::filters::Filters;
use crate::cli::{
    api::{Api, OfOrg, Orgs},
    installation::Installation,
    output::{Failure, Output, json_text},
};

const EVENTS: &str = "/v1/audit/events";
/// Events that are asked for at once.
const MOST: usize = 200;

/// Shows the end of an org's log, an event a line; with `--json` the records as the API lists
/// them.
#[derive(Args)]
pub(in crate::cli) struct Tail {
    /// Number of past events to begin with
    #[arg(long, short = 'n', default_value_t = 10)]
    lines: u32,
    /// Go on with what comes, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    of: OfOrg,
}

impl Tail {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let of = self.of.clone();
        let show = async |api: &Api<'_>| {
            tokio::select! {
                ended = self.show(api) => ended,
                _ = tokio::signal::ctrl_c() => Ok(()),
            }
        };
        of.installation.ask(Orgs::Log(of.org.as_deref()), show).await
    }

    async fn show(self, api: &Api<'_>) -> Result<(), Failure> {
        let Self { lines, follow, filters, of } = self;
        let Installation { json, .. } = of.installation;
        let print = |events: &[Value]| print(Output::new(json), json, events);
        let given = filters.into_parameters(api).await?;
        let given = given.into_iter().map(|(name, values)| (name, values.join(","))).collect();
        let mut watched = Watched { api, given, last: None };
        let events = watched.end(usize::try_from(lines)?).await?;
        if print(&events)? && follow { watched.follow(print).await } else { Ok(()) }
    }
}

/// The events of a log that fit.
struct Watched<'a> {
    api: &'a Api<'a>,
    /// Their filters.
    given: Vec<(String, String)>,
    /// The newest that was seen.
    last: Option<Value>,
}

impl Watched<'_> {
    /// A page of them, with the position at which it goes on.
    async fn page(
        &self,
        more: &[(&str, &str)],
        cursor: Option<&str>,
    ) -> Result<(Vec<Value>, Option<String>), Failure> {
        let given = self.given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let cursor = cursor.map(|cursor| ("cursor", cursor));
        let asked: Vec<_> = given.chain(more.iter().copied()).chain(cursor).collect();
        self.api.page(EVENTS, &asked).await
    }

    /// The last ones, the oldest first.
    async fn end(&mut self, lines: usize) -> Result<Vec<Value>, Failure> {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let missing = lines.saturating_sub(found.len()).clamp(1, MOST).to_string();
            let page = self.page(&[("limit", missing.as_str())], cursor.as_deref()).await?;
            found.extend(page.0);
            cursor = page.1;
            if found.len() >= lines || cursor.is_none() {
                break;
            }
        }
        self.last = found.first().cloned();
        found.truncate(lines);
        found.reverse();
        Ok(found)
    }

    /// Prints new events until the reader of the output is gone.
    async fn follow(
        &mut self,
        print: impl Fn(&[Value]) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let since = self.last.as_ref().and_then(|it| it.get("recorded_at")?.as_str());
        let since = since.map(|since| ("from", since.to_owned()));
        let most = MOST.to_string();
        let mut asked = vec![("order", "asc"), ("tail", "true"), ("limit", most.as_str())];
        asked.extend(since.as_ref().map(|(name, since)| (*name, since.as_str())));
        let mut last = self.last.as_ref().map_or(-1, sequence);
        let mut cursor = None;
        loop {
            let (mut events, next) = self.page(&asked, cursor.as_deref()).await?;
            cursor = next;
            let is_full = events.len() == MOST;
            events.retain(|event| sequence(event) > last);
            last = events.last().map_or(last, sequence);
            if !print(&events)? {
                return Ok(());
            }
            if !is_full {
                tokio::time::sleep(self.api.pace()).await;
            }
        }
    }
}

fn sequence(event: &Value) -> i64 {
    event.get("sequence").and_then(Value::as_i64).unwrap_or(-1)
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
