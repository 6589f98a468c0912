//! Refuses calls to what keeps failing, and tries it again now and then.
//!
//! There is a circuit for the way to an upstream, which failed connections open, and one for each
//! of its tools, which calls without a usable answer open: a tool that hangs takes no other tool
//! along, and a caller who knows how to make one fail stops no other calls. Each org has circuits
//! of its own ([`health`]), so that an org which makes a tool fail stops its own calls only.
//! An open circuit refuses at once. When its rest is over, one call of the org goes through; its end
//! decides.

mod health;

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use portcullis_core::{capability::CapabilityId, id::OrgId, refusal::UpstreamReason};
use tokio::time::Instant;

use self::health::Health;
use crate::error::{CallError, CallErrorKind};

/// Tools whose failures are remembered; beyond, those that failed longest ago are forgotten.
const MAX_TOOLS: usize = 1024;

/// The circuits of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    circuits: Mutex<Circuits>,
    /// Set while something has failed: as long as nothing has, calls take no lock.
    troubled: AtomicBool,
}

#[derive(Debug, Default)]
struct Circuits {
    way: Health,
    tools: HashMap<CapabilityId, Health>,
}

/// Meaning of the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndMeaning {
    /// The upstream lives and the tool answers.
    Works,
    Unreachable,
    /// The upstream was reached and gave no usable answer.
    Useless,
    /// Nothing: it was not asked.
    Nothing,
}

/// Call of an org's tool, as the circuits know it.
#[derive(Debug, Clone, Copy)]
struct CalledTool<'a> {
    org: OrgId,
    tool: &'a CapabilityId,
}

/// A call that may go out; to be told how it ended.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    breaker: &'a Breaker,
    call: CalledTool<'a>,
    probes: bool,
    crowded: bool,
}

impl Circuits {
    fn admit(&mut self, call: CalledTool<'_>, now: Instant) -> Result<(), CallError> {
        let of_tool = self.tools.get_mut(call.tool);
        let of_tool = of_tool.map_or(Ok(()), |health| health.admit(call.org, now));
        self.way.admit(call.org, now).and(of_tool).map_err(CallError::resting)
    }

    /// The call that goes out now tries what is open. Returns whether anything is.
    fn probe(&mut self, call: CalledTool<'_>) -> bool {
        let of_tool = self.tools.get_mut(call.tool);
        let of_tool = of_tool.is_some_and(|health| health.probe(call.org));
        self.way.probe(call.org) || of_tool
    }

    /// The call that was to try the way and the tool has ended.
    fn unprobed(&mut self, call: CalledTool<'_>) {
        self.way.unprobed(call.org);
        if let Some(health) = self.tools.get_mut(call.tool) {
            health.unprobed(call.org);
        }
    }

    fn hear(&mut self, call: CalledTool<'_>, said: EndMeaning, probes: bool, now: Instant) {
        if probes {
            // Whatever it said, and of which circuit: it is no longer under way.
            self.unprobed(call);
        }
        match said {
            EndMeaning::Works => {
                self.way = Health::default();
                if let Some(health) = self.tools.get_mut(call.tool) {
                    health.works(call.org, now);
                    if health.is_good() {
                        self.tools.remove(call.tool);
                    }
                }
            }
            EndMeaning::Unreachable => self.way.fails(call.org, now, probes),
            EndMeaning::Useless => {
                self.way = Health::default();
                self.of_tool(call.tool).fails(call.org, now, probes);
            }
            EndMeaning::Nothing => {}
        }
    }

    fn of_tool(&mut self, tool: &CapabilityId) -> &mut Health {
        if self.tools.len() >= MAX_TOOLS && !self.tools.contains_key(tool) {
            let oldest = self.tools.iter().min_by_key(|(_, health)| health.touched());
            if let Some(oldest) = oldest.map(|(tool, _)| tool.clone()) {
                self.tools.remove(&oldest);
            }
        }
        self.tools.entry(tool.clone()).or_default()
    }

    fn is_troubled(&self) -> bool {
        !self.way.is_good() || !self.tools.is_empty()
    }
}

impl Breaker {
    /// Lets a call through, or refuses it with the time after which to ask again.
    pub(crate) fn admit<'a>(
        &'a self,
        org: OrgId,
        tool: &'a CapabilityId,
        now: Instant,
    ) -> Result<Admission<'a>, CallError> {
        let call = CalledTool { org, tool };
        let mut probes = false;
        if self.troubled.load(Ordering::Acquire) {
            let mut circuits = self.lock();
            circuits.admit(call, now)?;
            probes = circuits.probe(call);
        }
        Ok(Admission { breaker: self, call, probes, crowded: false })
    }

    /// Fails if a call would not be let through now.
    pub(crate) fn check(
        &self,
        org: OrgId,
        tool: &CapabilityId,
        now: Instant,
    ) -> Result<(), CallError> {
        if self.troubled.load(Ordering::Acquire) {
            self.lock().admit(CalledTool { org, tool }, now)
        } else {
            Ok(())
        }
    }

    /// The upstream was reached and answered.
    pub(crate) fn reached(&self) {
        if self.troubled.load(Ordering::Acquire) {
            let mut circuits = self.lock();
            circuits.way = Health::default();
            self.note(&circuits);
        }
    }

    /// Returns true if an org kept failing to reach the upstream and no call has reached it since.
    pub(crate) fn is_way_open(&self) -> bool {
        self.troubled.load(Ordering::Acquire) && self.lock().way.is_open()
    }

    /// Number of tools, and of ways, with an open circuit of any org.
    pub(crate) fn open(&self) -> usize {
        if !self.troubled.load(Ordering::Acquire) {
            return 0;
        }
        let circuits = self.lock();
        circuits.tools.values().chain([&circuits.way]).filter(|it| it.is_open()).count()
    }

    fn hear(&self, call: CalledTool<'_>, said: EndMeaning, probes: bool, now: Instant) {
        let quiet = !self.troubled.load(Ordering::Acquire);
        if said == EndMeaning::Nothing || (said == EndMeaning::Works && quiet) {
            return;
        }
        let mut circuits = self.lock();
        circuits.hear(call, said, probes, now);
        self.note(&circuits);
    }

    fn note(&self, circuits: &Circuits) {
        self.troubled.store(circuits.is_troubled(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Circuits> {
        self.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission<'_> {
    /// Says whether its answer may have had to wait for those of others: then that it was late
    /// says nothing.
    pub(crate) const fn crowded(mut self, crowded: bool) -> Self {
        self.crowded = crowded;
        self
    }

    /// Takes the end of the call into account.
    pub(crate) fn ended<T>(mut self, end: Result<T, CallError>) -> Result<T, CallError> {
        let said = match &end {
            Err(CallError { kind: CallErrorKind::Timeout { .. }, .. }) if self.crowded => {
                EndMeaning::Nothing
            }
            Err(error) => what(error.kind),
            Ok(_) => EndMeaning::Works,
        };
        self.breaker.hear(self.call, said, self.probes, Instant::now());
        self.probes &= said == EndMeaning::Nothing;
        end
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.probes {
            // It said nothing.
            self.breaker.lock().unprobed(self.call);
        }
    }
}

fn what(kind: CallErrorKind) -> EndMeaning {
    match kind {
        CallErrorKind::Upstream(UpstreamReason::ConnectFailed) => EndMeaning::Unreachable,
        CallErrorKind::Upstream(
            UpstreamReason::ConnectionReset
            | UpstreamReason::ProtocolError
            | UpstreamReason::Http5xx,
        )
        | CallErrorKind::Timeout { .. } => EndMeaning::Useless,
        // It answered, whatever it was.
        CallErrorKind::Upstream(
            UpstreamReason::InteractionRequired
            | UpstreamReason::ResponseTooLarge
            | UpstreamReason::OutputMismatch
            | UpstreamReason::DigestMismatch
            | UpstreamReason::JsonrpcError
            | UpstreamReason::SessionLost
            | UpstreamReason::IssuerMismatch,
        )
        | CallErrorKind::NotFound
        | CallErrorKind::Unanswerable(_)
        | CallErrorKind::AuthRequired
        | CallErrorKind::Forbidden => EndMeaning::Works,
        CallErrorKind::Upstream(UpstreamReason::Cancelled)
        | CallErrorKind::Overloaded
        | CallErrorKind::Resting { .. } => EndMeaning::Nothing,
    }
}

#[cfg(test)]
mod tests;
