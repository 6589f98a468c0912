//! Uses of approvals by the intents of one transaction.

use std::collections::BTreeMap;

use portcullis_core::id::{ApprovalId, OrgId};

use super::ApprovalUse;

/// Approvals that permit a call at this moment, with what is taken of them. Within the transaction
/// no other one changes them.
#[derive(Debug, Default)]
pub(crate) struct Uses(BTreeMap<(OrgId, ApprovalId), Usable>);

#[derive(Debug)]
struct Usable {
    digest: String,
    left: i64,
    taken: i64,
}

/// Number of uses that are taken of an approval.
#[derive(Debug)]
pub(crate) struct TakenUses {
    pub(crate) org: OrgId,
    pub(crate) id: ApprovalId,
    pub(crate) count: i64,
}

impl Uses {
    /// Adds an approval that is approved and not over its time.
    pub(crate) fn add(&mut self, org: OrgId, id: ApprovalId, digest: String, left: i64) {
        self.0.insert((org, id), Usable { digest, left, taken: 0 });
    }

    /// Takes a use of each approval, or none: `false` if one of them permits none.
    pub(crate) fn take(&mut self, org: OrgId, approvals: &[ApprovalUse]) -> bool {
        let taken = approvals.iter().take_while(|used| self.take_one(org, used)).count();
        let all = taken == approvals.len();
        if !all {
            for used in approvals.iter().take(taken) {
                self.give_back(org, used);
            }
        }
        all
    }

    fn take_one(&mut self, org: OrgId, used: &ApprovalUse) -> bool {
        let Some(usable) = self.0.get_mut(&(org, used.id)) else { return false };
        let may = usable.digest == used.digest && usable.taken < usable.left;
        usable.taken += i64::from(may);
        may
    }

    fn give_back(&mut self, org: OrgId, used: &ApprovalUse) {
        if let Some(usable) = self.0.get_mut(&(org, used.id)) {
            usable.taken -= 1;
        }
    }

    /// The approvals that uses are taken of, in the order of their locks.
    pub(crate) fn taken(self) -> impl Iterator<Item = TakenUses> {
        let taken = self.0.into_iter().filter(|(_, usable)| usable.taken > 0);
        taken.map(|((org, id), usable)| TakenUses { org, id, count: usable.taken })
    }
}
