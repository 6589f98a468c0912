//! Proofs of possession (DPoP, RFC 9449): made for their request, and used once on all nodes.
//!
//! A proof that was made with a nonce of this process is remembered in memory, because no other
//! process takes it. Any other is remembered in the store, many in one statement.
//!
//! **Invariant:** what is remembered where depends on the nonce alone, which is signed. So the same
//! proof always comes to the same memory, on whichever node and however often.

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aws_lc_rs::digest;
use portcullis_core::{
    clock::Timestamp,
    refusal::Refusal,
    trust::{
        DpopNonces, DpopProof, NonceScope, PROOF_SECONDS, ProofFault, ProofTarget, ReadNonce,
        SingleUse, Thumbprint,
    },
};
use portcullis_store::{Assertion, StoreError};
use tokio::sync::oneshot;

use super::Access;
use crate::request::possession::{Possession, PresentedProof, PresentedToken};

/// Proofs of the last four minutes that a process remembers at most; beyond that it gives clients
/// nonces that the store stands behind.
const MOST: usize = 200_000;
/// Seconds after which one half of what is remembered is forgotten: longer than any proof is good.
const HALF: i64 = 2 * PROOF_SECONDS + 2;

/// A key that the sender of a token request proved to hold. The proof has still to be used.
#[derive(Debug, Clone)]
pub struct ProvedKey {
    pub key: Thumbprint,
    once: Assertion,
}

/// Proofs at a process.
#[derive(Debug)]
pub(super) struct Proofs {
    nonces: DpopNonces,
    used: Mutex<UsedProofs>,
    waiting: Mutex<Vec<WaitingAssertion>>,
    writing: tokio::sync::Mutex<()>,
}

/// A proof that waits to be remembered in the store, and its presenter.
type WaitingAssertion = (Assertion, oneshot::Sender<Result<bool, StoreError>>);

impl Proofs {
    pub(super) fn new(nonces: DpopNonces) -> Self {
        Self {
            nonces,
            used: Mutex::default(),
            waiting: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<WaitingAssertion>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Proofs that were used here, in two halves: those of the present time, and those before.
#[derive(Debug, Default)]
struct UsedProofs {
    now: HashSet<[u8; 32]>,
    before: HashSet<[u8; 32]>,
    since: Timestamp,
}

#[derive(Debug, PartialEq, Eq)]
enum ProofUse {
    First,
    Again,
    /// There is no room.
    Full,
}

impl UsedProofs {
    fn note(&mut self, digest: [u8; 32], now: Timestamp) -> ProofUse {
        // A clock that was set back forgets nothing.
        if self.since.plus_seconds(HALF) <= now {
            self.before = mem::take(&mut self.now);
            self.since = now;
        }
        if self.before.contains(&digest) || self.now.contains(&digest) {
            return ProofUse::Again;
        }
        if self.now.len() >= MOST / 2 {
            return ProofUse::Full;
        }
        self.now.insert(digest);
        ProofUse::First
    }
}

impl Access {
    /// The key that the sender of a token request proves to hold; `None` if it sends no proof. With
    /// `token` the proof has to be one for that token as well.
    ///
    /// # Errors
    /// `invalid_dpop_proof` and `use_dpop_nonce`.
    pub fn proved_key(
        &self,
        presented: Option<&PresentedProof>,
        token: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<ProvedKey>, Refusal> {
        let Some(presented) = presented else { return Ok(None) };
        let proof = checked(presented, token, now)?;
        let nonce = self.nonce_of(presented, &proof, now)?;
        Ok(Some(ProvedKey { key: proof.key, once: remembered(&proof, nonce) }))
    }

    /// Uses the proof of a token request, after all else was found good.
    pub(super) async fn use_proof(&self, proved: Option<&ProvedKey>) -> Result<(), Refusal> {
        let Some(proved) = proved else { return Ok(()) };
        let first = self.base.store.use_assertion(proved.once).await?;
        if first { Ok(()) } else { Err(faulty(ProofFault::Replayed)) }
    }

    /// Uses a proof that came with a token.
    pub(super) async fn use_once(
        self: &Arc<Self>,
        presented: &PresentedProof,
        proof: &DpopProof,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let nonces = &self.proofs.nonces;
        let nonce = self.nonce_of(presented, proof, now)?;
        let once = remembered(proof, nonce);
        let is_first = match nonce.map(|nonce| nonce.scope) {
            // It would be remembered nowhere but there.
            Some(NonceScope::Other) => return Err(self.ask_for_nonce(presented, proof, now)),
            Some(NonceScope::Own) => {
                let mut used = self.proofs.used.lock().unwrap_or_else(PoisonError::into_inner);
                match used.note(once.digest, now) {
                    ProofUse::First => true,
                    ProofUse::Again => false,
                    ProofUse::Full => return Err(self.ask_for_nonce(presented, proof, now)),
                }
            }
            Some(NonceScope::Shared | NonceScope::AnyTime) | None => self.remember(once).await?,
        };
        if nonce.is_none_or(|nonce| nonce.is_aging) {
            let next = if proof.is_timely { nonces.own(now) } else { nonces.any_time(now) };
            let _ = presented.nonce.set(next);
        }
        if is_first { Ok(()) } else { Err(faulty(ProofFault::Replayed)) }
    }

    /// Remembers a proof in the store, together with all that wait; false if it was used before.
    async fn remember(self: &Arc<Self>, once: Assertion) -> Result<bool, Refusal> {
        let (tell, told) = oneshot::channel();
        self.proofs.waiting().push((once, tell));
        let this = Arc::clone(self);
        // The request that has the turn writes for others, too, and so goes on if its own client hangs up.
        self.base.uncancelled(async move { this.remember_waiting().await }).await?;
        told.await.map_err(|_| Refusal::Internal)?.map_err(Refusal::from)
    }

    async fn remember_waiting(&self) {
        let _turn = self.proofs.writing.lock().await;
        let waiting = mem::take(&mut *self.proofs.waiting());
        if waiting.is_empty() {
            return;
        }
        let (all, tell): (Vec<Assertion>, Vec<_>) = waiting.into_iter().unzip();
        match self.base.store.use_assertions(&all).await {
            Ok(first) => {
                for (tell, first) in tell.into_iter().zip(first) {
                    let _ = tell.send(Ok(first));
                }
            }
            Err(error) => {
                for tell in tell {
                    let _ = tell.send(Err(error.clone()));
                }
            }
        }
    }

    /// The nonce of a proof, which has to be of this installation, and to stand for the time if the clock of the
    /// client is off.
    fn nonce_of(
        &self,
        presented: &PresentedProof,
        proof: &DpopProof,
        now: Timestamp,
    ) -> Result<Option<ReadNonce>, Refusal> {
        let read = proof.nonce.as_deref().map(|nonce| self.proofs.nonces.read(nonce, now));
        let is_unknown = read.is_some_and(|nonce| nonce.is_none());
        let nonce = read.flatten();
        let is_timely =
            proof.is_timely || nonce.is_some_and(|nonce| nonce.scope == NonceScope::AnyTime);
        if is_unknown || !is_timely {
            return Err(self.ask_for_nonce(presented, proof, now));
        }
        Ok(nonce)
    }

    /// Asks for a proof with a nonce that is good at every node, so that the next request is not
    /// turned away again by another one.
    fn ask_for_nonce(
        &self,
        presented: &PresentedProof,
        proof: &DpopProof,
        now: Timestamp,
    ) -> Refusal {
        let nonces = &self.proofs.nonces;
        let (nonce, fault) = if proof.is_timely {
            (nonces.shared(now), ProofFault::Nonce)
        } else {
            (nonces.any_time(now), ProofFault::Time)
        };
        let _ = presented.nonce.set(nonce);
        faulty(fault)
    }
}

/// Fails unless the sender of a token that is bound to `key` proves that it holds that key, or bears a token that
/// is bound to none. The proof has still to be used, if it came with the token.
pub(super) fn held(
    key: Option<Thumbprint>,
    token: PresentedToken<'_>,
    now: Timestamp,
) -> Result<Option<(&PresentedProof, DpopProof)>, Refusal> {
    let presented = match (key, token.possession) {
        (None, Possession::Bearer | Possession::Proved(_)) => return Ok(None),
        (None, Possession::Dpop(_) | Possession::ProvedDpop(_)) => return Err(UNBOUND),
        (Some(key), Possession::Proved(proved) | Possession::ProvedDpop(proved)) => {
            return if proved == Some(key) { Ok(None) } else { Err(unproved(proved)) };
        }
        (Some(_), Possession::Bearer) => return Err(unproved(None)),
        (Some(_), Possession::Dpop(presented)) => presented,
    };
    let presented = presented.ok_or(faulty(ProofFault::Missing))?;
    let proof = checked(presented, token.text, now)?;
    if Some(proof.key) != key {
        return Err(faulty(ProofFault::OtherKey));
    }
    Ok(Some((presented, proof)))
}

fn checked(
    presented: &PresentedProof,
    token: Option<&str>,
    now: Timestamp,
) -> Result<DpopProof, Refusal> {
    let (method, addresses) = (presented.method.as_str(), presented.addresses.as_slice());
    let target = ProofTarget { method, addresses, token };
    let text = presented.proof.as_ref().map_err(|fault| *fault);
    let proof = text.and_then(|text| DpopProof::check(text.expose(), target, now));
    proof.map_err(|fault| {
        let address = presented.addresses.first().filter(|_| fault == ProofFault::Address).cloned();
        Refusal::InvalidProof { fault, address }
    })
}

/// The record of a proof. One that is good at any time is remembered for as long as the nonce that makes it so.
fn remembered(proof: &DpopProof, nonce: Option<ReadNonce>) -> Assertion {
    let record = record_of(&proof.once);
    let lasting = nonce.filter(|nonce| nonce.scope == NonceScope::AnyTime);
    let until = lasting.map_or(record.expires_at, |nonce| nonce.until.max(record.expires_at));
    Assertion { expires_at: until, ..record }
}

const fn faulty(fault: ProofFault) -> Refusal {
    Refusal::InvalidProof { fault, address: None }
}

/// The refusal of a token that comes as if it were bound to a key.
pub(super) const UNBOUND: Refusal =
    Refusal::WrongTokenKind { hint: "it is bound to no key: send it as `Authorization: Bearer`" };

/// The refusal of a token whose key was not proved.
pub(super) const fn unproved(proved: Option<Thumbprint>) -> Refusal {
    match proved {
        Some(_) => faulty(ProofFault::OtherKey),
        None => Refusal::WrongTokenKind {
            hint: "it is bound to a key: send it as `Authorization: DPoP`, with a proof of that \
                   key in the header `DPoP`",
        },
    }
}

/// The record of a JWT that may be used once.
pub(crate) fn record_of(once: &SingleUse) -> Assertion {
    let SingleUse { issuer, jti, until } = once;
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [issuer.as_bytes(), &[0], jti.as_bytes()] {
        context.update(part);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    Assertion { digest, expires_at: *until }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_000_000);

    #[test]
    fn a_proof_is_remembered_longer_than_it_is_good() {
        let mut seen = UsedProofs::default();

        assert_eq!(seen.note([1; 32], NOW), ProofUse::First);
        for later in [0, 1, HALF - 1, HALF, 2 * PROOF_SECONDS + 1] {
            assert_eq!(seen.note([1; 32], NOW.plus_seconds(later)), ProofUse::Again, "{later}");
        }
        assert_eq!(seen.note([2; 32], NOW.plus_seconds(-60)), ProofUse::First);
        assert_eq!(seen.note([3; 32], NOW.plus_seconds(3 * HALF)), ProofUse::First);
        assert_eq!(seen.note([1; 32], NOW.plus_seconds(5 * HALF)), ProofUse::First);
    }

    #[test]
    fn there_is_a_bound_beyond_which_nothing_is_taken() {
        let mut seen = UsedProofs::default();
        let digest = |number: usize| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            digest
        };
        for number in 0..MOST / 2 {
            assert_eq!(seen.note(digest(number), NOW), ProofUse::First);
        }

        assert_eq!(seen.note(digest(MOST), NOW), ProofUse::Full);
        assert_eq!(seen.note(digest(0), NOW), ProofUse::Again, "what is known stays known");
        assert_eq!(seen.note(digest(MOST), NOW.plus_seconds(HALF)), ProofUse::First);
    }
}
