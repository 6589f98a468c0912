//! The evidence that a configured detector has for a candidate.

use crate::{
    body::buffer::Body,
    catalogue::{checks, detector::Candidate},
    scan::evidence::{has_free_edges, stands_above},
    settings::custom::{Checksum, Own},
    text::own_words,
};

/// Evidence that context adds, in bits.
const CONTEXT_BITS: i32 = 16;

impl Own {
    /// The evidence for a candidate; `None` when it is something else.
    pub(crate) fn bits(&self, body: &Body, node: u32, candidate: &Candidate<'_>) -> Option<i32> {
        let matched = candidate.matched();
        let is_valid = match self.checksum {
            None => true,
            Some(Checksum::Luhn) => checks::luhn(&candidate.digits()),
            Some(Checksum::Mod97) => {
                let kept: Vec<u8> =
                    matched.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
                checks::mod_97(&kept)
            }
        };
        let is_random = self.min_entropy.is_none_or(|least| checks::entropy(matched) >= least);
        if matched.is_empty()
            || !is_valid
            || !is_random
            || !has_free_edges(self.edges, &candidate.text, &candidate.range)
            || self.is_something_else(matched)
        {
            return None;
        }
        let words: Vec<&str> = self.context.iter().map(String::as_str).collect();
        let in_context = !words.is_empty()
            && (own_words::stand_near(&candidate.text, &candidate.range, &words)
                || stands_above(body, node, &words));
        let base = self.likelihood.least_bits();
        match (in_context, self.needs_context) {
            (true, _) => Some(base + CONTEXT_BITS),
            (false, false) => Some(base),
            (false, true) => None,
        }
    }

    fn is_something_else(&self, matched: &[u8]) -> bool {
        let lower = matched.to_ascii_lowercase();
        self.not.iter().any(|not| not.is_match(matched))
            || self.stop_words.iter().any(|word| holds(&lower, word.as_bytes()))
    }
}

fn holds(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}
