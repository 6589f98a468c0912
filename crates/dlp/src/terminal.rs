//! Control sequences of terminals (ECMA-48): where one ends.
//!
//! Sequences are removed from a text as a whole, so that no fragment of a link or of a colour stays
//! behind.

/// Final bytes of two-byte sequences that terminals know, such as reset and index.
const SINGLE: &[u8] = b"6789<=>DEFHMNOZ\\clmno|}~";

/// Bytes between an escape and its final byte: what selects sets of characters.
const SELECTING: &[u8] = b"#$%()*+-./";

/// Length in bytes of the control sequence that a text begins with; `None` when it begins with none.
///
/// An introducer whose sequence is not complete counts alone: what follows it stays to be seen. A
/// string (link, title, device control) ends at its terminator and holds no other control
/// character, so that looking at every sequence of a text takes time linear in its length.
#[must_use]
pub fn sequence_length(text: &[u8]) -> Option<usize> {
    Some(match text {
        [ESCAPE, b'[', rest @ ..] => control(rest).map_or(2, |length| 2 + length),
        [ESCAPE, b']' | b'P' | b'X' | b'^' | b'_', rest @ ..] => 2 + string(rest),
        [ESCAPE, single, ..] if SINGLE.contains(single) => 2,
        [ESCAPE, selecting, b'0'..=b'~', ..] if SELECTING.contains(selecting) => 3,
        [ESCAPE, b'$', b'(' | b')' | b'*' | b'+', b'0'..=b'~', ..] => 4,
        [ESCAPE, ..] => 1,
        [0xC2, 0x9B, rest @ ..] => 2 + control(rest).unwrap_or(0),
        [0xC2, 0x90 | 0x98 | 0x9D..=0x9F, rest @ ..] => 2 + string(rest),
        _ => return None,
    })
}

const ESCAPE: u8 = 0x1B;

/// Parameters, intermediate bytes and the final byte of a control sequence, if they are all there.
fn control(rest: &[u8]) -> Option<usize> {
    let count = |bytes: &[u8], range: std::ops::RangeInclusive<u8>| {
        bytes.iter().take_while(|byte| range.contains(byte)).count()
    };
    let parameters = count(rest, b'0'..=b'?');
    let between = count(rest.get(parameters..)?, b' '..=b'/');
    let length = parameters + between;
    matches!(rest.get(length)?, b'@'..=b'~').then_some(length + 1)
}

/// Length in bytes of a string and its terminator; 0 when nothing terminates it.
fn string(rest: &[u8]) -> usize {
    let is_control = |byte: &u8| byte.is_ascii_control();
    let ends =
        |pair: &[u8]| matches!(pair, [first, ..] if is_control(first)) || pair == [0xC2, 0x9C];
    let Some(end) = rest.windows(2).position(ends) else {
        // The last byte has no window of its own.
        return if rest.last().is_some_and(|last| is_ended_by(*last)) { rest.len() } else { 0 };
    };
    match rest.get(end..) {
        Some([ESCAPE, b'\\', ..] | [0xC2, 0x9C, ..]) => end + 2,
        Some([last, ..]) if is_ended_by(*last) => end + 1,
        Some(_) | None => 0,
    }
}

/// Bell, cancel and substitute.
const fn is_ended_by(byte: u8) -> bool {
    matches!(byte, 0x07 | 0x18 | 0x1A)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sequences_are_measured() {
        for sequence in [
            "\u{1b}[31m",
            "\u{1b}[0;8m",
            "\u{1b}[?25l",
            "\u{1b}[2J",
            "\u{1b}[1 q",
            "\u{9b}1;31m",
            "\u{1b}]0;a title\u{7}",
            "\u{1b}]8;;https://example.com/?q=é\u{1b}\\",
            "\u{9d}8;;x\u{9c}",
            "\u{1b}P1$r0m\u{1b}\\",
            "\u{90}q#0\u{9c}",
            "\u{1b}_Gf=24;AAAA\u{1b}\\",
            "\u{1b}]0;cancelled\u{18}",
            "\u{1b}c",
            "\u{1b}(B",
            "\u{1b}$(D",
        ] {
            for after in ["", "x", "\n", "é\u{7}"] {
                let text = format!("{sequence}{after}");
                assert_eq!(sequence_length(text.as_bytes()), Some(sequence.len()), "{text:?}");
            }
        }
    }

    #[test]
    fn an_introducer_without_a_sequence_counts_alone() {
        for (text, length) in [
            ("\u{1b}", 1),
            ("\u{1b}hello", 1),
            ("\u{1b} h", 1),
            ("\u{1b}\u{1b}[m", 1),
            ("\u{1b}[", 2),
            ("\u{1b}[31é", 2),
            ("\u{1b}]0;never ended", 2),
            ("\u{1b}]0;broken\nby a line\u{7}", 2),
            ("\u{9d}8;;x", 2),
        ] {
            assert_eq!(sequence_length(text.as_bytes()), Some(length), "{text:?}");
        }
        for text in ["", "a", "\n", "é", "\u{85}", "\u{7}"] {
            assert_eq!(sequence_length(text.as_bytes()), None, "{text:?}");
        }
    }
}
