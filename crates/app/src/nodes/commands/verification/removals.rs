//! Values that went and events that were removed, held against the events that tell of it.
//!
//! Of each member that a record commits to, the row has a value and its salt; or, of a payload that
//! was never kept, the salt alone; or neither, once it was erased or pruned, and then an event of the
//! log tells so. What that costs in memory grows with the number of erasures, not with the log.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_core::{audit::EventType, clock::Timestamp, id::OrgId, json};
use portcullis_store::{
    EventFilter, EventOrder, EventRecord, IndexedEvent, StoreError, Visibility,
};
use serde_json::{Map, Value};

use crate::{
    audit::{
        events::object,
        faults::IndexFault,
        proven::{PAYLOADS, text_at, values_of},
    },
    nodes::commands::Operator,
};

/// Events that are read at a time.
const PAGE: u32 = 200;
/// An event that was under way when an erasure began was not seen by it. In microseconds.
const UNDER_WAY: i64 = 60_000_000;

/// All that the log tells of what is gone.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// The first place that was left.
    events_before: u64,
    /// Before which moment payloads went.
    payloads_before: Option<Timestamp>,
    /// By their target: an event, a principal or the org.
    erasures: BTreeMap<String, Vec<Erasure>>,
}

/// One erasure, which may have been recorded in steps.
#[derive(Debug)]
struct Erasure {
    members: BTreeSet<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// Moment of its first step, and place of its last one.
    began_at: Timestamp,
    last: i64,
    /// Events of which something was erased, and which a hold covered.
    erased: u64,
    held: u64,
    /// Events that lost values by it alone.
    found: u64,
}

impl Operator {
    /// All that the org's log tells of what is gone. The one that tells is younger than what it
    /// tells of, so it is kept longer.
    pub(super) async fn removals(&self, org: OrgId) -> Result<Removals, StoreError> {
        let kinds = [EventType::AuditPruned, EventType::AuditErased];
        let kinds = kinds.map(|kind| kind.as_str().to_owned()).to_vec();
        let filter = EventFilter { kinds, ..EventFilter::default() };
        let all = Visibility::All;
        let order = EventOrder::Ascending;
        let mut removals = Removals::default();
        let mut after = None;
        loop {
            let page = self.store.list_events(org, all, &filter, order, after, PAGE).await?;
            for event in &page.events {
                removals.add(event);
            }
            after = page.reached;
            if !page.more || after.is_none() {
                return Ok(removals);
            }
        }
    }
}

impl Removals {
    /// True if all before the place `first` is known to be removed.
    pub(super) fn tell_of_events_before(&self, first: u64) -> bool {
        first <= self.events_before
    }

    fn add(&mut self, event: &EventRecord) {
        let detached = event.detached.as_deref().and_then(object).unwrap_or_default();
        let told = |name: &str| detached.get(name).and_then(Value::as_object);
        // One that tells why nothing went tells of nothing that is gone.
        if let Some(pruning) = told("pruning").filter(|it| !it.contains_key("fault")) {
            let last = pruning.get("last").and_then(Value::as_u64);
            self.events_before = self.events_before.max(last.map_or(0, |last| last + 1));
            if pruning.get("what").and_then(Value::as_str) == Some("payloads") {
                self.payloads_before = self.payloads_before.max(time_of(pruning, "before"));
            }
        }
        if let Some(erasure) = told("erasure").filter(|it| !it.contains_key("fault")) {
            self.add_erasure(event, erasure);
        }
    }

    fn add_erasure(&mut self, event: &EventRecord, told: &Map<String, Value>) {
        let record = object(&event.core).unwrap_or_default();
        let (Some(target), Some(seal)) = (text_at(&record, "/target/id"), event.seal) else {
            return;
        };
        let members = told.get("members").and_then(Value::as_array).into_iter().flatten();
        let members: BTreeSet<_> = members.filter_map(Value::as_str).map(str::to_owned).collect();
        let count = |name: &str| told.get(name).and_then(Value::as_u64).unwrap_or(0);
        let from = time_of(told, "from");
        let to = time_of(told, "to");
        let known = self.erasures.entry(target.to_owned()).or_default();
        let same = |it: &&mut Erasure| (&it.members, it.from, it.to) == (&members, from, to);
        if let Some(same) = known.iter_mut().find(same) {
            same.last = seal.sequence;
            same.erased += count("erased");
            same.held += count("held");
            return;
        }
        known.push(Erasure {
            members,
            from,
            to,
            began_at: event.occurred_at,
            last: seal.sequence,
            erased: count("erased"),
            held: count("held"),
            found: 0,
        });
    }

    /// Refuses an event whose values are not those that it should have.
    pub(super) fn compare(
        &mut self,
        event: &IndexedEvent,
        record: &Map<String, Value>,
    ) -> Result<(), IndexFault> {
        let wrong = |wrong: String| IndexFault::Value {
            id: text_at(record, "/id").unwrap_or_default().to_owned(),
            sequence: event.sequence,
            wrong,
        };
        let lost = lost_members(event, record).map_err(wrong)?;
        let committed_at = Timestamp::from_micros(event.columns.committed_at);
        let targets = ["/id", "/actor/id", "/actor/via", "/org_id"];
        let mut targets: Vec<_> = targets.iter().filter_map(|at| text_at(record, at)).collect();
        targets.dedup();
        let pruned = self.payloads_before.is_some_and(|before| committed_at < before);
        let is_pruned = |name: &str| pruned && PAYLOADS.contains(&name);
        let mut told: BTreeSet<&str> = BTreeSet::new();
        let mut by = Vec::new();
        for target in targets {
            for (index, erasure) in self.erasures.get(target).into_iter().flatten().enumerate() {
                if !erasure.covers(event.sequence, committed_at) {
                    continue;
                }
                if let Some(name) = erasure.remaining_member(event, committed_at) {
                    return Err(wrong(format!(
                        "the detached value `{name}` was erased, as the log tells, and is there again"
                    )));
                }
                let members = lost.iter().filter(|name| erasure.members.contains(name.as_str()));
                let members: Vec<&str> = members.map(String::as_str).collect();
                if !members.is_empty() {
                    told.extend(members);
                    by.push((target.to_owned(), index));
                }
            }
        }
        if let Some(name) =
            lost.iter().find(|name| !told.contains(name.as_str()) && !is_pruned(name))
        {
            return Err(wrong(format!(
                "the detached value `{name}` is gone, and no `audit.erased` or `audit.pruned` event \
                 tells of it"
            )));
        }
        // Where several may have done it, it cannot be told which.
        if let ([(target, index)], false) = (by.as_slice(), lost.iter().any(|name| is_pruned(name)))
            && let Some(erasure) = self.erasures.get_mut(target).and_then(|it| it.get_mut(*index))
        {
            erasure.found += 1;
        }
        Ok(())
    }

    /// Refuses erasures that tell of fewer events than have lost values.
    pub(super) fn suffice(&self) -> Result<(), IndexFault> {
        let more = |known: &Vec<Erasure>| known.iter().any(|it| it.found > it.erased);
        let found = self.erasures.iter().find(|(_, known)| more(known));
        found.map_or(Ok(()), |(target, _)| Err(IndexFault::Erasures(target.clone())))
    }
}

impl Erasure {
    fn covers(&self, sequence: i64, committed_at: Timestamp) -> bool {
        sequence < self.last
            && self.from.is_none_or(|from| committed_at >= from)
            && self.to.is_none_or(|to| committed_at < to)
    }

    /// A member of an event it covers that is there although it was erased. Where something was
    /// held it cannot be told which event that was.
    fn remaining_member(&self, event: &IndexedEvent, committed_at: Timestamp) -> Option<String> {
        let began = self.began_at.as_micros().saturating_sub(UNDER_WAY);
        if self.held > 0 || committed_at.as_micros() >= began {
            return None;
        }
        let values = values_of(event).unwrap_or_default();
        let kept = values
            .into_iter()
            .find(|(name, value)| value.get() != "null" && self.members.contains(name.as_ref()));
        kept.map(|(name, _)| name.into_owned())
    }
}

/// The members of which neither value nor salt is there. Refuses a row that nothing of ours leaves
/// behind, naming the member.
fn lost_members(event: &IndexedEvent, record: &Map<String, Value>) -> Result<Vec<String>, String> {
    let damaged = || "its detached values cannot be read".to_owned();
    let values = values_of(event).ok_or_else(damaged)?;
    let salts = event.salts.as_deref().unwrap_or("{}");
    let salts: BTreeMap<Cow<'_, str>, Cow<'_, str>> =
        serde_json::from_str(salts).map_err(|_| damaged())?;
    let none = Map::new();
    let committed = record.get("commitments").and_then(Value::as_object).unwrap_or(&none);
    let foreign = values.keys().chain(salts.keys()).find(|it| !committed.contains_key(it.as_ref()));
    if let Some(name) = foreign {
        return Err(format!("the record commits to no detached value `{name}`"));
    }
    let mut lost = Vec::new();
    for (name, commitment) in committed {
        let is_gone = match (values.get(name.as_str()), salts.get(name.as_str())) {
            (Some(value), None) if value.get() == "null" => {
                lost.push(name.clone());
                false
            }
            (Some(value), Some(salt)) if value.get() == "null" => {
                !PAYLOADS.contains(&name.as_str()) && !is_null(salt, commitment)
            }
            (Some(_), Some(_)) => false,
            (Some(_), None) | (None, _) => true,
        };
        if is_gone {
            return Err(format!(
                "the detached value `{name}` or its salt is gone, and not as an erasure leaves it"
            ));
        }
    }
    Ok(lost)
}

/// True if `null` is the value that was committed to.
fn is_null(salt: &str, commitment: &Value) -> bool {
    let salt = STANDARD.decode(salt);
    salt.is_ok_and(|salt| commitment.as_str() == Some(&json::sha256(&[&salt, b"null"])))
}

fn time_of(told: &Map<String, Value>, name: &str) -> Option<Timestamp> {
    told.get(name).and_then(Value::as_str).and_then(Timestamp::parse_rfc3339)
}
