//! Leaves in peace what keeps failing, and tries it again now and then.
//!
//! There is a circuit for the way to an upstream, which failed connections open, and one for each
//! of its tools, which calls without a usable answer open: a tool that hangs takes no other tool
//! along, and a caller who knows how to make one fail stops nobody's other calls. An open circuit
//! refuses at once. When its rest is over, one call goes through; its end decides.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portcullis_core::{refusal::UpstreamReason, tool::ToolName};
use tokio::time::Instant;

use crate::error::{CallError, CallErrorKind};

/// Failures in a row that open a circuit.
const THRESHOLD: u32 = 5;
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// The circuits of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    circuits: Mutex<Circuits>,
    /// How many have failures: while there are none, calls take no lock.
    troubled: AtomicUsize,
}

#[derive(Debug, Default)]
struct Circuits {
    way: Circuit,
    tools: HashMap<ToolName, Circuit>,
}

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    rests_until: Option<Instant>,
    probed: bool,
}

/// What the end of a call says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// The upstream lives and the tool answers.
    Works,
    /// There is no way to it.
    Unreachable,
    /// It was reached and gave no usable answer.
    Useless,
    /// Nothing: it was not asked.
    Nothing,
}

/// A call that may go out; to be told how it ended.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    breaker: &'a Breaker,
    tool: &'a ToolName,
    probes: bool,
    crowded: bool,
}

impl Circuit {
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
    fn fail(&mut self, now: Instant, probes: bool) {
        if self.is_open() && !probes {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.probed = false;
        if let Some(doublings) = self.failures.checked_sub(THRESHOLD) {
            let rest = FIRST_REST * 2_u32.pow(doublings.min(10));
            self.rests_until = Some(now + rest.min(LONGEST_REST));
        }
    }

    const fn is_open(&self) -> bool {
        self.rests_until.is_some()
    }
}

impl Circuits {
    fn admit(&self, tool: &ToolName, now: Instant) -> Result<(), CallError> {
        let of_tool = self.tools.get(tool).map_or(Ok(()), |circuit| circuit.admit(now));
        self.way.admit(now).and(of_tool).map_err(CallError::resting)
    }

    /// The call that was to try the way and the tool has ended.
    fn unprobed(&mut self, tool: &ToolName) {
        self.way.probed = false;
        if let Some(circuit) = self.tools.get_mut(tool) {
            circuit.probed = false;
        }
    }
}

impl Breaker {
    /// Lets a call through, or says no with the time after which to ask again.
    pub(crate) fn admit<'a>(
        &'a self,
        tool: &'a ToolName,
        now: Instant,
    ) -> Result<Admission<'a>, CallError> {
        if self.troubled.load(Ordering::Acquire) == 0 {
            return Ok(Admission { breaker: self, tool, probes: false, crowded: false });
        }
        let mut circuits = self.lock();
        circuits.admit(tool, now)?;
        let mut probes = false;
        let Circuits { way, tools } = &mut *circuits;
        for circuit in tools.get_mut(tool).into_iter().chain([way]) {
            circuit.probed |= circuit.is_open();
            probes |= circuit.probed;
        }
        drop(circuits);
        Ok(Admission { breaker: self, tool, probes, crowded: false })
    }

    /// Says no if a call would not be let through now.
    pub(crate) fn check(&self, tool: &ToolName, now: Instant) -> Result<(), CallError> {
        if self.troubled.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.lock().admit(tool, now)
    }

    /// The upstream was reached and answered.
    pub(crate) fn reached(&self) {
        if self.troubled.load(Ordering::Acquire) > 0 {
            let mut circuits = self.lock();
            circuits.way = Circuit::default();
            self.count(&circuits);
        }
    }

    /// Whether nobody is let through to the upstream now, whatever the tool.
    pub(crate) fn is_way_open(&self) -> bool {
        self.troubled.load(Ordering::Acquire) > 0 && self.lock().way.is_open()
    }

    /// How many circuits are open.
    pub(crate) fn open(&self) -> usize {
        if self.troubled.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let circuits = self.lock();
        circuits.tools.values().chain([&circuits.way]).filter(|it| it.is_open()).count()
    }

    fn hear(&self, tool: &ToolName, said: Said, probes: bool, now: Instant) {
        let quiet = self.troubled.load(Ordering::Acquire) == 0;
        if said == Said::Nothing || (said == Said::Works && quiet) {
            return;
        }
        let mut circuits = self.lock();
        if probes {
            // Whatever it said, and of which circuit: it is no longer under way.
            circuits.unprobed(tool);
        }
        match said {
            Said::Works => {
                circuits.way = Circuit::default();
                circuits.tools.remove(tool);
            }
            Said::Unreachable => circuits.way.fail(now, probes),
            Said::Useless => {
                circuits.way = Circuit::default();
                circuits.tools.entry(tool.clone()).or_default().fail(now, probes);
            }
            Said::Nothing => {}
        }
        self.count(&circuits);
    }

    fn count(&self, circuits: &Circuits) {
        let way = usize::from(circuits.way.failures > 0);
        self.troubled.store(circuits.tools.len() + way, Ordering::Release);
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
                Said::Nothing
            }
            Err(error) => what(error.kind),
            Ok(_) => Said::Works,
        };
        self.breaker.hear(self.tool, said, self.probes, Instant::now());
        self.probes &= said == Said::Nothing;
        end
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.probes {
            // It said nothing.
            self.breaker.lock().unprobed(self.tool);
        }
    }
}

fn what(kind: CallErrorKind) -> Said {
    match kind {
        CallErrorKind::Upstream(UpstreamReason::ConnectFailed) => Said::Unreachable,
        CallErrorKind::Upstream(
            UpstreamReason::ConnectionReset
            | UpstreamReason::ProtocolError
            | UpstreamReason::Http5xx,
        )
        | CallErrorKind::Timeout { .. } => Said::Useless,
        // It answered, whatever it was.
        CallErrorKind::Upstream(
            UpstreamReason::InteractionRequired
            | UpstreamReason::ResponseTooLarge
            | UpstreamReason::JsonrpcError,
        )
        | CallErrorKind::AuthRequired
        | CallErrorKind::Forbidden => Said::Works,
        CallErrorKind::Overloaded | CallErrorKind::Resting { .. } => Said::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::refusal::Executed;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lateness_says_nothing_where_answers_wait_for_each_other() {
        let (breaker, tool) = (Breaker::default(), name("slow"));
        let late = || Err(CallError::timeout(Duration::from_secs(2), Executed::Unknown));

        for crowded in [true, false] {
            for _ in 0..THRESHOLD {
                let admission = breaker.admit(&tool, Instant::now()).unwrap().crowded(crowded);
                let _: Result<(), _> = admission.ended(late());
            }
            assert_eq!(breaker.open() > 0, !crowded);
        }
    }

    const UNREACHABLE: CallError = CallError::connect_failed();
    const USELESS: CallError = CallError::protocol(Executed::Unknown);

    fn name(text: &str) -> ToolName {
        text.parse().unwrap()
    }

    /// One call of the tool that ends so; gives what the breaker said, if it said no.
    fn call(breaker: &Breaker, tool: &str, end: Result<(), CallError>) -> Option<Duration> {
        let tool = name(tool);
        match breaker.admit(&tool, Instant::now()) {
            Ok(admission) => {
                let _ = admission.ended(end);
                None
            }
            Err(CallError { kind: CallErrorKind::Resting { rest }, executed: Executed::No }) => {
                Some(rest)
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn five_failures_in_a_row_open_it_and_one_probe_after_each_rest_decides() {
        let breaker = Breaker::default();
        for _ in 0..4 {
            assert_eq!(call(&breaker, "a", Err(UNREACHABLE)), None);
        }
        assert_eq!(call(&breaker, "a", Ok(())), None, "a success forgets them");
        for _ in 0..5 {
            assert_eq!(call(&breaker, "a", Err(UNREACHABLE)), None);
        }

        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            let rest = Duration::from_secs(seconds);
            assert_eq!(call(&breaker, "b", Ok(())), Some(rest), "every tool rests");
            assert!(breaker.is_way_open());
            tokio::time::advance(rest).await;
            let tool = name("a");
            let probe = breaker.admit(&tool, Instant::now()).unwrap();
            assert_eq!(call(&breaker, "a", Ok(())), Some(FIRST_REST), "one at a time");
            probe.ended::<()>(Err(UNREACHABLE)).unwrap_err();
        }

        tokio::time::advance(LONGEST_REST).await;
        assert_eq!(call(&breaker, "a", Ok(())), None);
        assert_eq!(call(&breaker, "b", Ok(())), None);
        assert_eq!((breaker.open(), breaker.is_way_open()), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn many_calls_that_fail_together_are_not_many_failures() {
        for (end, rest) in [(UNREACHABLE, FIRST_REST), (USELESS, FIRST_REST)] {
            let breaker = Breaker::default();
            let tool = name("a");
            let all: Vec<_> =
                (0..100).map(|_| breaker.admit(&tool, Instant::now()).unwrap()).collect();

            for admission in all {
                admission.ended::<()>(Err(end)).unwrap_err();
            }

            assert_eq!(call(&breaker, "a", Ok(())), Some(rest));
            tokio::time::advance(rest).await;
            assert_eq!(call(&breaker, "a", Ok(())), None, "the first probe decides");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_without_answers_rests_alone() {
        let breaker = Breaker::default();
        for _ in 0..5 {
            assert_eq!(call(&breaker, "a", Err(USELESS)), None);
        }

        assert!(call(&breaker, "a", Ok(())).is_some());
        assert_eq!(call(&breaker, "b", Ok(())), None);
        assert_eq!((breaker.open(), breaker.is_way_open()), (1, false));
        assert!(call(&breaker, "a", Ok(())).is_some(), "another tool's answer says nothing of it");
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_refusals_are_answers() {
        let breaker = Breaker::default();
        for error in [
            CallError::upstream(UpstreamReason::JsonrpcError, Executed::No),
            CallError::upstream(UpstreamReason::InteractionRequired, Executed::Unknown),
            CallError::too_large(Executed::Yes),
            CallError::auth_required(),
            CallError::overloaded(),
        ] {
            for _ in 0..10 {
                assert_eq!(call(&breaker, "a", Err(error)), None);
            }
        }
        assert_eq!(breaker.open(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_given_up_leaves_room_for_the_next() {
        let breaker = Breaker::default();
        for _ in 0..5 {
            call(&breaker, "a", Err(UNREACHABLE));
        }
        tokio::time::advance(FIRST_REST).await;
        let tool = name("a");

        drop(breaker.admit(&tool, Instant::now()).unwrap());

        assert_eq!(call(&breaker, "a", Err(CallError::overloaded())), None);
        assert_eq!(call(&breaker, "a", Ok(())), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_rests_is_tried_again_also_after_there_was_no_way_to_it() {
        let breaker = Breaker::default();
        for _ in 0..5 {
            call(&breaker, "a", Err(USELESS));
        }
        tokio::time::advance(FIRST_REST).await;

        assert_eq!(call(&breaker, "a", Err(UNREACHABLE)), None, "the probe");

        assert_eq!(call(&breaker, "a", Ok(())), None);
        assert_eq!(breaker.open(), 0);
    }

    // Whatever happens, and in whatever order: when nothing is under way and the longest rest is
    // over, somebody is let through.
    #[tokio::test(start_paused = true)]
    async fn nobody_is_locked_out_for_ever() {
        let tools = [name("a"), name("b")];
        let mut dice = 7_u32;
        let mut roll = |sides: u32| {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (dice >> 16) % sides
        };
        for _ in 0..200 {
            let breaker = Breaker::default();
            let mut under_way = Vec::new();
            for _ in 0..60 {
                let tool = &tools[roll(2) as usize];
                under_way.extend(breaker.admit(tool, Instant::now()));
                if roll(3) > 0 && !under_way.is_empty() {
                    let at = roll(u32::try_from(under_way.len()).unwrap()) as usize;
                    let admission = under_way.swap_remove(at);
                    let _ = match roll(6) {
                        0 => {
                            drop(admission);
                            Ok(())
                        }
                        1 => admission.ended(Ok(())),
                        2 => admission.ended(Err(CallError::overloaded())),
                        3 => admission.ended(Err(USELESS)),
                        _ => admission.ended(Err(UNREACHABLE)),
                    };
                }
                tokio::time::advance(Duration::from_millis(u64::from(roll(4_000)))).await;
            }
            drop(under_way);
            tokio::time::advance(LONGEST_REST).await;

            for tool in &tools {
                let admission = breaker.admit(tool, Instant::now());
                assert!(admission.is_ok(), "{tool} rests for ever: {breaker:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_another_question_closes_the_way() {
        let breaker = Breaker::default();
        for _ in 0..5 {
            call(&breaker, "a", Err(UNREACHABLE));
        }

        breaker.reached();

        assert_eq!(call(&breaker, "a", Ok(())), None);
    }
}
