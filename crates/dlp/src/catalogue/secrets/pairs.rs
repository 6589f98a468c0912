//! Pairs of letters that words have, and rows of letters that are therefore none.

/// Pairs that words hardly have, from which on letters are no words.
pub(super) const MANY: usize = 2;

/// For each letter the letters that follow it in words, as bits: those that make up 97 % of all pairs in
/// documentation, source code and translations.
const PAIRS: [u32; 26] = [
    58_703_871, 18_238_355, 18_763_157, 18_250_139, 67_108_863, 1_722_673, 18_770_385, 18_512_145,
    67_108_863, 1_859_857, 25_054_481, 20_774_751, 18_151_827, 20_742_141, 41_877_503, 18_794_897,
    1_048_576, 58_654_591, 56_623_093, 58_621_333, 35_585_919, 1_204_497, 17_195_281, 557_328,
    850_205, 1_077_521,
];

/// Returns true if letters, in either case, are no words: they have pairs that words hardly have.
pub(super) fn is_odd(letters: &[u8]) -> bool {
    odd(letters) >= MANY
}

/// Number of pairs that words hardly have.
pub(super) fn odd(letters: &[u8]) -> usize {
    letters.array_windows().filter(|pair| is_odd_pair(**pair)).count()
}

/// Returns true if words hardly have these two letters in a row. Other characters make no pair.
fn is_odd_pair([first, second]: [u8; 2]) -> bool {
    let place = |byte: u8| (byte.is_ascii_alphabetic()).then(|| (byte | 0x20) - b'a');
    let (Some(first), Some(second)) = (place(first), place(second)) else { return false };
    let following = PAIRS.get(usize::from(first)).copied().unwrap_or_default();
    following >> u32::from(second) & 1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_many_languages_are_none() {
        for word in ["authentication", "Passwort", "obligatoire", "contraseña", "http2"] {
            assert!(!is_odd(word.as_bytes()), "{word}");
        }
        for row in ["ugjwqfgpjj", "WXXTVqSdcUan", "KjteDJFhsXpfOS"] {
            assert!(is_odd(row.as_bytes()), "{row}");
        }
    }
}
