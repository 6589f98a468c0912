//! Passages of a text that are read as a person reads them: sentences and their words, in lower case.

use std::{
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use regex::bytes::{Regex, RegexSet};

use super::classes::Classes;
use crate::catalogue::lists::injection;
use crate::text::window::Window;

/// Bytes of a sentence before and behind the literal in it.
const BACK: usize = 240;
const AHEAD: usize = 420;

/// Bytes of a passage of several sentences on either side.
const WIDE: usize = 300;

/// A passage that no sentence or heading ends begins and ends at a multiple of so many bytes: the triggers of a long
/// text have few passages, each of which is weighed once.
const GRAIN: usize = 256;

/// Beginning of a heading in Markdown, which no passage goes beyond.
const HEADING: &[u8] = b"\n#";

/// Words of a passage that are read.
const WORDS: usize = 120;

/// The sentence around a literal.
pub(super) fn sentence(text: &Window<'_>, literal: &Range<usize>) -> Range<usize> {
    let Range { start, end } = around(text, literal, BACK, AHEAD);
    let before = text.get(start..literal.start).unwrap_or_default();
    let begun = before.windows(2).rposition(ends_sentence).map_or(0, |at| at + 1);
    let after = text.get(literal.end..end).unwrap_or_default();
    let ended = after.windows(2).position(ends_sentence).map_or(after.len(), |at| at + 1);
    trimmed(text, start + begun..literal.end + ended)
}

/// Text around a literal, so many bytes before and behind it or a little more.
fn around(text: &Window<'_>, literal: &Range<usize>, back: usize, ahead: usize) -> Range<usize> {
    let start = (text.start() + literal.start).saturating_sub(back) / GRAIN * GRAIN;
    let end = (text.start() + literal.end + ahead).next_multiple_of(GRAIN);
    start.saturating_sub(text.start())..text.len().min(end - text.start())
}

/// The sentences around a literal.
pub(super) fn passage(text: &Window<'_>, literal: &Range<usize>) -> Range<usize> {
    let Range { start, end } = around(text, literal, WIDE, WIDE);
    let before = text.get(start..literal.start).unwrap_or_default();
    let begun = memchr::memmem::rfind(before, HEADING).unwrap_or(0);
    let after = text.get(literal.end..end).unwrap_or_default();
    let ended = memchr::memmem::find(after, HEADING).unwrap_or(after.len());
    trimmed(text, start + begun..literal.end + ended)
}

/// The sentences of a text.
pub(super) fn sentences(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let length = rest.windows(2).position(ends_sentence).map_or(rest.len(), |end| end + 1);
        at += length;
        Some(trimmed(text, at - length..at))
    })
}

/// A line feed, or a stop before space.
fn ends_sentence(pair: &[u8]) -> bool {
    matches!(pair, [_, b'\n'] | [b'.' | b'!' | b'?' | b';', b' ' | b'\t' | b'\r' | b'"'])
}

/// A range without space at its ends and without pieces of characters.
fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let inside = text.get(range.clone()).unwrap_or_default();
    let is_spare = |byte: &&u8| byte.is_ascii_whitespace() || (0x80..0xC0).contains(*byte);
    let before = inside.iter().take_while(is_spare).count();
    let rest = inside.get(before..).unwrap_or_default();
    let after = rest.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    range.start + before..range.start + before + rest.len() - after
}

/// A passage in lower case.
pub(super) struct Passage {
    text: String,
}

impl Passage {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) if text.is_ascii() => text.to_ascii_lowercase(),
            Ok(text) => text.to_lowercase(),
            Err(_) => String::from_utf8_lossy(bytes).to_lowercase(),
        };
        Self { text }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The words with their classes, as far as they are read.
    pub(super) fn words(&self) -> Vec<Word<'_>> {
        self.each_word().take(WORDS).map(Word::of).collect()
    }

    /// The words one by one.
    pub(super) fn each_word(&self) -> impl Iterator<Item = &str> {
        let mut rest = self.text.as_str();
        std::iter::from_fn(move || {
            rest = rest.get(length_of(rest, |char| !is_word(char))..)?;
            let (word, behind) = rest.split_at_checked(length_of(rest, is_word))?;
            rest = behind;
            Some(word).filter(|word| !word.is_empty())
        })
    }

    /// Returns true if one of these stands in it.
    pub(super) fn has(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.text.contains(phrase))
    }

    /// Returns true if one of many stands in it.
    pub(super) fn holds(&self, phrases: &Phrases) -> bool {
        phrases.stand_in(&self.text)
    }

    /// Number of these that stand in it.
    pub(super) fn count(&self, phrases: &PhraseSet) -> usize {
        let set = phrases.as_ref();
        set.map_or(0, |set| set.matches(self.text.as_bytes()).iter().count())
    }
}

/// A word of a passage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    classes: Classes,
}

impl<'a> Word<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, classes: Classes::of(text) }
    }

    /// Returns true if it is of one of these classes.
    pub(super) const fn is(&self, classes: Classes) -> bool {
        self.classes.meet(classes)
    }
}

/// Returns true if one of some words is of one of these classes.
pub(super) fn any_in(words: &[Word<'_>], classes: Classes) -> bool {
    words.iter().any(|word| word.is(classes))
}

/// Phrases of which one pass over a text tells how many stand in it.
pub(super) type PhraseSet = LazyLock<Option<RegexSet>>;

pub(super) fn phrase_set(name: &str) -> Option<RegexSet> {
    RegexSet::new(injection("phrases", name).iter().map(|phrase| regex::escape(phrase))).ok()
}

/// Length of the characters of one kind with which a text begins; most are ASCII, and need no decoding.
fn length_of(text: &str, is_kind: impl Fn(char) -> bool) -> usize {
    let is_plain = |byte: &&u8| byte.is_ascii() && is_kind(char::from(**byte));
    let length = text.as_bytes().iter().take_while(is_plain).count();
    match text.get(length..) {
        Some(rest) if rest.bytes().next().is_some_and(|next| !next.is_ascii()) => {
            length + rest.find(|char| !is_kind(char)).unwrap_or(rest.len())
        }
        Some(_) | None => length,
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '\'' | '’' | '_')
}

/// Many phrases, which one pass over a text looks for.
pub(super) struct Phrases {
    /// Name of their list.
    name: &'static str,
    pattern: OnceLock<Option<Regex>>,
}

/// Names lists of phrases for checks.
macro_rules! phrases {
    ($($name:ident)*) => {
        $(static $name: $crate::catalogue::injection::passage::Phrases =
            $crate::catalogue::injection::passage::Phrases::named(stringify!($name));)*
    };
}
pub(super) use phrases;

impl Phrases {
    pub(super) const fn named(name: &'static str) -> Self {
        Self { name, pattern: OnceLock::new() }
    }

    fn list(&self) -> &'static [&'static str] {
        injection("phrases", self.name)
    }

    /// The pattern of all phrases of some lists, in any case.
    pub(super) fn joined(lists: &[&Self]) -> Option<Regex> {
        let phrases = lists.iter().flat_map(|it| it.list()).map(|it| regex::escape(it));
        Regex::new(&format!("(?i){}", phrases.collect::<Vec<_>>().join("|"))).ok()
    }

    fn stand_in(&self, text: &str) -> bool {
        match self.pattern.get_or_init(|| Self::joined(&[self])) {
            Some(pattern) => pattern.is_match(text.as_bytes()),
            None => self.list().iter().any(|phrase| text.contains(phrase)),
        }
    }
}

/// Returns true if a sign that quotes stands before a place in a text, and another soon behind it.
pub(super) fn is_quoted(text: &[u8], range: &Range<usize>) -> bool {
    let before = text.get(..range.start).unwrap_or_default();
    let opens = |signs: &[u8]| matches!(before, [.., sign] if signs.contains(sign));
    let is_outer = before.len() < 2;
    !is_outer
        && (opens(b"\"'`") || before.ends_with("“".as_bytes()) || before.ends_with("«".as_bytes()))
}

/// Words that order something of a model.
static ORDERS: PhraseSet = PhraseSet::new(|| phrase_set("orders"));

/// Number of words in a passage that order something of a model.
pub(super) fn orders(passage: &Passage) -> usize {
    passage.count(&ORDERS)
}
