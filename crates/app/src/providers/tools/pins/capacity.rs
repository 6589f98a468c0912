//! The number of tools that are remembered of a provider. Its server names them, and could fill
//! the store with names otherwise.
//!
//! **Invariant:** what was accepted is never forgotten to make room, however long ago the tool was
//! listed: a server could bring it back with another definition.

use std::collections::BTreeSet;

use portcullis_core::{
    capability::{CapabilityId, Definition},
    clock::Timestamp,
};
use portcullis_store::Pin;

use crate::catalogue::provider::{Pinning, Provider};

/// The time for which a tool is remembered that waits and is not listed any more.
const WAITS_SECONDS: i64 = 30 * 86_400;

/// The part of a list that fits within the limit.
pub(super) struct FittedList {
    pub(super) listed: Vec<Definition>,
    /// The number of tools above the limit.
    pub(super) surplus: u64,
    /// Tools that are forgotten for others: nothing was accepted of them, and they are gone.
    pub(super) forgotten: Vec<CapabilityId>,
}

/// Makes room for what is listed for the first time, as far as there can be.
pub(super) fn make(
    provider: &Provider,
    pins: &[Pin],
    listed: Vec<Definition>,
    now: Timestamp,
) -> FittedList {
    let declared = &provider.declared;
    let most = provider.declared.max_pins;
    match declared.pinning {
        Pinning::Off => return FittedList { listed, surplus: 0, forgotten: Vec::new() },
        Pinning::On | Pinning::ReviewAdditions | Pinning::Review => {}
    }
    let id = |definition: &Definition| {
        CapabilityId::new(definition.kind, &declared.slug, &definition.name)
    };
    let there: BTreeSet<CapabilityId> = listed.iter().map(id).collect();
    let known: BTreeSet<&CapabilityId> = pins.iter().map(|pin| &pin.tool).collect();
    let new = there.iter().filter(|tool| !known.contains(tool)).count();
    let over = (pins.len() + new).saturating_sub(most);
    let forgotten = forgettable(pins, &there, over, now);
    let mut room = most.saturating_sub(pins.len() - forgotten.len());
    let mut surplus = 0;
    let mut fits = |definition: &Definition| {
        if known.contains(&id(definition)) {
            return true;
        }
        let fits = room > 0;
        room = room.saturating_sub(1);
        surplus += u64::from(!fits);
        fits
    };
    let listed = listed.into_iter().filter(|definition| fits(definition)).collect();
    FittedList { listed, surplus, forgotten }
}

/// Tools that only ever waited and are not listed: `over` of them, the oldest first, and all that
/// have waited for too long.
fn forgettable(
    pins: &[Pin],
    there: &BTreeSet<CapabilityId>,
    over: usize,
    now: Timestamp,
) -> Vec<CapabilityId> {
    let gone = pins.iter().filter(|pin| pin.accepted.is_none() && !there.contains(&pin.tool));
    let since = |pin: &Pin| pin.found.as_ref().map(|found| found.at).unwrap_or_default();
    let mut gone: Vec<_> = gone.map(|pin| (since(pin), &pin.tool)).collect();
    gone.sort_unstable();
    let old = now.plus_seconds(-WAITS_SECONDS);
    let goes = |(place, (at, _)): &(usize, (Timestamp, &CapabilityId))| *place < over || *at < old;
    let goes = gone.into_iter().enumerate().filter(goes);
    goes.map(|(_, (_, tool))| tool.clone()).collect()
}
