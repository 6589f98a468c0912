//! Removals from a log that is tampered with: by retention and by an erasure, beside a hold.

use portcullis_app::ErasureRequest;
use portcullis_core::{clock::Timestamp, id::PrincipalId};
use portcullis_store::{
    ErasableEvent, Erased, ErasedParts, IndexedEvent, OldEvent, OldEvents, Org, Pruned, Selection,
};
use serde_json::json;

use crate::{log::Log, node::NOW};

/// Retention lets the beginning go, and payloads behind it; what is of `who` is erased.
pub(super) async fn remove(log: &Log, org: &Org, who: PrincipalId) {
    let first = Timestamp::from_micros(NOW.as_micros() + 15_000);
    let told = |pruned: &Pruned| {
        let events = pruned.events();
        let last = pruned.size - 1;
        let pruned = json!({
            "what": "events", "events": events, "before": first, "first": pruned.first, "last": last,
            "stopped_by_hold": pruned.held,
        });
        log.pruned(org.id, pruned)
    };
    let events = events(log, org).await;
    let old =
        |before: Timestamp| events.iter().take_while(move |it| it.recorded_at < before.as_micros());
    let id = |event: &IndexedEvent| event.columns.texts[0].clone().unwrap();
    let gone = old(first).map(|it| OldEvent { position: it.positions.0, id: id(it) }).collect();
    let gone = OldEvents { events: gone, ..OldEvents::default() };
    let pruned = log.operator.store.prune(org.id, &gone, told).await.unwrap().unwrap();
    assert!(pruned.events() > 10, "{pruned:?}");
    let second = Timestamp::from_micros(NOW.as_micros() + 30_000);
    let told = |step: &Erased| {
        let details = json!({ "what": "payloads", "events": step.erased, "before": second });
        Some(log.pruned(org.id, details))
    };
    let is_held = false;
    let event = |it: &IndexedEvent| ErasableEvent { position: it.positions.0, id: id(it), is_held };
    let without: Vec<_> = old(second).map(event).collect();
    let gone =
        log.operator.store.erase(org.id, &without, ErasedParts::Payloads, told).await.unwrap();
    assert!(gone.erased > 5, "{gone:?}");
    let selection = Selection { actor: Some(who), ..Selection::default() };
    let erased = erase(log, org, selection, &["actor_name", "input"]).await;
    assert!(erased.erased > 10 && erased.held == 0, "{erased:?}");
}

/// A hold covers the newest events, so that an erasure passes over them.
pub(super) async fn hold(log: &Log, org: &Org) {
    let from = log.operator.clock.now();
    let from = Timestamp::from_micros(from.as_micros() - 20_000).floor_to_millis();
    log.hold_from(org, from).await;
    let from = Some(from.plus_seconds(-1));
    let erased = erase(log, org, Selection { from, ..Selection::default() }, &["label"]).await;
    assert!(erased.erased > 10 && erased.held > 10, "{erased:?}");
}

async fn erase(log: &Log, org: &Org, selection: Selection, members: &[&str]) -> Erased {
    let members = members.iter().map(ToString::to_string).collect();
    let request = ErasureRequest { org: org.id, selection, members, reason: "a ticket".to_owned() };
    log.operator.erase(log.identity(), &request).await.unwrap()
}

/// All sealed events of the org.
async fn events(log: &Log, org: &Org) -> Vec<IndexedEvent> {
    log.operator.store.indexed_events(org.id, 0, i64::MAX).await.unwrap().events
}
