//! Masks, and the texts that replace matches.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer};

use crate::{
    catalogue::detector::NormalForm,
    findings::fingerprint::{FingerprintKey, Pseudonym},
    text::{hidden, placeholders::MAX_KEPT},
};

/// Mask of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mask {
    /// `[REDACTED:email]`.
    #[default]
    Placeholder,
    /// `[REDACTED:credit_card:1111]`: the last letters and digits stay, at most a quarter of all.
    KeepLast(u8),
    /// `[email:bcdfghjkmnpqrstv]`: the same value has the same pseudonym within an org, and it
    /// cannot be computed from the value without the installation's key.
    Pseudonym,
    /// `[WITHHELD:tool_steering]` in place of all of the text that the match stands in.
    Withhold,
}

impl std::str::FromStr for Mask {
    type Err = String;

    fn from_str(text: &str) -> Result<Mask, String> {
        let kept = |count: &str| count.parse().ok().filter(|count| (1..=MAX_KEPT).contains(count));
        match (text, text.strip_prefix("keep_last=").map(kept)) {
            ("placeholder", _) => Ok(Mask::Placeholder),
            ("pseudonym", _) => Ok(Mask::Pseudonym),
            ("withhold", _) => Ok(Mask::Withhold),
            (_, Some(Some(count))) => Ok(Mask::KeepLast(count)),
            (_, Some(None) | None) => Err(format!(
                "`{text}` is no way to mask; write `placeholder`, `pseudonym`, `withhold` or `keep_last=N` \
                 with N from 1 to {MAX_KEPT}"
            )),
        }
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mask::Placeholder => f.write_str("placeholder"),
            Mask::KeepLast(count) => write!(f, "keep_last={count}"),
            Mask::Pseudonym => f.write_str("pseudonym"),
            Mask::Withhold => f.write_str("withhold"),
        }
    }
}

impl<'de> Deserialize<'de> for Mask {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The plain placeholder of a detector. What cannot be seen is simply taken away.
pub(crate) fn placeholder(detector: &str) -> Cow<'static, str> {
    if detector == hidden::NAME {
        return Cow::Borrowed("");
    }
    Cow::Owned(format!("[REDACTED:{detector}]"))
}

/// The notice in place of a text that is withheld.
pub(crate) fn notice(detector: &str) -> Cow<'static, str> {
    Cow::Owned(format!("[WITHHELD:{detector}]"))
}

/// The placeholder of a value that matched as it stands.
pub(crate) fn of_value(
    mask: Mask,
    detector: &str,
    normal_form: NormalForm,
    matched: &[u8],
    key: Option<&FingerprintKey>,
) -> Cow<'static, str> {
    if detector == hidden::NAME {
        return hidden::instead_of(matched);
    }
    match (mask, key) {
        (Mask::KeepLast(count), _) => match last(matched, count) {
            Some(kept) => Cow::Owned(format!("[REDACTED:{detector}:{kept}]")),
            None => placeholder(detector),
        },
        (Mask::Pseudonym, Some(key)) => {
            of_pseudonym(detector, key.pseudonym(detector, &normal_form.apply(matched)))
        }
        (Mask::Withhold, _) => notice(detector),
        (Mask::Placeholder, _) | (Mask::Pseudonym, None) => placeholder(detector),
    }
}

/// A pseudonym as it stands in a text.
pub(crate) fn of_pseudonym(detector: &str, pseudonym: Pseudonym) -> Cow<'static, str> {
    Cow::Owned(format!("[{detector}:{pseudonym}]"))
}

/// The last letters and digits; `None` when that would be more than a quarter of them.
fn last(matched: &[u8], count: u8) -> Option<String> {
    let kept: Vec<u8> = matched.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
    let count = usize::from(count);
    let tail = kept.get(kept.len().checked_sub(count)?..)?;
    (4 * count <= kept.len()).then(|| String::from_utf8_lossy(tail).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_written_as_they_are_read() {
        for text in ["placeholder", "pseudonym", "withhold", "keep_last=4"] {
            assert_eq!(text.parse::<Mask>().unwrap().to_string(), text);
        }
        for text in ["keep_last=0", "keep_last=9", "keep_last", "hash", ""] {
            assert!(text.parse::<Mask>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_small_part_is_kept() {
        assert_eq!(last(b"4111 1111 1111 1234", 4).as_deref(), Some("1234"));
        assert_eq!(last(b"536-22-8726", 4), None);
        assert_eq!(last(b"536-22-8726", 2).as_deref(), Some("26"));
    }
}
