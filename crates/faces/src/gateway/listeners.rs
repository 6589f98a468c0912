//! Streams of events that are open, counted by org and principal.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

use portcullis_core::id::{OrgId, PrincipalId};

/// Bounds of streams.
const PER_PRINCIPAL: usize = 16;
const PER_ORG: usize = 1_024;
const IN_ALL: usize = 4_096;

/// Open streams, by whose they are.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Counts>);

impl Listeners {
    /// Counts a stream, unless there are too many.
    pub(crate) fn add(&self, org: OrgId, principal: PrincipalId) -> bool {
        self.locked().add(org, principal)
    }

    /// No longer counts a stream, which has ended.
    pub(crate) fn remove(&self, org: OrgId, principal: PrincipalId) {
        self.locked().remove(org, principal);
    }

    fn locked(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    orgs: HashMap<OrgId, usize>,
    principals: HashMap<PrincipalId, usize>,
}

impl Counts {
    /// Counts a stream, unless there are too many.
    fn add(&mut self, org: OrgId, principal: PrincipalId) -> bool {
        let of_org = self.orgs.get(&org).copied().unwrap_or_default();
        let own = self.principals.get(&principal).copied().unwrap_or_default();
        let fits = self.all < IN_ALL && of_org < PER_ORG && own < PER_PRINCIPAL;
        if fits {
            self.all += 1;
            self.orgs.insert(org, of_org + 1);
            self.principals.insert(principal, own + 1);
        }
        fits
    }

    fn remove(&mut self, org: OrgId, principal: PrincipalId) {
        self.all = self.all.saturating_sub(1);
        less(&mut self.orgs, &org);
        less(&mut self.principals, &principal);
    }
}

fn less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_org_that_has_its_streams_leaves_room_for_others_until_all_are_taken() {
        let org = |letter: char| -> OrgId {
            format!("org_01M754BKTKX1YB8Q05NMW9TP4{letter}").parse().unwrap()
        };
        let user = |number: usize| -> PrincipalId { format!("usr_{number:026}").parse().unwrap() };
        let mut counts = Counts::default();

        for number in 0..PER_ORG {
            assert!(counts.add(org('A'), user(number / PER_PRINCIPAL)), "stream {number}");
        }
        assert!(!counts.add(org('A'), user(PER_ORG)));
        for (of_org, letter) in ('B'..='D').enumerate() {
            for number in 0..PER_ORG {
                let principal = (of_org + 1) * PER_ORG + number / PER_PRINCIPAL;
                assert!(counts.add(org(letter), user(principal)), "stream {number} of {letter}");
            }
        }
        assert!(!counts.add(org('E'), user(9 * PER_ORG)));

        counts.remove(org('A'), user(0));

        assert!(!counts.add(org('B'), user(9 * PER_ORG)));
        assert!(counts.add(org('E'), user(9 * PER_ORG)));
    }

    #[test]
    fn nothing_is_kept_of_streams_that_have_ended() {
        let org: OrgId = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let principal: PrincipalId = "usr_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let mut counts = Counts::default();
        for _ in 0..PER_PRINCIPAL {
            assert!(counts.add(org, principal));
        }
        assert!(!counts.add(org, principal));

        (0..PER_PRINCIPAL).for_each(|_| counts.remove(org, principal));

        assert_eq!((counts.all, counts.orgs.len(), counts.principals.len()), (0, 0, 0));
    }
}
