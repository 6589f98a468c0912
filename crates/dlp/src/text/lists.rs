//! Lists in texts: items, and the lines with a colon above them.

/// Length of the space and the sign before an item; 0 where there is none.
pub(crate) fn bullet(line: &[u8]) -> usize {
    let rest = line.trim_ascii_start();
    let indent = line.len() - rest.len();
    let digits = rest.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits..) {
        Some([b'-' | b'*' | b'+', b' ', ..]) if digits == 0 => indent + 2,
        Some([b'.' | b')', b' ', ..]) if digits > 0 => indent + digits + 2,
        Some(_) | None => 0,
    }
}

/// The part of a line before the colon at its end.
pub(crate) fn head(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().rposition(|byte| !is_frame(*byte) && *byte != b'\r')?;
    line.get(..=end)?.strip_suffix(b":")
}

/// Returns true if a line goes on with the item before, or is empty and may stand between two.
pub(crate) fn goes_on(line: &[u8]) -> bool {
    line.trim_ascii().is_empty() || line.starts_with(b" ") && head(line).is_none()
}

/// Returns true for signs around a name.
pub(crate) fn is_frame(byte: u8) -> bool {
    matches!(byte, b'*' | b'_' | b' ' | b'#' | b'>' | b'"')
}
