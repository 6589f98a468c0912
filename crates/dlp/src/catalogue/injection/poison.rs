//! Descriptions of tools that order what no description has to: what is taken, where it goes, what is kept quiet.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use super::{
    classes::{DENY, KEPT, MUST, RUN, SEND, STEAL, TAKE, TOOL_VERBS as CALLS, WHOLE},
    passage::{Passage, Phrases, Word, any_in, phrases, sentences},
};
use crate::{
    catalogue::detector::Candidate,
    pace::LOOK,
    text::{window::Window, words},
};

/// Keys of texts that describe.
const DESCRIPTIONS: &[&str] =
    &["description", "instructions", "comment", "title", "default", "examples"];

/// Evidence from which on a description counts.
const LEAST: i32 = 24;

/// Bytes of a text that are read.
const LONGEST: usize = 2048;

/// Words at the beginning of a sentence among which its verb stands.
const SOON: usize = 6;

/// Steps that it takes to read a byte of a sentence that tells something.
const STEPS: usize = 8;

/// The beginning of a text, whichever literal stands in it.
pub(crate) fn whole(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    (text.start() == 0 && literal.start < text.len()).then(|| 0..text.len().min(LONGEST))
}

pub(crate) fn check(candidate: &Candidate<'_>) -> Option<i32> {
    candidate.key.filter(|key| words::ends_name(key, DESCRIPTIONS))?;
    let text = candidate.matched();
    candidate.spend(text.len());
    let telling = TELLING.as_ref()?;
    let mut hits = telling.find_iter(text).map(|hit| hit.start()).peekable();
    hits.peek()?;
    let read = |range: &Range<usize>| {
        candidate.spend(LOOK + STEPS * range.len());
        text.get(range.clone()).map(Sentence::of)
    };
    let mut before = None;
    let mut range_before = 0..0;
    let mut best = 0;
    for range in sentences(text) {
        let mut is_telling = false;
        while hits.next_if(|hit| *hit < range.end).is_some() {
            is_telling = true;
        }
        let mut sentence = None;
        if is_telling {
            let before = before.or_else(|| read(&range_before));
            sentence = read(&range);
            best = best.max(sentence.as_ref()?.weigh(before.as_ref()));
        }
        before = sentence;
        range_before = range;
    }
    (best >= LEAST).then_some(best)
}

/// Finds what every order of these kinds holds: most descriptions hold none of it.
static TELLING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let lists = [
        &PRIVATE, &HOME, &OUTWARD, &QUIET, &EVERYTHING, &EXCLUSIVE, &COMMAND, &MONEY, &ASSENT,
        &ANSWERS, &TAGGED, &TELLING_WORDS,
    ];
    Phrases::joined(&lists)
});

/// Sorts of words in a sentence.
#[derive(Debug, Clone, Copy)]
enum Sort {
    Takes,
    Sends,
    Steals,
    Runs,
    Denies,
    Must,
    Private,
    Home,
    Parameter,
    Outward,
    Quiet,
    Tool,
    Ahead,
    Everything,
    Exclusive,
    Command,
    Money,
    Assent,
    Answers,
    Tagged,
}

use Sort::{
    Ahead, Answers, Assent, Command, Denies, Everything, Exclusive, Home, Money, Must, Outward,
    Parameter, Private, Quiet, Runs, Sends, Steals, Tagged, Takes, Tool,
};

phrases! {
    TAKE_FOREIGN PRIVATE HOME PARAMETER OUTWARD QUIET TOOL AHEAD EVERYTHING EXCLUSIVE COMMAND MONEY ASSENT ANSWERS TAGGED
    TELLING_WORDS
}

/// The sorts of words that a sentence has, a bit each.
struct Sentence(u32);

impl Sentence {
    fn of(text: &[u8]) -> Self {
        let passage = Passage::of(text);
        let words = passage.words();
        let sorts = [
            (Takes, any_in(&words, TAKE) || passage.holds(&TAKE_FOREIGN)),
            (Sends, any_in(words.get(..SOON).unwrap_or(&words), SEND)),
            (Steals, any_in(&words, STEAL)),
            (Runs, any_in(&words, RUN)),
            (Denies, any_in(&words, DENY)),
            (Must, any_in(&words, MUST)),
            (Private, passage.holds(&PRIVATE)),
            (Home, passage.holds(&HOME)),
            (Parameter, passage.holds(&PARAMETER)),
            (Outward, passage.holds(&OUTWARD) || has_mail(passage.text())),
            (Quiet, passage.holds(&QUIET)),
            (Tool, passage.holds(&TOOL) || words.iter().any(|word| is_tool_name(word.text))),
            (Ahead, passage.holds(&AHEAD)),
            (Everything, passage.holds(&EVERYTHING) || means_all(&words)),
            (Exclusive, passage.holds(&EXCLUSIVE)),
            (Command, passage.holds(&COMMAND)),
            (Money, passage.holds(&MONEY)),
            (Assent, passage.holds(&ASSENT)),
            (Answers, passage.holds(&ANSWERS)),
            (Tagged, passage.holds(&TAGGED)),
        ];
        let bits = sorts.into_iter().map(|(sort, holds)| u32::from(holds) << sort as u32);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    fn has(&self, sort: Sort) -> bool {
        self.0 >> sort as u32 & 1 == 1
    }

    /// Evidence of a sentence behind another, in bits.
    fn weigh(&self, before: Option<&Self>) -> i32 {
        let near = |sort| self.has(sort) || before.is_some_and(|before| before.has(sort));
        let worth = |holds: bool, bits: i32| if holds { bits } else { 0 };
        let taken = self.has(Takes) && !self.has(Denies);
        let is_order = self.has(Must);
        let private = (self.has(Private) || self.has(Home)) && taken;
        let carried = worth(self.has(Home) && taken, 18)
            + worth(private && near(Parameter), 14)
            + worth(private && near(Outward), 14)
            + worth(private && self.has(Sends), 10)
            + worth(private && near(Ahead), 10)
            + worth(private && is_order, 6);
        let all = self.has(Everything);
        let moved = worth(all && (taken || is_order), 6)
            + worth(all && near(Parameter), 12)
            + worth(all && self.has(Outward), 18)
            + worth(all && near(Tool) && near(Ahead), 18);
        let run = worth(self.has(Command) && (self.has(Runs) || taken), 18)
            + worth(self.has(Command) && (near(Ahead) || near(Tool) || is_order), 8);
        let sent = worth(self.has(Sends) && self.has(Outward), 16)
            + worth(
                self.has(Sends) && self.has(Outward) && (near(Tool) || near(Ahead) || is_order),
                8,
            );
        let paid = worth(self.has(Money) && (self.has(Outward) || is_order), 24);
        let asked = worth(self.has(Assent), 20) + worth(self.has(Assent) && self.has(Denies), 6);
        let answered = worth(self.has(Answers) && is_order, 24);
        let quiet = worth(self.has(Quiet), 22) + worth(self.has(Quiet) && (is_order || taken), 6);
        let steered = worth(self.has(Exclusive) || self.has(Steals), 24);
        let is_told = taken || self.has(Runs) || is_order;
        let tagged = worth(self.has(Tagged) && is_told, 20)
            + worth(
                self.has(Tagged) && is_told && (near(Ahead) || near(Tool) || private || is_order),
                6,
            );
        let all = [carried, moved, steered, run, sent, paid, asked, answered, quiet, tagged];
        let most = all.into_iter().max();
        most.map_or(0, |most| most + worth((1..LEAST).contains(&most) && near(Quiet), 8))
    }
}

/// Returns true for names of programs such as `send_email`.
fn is_tool_name(word: &str) -> bool {
    let mut parts = word.split('_');
    let verb = parts.next().unwrap_or_default();
    parts.next().is_some_and(|rest| !rest.is_empty()) && Word::of(verb).is(CALLS)
}

/// Returns true if a word for all of something stands before one for what people say and keep.
fn means_all(words: &[Word<'_>]) -> bool {
    words.array_windows().any(|[all, near @ ..]: &[_; 3]| all.is(WHOLE) && any_in(near, KEPT))
}

/// Returns true if the address of a mailbox or of all of a domain stands in a text.
fn has_mail(text: &str) -> bool {
    text.as_bytes().array_windows().any(|[before, at, after]| {
        *at == b'@'
            && (before.is_ascii_alphanumeric() || *before == b'*')
            && after.is_ascii_alphanumeric()
    })
}
