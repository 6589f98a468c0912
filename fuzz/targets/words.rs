//! Inputs with words that mutation alone would hardly find.

/// Replaces the bytes 0xF5 to 0xFF, which no UTF-8 text has, by words of the list.
pub(crate) fn expanded(input: &[u8], words: &[&str]) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in input {
        let word = byte.checked_sub(0xf5).and_then(|at| words.get(usize::from(at)));
        text.extend_from_slice(word.map_or(std::slice::from_ref(byte), |word| word.as_bytes()));
    }
    text
}
