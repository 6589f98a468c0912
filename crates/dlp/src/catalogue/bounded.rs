//! Search for patterns that the operator writes, in stretches of a bounded length and at a known cost.

use std::{
    fmt,
    ops::Range,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

use regex_automata::{
    Anchored, Input,
    hybrid::{self, regex::Regex},
    nfa::thompson::{
        self,
        pikevm::{self, PikeVM},
    },
    util::{pool::Pool, syntax},
};

/// Bytes that a match may have; a longer one is cut.
const LONGEST: usize = 4 << 10;

/// Bytes that one search reads at most, so that each match that begins in the first half is seen whole.
const STRETCH: usize = 2 * LONGEST;

/// Largest compiled form of one pattern, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// Memory for the states of a pattern that a search makes as it goes.
const CACHE: usize = 256 << 10;

/// Bytes that the states in the memory have to be good for, or the search goes on without them.
const BYTES_A_STATE: usize = 10;

/// Bytes that a search reads in one step.
const BYTES_A_STEP: usize = 4;

/// Steps that it takes to fill that memory.
const STEPS_A_CACHE: usize = 1 << 18;

/// Steps for each byte and state of a pattern where the states of a search cannot be kept.
const STEPS_A_STATE: usize = 2;

/// States of a pattern for each byte of a match whose groups are looked for.
const STATES_A_STEP: usize = 2;

type Make = Box<dyn Fn() -> Caches + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// A regular expression whose searches cost no more than they say.
pub(super) struct BoundedRegex {
    programs: Arc<Programs>,
    caches: Pool<Caches, Make>,
}

/// The compiled forms: one that keeps its states, and one for where these are too many and for groups.
struct Programs {
    regex: Regex,
    machine: PikeVM,
}

/// Memory of a search.
struct Caches {
    regex: hybrid::regex::Cache,
    machine: pikevm::Cache,
}

impl BoundedRegex {
    /// Compiles a pattern, or says that it does not.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        let syntax = syntax::Config::new().unicode(false).utf8(false);
        let program = thompson::Config::new().utf8(false).nfa_size_limit(Some(MAX_COMPILED));
        let states = hybrid::dfa::Config::new()
            .cache_capacity(CACHE)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            .minimum_cache_clear_count(Some(1))
            .minimum_bytes_per_state(Some(BYTES_A_STATE));
        let regex =
            Regex::builder().syntax(syntax).thompson(program.clone()).dfa(states).build(source);
        let regex = regex.map_err(|error| error.to_string())?;
        let machine = PikeVM::builder().syntax(syntax).thompson(program).build(source);
        let machine = machine.map_err(|error| error.to_string())?;
        let programs = Arc::new(Programs { regex, machine });
        let shared = Arc::clone(&programs);
        let make = move || Caches {
            regex: shared.regex.create_cache(),
            machine: shared.machine.create_cache(),
        };
        Ok(Self { programs, caches: Pool::new(Box::new(make)) })
    }

    /// Number of groups, without the whole match.
    pub(super) fn groups(&self) -> usize {
        self.programs.machine.get_nfa().group_info().all_group_len().saturating_sub(1)
    }

    /// Bytes that the compiled form takes.
    pub(super) fn bytes(&self) -> usize {
        let [forward, reverse] = [self.programs.regex.forward(), self.programs.regex.reverse()];
        let programs = [forward.get_nfa(), reverse.get_nfa(), self.programs.machine.get_nfa()];
        programs.iter().map(|program| program.memory_usage()).sum()
    }

    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.programs.machine.is_match(&mut self.caches.get().machine, text)
    }

    /// Calls `take` with every match that begins in a part of the haystack, and with its groups. Before each
    /// step of the search `spend` is told what it may cost; the search ends where that says so.
    pub(super) fn find_in(
        &self,
        haystack: &[u8],
        part: Range<usize>,
        spend: impl Fn(usize) -> bool,
        mut take: impl FnMut(Range<usize>, &[Option<Range<usize>>]),
    ) {
        let mut caches = self.caches.get();
        let mut groups = Vec::new();
        let mut at = part.start;
        while at < part.end {
            let end = part.end.min(at + STRETCH);
            let Ok(found) = self.find(haystack, at..end, &mut caches, &spend) else { return };
            let border = if end == part.end { end } else { at + LONGEST };
            let Some(found) = found.filter(|found| found.start <= border) else {
                at = border;
                continue;
            };
            if !self.read_groups(haystack, &found, &mut caches, &spend, &mut groups) {
                return;
            }
            at = found.end.max(at + 1);
            take(found, &groups);
        }
    }

    /// The first match in a stretch, or an error if the scan shall end.
    fn find(
        &self,
        haystack: &[u8],
        stretch: Range<usize>,
        caches: &mut Caches,
        spend: &impl Fn(usize) -> bool,
    ) -> Result<Option<Range<usize>>, ()> {
        let go_on = |steps: usize| if spend(steps) { Ok(()) } else { Err(()) };
        let Caches { regex, machine } = caches;
        let length = stretch.len();
        let input = Input::new(haystack).range(stretch);
        go_on(1 + length / BYTES_A_STEP)?;
        let before = clears(regex);
        let found = self.programs.regex.try_search(regex, &input);
        go_on(clears(regex).saturating_sub(before) * STEPS_A_CACHE)?;
        if let Ok(found) = found {
            return Ok(found.map(|found| found.range()));
        }
        go_on(length.saturating_mul(self.states()).saturating_mul(STEPS_A_STATE))?;
        Ok(self.programs.machine.find(machine, input).map(|found| found.range()))
    }

    /// Reads the groups of a match. Returns false if the scan shall end.
    fn read_groups(
        &self,
        haystack: &[u8],
        found: &Range<usize>,
        caches: &mut Caches,
        spend: &impl Fn(usize) -> bool,
        groups: &mut Vec<Option<Range<usize>>>,
    ) -> bool {
        groups.clear();
        if self.groups() == 0 {
            return true;
        }
        if !spend(found.len().saturating_mul(self.states()) / STATES_A_STEP) {
            return false;
        }
        let input = Input::new(haystack).range(found.clone()).anchored(Anchored::Yes);
        let mut captures = self.programs.machine.create_captures();
        self.programs.machine.captures(&mut caches.machine, input, &mut captures);
        groups.extend(captures.iter().skip(1).map(|group| group.map(|span| span.range())));
        true
    }

    fn states(&self) -> usize {
        self.programs.machine.get_nfa().states().len()
    }
}

/// Number of times that the memory of a search was full.
fn clears(cache: &hybrid::regex::Cache) -> usize {
    let (forward, reverse) = cache.as_parts();
    forward.clear_count() + reverse.clear_count()
}

impl fmt::Debug for BoundedRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedRegex").finish_non_exhaustive()
    }
}
