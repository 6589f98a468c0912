//! Base64 at every alignment: what is encoded may be a part of a longer text, or stand behind other
//! letters, so that it is unknown where its groups of four characters begin.
//!
//! Each of the four alignments is looked at in steps of three groups. Of random characters one group
//! in twenty decodes to readable ASCII, of encoded text all do: where one does, its neighbours are
//! looked at as well, and four in a row are text.

use std::ops::Range;

use crate::views::readable::Bytes;

/// Characters of a group, and bytes that they decode to.
const GROUP: usize = 4;
const BYTES: usize = 3;

/// Groups of a step; fewer in a row may be missed.
const STRIDE: usize = 3;

/// Groups in a row that are text rather than chance.
const LEAST: usize = 4;

/// Calls `take` with every stretch that reads like text in some alignment, decoded, and where it
/// stands. The groups around it may be part of the text, or other letters that would touch it: it is
/// told with and without them.
pub(super) fn each_text(run: &[u8], mut take: impl FnMut(Vec<u8>, Range<usize>)) {
    for first in 0..GROUP.min(run.len()) {
        let mut floor = first;
        let mut at = first + (STRIDE - 1) * GROUP;
        while let Some(bytes) = group(run, at) {
            if !Bytes::Spread.are_all(&bytes) {
                at += STRIDE * GROUP;
                continue;
            }
            let core = grown(run, at..at + GROUP, floor, Bytes::Spread);
            floor = core.end;
            at = core.end + STRIDE * GROUP;
            if core.len() < LEAST * GROUP {
                continue;
            }
            let wide = grown(run, core.clone(), first, Bytes::Wide);
            let whole =
                wide.start.saturating_sub(GROUP).max(first)..run.len().min(wide.end + GROUP);
            let is_behind = core.start > 0;
            let is_before = core.end + GROUP < run.len();
            let cut = core.start..if is_before { core.end } else { whole.end };
            for range in
                [Some(whole), (is_behind || is_before).then_some(cut)].into_iter().flatten()
            {
                take(decode(run.get(range.clone()).unwrap_or_default()), range);
            }
            floor = wide.end;
            at = at.max(wide.end + (STRIDE - 1) * GROUP);
        }
    }
}

/// A stretch with the groups on either side that are of a kind, not beyond the floor.
fn grown(run: &[u8], stretch: Range<usize>, floor: usize, kind: Bytes) -> Range<usize> {
    let is_one = |at: usize| group(run, at).is_some_and(|bytes| kind.are_all(&bytes));
    let Range { mut start, mut end } = stretch;
    while start >= floor + GROUP && is_one(start - GROUP) {
        start -= GROUP;
    }
    while is_one(end) {
        end += GROUP;
    }
    start..end
}

fn group(run: &[u8], at: usize) -> Option<[u8; BYTES]> {
    run.get(at..)?.first_chunk().map(|four| three(*four))
}

/// The bytes of a group, in either alphabet.
#[inline]
pub(super) fn three(four: [u8; GROUP]) -> [u8; BYTES] {
    let bits = four.iter().fold(0_u32, |bits, letter| bits << 6 | u32::from(six_bits(*letter)));
    let [_, bytes @ ..] = bits.to_be_bytes();
    bytes
}

/// All bytes of a run that begins with a group. The last group may be short.
pub(super) fn decode(run: &[u8]) -> Vec<u8> {
    let (whole, rest) = run.as_chunks::<GROUP>();
    let mut bytes: Vec<u8> = whole.iter().flat_map(|four| three(*four)).collect();
    if let Some(more) = rest.len().checked_sub(1) {
        let mut four = [b'A'; GROUP];
        four.iter_mut().zip(rest).for_each(|(into, letter)| *into = *letter);
        bytes.extend(three(four).iter().take(more));
    }
    bytes
}

/// The value of a letter in either alphabet.
#[inline]
fn six_bits(letter: u8) -> u8 {
    const TABLE: [u8; 256] = {
        let mut table = [0; 256];
        let mut letter = 0_u8;
        while letter < 128 {
            #[expect(clippy::indexing_slicing, reason = "checked when compiled")]
            {
                table[letter as usize] = match letter {
                    b'A'..=b'Z' => letter - b'A',
                    b'a'..=b'z' => letter - b'a' + 26,
                    b'0'..=b'9' => letter - b'0' + 52,
                    b'+' | b'-' => 62,
                    _ => 63,
                };
            }
            letter += 1;
        }
        table
    };
    TABLE.get(usize::from(letter)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use base64::{
        Engine as _,
        engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
    };
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_decoded_as_they_were_encoded(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(&decode(STANDARD_NO_PAD.encode(&bytes).as_bytes()), &bytes);
            prop_assert_eq!(&decode(URL_SAFE_NO_PAD.encode(&bytes).as_bytes()), &bytes);
        }

        #[test]
        fn text_is_found_behind_and_before_anything(
            before in "[A-Za-z0-9+/]{0,40}",
            text in "[ -~]{16,60}",
            after in "[A-Za-z0-9+/]{0,40}",
        ) {
            let run = format!("{before}{}{after}", STANDARD_NO_PAD.encode(&text));
            let mut found = Vec::new();
            each_text(run.as_bytes(), |bytes, _| found.push(bytes));

            let inner = &text.as_bytes()[..text.len() / 3 * 3];
            let holds = |bytes: &Vec<u8>| bytes.windows(inner.len()).any(|part| part == inner);
            prop_assert!(found.iter().any(holds), "{run}");
        }
    }

    #[test]
    fn random_letters_hold_no_text() {
        let mut state = 7_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
                [usize::try_from(state >> 58).unwrap()]
        };
        let run: Vec<u8> = (0..100_000).map(|_| next()).collect();
        let mut found = 0;
        each_text(&run, |bytes, _| found += bytes.len());

        assert!(found < 2_000, "{found}");
    }
}
