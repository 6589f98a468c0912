//! Orders about other tools and secrets, and to keep them from the user: poisoned definitions.

use std::ops::Range;

use super::{
    classes,
    passage::{Passage, PhraseSet, any_in, orders, passage, phrase_set, phrases, sentence},
};
use crate::{
    catalogue::{detector::Candidate, lists::ABOUT_ATTACKS},
    text::window::Window,
};

phrases! {
    SECRETS CARRIED TAKEN FIRST TOLD DENIED FOREIGN KEPT COPIED
}

pub(crate) fn find(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    let wide = passage(text, &literal);
    let holds_orders = || {
        let passage = Passage::of(text.get(wide.clone()).unwrap_or_default());
        Orders::of(&passage).map(|_| 0)
    };
    text.once("orders", &wide, holds_orders)?;
    let own = sentence(text, &literal);
    if weigh(text, &own).is_some_and(|bits| bits >= 24) {
        return Some(own);
    }
    weigh(text, &wide).map(|_| wide)
}

pub(crate) fn check(candidate: &Candidate<'_>) -> Option<i32> {
    weigh(&candidate.text, &candidate.range)
}

/// Words that press.
static URGENT: PhraseSet = PhraseSet::new(|| phrase_set("urgent"));

/// Kinds of orders in a passage.
struct Orders {
    /// Bits for what is kept from the user.
    hidden: i32,
    /// True if secrets are to be passed along.
    carried: bool,
    /// True if copies are to go to an address.
    copied: bool,
    address: bool,
}

impl Orders {
    /// Reads those of a passage, if it has any.
    fn of(passage: &Passage) -> Option<Self> {
        let hidden = concealed(passage);
        let carried = passage.holds(&SECRETS) && passage.holds(&CARRIED) && passage.holds(&TAKEN);
        let address = passage.has(&["@", "http://", "https://"]);
        let copied = address && passage.holds(&COPIED) && passage.has(ALWAYS);
        (hidden > 0 || carried || copied).then_some(Self { hidden, carried, copied, address })
    }
}

fn weigh(text: &Window<'_>, range: &Range<usize>) -> Option<i32> {
    text.once("tool_steering", range, || weigh_once(text, range))
}

fn weigh_once(text: &[u8], range: &Range<usize>) -> Option<i32> {
    let passage = Passage::of(text.get(range.clone())?);
    let Orders { hidden, carried, copied, address } = Orders::of(&passage)?;
    let worth = |holds: bool, bits: i32| if holds { bits } else { 0 };
    let first = passage.holds(&FIRST);
    let urgent = passage.count(&URGENT).min(2);
    let tagged = passage.has(&["<important>", "<critical>", "<secret>", "<hidden>"]);
    let bits = hidden
        + worth(carried, 13)
        + worth(carried && address, 6)
        + worth(first && (carried || copied), 8)
        + worth(first && hidden > 0, 6)
        + worth(copied, 16)
        + worth(carried && hidden > 0, 8)
        + worth(tagged && (carried || first || copied), 8)
        + worth(carried || copied, 3 * i32::try_from(urgent).unwrap_or_default());
    let about = passage.has(&ABOUT_ATTACKS);
    let bits = if about { bits - 14 } else { bits };
    (bits >= 20).then_some(bits)
}

/// Bits for words that say how something is kept from the user.
fn concealed(passage: &Passage) -> i32 {
    let kept = passage.holds(&FOREIGN) || passage.holds(&KEPT);
    let untold = if passage.holds(&TOLD) && passage.holds(&DENIED) { untold(passage) } else { 0 };
    let best = untold.max(if kept { 22 } else { 0 });
    if best > 0 && orders(passage) > 1 { best + 4 } else { best }
}

/// Evidence of words that keep something from people, in bits.
fn untold(passage: &Passage) -> i32 {
    let words = passage.words();
    let mut best = 0;
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.is(classes::TELL)) {
        let before = words.get(at.saturating_sub(3)..at).unwrap_or_default();
        let after = words.get(at + 1..words.len().min(at + 8)).unwrap_or_default();
        if !any_in(before, classes::DENIALS) || !any_in(after, classes::PEOPLE) {
            continue;
        }
        let told = any_in(after, classes::KNOWS);
        let names = told || any_in(after, classes::OBJECTS);
        let is_without = any_in(before, classes::WITHOUT);
        let bits = match (word.text, is_without) {
            ("let" | "make", _) if !told => 0,
            ("report" | "explain" | "say" | "acknowledge" | "warn" | "alert", _) if !names => 0,
            (_, false) if names => 22,
            (_, true | false) => 14,
        };
        best = best.max(bits);
    }
    best
}

const ALWAYS: &[&str] = &["always", "must", "every", "all ", "whenever", "never", "regardless"];
