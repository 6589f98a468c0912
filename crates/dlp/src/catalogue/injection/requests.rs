//! Requests in data to act for the one who wrote them: an order, an object that is worth something, and whom it shall reach.

use std::ops::Range;

use super::{
    classes::{
        COURTESY, Classes, FUNDS, MESSAGES, MINE, MONEY, PERSONAL, POWERS, READING, RIGHTS,
        RUNNING, SECRETS, SOFTLY, YOURS,
    },
    passage::{Passage, Word, any_in, is_quoted, sentence},
};
use crate::{
    catalogue::{
        detector::Candidate,
        lists::{ALL_OF_USER, FRIENDS},
    },
    text::window::Window,
};

pub(crate) fn find(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    if literal.is_empty() && !may_begin_order(text) {
        return None;
    }
    let range = sentence(text, &literal);
    weigh(text, &range).map(|_| range)
}

pub(crate) fn check(candidate: &Candidate<'_>) -> Option<i32> {
    weigh(&candidate.text, &candidate.range)
}

/// An order: its words, and which of them is the verb.
struct Order<'a> {
    passage: &'a Passage,
    words: Vec<Word<'a>>,
    verb: Word<'a>,
    before: usize,
}

fn weigh(text: &Window<'_>, range: &Range<usize>) -> Option<i32> {
    text.once("injected_request", range, || weigh_once(text, range))
}

fn weigh_once(text: &[u8], range: &Range<usize>) -> Option<i32> {
    let bytes = text.get(range.clone())?;
    let before = before_verb(bytes)?;
    let passage = Passage::of(bytes);
    let words = passage.words();
    let verb = words.get(before).copied()?;
    let order = Order { passage: &passage, words, verb, before };
    let objects = Some(order.objects()).filter(|bits| *bits > 0)?;
    let concrete = Some(order.concrete()).filter(|bits| *bits > 0)?;
    let bits = 6 + objects.min(12) + concrete.min(15) + order.support() + around(text, range);
    (bits >= 20).then_some(bits)
}

const fn worth(holds: bool, bits: i32) -> i32 {
    if holds { bits } else { 0 }
}

impl Order<'_> {
    /// Returns true if a word of a class stands behind the verb.
    fn has(&self, class: Classes) -> bool {
        any_in(self.words.get(self.before + 1..).unwrap_or_default(), class)
    }

    fn sends(&self) -> bool {
        self.verb.is(MESSAGES) || self.has(MESSAGES)
    }

    /// Evidence of the objects, in bits.
    fn objects(&self) -> i32 {
        worth(self.has(SECRETS), 8)
            + worth(self.has(PERSONAL), 6)
            + worth(self.has(POWERS) && self.verb.is(RIGHTS.and(RUNNING)), 7)
            + worth(self.has(FUNDS), 6)
    }

    /// Evidence of recipients, amounts and ids, in bits.
    fn concrete(&self) -> i32 {
        let text = self.passage.text();
        let mail = text
            .as_bytes()
            .array_windows()
            .any(|[before, at]| *at == b'@' && before.is_ascii_alphanumeric());
        let link = self.passage.has(&["http://", "https://", "www."]);
        let digits = |word: &Word<'_>| word.text.bytes().filter(u8::is_ascii_digit).count() >= 6;
        let funds = self.verb.is(MONEY) || self.has(FUNDS);
        worth(mail && self.sends(), 9)
            + worth(link && self.sends(), 5)
            + worth(has_amount(text) && funds, 8)
            + worth(has_id(&self.words), 6)
            + worth(self.words.iter().any(digits), 5)
            + worth(self.passage.has(&FRIENDS), 5)
            + worth(self.passage.has(QUOTES), 3)
    }

    /// Evidence of the words around verb and object, for and against, in bits.
    fn support(&self) -> i32 {
        let softly = self.words.iter().take(self.before).any(|word| word.is(SOFTLY));
        let yours = any_in(&self.words, YOURS);
        worth(self.verb.is(READING) && self.sends(), 5)
            + worth(self.has(MINE), 4)
            + worth(self.passage.has(&ALL_OF_USER), 3)
            + worth(softly, 3)
            - worth(yours, 12)
    }
}

/// Evidence of the text around an order, in bits: all of it is the order, or it is quoted.
fn around(text: &[u8], range: &Range<usize>) -> i32 {
    let is_whole =
        text.len() <= range.len() + 24 || range.start < 3 && text.len() < 2 * range.len();
    worth(is_whole, 3) - worth(is_quoted(text, range), 8)
}

const QUOTES: &[&str] = &[" '", " \"", " “"];

/// Verbs of orders.
const VERBS: Classes = MONEY.and(RIGHTS).and(MESSAGES).and(READING).and(RUNNING);

/// Number of words before the verb of an order.
fn before_verb(bytes: &[u8]) -> Option<usize> {
    // Badges, links and cells of tables are no orders, whatever their addresses hold.
    if matches!(bytes.first(), Some(b'[' | b'|' | b'!' | b'`')) {
        return None;
    }
    let begin = Passage::of(bytes.get(..bytes.len().min(120))?);
    let mut words = begin.each_word().map(Word::of).take(12).enumerate();
    let (at, verb) = words.find(|(_, word)| !word.is(COURTESY))?;
    verb.is(VERBS).then_some(at)
}

/// Returns true if the first word of a text can begin an order. Most texts end here, before they are
/// copied and split. A word with other letters than those of ASCII may.
fn may_begin_order(text: &[u8]) -> bool {
    let ends = |byte: &u8| {
        !(byte.is_ascii_alphanumeric() || matches!(byte, b'\'' | b'_') || *byte >= 0x80)
    };
    let word = text.split(ends).find(|word| !word.is_empty()).unwrap_or_default();
    // All words of the lists are shorter.
    let mut begun = [0; 32];
    for (into, byte) in begun.iter_mut().zip(word) {
        *into = byte.to_ascii_lowercase();
    }
    let begun = begun.get(..word.len()).unwrap_or(&begun);
    !word.is_ascii() || Classes::of(begun).meet(COURTESY.and(VERBS))
}

/// Returns true if a text has an amount of money or of things.
fn has_amount(text: &str) -> bool {
    let signs =
        ["$", "€", "£", " usd", " eur", " dollars", " euros", " btc", " eth", " shares", " units"];
    signs.iter().any(|sign| text.contains(sign)) && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns true if one of some words is the id of a person or thing, or an id follows.
fn has_id(words: &[Word<'_>]) -> bool {
    let mixed = |word: &Word<'_>| {
        word.text.contains('_')
            && word.text.bytes().any(|byte| byte.is_ascii_digit())
            && word.text.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let names =
        |word: &Word<'_>| matches!(word.text, "id" | "username" | "account" | "number" | "user");
    let is_id = |word: &Word<'_>| word.text.bytes().any(|b| b.is_ascii_digit() || b == b'_');
    words.array_windows().any(|[name, next]| names(name) && is_id(next)) || words.iter().any(mixed)
}
