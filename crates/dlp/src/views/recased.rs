//! Tokens that are read again: their mark is written in another case (`GHP_…`, `akia…`), or they go on in
//! the next line or member, as [`cut`](super::cut) says.
//!
//! A mark that is written in one case is read in the case that its vendor writes where something like
//! a token follows it: twelve characters or more, a digit among them. Behind a mark that is all capitals
//! the rest becomes capitals, too, since such tokens have no other letters, unless there are some already.

use std::ops::Range;

use crate::views::cut;

/// Characters that a token has behind its mark, at least.
const SHORTEST: usize = 12;

/// Characters of a token that are read again, at most.
const LONGEST: usize = 512;

/// A token to be read again.
pub(crate) struct Recased {
    pub(crate) segment: u32,
    /// Bytes of the buffer, with the one before the mark.
    pub(crate) range: Range<usize>,
    /// Place of the mark.
    pub(crate) at: usize,
    /// As its vendor writes it; empty if it is written so, and the token may go on elsewhere.
    pub(crate) mark: Box<[u8]>,
}

impl Recased {
    /// Returns true if a token that begins at an offset is not a part of this one. Several marks may begin
    /// alike, such as `sk_` and `sk_live_`.
    pub(crate) fn may_be_followed_at(&self, at: usize) -> bool {
        self.range.end <= at || self.at == at
    }

    /// Returns true if the token may go on elsewhere.
    pub(super) fn is_cut(&self) -> bool {
        self.mark.is_empty()
    }
}

/// The token whose mark stands in a range of the buffer, if it is one and its mark in another case, or if
/// it may go on elsewhere.
pub(crate) fn of(
    text: &[u8],
    segment: u32,
    home: &Range<usize>,
    found: &Range<usize>,
    mark: &[u8],
) -> Option<Recased> {
    let written = text.get(found.clone())?;
    let is_one_case =
        !written.iter().any(u8::is_ascii_lowercase) || !written.iter().any(u8::is_ascii_uppercase);
    if written == mark {
        // Three letters stand anywhere by chance.
        let is_telling = mark.len() > 3 || !mark.iter().all(u8::is_ascii_alphanumeric);
        let range = cut::beginning(text, home, found).filter(|_| is_telling)?;
        return Some(Recased { segment, at: range.start, range, mark: Box::default() });
    }
    if !is_one_case {
        return None;
    }
    let rest = text.get(found.end..home.end.min(found.end + LONGEST))?;
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = rest.iter().take_while(is_part).count();
    let body = rest.get(..length)?;
    let may_become_capitals = !is_capital(mark) || !body.iter().any(u8::is_ascii_uppercase);
    if length < SHORTEST || !body.iter().any(u8::is_ascii_digit) || !may_become_capitals {
        return None;
    }
    // What stands behind the token may tell that it is none.
    let range = found.start.saturating_sub(1).max(home.start)..home.end.min(found.end + length + 1);
    Some(Recased { segment, range, at: found.start, mark: mark.into() })
}

/// The token as its vendor writes it.
pub(super) fn respelled(text: &[u8], found: &Recased) -> Vec<u8> {
    let mut token = text.get(found.range.clone()).unwrap_or_default().to_vec();
    let behind = token.get_mut(found.at - found.range.start..).unwrap_or_default();
    if is_capital(&found.mark) {
        behind.make_ascii_uppercase();
    }
    behind.iter_mut().zip(&found.mark).for_each(|(into, letter)| *into = *letter);
    token
}

fn is_capital(mark: &[u8]) -> bool {
    !mark.iter().any(u8::is_ascii_lowercase) && mark.iter().all(u8::is_ascii_alphanumeric)
}
