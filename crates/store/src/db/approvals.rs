//! Approvals in the transactions of the log: changes of them, and their uses by intents.

use std::collections::BTreeMap;

use portcullis_core::id::{ApprovalId, OrgId};

use super::Bound;

/// A change of an approval or of a provider's task: the statement that writes it, and its values.
#[derive(Debug)]
pub(crate) struct RowChange {
    pub(crate) org_id: String,
    pub(crate) id: String,
    /// Name among the changes of its org, in whose order they are made.
    pub(crate) digest: String,
    /// Requester, if the approval is new.
    pub(crate) new_of: Option<String>,
    pub(crate) sql: &'static str,
    pub(crate) values: Vec<Bound>,
}

impl RowChange {
    /// Place among the changes of a batch: in one order on every node.
    pub(crate) fn place(&self) -> (&str, &str) {
        (&self.org_id, &self.digest)
    }
}

/// A use of an approval by a call, taken with the call's intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalUse {
    pub id: ApprovalId,
    pub digest: String,
}

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

/// Writes a new approval, unless as many requests of its principal are pending at its time as `$14` says.
pub(crate) const INSERT_APPROVAL: &str = "
INSERT INTO approvals (org_id, id, digest, principal_id, status, revision, uses_left, created_at,
    expires_at, state, capability_id, audience, size, input)
SELECT $1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11, $12, $13
WHERE $5 <> 'pending' OR $14 > (SELECT COUNT(*) FROM approvals
    WHERE org_id = $1 AND principal_id = $4 AND status = 'pending' AND expires_at > $7)
ON CONFLICT DO NOTHING";

pub(crate) const UPDATE_APPROVAL: &str = "
UPDATE approvals SET status = $1, uses_left = $2, expires_at = $3, state = $4,
    capability_id = $5, audience = $6, size = $7, input = $8, revision = revision + 1
WHERE org_id = $9 AND id = $10 AND digest = $11 AND revision = $12
    AND status IN ('pending', 'approved')";

/// Takes uses of an approval that is locked and has as many.
pub(crate) const TAKE: &str = "
UPDATE approvals SET uses_left = uses_left - $1, revision = revision + $1,
    status = CASE WHEN uses_left = $1 THEN 'consumed' ELSE status END
WHERE org_id = $2 AND id = $3";
