//! Parts that make an export evidence: the manifest in front, the proofs of single events, and at the
//! end the signed checkpoint with the hashes left and right of the range.

use portcullis_core::audit::{
    Hash, Plan,
    export::{Consistency, FORMAT, Manifest, Neighbour, Range, Trailer},
    leaf_bytes,
    tiles::TileId,
};
use portcullis_store::{EventFilter, EventOrder, EventRecord, Visibility};

use super::{error::ExportError, request::ExportRequest, signed::ExportedLog};
use crate::audit::events::object;

fn place(sequence: i64) -> u64 {
    u64::try_from(sequence).unwrap_or(0)
}

/// The first line of a file that covers the places from `first` up to `end`.
pub(super) fn manifest(
    log: ExportedLog<'_>,
    request: &ExportRequest,
    first: i64,
    end: i64,
) -> String {
    let range = (first < end).then(|| Range {
        first: place(first),
        last: place(end - 1),
        checkpoint_size: log.signed.size,
    });
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        log: log.signed.origin.clone(),
        org_id: log.org.to_string(),
        created_at: log.now.to_string(),
        from: request.from.to_string(),
        to: request.to.to_string(),
        filters: request.filters(),
        include: request.include().into_iter().map(str::to_owned).collect(),
        complete: request.is_complete(),
        range,
        keys: log.signed.keys.clone(),
    };
    manifest.line()
}

/// The inclusion path of each of these events.
pub(super) async fn paths(
    log: ExportedLog<'_>,
    events: &[EventRecord],
) -> Result<Vec<Vec<Hash>>, ExportError> {
    let places = events.iter().filter_map(|event| event.seal).map(|seal| place(seal.sequence));
    let plans: Option<Vec<Plan>> =
        places.map(|place| Plan::inclusion(place, log.signed.size)).collect();
    hashes(log, &plans.ok_or(ExportError::Tree)?).await
}

async fn hashes(log: ExportedLog<'_>, plans: &[Plan]) -> Result<Vec<Vec<Hash>>, ExportError> {
    let all: Vec<&Plan> = plans.iter().collect();
    let tiles = log.store.tiles(log.org, TileId::of_plans(&all)).await?;
    let told = plans.iter().map(|plan| plan.hashes(&tiles).map_err(|_| ExportError::Tree));
    told.collect()
}

/// The last line of a file that covers the places from `first` up to `end`.
pub(super) async fn closing(
    log: ExportedLog<'_>,
    request: &ExportRequest,
    first: i64,
    end: i64,
    events: u64,
) -> Result<String, ExportError> {
    let mut trailer = Trailer { note: log.signed.note.clone(), events, ..Trailer::default() };
    if request.is_complete() {
        let left = Plan::span(0, place(first));
        let right = Plan::span(place(end), log.signed.size);
        let mut sides = hashes(log, &[left, right]).await?.into_iter();
        trailer.prefix = sides.next().unwrap_or_default();
        trailer.suffix = sides.next().unwrap_or_default();
        trailer.before = neighbour(log, first - 1).await?;
        trailer.after = neighbour(log, end).await?;
        // Beside the range there is an event, unless the log begins or ends there. A file that
        // claimed to be complete without it would hide that its end was cut off.
        let ends = place(end) >= log.signed.size || trailer.after.is_some();
        let begins = first == 0 || trailer.before.is_some();
        if !ends || !begins && first > log.store.pruned_size(log.org).await? {
            return Err(ExportError::Gap);
        }
    }
    if let Some(since) = request.since {
        let plan = Plan::consistency(since, log.signed.size).ok_or(ExportError::Shorter)?;
        let hashes = hashes(log, &[plan]).await?.pop().unwrap_or_default();
        trailer.consistency = Some(Consistency { since, hashes });
    }
    Ok(trailer.line())
}

/// The event at a place beside the range, if there is one that the checkpoint covers.
async fn neighbour(log: ExportedLog<'_>, sequence: i64) -> Result<Option<Neighbour>, ExportError> {
    if sequence < 0 || place(sequence) >= log.signed.size {
        return Ok(None);
    }
    let all = Visibility::All;
    let order = EventOrder::Ascending;
    let everything = EventFilter::default();
    let after = Some(sequence - 1);
    let page = log.store.list_events(log.org, all, &everything, order, after, 1).await?;
    let found = page.events.first().and_then(|event| Some((event, event.seal?)));
    let Some((event, seal)) = found.filter(|(_, seal)| seal.sequence == sequence) else {
        return Ok(None);
    };
    let leaf = leaf_bytes(&event.core, seal.sequence, seal.recorded_at).ok();
    let record = leaf.as_deref().and_then(object).ok_or(ExportError::Tree)?;
    let proof = paths(log, std::slice::from_ref(event)).await?.into_iter().next();
    Ok(Some(Neighbour { event: record, proof: proof.unwrap_or_default() }))
}
