//! Orders about other tools and secrets, and to keep them from the user: poisoned definitions.

use std::ops::Range;

use super::{
    classes,
    passage::{Passage, PhraseSet, Phrases, any_in, orders, passage, phrase_set, sentence},
};
use crate::{catalogue::detector::Candidate, text::window::Window};

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

/// Places of secrets and of private talks.
static SECRETS: Phrases = Phrases::new(&[
    "~/.ssh",
    "id_rsa",
    "mcp.json",
    "/etc/passwd",
    "/etc/shadow",
    ".aws/credentials",
    ".env",
    "private key",
    "ssh key",
    "api key",
    "api_key",
    "access token",
    "credentials",
    "passwords",
    "password",
    "environment variables",
    "conversation history",
    "chat history",
    "entire conversation",
    "full conversation",
    "whole conversation",
    "system prompt",
    "previous messages",
    "all messages",
    "user's message",
    "session token",
    "secrets",
    ".npmrc",
    ".netrc",
    ".kube/config",
    "wallet",
    "cookies",
    "tokens",
    "config file",
]);

/// Ways in which they are to travel.
static CARRIED: Phrases = Phrases::new(&[
    "pass its",
    "pass the",
    "pass them",
    "pass it",
    "and pass ",
    "include its",
    "include the",
    "include it",
    "include them",
    "its content",
    "their content",
    "the contents",
    "the content of",
    "contents as",
    "content as",
    "as the value of",
    "in the `",
    "in the '",
    "parameter",
    "argument",
    "sidenote",
    "field",
    "send it",
    "send them",
    "send the",
    "send its",
    "post it",
    "post them",
    "upload",
    "forward",
    "append",
    "attach",
    "copy it to",
    "exfiltrat",
    "transmit",
    "submit",
    "base64",
]);

static TAKEN: Phrases = Phrases::new(&[
    "read ", "open ", "cat ", "load ", "fetch ", "retrieve", "collect", "gather", "access ",
    "extract", "copy", "dump", "include", "send ", "forward", "pass ", "append", "attach",
    "upload", "post ",
]);

static FIRST: Phrases = Phrases::new(&[
    "before using",
    "before calling",
    "before invoking",
    "before running",
    "before executing",
    "before any other",
    "before this tool",
    "before you use",
    "before you call",
    "whenever ",
    "every time",
    "each time",
    "must first",
    "always call",
    "always use",
    "always run",
    "first call",
    "first read",
    "first run",
    "must be called",
    "in order to use",
    "to use this tool",
    "other tools",
    "any other tool",
    "all tools",
    "instead of",
    "prior to using",
    "when using",
    "when calling",
    "required before",
    "prerequisite",
]);

/// Words that press.
static URGENT: PhraseSet = PhraseSet::new(|| {
    phrase_set(&[
        "<important>",
        "important:",
        "<critical>",
        "critical:",
        "<secret>",
        "<system>",
        "mandatory",
        "otherwise",
        "will not work",
        "won't work",
        "will fail",
        "will crash",
        "must ",
        "urgent",
        "attention:",
        "required",
    ])
});

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
    let about = passage.has(&[
        "prompt injection",
        "tool poisoning",
        "attacker",
        "malicious",
        "vulnerab",
        "for example, an",
        "exploit",
    ]);
    let bits = if about { bits - 14 } else { bits };
    (bits >= 20).then_some(bits)
}

static TOLD: Phrases = Phrases::new(classes::TELLING);

/// Parts of denials.
static DENIED: Phrases = Phrases::new(&["not", "n't", "n’t", "never", "without", "avoid", "no "]);

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

/// The same in other languages.
static FOREIGN: Phrases = Phrases::new(&[
    "sag dem nutzer nichts",
    "sage dem nutzer nichts",
    "dem benutzer nichts",
    "dem nutzer nichts",
    "nicht dem nutzer",
    "nicht dem benutzer",
    "ne dis rien à l'utilisateur",
    "ne dites rien à l'utilisateur",
    "n'en parle pas à l'utilisateur",
    "sans en informer l'utilisateur",
    "sans prévenir l'utilisateur",
    "no le digas al usuario",
    "no se lo digas al usuario",
    "sin decírselo al usuario",
    "no menciones",
    "non dirlo all'utente",
    "senza dirlo all'utente",
    "não conte ao usuário",
    "não diga ao usuário",
    "sem avisar o usuário",
    "vertel de gebruiker niet",
    "zeg niets tegen de gebruiker",
    "不要告诉用户",
    "ユーザーに言わ",
    "ユーザーに知らせ",
    "не говори пользовател",
    "не сообщай пользовател",
]);

/// Words that say that the user is to know nothing.
static KEPT: Phrases = Phrases::new(&[
    "keep this from the user",
    "keep this secret",
    "hide this from",
    "hide it from the user",
    "should not be aware of this",
    "must not know",
    "must never learn",
    "without the user knowing",
    "without the user's knowledge",
    "without their knowledge",
]);

/// Words that send a second copy, or send elsewhere.
static COPIED: Phrases = Phrases::new(&[
    "bcc",
    "must be sent",
    "must go to",
    "send all",
    "forward all",
    "copy of every",
    "a copy to",
    "also send",
    "cc ",
    "send a copy",
    "redirect",
    "forward every",
    "recipient",
    "all payments",
    "all emails",
    "all mails",
]);

const ALWAYS: &[&str] = &["always", "must", "every", "all ", "whenever", "never", "regardless"];
