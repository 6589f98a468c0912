//! Filters of events as people give them: in a query, in a body, on a command line. One reading
//! for all, so that a filter never means two things.

use std::collections::BTreeMap;

use portcullis_store::{EventActor, EventFilter, EventTarget};

/// The filters there are, but for the range of time.
pub const FILTERS: [&str; 8] =
    ["type", "actor", "target", "decision", "policy", "dlp_result", "outcome", "request_id"];

/// Filters that take several values; any of them may match.
pub const MANY: [&str; 5] = ["type", "decision", "policy", "dlp_result", "outcome"];

const DECISIONS: [&str; 2] = ["allow", "deny"];
const DLP_RESULTS: [&str; 5] = ["passed", "flagged", "redacted", "blocked", "skipped"];
const OUTCOMES: [&str; 12] = [
    "success", "tool_error", "input_required", "approval_pending", "denied", "invalid",
    "not_found", "rate_limited", "upstream_error", "upstream_timeout", "unavailable", "unknown",
];
const LONGEST_TARGET: usize = 200;

/// Values given, by the name of the filter.
pub type Given = BTreeMap<String, Vec<String>>;

/// Something given is wrong: which, and what about it, to stand behind its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` {problem}")]
pub struct Wrong {
    pub name: String,
    pub problem: String,
}

impl Wrong {
    pub(crate) fn new(name: &str, problem: impl Into<String>) -> Self {
        Self { name: name.chars().take(100).collect(), problem: problem.into() }
    }
}

/// Reads the filters. Rejects unknown names, values that nothing can match, and a filter without
/// any: one that came out empty by mistake must not select everything.
pub fn event_filter(given: &Given) -> Result<EventFilter, Wrong> {
    for (name, values) in given {
        if !FILTERS.contains(&name.as_str()) {
            let problem = format!("is no filter; there are {}", FILTERS.join(", "));
            return Err(Wrong::new(name, problem));
        }
        if values.is_empty() || values.iter().any(|value| value.trim().is_empty()) {
            return Err(Wrong::new(name, "is empty; give it a value or leave it out"));
        }
        if values.len() > 1 && !MANY.contains(&name.as_str()) {
            return Err(Wrong::new(name, "takes one value"));
        }
        if values.iter().any(|value| value.contains('\0')) {
            return Err(Wrong::new(name, "is not a valid text"));
        }
    }
    let list = |name: &str| given.get(name).cloned().unwrap_or_default();
    Ok(EventFilter {
        from: None,
        to: None,
        kinds: list("type"),
        actor: actor(given)?,
        target: target(given)?,
        decisions: among("decision", list("decision"), &DECISIONS)?,
        policies: list("policy"),
        dlp_results: among("dlp_result", list("dlp_result"), &DLP_RESULTS)?,
        outcomes: among("outcome", list("outcome"), &OUTCOMES)?,
        request_id: one(given, "request_id")
            .map(|text| {
                let wrong = |_| Wrong::new("request_id", "has to be a `req_…` id");
                text.parse().map_err(wrong)
            })
            .transpose()?,
    })
}

fn one<'a>(given: &'a Given, name: &str) -> Option<&'a str> {
    given.get(name).and_then(|values| values.first()).map(String::as_str)
}

fn among(name: &str, values: Vec<String>, allowed: &[&str]) -> Result<Vec<String>, Wrong> {
    if values.iter().all(|value| allowed.contains(&value.as_str())) {
        Ok(values)
    } else {
        Err(Wrong::new(name, format!("takes {}", allowed.join(", "))))
    }
}

fn actor(given: &Given) -> Result<Option<EventActor>, Wrong> {
    let Some(text) = one(given, "actor") else { return Ok(None) };
    let principal = text.parse().map(EventActor::Principal).ok();
    let actor = principal.or_else(|| text.parse().map(EventActor::Token).ok());
    actor.map(Some).ok_or_else(|| Wrong::new("actor", "has to be a `usr_…`, `sa_…` or `tok_…` id"))
}

fn target(given: &Given) -> Result<Option<EventTarget>, Wrong> {
    let Some(text) = one(given, "target") else { return Ok(None) };
    if text.chars().count() > LONGEST_TARGET {
        return Err(Wrong::new("target", format!("may be {LONGEST_TARGET} characters long")));
    }
    Ok(Some(match text.strip_suffix('*') {
        Some(start) => EventTarget::StartsWith(start.to_owned()),
        None => EventTarget::Is(text.to_owned()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, values: &[&str]) -> Given {
        Given::from([(name.to_owned(), values.iter().map(|&value| value.to_owned()).collect())])
    }

    #[test]
    fn what_selects_nothing_or_everything_by_mistake_is_refused() {
        for (name, values) in [
            ("typ", &["mcp.invocation"][..]),
            ("from", &["2026-11-20T11:02:15Z"]),
            ("type", &[]),
            ("type", &["mcp.invocation", " "]),
            ("actor", &["alice"]),
            ("actor", &["usr_01M754BKTKX1YB8Q05NMW9TP4G", "usr_01M754BKTKX1YB8Q05NMW9TP4G"]),
            ("decision", &["maybe"]),
            ("outcome", &["denied", "refused"]),
            ("dlp_result", &["none"]),
            ("request_id", &["x"]),
            ("policy", &["a\0b"]),
        ] {
            let wrong = event_filter(&given(name, values)).unwrap_err();

            assert_eq!(wrong.name, name);
        }
        assert!(event_filter(&given("target", &["x".repeat(201).as_str()])).is_err());
    }

    #[test]
    fn a_target_may_be_a_beginning() {
        let filter = event_filter(&given("target", &["github:*"])).unwrap();

        assert_eq!(filter.target, Some(EventTarget::StartsWith("github:".to_owned())));
    }
}
