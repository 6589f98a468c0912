//! Health of one thing, as each org that called it found it.
//!
//! An org's failures open a circuit for that org. Where the circuits of two orgs are open, they speak
//! for those who have not found out for themselves: their circuit opens with their next call, and when
//! its rest is over they see for themselves, whatever becomes of the others. So no org's calls or
//! probe decide for longer than one short rest what another org may do.

use std::{collections::HashMap, time::Duration};

use portcullis_core::id::OrgId;
use tokio::time::Instant;

/// Failures in a row that open a circuit.
pub(super) const THRESHOLD: u32 = 5;
pub(super) const FIRST_REST: Duration = Duration::from_secs(1);
pub(super) const LONGEST_REST: Duration = Duration::from_secs(30);
/// Orgs whose open circuits speak for others.
const AGREEING: usize = 2;
/// Orgs that are remembered; beyond, the one that was heard of longest ago is forgotten.
pub(super) const MAX_ORGS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Health(HashMap<OrgId, Circuit>);

/// The circuit of one org; without failures it says that the thing works for the org.
#[derive(Debug)]
struct Circuit {
    failures: u32,
    rests_until: Option<Instant>,
    probed: bool,
    /// Others opened it: it says nothing of its own.
    told: bool,
    touched: Instant,
}

impl Circuit {
    const fn working(now: Instant) -> Self {
        Self { failures: 0, rests_until: None, probed: false, told: false, touched: now }
    }

    fn opened_by_peer(now: Instant) -> Self {
        let rests_until = Some(now + FIRST_REST);
        Self { failures: THRESHOLD, rests_until, probed: false, told: true, touched: now }
    }

    fn admit(&self, now: Instant) -> Result<(), Duration> {
        match self.rests_until {
            Some(until) if now < until => Err(until - now),
            // The one that tries it is under way.
            Some(_) if self.probed => Err(FIRST_REST),
            Some(_) | None => Ok(()),
        }
    }

    /// A call failed. One that went out before the circuit opened says nothing new: of a hundred
    /// calls in flight all fail at once, and that is one failure, not a hundred.
    fn fails(&mut self, now: Instant, probes: bool, agreed: bool) {
        if self.is_open() && !probes {
            return;
        }
        let least = if agreed { THRESHOLD } else { 0 };
        self.failures = self.failures.saturating_add(1).max(least);
        (self.probed, self.told, self.touched) = (false, false, now);
        if let Some(doublings) = self.failures.checked_sub(THRESHOLD) {
            let rest = FIRST_REST * 2_u32.pow(doublings.min(10));
            self.rests_until = Some(now + rest.min(LONGEST_REST));
        }
    }

    const fn is_open(&self) -> bool {
        self.rests_until.is_some()
    }

    /// Returns true if it says, from what its own org found, that no org should call now.
    fn speaks(&self, now: Instant) -> bool {
        !self.told && self.rests_until.is_some_and(|until| self.probed || now < until)
    }
}

impl Health {
    /// Refuses with the time after which to ask again.
    pub(super) fn admit(&mut self, org: OrgId, now: Instant) -> Result<(), Duration> {
        if let Some(circuit) = self.0.get(&org) {
            return circuit.admit(now);
        }
        if !self.is_agreed(org, now) {
            return Ok(());
        }
        self.insert(org, Circuit::opened_by_peer(now));
        Err(FIRST_REST)
    }

    /// The call of an org that goes out now tries its circuit if that is open. Returns whether it is.
    pub(super) fn probe(&mut self, org: OrgId) -> bool {
        let circuit = self.0.get_mut(&org).filter(|circuit| circuit.is_open());
        circuit.is_some_and(|circuit| {
            circuit.probed = true;
            true
        })
    }

    /// The call that tried it has ended.
    pub(super) fn unprobed(&mut self, org: OrgId) {
        if let Some(circuit) = self.0.get_mut(&org) {
            circuit.probed = false;
        }
    }

    /// A call of an org failed.
    pub(super) fn fails(&mut self, org: OrgId, now: Instant, probes: bool) {
        let agreed = self.is_agreed(org, now);
        if !self.0.contains_key(&org) {
            self.insert(org, Circuit::working(now));
        }
        if let Some(circuit) = self.0.get_mut(&org) {
            circuit.fails(now, probes, agreed);
        }
    }

    /// A call of an org was answered. If its circuit was open, that is news for the others: they may
    /// see for themselves.
    pub(super) fn works(&mut self, org: OrgId, now: Instant) {
        let news = self.0.remove(&org).is_some_and(|circuit| circuit.is_open());
        if news {
            self.0.retain(|_, circuit| !circuit.told);
            for circuit in self.0.values_mut() {
                circuit.rests_until = circuit.rests_until.map(|until| until.min(now));
            }
        }
        if self.is_good() {
            self.0.clear();
        } else {
            self.insert(org, Circuit::working(now));
        }
    }

    /// Returns true if nothing has failed lately.
    pub(super) fn is_good(&self) -> bool {
        self.0.values().all(|circuit| circuit.failures == 0)
    }

    /// Returns true if the circuit of any org is open.
    pub(super) fn is_open(&self) -> bool {
        self.0.values().any(Circuit::is_open)
    }

    /// When it was heard of last.
    pub(super) fn touched(&self) -> Option<Instant> {
        self.0.values().map(|circuit| circuit.touched).max()
    }

    #[cfg(test)]
    pub(super) fn orgs(&self) -> usize {
        self.0.len()
    }

    /// Returns true if enough others say that no org should call now.
    fn is_agreed(&self, org: OrgId, now: Instant) -> bool {
        let others = self.0.iter().filter(|(other, circuit)| **other != org && circuit.speaks(now));
        others.take(AGREEING).count() == AGREEING
    }

    fn insert(&mut self, org: OrgId, circuit: Circuit) {
        if self.0.len() >= MAX_ORGS {
            let oldest = self.0.iter().min_by_key(|(_, circuit)| circuit.touched);
            if let Some(oldest) = oldest.map(|(org, _)| *org) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(org, circuit);
    }
}
