//! Changes of one resource by several requests at once: in turn on a node, and tried again where another node was first.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    id::{ApprovalId, GroupId, OrgId, PrincipalId},
    random::{self, Random},
    refusal::{Refusal, Unavailable},
};
use portcullis_lanes::{FairTurn, Turns};

/// Attempts at a change, while other nodes change the same resource.
const ATTEMPTS: u32 = 8;
/// The longest pause before the second attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Changes of a node that are under way or wait.
const IN_ALL: usize = 1_024;
/// Those of one kind of changers of one org.
const OF_ORG: usize = 256;
/// The longest time that a change waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// A resource that is read, changed, and written if it is still as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Contended {
    Principal(PrincipalId),
    Group(GroupId),
    Approval(ApprovalId),
}

/// Origin of changes. Each kind has places of its own in an org: a directory that changes much keeps no person out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Changer {
    /// A caller of the API, or a person in the console.
    Caller,
    /// An identity provider, by SCIM.
    Directory,
}

/// Changes that a node makes to such resources.
#[derive(Debug)]
pub(crate) struct Contention {
    turns: Turns<(OrgId, Changer), Contended>,
    random: Arc<dyn Random>,
}

/// Attempts at one change of a resource that no other request of this node changes meanwhile.
#[derive(Debug)]
pub(crate) struct Attempts<'a> {
    random: &'a dyn Random,
    _turn: FairTurn<'a, (OrgId, Changer), Contended>,
    made: u32,
}

impl Contention {
    pub(crate) fn new(random: Arc<dyn Random>) -> Self {
        Self { turns: Turns::new(IN_ALL, OF_ORG, PATIENCE), random }
    }

    /// Waits for the turn of a change.
    ///
    /// # Errors
    /// `unavailable` where too many wait, or one waits too long.
    pub(crate) async fn attempts(
        &self,
        org: OrgId,
        changer: Changer,
        resource: Contended,
    ) -> Result<Attempts<'_>, Refusal> {
        let turn = self.turns.take((org, changer), resource).await.ok_or_else(overloaded)?;
        Ok(Attempts { random: &*self.random, _turn: turn, made: 0 })
    }
}

impl Attempts<'_> {
    /// Begins the next attempt: the first one at once, and each further one after a random pause, so that nodes do
    /// not meet again.
    ///
    /// # Errors
    /// `unavailable` after the last one.
    pub(crate) async fn begin(&mut self) -> Result<(), Refusal> {
        if self.made >= ATTEMPTS {
            return Err(overloaded());
        }
        if let Some(earlier) = self.made.checked_sub(1) {
            let [low] = random::bytes::<1>(self.random);
            tokio::time::sleep(pause(earlier, low)).await;
        }
        self.made += 1;
        Ok(())
    }
}

/// A pause after so many earlier ones, as long as a random byte says.
fn pause(earlier: u32, low: u8) -> Duration {
    let longest = FIRST_PAUSE * 2_u32.saturating_pow(earlier);
    longest * (u32::from(low) + 1) / 256
}

const fn overloaded() -> Refusal {
    Refusal::Unavailable { reason: Unavailable::Overloaded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed;

    impl Random for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(7);
        }
    }

    #[tokio::test]
    async fn a_directory_that_takes_all_of_its_places_leaves_callers_theirs() {
        let contention = Contention::new(Arc::new(Fixed));
        let org = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let group = |n: usize| {
            Contended::Group(format!("grp_01M754BKTKX1YB8Q05NMW9{n:04}").parse().unwrap())
        };
        let mut held = Vec::new();
        for n in 0..OF_ORG {
            held.push(contention.attempts(org, Changer::Directory, group(n)).await.unwrap());
        }

        let beyond = contention.attempts(org, Changer::Directory, group(OF_ORG)).await;
        let caller = contention.attempts(org, Changer::Caller, group(OF_ORG)).await;

        assert!(beyond.is_err(), "it has its share");
        assert!(caller.is_ok());
    }

    #[test]
    fn pauses_are_random_and_become_longer() {
        for (earlier, low, millis) in [(0, 255, 10), (1, 255, 20), (1, 127, 10), (6, 255, 640)] {
            assert_eq!(pause(earlier, low), Duration::from_millis(millis), "{earlier} {low}");
        }
        assert!(pause(0, 0) < pause(0, 1));
    }
}
