//! Events of the calls in the gateway's audit log.

use std::net::SocketAddr;

use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{
    Failure,
    client::{Connection, get},
};

/// The whole log, and its events of type `mcp.invocation`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventCounts {
    /// Events of any type.
    pub(crate) all: u64,
    /// Places of the log that are not where they have to be.
    pub(crate) gaps: u64,
    pub(crate) events: u64,
    /// Calls with an unknown end.
    pub(crate) unknown: u64,
    /// Calls that have no end yet.
    pub(crate) open: u64,
}

impl EventCounts {
    fn take(&mut self, event: &Value) {
        if event.get("sequence").and_then(Value::as_u64) != Some(self.all) {
            self.gaps += 1;
        }
        self.all += 1;
        if event.get("type").and_then(Value::as_str) != Some("mcp.invocation") {
            return;
        }
        self.events += 1;
        match event.pointer("/outcome/status").and_then(Value::as_str) {
            Some("unknown") => self.unknown += 1,
            Some(_) => {}
            None => self.open += 1,
        }
    }
}

/// Pages through the whole log; fails when the gateway answers anything but pages.
pub(crate) async fn count(address: SocketAddr, token: &str) -> Result<EventCounts, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut counted = EventCounts::default();
    let mut cursor = None;
    loop {
        let request = get(address, token, &page_path(cursor.as_deref()))?;
        let page = connection.send(request).await?.ok()?.json()?;
        let items = page.pointer("/data/items").and_then(Value::as_array);
        for event in items.ok_or("a page of events has no `data.items`")? {
            counted.take(event);
        }
        match page.pointer("/meta/pagination/next_cursor").and_then(Value::as_str) {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(counted),
        }
    }
}

fn page_path(cursor: Option<&str>) -> String {
    let first = "/v1/audit/events?order=asc&limit=200";
    cursor.map_or_else(
        || first.to_owned(),
        |cursor| format!("{first}&cursor={}", utf8_percent_encode(cursor, NON_ALPHANUMERIC)),
    )
}

/// Events among these that the gateway does not know; asks over several connections at a time.
pub(crate) async fn missing(
    address: SocketAddr,
    token: &str,
    ids: &[String],
) -> Result<Vec<String>, Failure> {
    let mut searches = JoinSet::new();
    for part in ids.chunks(ids.len().div_ceil(SEARCHES).max(1)) {
        searches.spawn(search(address, token.to_owned(), part.to_vec()));
    }
    let mut missing = Vec::new();
    while let Some(found) = searches.join_next().await {
        missing.extend(found??);
    }
    missing.sort_unstable();
    Ok(missing)
}

const SEARCHES: usize = 8;

async fn search(
    address: SocketAddr,
    token: String,
    ids: Vec<String>,
) -> Result<Vec<String>, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut missing = Vec::new();
    for id in ids {
        let request = get(address, &token, &format!("/v1/audit/events/{id}"))?;
        let answer = connection.send(request).await?;
        if answer.status == StatusCode::NOT_FOUND {
            missing.push(id);
            continue;
        }
        let event = answer.ok()?.json()?;
        if event.pointer("/data/id").and_then(Value::as_str) != Some(id.as_str()) {
            return Err(format!("the event of `{id}` has another id").into());
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_counted_by_their_end() {
        let mut counted = EventCounts::default();

        let outcomes = [json!({"status": "success"}), json!({"status": "unknown"}), json!(null)];
        for (outcome, sequence) in outcomes.into_iter().zip([0, 1, 3]) {
            let kind = "mcp.invocation";
            counted.take(&json!({ "type": kind, "sequence": sequence, "outcome": outcome }));
        }
        counted.take(&json!({ "type": "token.issued", "sequence": 3 }));

        let counts = EventCounts { all: 4, gaps: 1, events: 3, unknown: 1, open: 1 };
        assert_eq!(counted, counts);
    }

    #[test]
    fn a_cursor_is_encoded_into_the_query() {
        assert!(page_path(Some("c1.a+b/=")).ends_with("&cursor=c1%2Ea%2Bb%2F%3D"));
    }
}
