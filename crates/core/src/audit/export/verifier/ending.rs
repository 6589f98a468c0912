//! The last line: whether what was read is what the log signed.

use super::{Report, Verifier, missing, refused};
use crate::{
    audit::{
        checkpoint::Checkpoint,
        export::{
            Fault, Manifest, Neighbour, Range, Trailer, event::leaf_of_event, single::is_of_org,
        },
        merkle::{Frontier, Hash, LeafRange, is_consistent, root_of_path},
        note::Verified,
    },
    clock::Timestamp,
};

impl Verifier {
    pub(super) fn end(&self, trailer: &Trailer, manifest: &Manifest) -> Result<Report, Fault> {
        let (checkpoint, signed) = self.checkpoint(trailer, manifest)?;
        self.all_there(trailer, manifest)?;
        let period_proven = match manifest.range {
            Some(range) if manifest.complete => {
                self.whole(range, trailer, &checkpoint)?;
                self.period(manifest, trailer, &checkpoint)?
            }
            Some(_) => {
                if self.seen.root.is_some_and(|root| root != checkpoint.root) {
                    return Err(Fault::Root(
                        "the proofs do not lead to the signed root".to_owned(),
                    ));
                }
                false
            }
            None => manifest.complete && self.period(manifest, trailer, &checkpoint)?,
        };
        Ok(Report {
            log: checkpoint.origin.clone(),
            events: self.seen.events,
            complete: manifest.complete,
            period_proven,
            range: manifest.range,
            checkpoint_size: checkpoint.size,
            checkpoint_root: checkpoint.root,
            signed_by: signed.iter().map(|by| by.key.name().to_owned()).collect(),
            signing_keys: signed.iter().map(|by| by.key.id()).collect(),
            continues: self.continues(trailer, &checkpoint)?,
            values_proven: self.seen.opened,
            values_unproven: self.seen.unopened,
        })
    }

    fn checkpoint(
        &self,
        trailer: &Trailer,
        manifest: &Manifest,
    ) -> Result<(Checkpoint, Vec<Verified>), Fault> {
        let (checkpoint, signed) = Checkpoint::open(&trailer.note, &self.keys)
            .map_err(|error| refused("the checkpoint of the file", &error))?;
        if checkpoint.origin != manifest.log {
            let said = &manifest.log;
            let signed = &checkpoint.origin;
            let what = format!("the manifest is of the log `{said}`, the checkpoint of `{signed}`");
            return Err(Fault::Root(what));
        }
        if !is_of_org(&checkpoint, &manifest.org_id) {
            return Err(Fault::Root("the log is not that of the org of the manifest".to_owned()));
        }
        if manifest.range.is_some_and(|range| range.checkpoint_size != checkpoint.size) {
            let what = "the checkpoint is not of the size that the manifest says";
            return Err(Fault::Root(what.to_owned()));
        }
        Ok((checkpoint, signed))
    }

    fn all_there(&self, trailer: &Trailer, manifest: &Manifest) -> Result<(), Fault> {
        if let Some(missing) = &self.seen.missing {
            return Err(Fault::Incomplete(missing.clone()));
        }
        let range = manifest.range.filter(|_| manifest.complete);
        let end = range.and_then(|range| missing(self.seen.next(range.first), range.last));
        if let Some(missing) = end {
            return Err(Fault::Incomplete(missing));
        }
        if trailer.events != self.seen.events {
            let said = trailer.events;
            let seen = self.seen.events;
            let what = format!("the file holds {seen} events and says it holds {said}");
            return Err(Fault::Incomplete(what));
        }
        Ok(())
    }

    /// Checks that prefix, events and suffix are the signed tree.
    fn whole(&self, range: Range, trailer: &Trailer, signed: &Checkpoint) -> Result<(), Fault> {
        let tree = || {
            let mut tree = Frontier::default();
            tree.push_span(range.first, &trailer.prefix).ok()?;
            tree.push_range(self.seen.leaves.as_ref()?).ok()?;
            tree.push_span(signed.size, &trailer.suffix).ok()?;
            Some(tree.root())
        };
        if tree() == Some(signed.root) {
            return Ok(());
        }
        let first = range.first;
        let last = range.last;
        let what = format!("events {first} to {last} are not those of the signed tree");
        Err(Fault::Root(what))
    }

    /// Checks that the neighbours show that nothing else of the log lies between `from` and `to`.
    /// Without them the period is only stated; with wrong ones the file is wrong.
    fn period(
        &self,
        manifest: &Manifest,
        trailer: &Trailer,
        signed: &Checkpoint,
    ) -> Result<bool, Fault> {
        let time = |text: &str| {
            let unread = || Fault::unreadable("the manifest's `from` and `to` are no times");
            Timestamp::parse_rfc3339(text).ok_or_else(unread)
        };
        let from = time(&manifest.from)?;
        let to = time(&manifest.to)?;
        let outside = |earliest: Option<Timestamp>, latest: Option<Timestamp>| {
            earliest.is_some_and(|time| time < from) || latest.is_some_and(|time| time >= to)
        };
        if outside(self.seen.first_time, self.seen.last.map(|(_, time)| time)) {
            return Err(Fault::Root("an event lies outside of `from` and `to`".to_owned()));
        }
        let beside = |neighbour: &Neighbour| beside(neighbour, signed);
        let before = trailer.before.as_ref().map(beside).transpose()?;
        let after = trailer.after.as_ref().map(beside).transpose()?;
        let first = manifest.range.map(|range| range.first);
        let end = manifest.range.map(|range| range.last + 1);
        let begins = before.map_or(0, |(sequence, _)| sequence + 1);
        let ends = after.map_or(signed.size, |(sequence, _)| sequence);
        let adjacent = first.map_or(begins == ends, |first| first == begins)
            && end.is_none_or(|end| end == ends);
        let early = before.is_none_or(|(_, time)| time < from);
        let late = after.is_none_or(|(_, time)| time >= to);
        if (before.is_some() && !early) || (after.is_some() && !late) {
            let what = "an event beside the range lies between `from` and `to`";
            return Err(Fault::Incomplete(what.to_owned()));
        }
        Ok(adjacent)
    }

    /// Size of the older tree, if one was given and this one continues it.
    fn continues(&self, trailer: &Trailer, signed: &Checkpoint) -> Result<Option<u64>, Fault> {
        let Some(since) = &self.since else { return Ok(None) };
        let size = since.checkpoint().size;
        let root = &since.checkpoint().root;
        since.continued_by(signed, || {
            if let Some(then) = self.root_then(trailer) {
                return Ok(then == *root);
            }
            let proof = trailer.consistency.as_ref().filter(|proof| proof.since == size);
            let Some(proof) = proof else {
                let what = format!(
                    "the file cannot show that it continues the older checkpoint: export from \
                     event {size} or earlier, or verify `/v1/audit/checkpoint?since={size}`"
                );
                return Err(Fault::Unreadable(what));
            };
            Ok(is_consistent(size, root, signed.size, &signed.root, &proof.hashes))
        })?;
        Ok(Some(size))
    }

    /// The root of the older tree, if that tree ends within the range.
    fn root_then(&self, trailer: &Trailer) -> Option<Hash> {
        let leaves: &LeafRange = self.seen.at_since.as_ref()?;
        let mut tree = Frontier::default();
        tree.push_span(leaves.first(), &trailer.prefix).ok()?;
        tree.push_range(leaves).ok()?;
        Some(tree.root())
    }
}

/// Sequence and time of an event beside the range, once its path leads to the signed root.
fn beside(neighbour: &Neighbour, signed: &Checkpoint) -> Result<(u64, Timestamp), Fault> {
    let leaf = leaf_of_event(neighbour.event.clone())?;
    let root = root_of_path(leaf.sequence, signed.size, &leaf.hash, &neighbour.proof);
    if root != Some(signed.root) {
        let what = "an event beside the range is not the one that the log holds there";
        return Err(Fault::Root(what.to_owned()));
    }
    Ok((leaf.sequence, leaf.recorded_at))
}
