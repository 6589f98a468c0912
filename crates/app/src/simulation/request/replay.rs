//! Selection of the recorded calls to replay.

use portcullis_core::{
    audit::RecordedDecision,
    clock::Timestamp,
    id::{EventId, PrincipalId},
};

use super::{
    super::members::{Members, Read, violation},
    ask::DECISIONS,
    options::size,
};

/// The most events of one replay.
const MAX_EVENTS: u64 = 1_000_000;
const MAX_EVENT_IDS: usize = 1_000;
/// Number of events in a replay by default.
const USUAL_EVENTS: u64 = 50_000;

/// Selection of recorded calls.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// Recorded at this moment or later.
    pub from: Option<Timestamp>,
    /// Recorded before this moment.
    pub to: Option<Timestamp>,
    pub provider: Option<String>,
    pub tool: Option<String>,
    pub principal: Option<PrincipalId>,
    pub decision: Option<RecordedDecision>,
    pub policy: Option<String>,
    /// Exactly these.
    pub event_ids: Vec<EventId>,
    /// Fraction of them to sample.
    pub sample: Option<f64>,
    pub limit: usize,
    /// Only beyond this place of the log.
    pub after: Option<i64>,
}

impl Replay {
    pub(super) fn read(mut members: Members<'_>) -> Read<Self> {
        let mut replay = Self {
            from: members.time("from")?.map(Timestamp::ceil_to_millis),
            to: members.time("to")?.map(Timestamp::ceil_to_millis),
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
