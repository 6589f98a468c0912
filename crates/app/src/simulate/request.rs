//! What is asked of a simulation.

use std::{collections::BTreeMap, net::IpAddr};

use portcullis_core::{
    audit::RecordedDecision,
    clock::Timestamp,
    id::{EventId, PrincipalId, PrincipalKind},
    policy::{Explain, Phase, Status},
    refusal::{Refusal, Violation},
};
use serde_json::Value;

use super::members::{Members, Read, violation};

/// The most calls of one request.
const MAX_ASKS: usize = 1_000;
/// The most policies of a draft, and the largest of them in bytes.
const MAX_DRAFTS: usize = 200;
const MAX_DRAFT_BYTES: usize = 64 * 1024;
/// The most events of one replay.
const MAX_EVENTS: u64 = 1_000_000;
const MAX_EVENT_IDS: usize = 1_000;
/// The longest a simulation may take.
const MAX_TIME_MS: u64 = 60_000;
const MAX_LISTED: u64 = 1_000;

/// One request to simulate.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// Hypothetical calls, or recorded ones.
    pub subject: Subject,
    /// The policies to ask.
    pub draft: Draft,
    /// What to compare with.
    pub baseline: Option<Baseline>,
    /// What to tell, and how long it may take.
    pub options: Options,
}

/// Hypothetical calls, or recorded ones.
#[derive(Debug, Clone)]
pub enum Subject {
    /// These calls.
    Asks(Vec<Ask>),
    /// Calls of the log.
    Replay(Box<Replay>),
}

/// One hypothetical call.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The asker's own name for it.
    pub id: Option<String>,
    /// Who calls; nobody named is the caller itself.
    pub who: Option<Who>,
    /// The tool's id.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// Before the call or after it.
    pub phase: Phase,
    /// What the tool answers, for the response phase.
    pub output: Option<Value>,
    /// When; now if not said.
    pub time: Option<Timestamp>,
    /// From where.
    pub ip: Option<IpAddr>,
    /// With a second factor.
    pub mfa: bool,
    /// What DLP finds in the arguments; asked for itself when not said.
    pub dlp: Option<Vec<String>>,
    /// What DLP finds in the result.
    pub dlp_output: Option<Vec<String>>,
    /// What is expected of it.
    pub expect: Option<Expectation>,
}

/// A principal from the log, from the org, or from imagination.
#[derive(Debug, Clone)]
pub struct Who {
    /// A user or a service.
    pub kind: PrincipalKind,
    /// Its id.
    pub id: Option<String>,
    /// Its roles; those of the org's principal of this id when not said.
    pub roles: Option<Vec<String>>,
    /// Its scopes; likewise.
    pub scopes: Option<Vec<String>>,
    /// Its groups.
    pub groups: Vec<String>,
    /// What else is claimed.
    pub claims: BTreeMap<String, Vec<String>>,
    /// Who acts on its behalf: id and kind.
    pub agent: Option<(String, String)>,
}

/// What a call is expected to come to.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// Allowed or denied.
    pub decision: Option<RecordedDecision>,
    /// By this policy.
    pub policy: Option<String>,
    /// For this kind of reason.
    pub cause: Option<String>,
}

/// A policy set that is not in force.
#[derive(Debug, Clone)]
pub struct Draft {
    /// What it begins with.
    pub base: Base,
    /// Cedar texts whose policies are added or replace those of their name.
    pub upsert: Vec<String>,
    /// Names of policies that are left out.
    pub remove: Vec<String>,
    /// Policies in another status.
    pub set_status: Vec<(String, Status)>,
}

/// What a draft begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// The set in force.
    Live,
    /// Nothing.
    Empty,
    /// The set of this digest, once in force.
    Kept(String),
}

/// What to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// What the set in force says.
    Live,
    /// What was recorded.
    Recorded,
    /// What the set of this digest says.
    Kept(String),
}

/// What to tell, and how long it may take.
#[derive(Debug, Clone)]
pub struct Options {
    /// How much to explain, if anything.
    pub explain: Option<Explain>,
    /// Whether shadow policies are told.
    pub include_shadow: bool,
    /// Replay: only what changes.
    pub changed_only: bool,
    /// Replay: like changes together.
    pub group: bool,
    /// Replay: the most changes that are listed.
    pub max_changes: usize,
    /// When to stop.
    pub timeout_ms: u64,
}

/// Which recorded calls to ask again.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// Recorded at this moment or later.
    pub from: Option<Timestamp>,
    /// Recorded before this moment.
    pub to: Option<Timestamp>,
    /// Of tools of this provider.
    pub provider: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this principal.
    pub principal: Option<PrincipalId>,
    /// Decided so.
    pub decision: Option<RecordedDecision>,
    /// Decided by this policy.
    pub policy: Option<String>,
    /// Exactly these.
    pub event_ids: Vec<EventId>,
    /// Which share of them.
    pub sample: Option<f64>,
    /// At most so many.
    pub limit: usize,
    /// Only beyond this place of the log.
    pub after: Option<i64>,
}

const DECISIONS: [(&str, RecordedDecision); 2] =
    [("allow", RecordedDecision::Allow), ("deny", RecordedDecision::Deny)];
const PHASES: [(&str, Phase); 2] = [("request", Phase::Request), ("response", Phase::Response)];
const STATUSES: [(&str, Status); 3] =
    [("active", Status::Active), ("shadow", Status::Shadow), ("disabled", Status::Disabled)];
const EXPLAINS: [(&str, Option<Explain>); 4] = [
    ("none", None),
    ("determining", Some(Explain::Determining)),
    ("candidates", Some(Explain::Candidates)),
    ("full", Some(Explain::Full)),
];
const KINDS: [(&str, PrincipalKind); 2] =
    [("user", PrincipalKind::User), ("service", PrincipalKind::Service)];
/// The members of a single call at the top of a body.
const SHORTHAND: [&str; 9] =
    ["principal", "agent", "tool", "input", "phase", "output", "context", "dlp", "expect"];

impl Simulation {
    /// Reads the body of a request. Says no to the first thing that is not understood.
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

impl Ask {
    /// Reads one call that stands at `path`.
    pub(super) fn read(value: &Value, path: &str) -> Read<Self> {
        let mut members = Members::of(value, path)?;
        let id = members.text("id")?.map(str::to_owned);
        let ask = Self { id, ..Self::members(&mut members)? };
        members.end()?;
        Ok(ask)
    }

    fn members(members: &mut Members<'_>) -> Read<Self> {
        let mut who = members.object("principal")?.map(Who::read).transpose()?;
        let agent = members.object("agent")?.map(agent).transpose()?;
        if let (Some(agent), Some(who)) = (&agent, &mut who) {
            who.agent = Some(agent.clone());
        } else if agent.is_some() {
            let message = "acts for somebody: say for whom with `principal`";
            return Err(violation(&members.at("agent"), message));
        }
        let phase = members.choice("phase", &PHASES)?.unwrap_or(Phase::Request);
        let output = members.any("output").cloned();
        if phase == Phase::Request && output.is_some() {
            let message = "is looked at in the phase `response` only";
            return Err(violation(&members.at("output"), message));
        }
        let input = match members.any("input") {
            None => Value::Object(serde_json::Map::new()),
            Some(input @ Value::Object(_)) => input.clone(),
            Some(_) => return Err(violation(&members.at("input"), "has to be an object")),
        };
        let ask = Self {
            id: None,
            who,
            tool: members.required("tool")?.to_owned(),
            input,
            phase,
            output,
            time: None,
            ip: None,
            mfa: false,
            dlp: findings(members, "dlp")?,
            dlp_output: findings(members, "dlp_output")?,
            expect: members.object("expect")?.map(Expectation::read).transpose()?,
        };
        match members.object("context")? {
            None => Ok(ask),
            Some(context) => ask.in_context(context),
        }
    }

    fn in_context(mut self, mut context: Members<'_>) -> Read<Self> {
        self.time = context.time("time")?;
        let at = context.at("ip");
        let ip = context.text("ip")?.map(str::parse).transpose();
        self.ip = ip.map_err(|_| violation(&at, "has to be an IP address"))?;
        self.mfa = context.flag("mfa")?.unwrap_or(false);
        context.end()?;
        Ok(self)
    }
}

fn findings(members: &mut Members<'_>, name: &'static str) -> Read<Option<Vec<String>>> {
    let Some(mut dlp) = members.object(name)? else { return Ok(None) };
    let findings = dlp.texts("findings", 100)?.unwrap_or_default();
    dlp.end()?;
    Ok(Some(findings))
}

fn agent(mut members: Members<'_>) -> Read<(String, String)> {
    let id = members.required("id")?.to_owned();
    let kind = members.text("kind")?.unwrap_or("service").to_owned();
    members.end()?;
    Ok((id, kind))
}

impl Who {
    fn read(mut members: Members<'_>) -> Read<Self> {
        let id = members.text("id")?.map(str::to_owned);
        let kind = match members.choice("type", &KINDS)? {
            Some(kind) => kind,
            None => id
                .as_deref()
                .and_then(|id| id.parse::<PrincipalId>().ok())
                .map_or(PrincipalKind::User, PrincipalId::kind),
        };
        let role = members.text("role")?.map(|role| vec![role.to_owned()]);
        let who = Self {
            kind,
            id,
            roles: members.texts("roles", 100)?.or(role),
            scopes: members.texts("scopes", 100)?,
            groups: members.texts("groups", 500)?.unwrap_or_default(),
            claims: members.text_lists("claims")?,
            agent: None,
        };
        members.end()?;
        Ok(who)
    }

    /// A user of whom nothing is known.
    pub(super) const fn nobody() -> Self {
        Self {
            kind: PrincipalKind::User,
            id: None,
            roles: None,
            scopes: None,
            groups: Vec::new(),
            claims: BTreeMap::new(),
            agent: None,
        }
    }

    /// Whether it is nobody but the principal of this id, as it is.
    pub(super) fn is_just(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
            && self.roles.is_none()
            && self.scopes.is_none()
            && self.groups.is_empty()
            && self.claims.is_empty()
            && self.agent.is_none()
    }
}

impl Expectation {
    fn read(mut members: Members<'_>) -> Read<Self> {
        let expected = Self {
            decision: members.choice("decision", &DECISIONS)?,
            policy: members.text("policy")?.map(str::to_owned),
            cause: members.text("cause")?.map(str::to_owned),
        };
        members.end()?;
        Ok(expected)
    }
}

impl Draft {
    /// The set in force as it is.
    #[must_use]
    pub const fn live() -> Self {
        Self { base: Base::Live, upsert: Vec::new(), remove: Vec::new(), set_status: Vec::new() }
    }

    /// Whether it is its base and nothing else.
    #[must_use]
    pub const fn is_base(&self) -> bool {
        self.upsert.is_empty() && self.remove.is_empty() && self.set_status.is_empty()
    }

    fn read(mut members: Members<'_>) -> Read<Self> {
        let at = members.at("base");
        let base = match members.text("base")? {
            None | Some("live") => Base::Live,
            Some("empty") => Base::Empty,
            Some(digest) if digest.starts_with("sha256:") => Base::Kept(digest.to_owned()),
            Some(_) => return Err(violation(&at, "has to be `live`, `empty` or `sha256:…`")),
        };
        let mut upsert = Vec::new();
        for (path, item) in members.items("upsert", MAX_DRAFTS)? {
            upsert.push(source(item, &path)?);
        }
        let mut set_status = Vec::new();
        if let Some(statuses) = members.object("set_status")? {
            for (path, id, value) in statuses.entries() {
                let status = STATUSES.iter().find(|(name, _)| value.as_str() == Some(*name));
                let wrong = || violation(&path, "has to be one of active, shadow, disabled");
                set_status.push((id.to_owned(), status.ok_or_else(wrong)?.1));
            }
        }
        let remove = members.texts("remove", 10_000)?.unwrap_or_default();
        members.end()?;
        Ok(Self { base, upsert, remove, set_status })
    }
}

fn source(item: &Value, path: &str) -> Read<String> {
    let mut members = Members::of(item, path)?;
    let at = members.at("source");
    let text = match members.any("source") {
        Some(Value::String(text)) if text.len() <= MAX_DRAFT_BYTES => text.clone(),
        _ => return Err(violation(&at, "has to be a Cedar text of at most 65536 bytes")),
    };
    members.end()?;
    Ok(text)
}

impl Default for Options {
    fn default() -> Self {
        Self {
            explain: Some(Explain::Determining),
            include_shadow: true,
            changed_only: true,
            group: true,
            max_changes: 200,
            timeout_ms: 20_000,
        }
    }
}

impl Options {
    fn read(mut members: Members<'_>) -> Read<Self> {
        let usual = Self::default();
        let listed = members.whole("max_changes", 1, MAX_LISTED)?;
        let options = Self {
            explain: members.choice("explain", &EXPLAINS)?.unwrap_or(usual.explain),
            include_shadow: members.flag("include_shadow")?.unwrap_or(usual.include_shadow),
            changed_only: members.flag("changed_only")?.unwrap_or(usual.changed_only),
            group: members.flag("group")?.unwrap_or(usual.group),
            max_changes: listed.map_or(usual.max_changes, size),
            timeout_ms: members.whole("timeout_ms", 1, MAX_TIME_MS)?.unwrap_or(usual.timeout_ms),
        };
        members.end()?;
        Ok(options)
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// How many events a replay looks at when nothing is said.
const USUAL_EVENTS: u64 = 50_000;

impl Replay {
    fn read(mut members: Members<'_>) -> Read<Self> {
        let mut replay = Self {
            from: members.time("from")?,
            to: members.time("to")?,
            sample: members.share("sample")?,
            limit: size(members.whole("limit", 1, MAX_EVENTS)?.unwrap_or(USUAL_EVENTS)),
            ..Self::default()
        };
        if replay.from.zip(replay.to).is_some_and(|(from, to)| from >= to) {
            return Err(violation(&members.at("to"), "has to be later than `from`"));
        }
        let at = members.at("cursor");
        let after = members.text("cursor")?.map(str::parse).transpose();
        replay.after = after.map_err(|_| violation(&at, "has to come from `next_cursor`"))?;
        let at = members.at("event_ids");
        let ids = members.texts("event_ids", MAX_EVENT_IDS)?.unwrap_or_default();
        let ids = ids.iter().map(|id| id.parse());
        replay.event_ids = ids
            .collect::<Result<_, _>>()
            .map_err(|_| violation(&at, "has to be a list of `evt_…` ids"))?;
        if let Some(filter) = members.object("filter")? {
            replay.filter(filter)?;
        }
        members.end()?;
        Ok(replay)
    }

    fn filter(&mut self, mut members: Members<'_>) -> Read<()> {
        self.provider = members.text("provider")?.map(str::to_owned);
        self.tool = members.text("tool")?.map(str::to_owned);
        let at = members.at("principal");
        let principal = members.text("principal")?.map(str::parse).transpose();
        self.principal =
            principal.map_err(|_| violation(&at, "has to be a `usr_…` or `sa_…` id"))?;
        self.decision = members.choice("decision", &DECISIONS)?;
        self.policy = members.text("policy")?.map(str::to_owned);
        members.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(body: &Value) -> String {
        match Simulation::parse(body) {
            Ok(read) => panic!("{body} is understood: {read:?}"),
            Err(violation) => violation.path,
        }
    }

    #[test]
    fn one_call_stands_for_a_list_of_it() {
        let body = json!({"tool": "a:b", "input": {"x": 1}, "policies": {"base": "empty"}});

        let read = Simulation::parse(&body).unwrap();

        assert_eq!(read.draft.base, Base::Empty);
        assert_eq!(read.baseline, None);
        assert!(matches!(&read.subject, Subject::Asks(asks) if asks[0].tool == "a:b"));
    }

    #[test]
    fn a_replay_is_compared_with_the_set_in_force_unless_said() {
        let read = Simulation::parse(&json!({"replay": {}})).unwrap();

        assert_eq!(read.baseline, Some(Baseline::Live));
    }

    #[test]
    fn what_is_not_understood_is_named_by_its_place() {
        for (body, place) in [
            (json!([]), ""),
            (json!({}), ""),
            (json!({"requests": [], "replay": {}}), ""),
            (json!({"tool": "a:b", "inputs": {}}), "/inputs"),
            (json!({"requests": [{"tool": "a:b", "input": 1}]}), "/requests/0/input"),
            (json!({"requests": [{"input": {}}]}), "/requests/0/tool"),
            (json!({"requests": [], "input": {}}), "/input"),
            (json!({"tool": "a:b", "principal": {"typ": "user"}}), "/principal/typ"),
            (json!({"tool": "a:b", "principal": {"type": "robot"}}), "/principal/type"),
            (json!({"tool": "a:b", "context": {"time": "now"}}), "/context/time"),
            (json!({"tool": "a:b", "baseline": "recorded"}), "/baseline"),
            (json!({"tool": "a:b", "policies": {"base": "mine"}}), "/policies/base"),
            (json!({"tool": "a:b", "policies": {"upsert": [{}]}}), "/policies/upsert/0/source"),
            (
                json!({"tool": "a:b", "policies": {"set_status": {"x/y": "on"}}}),
                "/policies/set_status/x~1y",
            ),
            (json!({"replay": {"limit": 0}}), "/replay/limit"),
            (json!({"replay": {"sample": 1.5}}), "/replay/sample"),
            (json!({"replay": {"event_ids": ["x"]}}), "/replay/event_ids"),
            (
                json!({"replay": {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}}),
                "/replay/to",
            ),
            (json!({"tool": "a:b", "output": {}}), "/output"),
            (json!({"tool": "a:b", "agent": {"id": "x"}}), "/agent"),
            (json!({"tool": "a:b", "options": {"timeout_ms": 60_001}}), "/options/timeout_ms"),
        ] {
            assert_eq!(wrong(&body), place, "{body}");
        }
    }
}
