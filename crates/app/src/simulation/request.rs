//! Request of a simulation.

mod ask;
mod draft;
mod options;
mod replay;

#[cfg(test)]
mod tests;

use portcullis_core::refusal::{Refusal, Violation};
use serde_json::Value;

pub use self::{
    ask::{Ask, Expectation, SimulatedPrincipal},
    draft::{Base, Draft},
    options::Options,
    replay::Replay,
};
use super::members::{Members, Read, violation};

/// The most calls of one request.
const MAX_ASKS: usize = 1_000;

/// One request to simulate.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// Hypothetical calls, or recorded ones.
    pub subject: Subject,
    pub draft: Draft,
    pub baseline: Option<Baseline>,
    /// Contents of the report and its time limit.
    pub options: Options,
}

/// Hypothetical calls, or recorded ones.
#[derive(Debug, Clone)]
pub enum Subject {
    Asks(Vec<Ask>),
    /// Calls of the log.
    Replay(Box<Replay>),
}

/// Policy set to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// The set in force.
    Live,
    Recorded,
    /// The set of this digest.
    Kept(String),
}

/// The members of a single call at the top of a body.
const SHORTHAND: [&str; 9] =
    ["principal", "agent", "tool", "input", "phase", "output", "context", "dlp", "expect"];

impl Simulation {
    /// Reads the body of a request. Refuses the first member that is not understood.
    pub fn read(body: &Value) -> Result<Self, Refusal> {
        Self::parse(body).map_err(|violation| refusal(vec![violation]))
    }

    fn parse(body: &Value) -> Read<Self> {
        let mut members = Members::of(body, "")?;
        let given = [members.has("requests"), members.has("replay"), members.has("tool")];
        let subject = match given {
            [true, false, false] => {
                let items = members.items("requests", MAX_ASKS)?;
                let asks = items.into_iter().map(|(path, item)| Ask::read(item, &path));
                Subject::Asks(asks.collect::<Read<_>>()?)
            }
            [false, true, false] => {
                let replay = members.object("replay")?;
                Subject::Replay(Box::new(replay.map_or(Ok(Replay::default()), Replay::read)?))
            }
            [false, false, true] => Subject::Asks(vec![Ask::members(&mut members)?]),
            _ => {
                let message = "give either `requests`, or one call with `tool`, or `replay`";
                return Err(violation("", message));
            }
        };
        let shorthand = SHORTHAND.iter().find(|name| !given[2] && members.has(name));
        if let Some(name) = shorthand {
            return Err(violation(&members.at(name), "belongs into one of the `requests`"));
        }
        let replays = matches!(subject, Subject::Replay(_));
        let simulation = Self {
            subject,
            draft: members.object("policies")?.map_or(Ok(Draft::live()), Draft::read)?,
            baseline: baseline(&mut members, replays)?,
            options: members.object("options")?.map_or(Ok(Options::default()), Options::read)?,
        };
        members.end()?;
        Ok(simulation)
    }
}

impl Draft {
    /// Reads the body of a check, which has `policies` and nothing else.
    pub fn of_body(body: &Value) -> Result<Self, Refusal> {
        let parse = || {
            let mut members = Members::of(body, "")?;
            let policies = members.object("policies")?;
            members.end()?;
            Self::read(policies.ok_or_else(|| violation("/policies", "is required"))?)
        };
        parse().map_err(|violation| refusal(vec![violation]))
    }
}

/// A request that is not understood.
pub(super) fn refusal(violations: Vec<Violation>) -> Refusal {
    let first = violations.first();
    let place = first.map(|first| if first.path.is_empty() { "The body" } else { &first.path });
    let message = match (place, first) {
        (Some(place), Some(first)) => format!("{place}: {}.", first.message),
        _ => "The request is not understood.".to_owned(),
    };
    Refusal::InvalidRequest { message, parameter: None, violations }
}

fn baseline(members: &mut Members<'_>, replays: bool) -> Read<Option<Baseline>> {
    let at = members.at("baseline");
    match members.text("baseline")? {
        None if replays => Ok(Some(Baseline::Live)),
        None => Ok(None),
        Some("live") => Ok(Some(Baseline::Live)),
        Some("recorded") if replays => Ok(Some(Baseline::Recorded)),
        Some(digest) if digest.starts_with("sha256:") => {
            Ok(Some(Baseline::Kept(digest.to_owned())))
        }
        Some(_) => Err(violation(&at, "has to be `live`, `sha256:…` or, of a replay, `recorded`")),
    }
}
