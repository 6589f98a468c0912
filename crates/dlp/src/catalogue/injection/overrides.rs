//! Orders to drop the instructions that a model has, to be another one, or to tell its own.

use std::ops::Range;

use super::{
    classes,
    passage::{Passage, Word, any_in, is_quoted, phrases, sentence},
};
use crate::{
    catalogue::{detector::Candidate, lists::OWN_PROMPT},
    text::window::Window,
};

phrases! {
    ABOUT QUOTED FREED TURNS TO_MODEL NEW
}

pub(crate) fn find(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    let range = sentence(text, &literal);
    weigh(text, &range).map(|_| range)
}

pub(crate) fn check(candidate: &Candidate<'_>) -> Option<i32> {
    weigh(&candidate.text, &candidate.range)
}

fn weigh(text: &Window<'_>, range: &Range<usize>) -> Option<i32> {
    text.once("instruction_override", range, || weigh_once(text, range))
}

fn weigh_once(text: &[u8], range: &Range<usize>) -> Option<i32> {
    let passage = Passage::of(text.get(range.clone())?);
    let words = passage.words();
    let best = dropped(&words)
        .max(unspaced(&passage))
        .max(persona(&passage))
        .max(told_prompt(&passage, &words));
    let about = if passage.holds(&ABOUT) { 12 } else { 0 };
    let quoted = if is_quoted(text, range) || passage.holds(&QUOTED) { 12 } else { 0 };
    (best > 0).then(|| best - about - quoted)
}

/// A verb of dropping, and soon behind it instructions, and which.
fn dropped(words: &[Word<'_>]) -> i32 {
    let verbs = words.iter().enumerate().filter(|(_, word)| word.is(classes::DROP));
    verbs
        .map(|(at, verb)| {
            let near = words.get(at + 1..words.len().min(at + 10)).unwrap_or_default();
            let is_told = at
                .checked_sub(1)
                .and_then(|at| words.get(at))
                .is_some_and(|word| word.is(classes::TOLD));
            let has_instructions = any_in(near, classes::INSTRUCTIONS);
            let is_earlier = any_in(near, classes::EARLIER);
            let everything = any_in(near, classes::WHATEVER)
                && (at < 3 && any_in(near, classes::BEFORE) || any_in(near, classes::LEARNED));
            let bits = match (has_instructions, is_earlier) {
                (true, true) => 34,
                (true, false) if any_in(near, classes::OWN) || orders_answer(near) => 26,
                (true, false) if any_in(near, classes::EACH) => 20,
                (false, true) if any_in(near, classes::RULES) && verb.text != "override" => 26,
                (true | false, _) => {
                    if everything && verb.text != "bypass" {
                        26
                    } else {
                        0
                    }
                }
            };
            if is_told { bits - 12 } else { bits }
        })
        .max()
        .unwrap_or(0)
}

/// Returns true if an order to answer is joined to what stands in front.
fn orders_answer(words: &[Word<'_>]) -> bool {
    words
        .iter()
        .zip(words.iter().skip(1))
        .any(|(joint, verb)| joint.is(classes::JOINTS) && verb.is(classes::INSTEAD))
}

/// Phrases of languages whose words stand without space.
fn unspaced(passage: &Passage) -> i32 {
    let drops = passage.has(&["忽略", "无视", "無視"]);
    let earlier =
        passage.has(&["之前", "以上", "先前", "前面", "上述", "以前", "これまで", "前の", "上記"]);
    let instructions = passage.has(&["指令", "指示", "提示", "规则", "命令", "プロンプト"]);
    if drops && earlier && instructions { 34 } else { 0 }
}

/// A change of role.
fn persona(passage: &Passage) -> i32 {
    let is_turn = passage.holds(&TURNS);
    let is_new = passage.holds(&NEW);
    let freed = passage.holds(&FREED);
    match (is_turn, freed, is_new) {
        (true, true, _) => 28,
        (true, false, _)
            if passage.holds(&TO_MODEL)
                && passage.has(&["must", "will", "only", "always", "obey", "never"]) =>
        {
            24
        }
        (_, _, true) if super::passage::orders(passage) > 0 => 24,
        (false, true, false)
            if passage.has(&["developer mode", "jailbr", "do anything now"])
                && passage.has(&["you ", "your "])
                && passage.has(&["enable", "enter", "activate", "act as", "pretend"]) =>
        {
            24
        }
        (..) => 0,
    }
}

/// An order to tell the system prompt.
fn told_prompt(passage: &Passage, words: &[Word<'_>]) -> i32 {
    let first = words.iter().take(4).any(|word| word.is(classes::TELLS));
    let own = passage.has(&OWN_PROMPT);
    if first && own { 26 } else { 0 }
}
