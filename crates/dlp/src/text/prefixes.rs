//! Marks of vendors that touch a word before them: `MY_ghp_…`, `tokenghp_…`.
//!
//! A mark that no word ends in is one wherever it stands. Others count only if what follows looks
//! like a key and like nothing else: `task-` and `weighs_` end as `sk-` and `ghs_` do.

/// Longest mark, up to its first joint.
const LONGEST: usize = 10;

/// Marks that are words, or parts of names that are put together with `_`.
const WORDS: &[&str] = &["api", "ext", "key", "re", "sc", "secret"];

/// Marks that words end in.
const ENDS: &[&str] = &[
    "access", "age", "cog", "dor", "fio", "ghs", "ico", "jina", "lin", "mid", "mob", "nfo", "npm",
    "ops", "pat", "perm", "persona", "polar", "pri", "pub", "pubkey", "pul", "ramp", "retool",
    "salad", "sat", "scp", "sdk", "sec", "sub", "wandb", "xai",
];

/// Marks without a joint that are long enough to be told from other letters before them: shorter ones
/// stand in base64 by chance.
const JOINTLESS: &[&str] = &["ABIA", "ACCA", "AIza", "AKIA", "ASIA"];

/// Returns true if a match that begins with a mark is valid even though this byte precedes it: a
/// letter, a digit or an underscore.
pub(crate) fn is_clear(before: u8, matched: &[u8]) -> bool {
    let joint = matched.iter().take(LONGEST + 1).position(|byte| !byte.is_ascii_alphanumeric());
    let mark = joint.and_then(|joint| matched.get(..joint));
    let is_among = |marks: &[&str]| {
        mark.is_some_and(|mark| marks.iter().any(|it| mark.eq_ignore_ascii_case(it.as_bytes())))
    };
    let is_jointless = || JOINTLESS.iter().any(|mark| matched.starts_with(mark.as_bytes()));
    if before != b'_' && mark.is_none() && !is_jointless() {
        return false;
    }
    let is_own = match before {
        b'_' => !is_among(WORDS),
        _ => mark.is_some_and(|mark| mark.len() > 2) && !is_among(WORDS) && !is_among(ENDS),
    };
    is_own || is_key(matched.get(joint.unwrap_or(4)..).unwrap_or_default())
}

/// Returns true if a text has digits, letters of both cases or only capitals, and letters beyond
/// hex digits.
fn is_key(body: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| body.iter().filter(|byte| is(byte)).count();
    let lower = count(u8::is_ascii_lowercase);
    let upper = count(u8::is_ascii_uppercase);
    let digits = count(u8::is_ascii_digit);
    let beyond_hex = count(|byte| byte.is_ascii_alphabetic() && !byte.is_ascii_hexdigit());
    let is_mixed = if lower == 0 { digits >= 1 } else { digits >= 2 && upper >= 1 };
    is_mixed && beyond_hex >= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_behind_a_word_counts_where_it_is_clear() {
        for (before, matched) in [
            (b'_', "ghp_0123456789abcdef"),
            (b'n', "glpat-abcdefghijklmnop"),
            (b'n', "xoxb-1234567890-abcdef"),
            (b'X', "AKIAQYLPMN5HHHFPZAM2"),
            (b'_', "sk_live_abcdefghijkl"),
            (b'a', "sk_live_aB3defghij5kL"),
            (b'e', "ghs_F4k3abcdefghijklmnop5"),
            (b'_', "secret_F4k3abcdefghijklmnop5"),
        ] {
            assert!(is_clear(before, matched.as_bytes()), "{matched}");
        }
        for (before, matched) in [
            (b'i', "ghs_abcdefghijklmnopqrstuvwxyz0123456789"),
            (b'a', "sk-0123456789abcdef0123456789abcdef"),
            (b'n', "key-0123456789abcdef0123456789abcdef"),
            (b'_', "key_0123456789abcdef0123456789abcdef"),
            (b'r', "api-01234567-89ab-cdef-0123-456789abcdef"),
            (b'i', "nfo_replication_backlog_size_and_offset"),
            (b'4', "AKCp5F4k3F4k3abcdefghijklmnopqrstuvwx"),
            (b'R', "ASIAPACIFICREGIONSXX"),
        ] {
            assert!(!is_clear(before, matched.as_bytes()), "{matched}");
        }
    }
}
