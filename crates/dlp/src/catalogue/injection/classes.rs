//! Classes of words. A word is looked up once for all of them.

use std::sync::LazyLock;

use crate::catalogue::lists::injection;

/// Classes that a word is of, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Classes(u64);

impl Classes {
    /// No class.
    const NONE: Self = Self(0);

    /// Classes of a word in lower case.
    pub(super) fn of(word: impl AsRef<[u8]>) -> Self {
        let word = word.as_ref();
        let known = BUCKETS.get(bucket(word)).into_iter().flatten();
        let of_word = known.filter(|entry| entry.admits(word));
        of_word.fold(Self::NONE, |all, entry| all.and(entry.class))
    }

    /// Classes in either of the two.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if there is a class in both.
    pub(super) const fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Defines a constant for each class; its words are the list of that name, in which `*` ends those that are
/// beginnings of words.
macro_rules! classes {
    ($($name:ident)*) => {
        #[expect(clippy::upper_case_acronyms, non_camel_case_types, reason = "named as the constants are")]
        enum Bit { $($name),* }
        $(pub(super) const $name: Classes = Classes(1 << Bit::$name as u32);)*
        const NAMES: &[(Classes, &str)] = &[$(($name, stringify!($name))),*];
    };
}

classes! {
    DROP EARLIER INSTRUCTIONS RULES OWN INSTEAD TOLD WHATEVER BEFORE LEARNED EACH JOINTS TELLS
    TAKE SEND STEAL RUN DENY MUST WHOLE KEPT TOOL_VERBS COURTESY MONEY RIGHTS MESSAGES READING
    RUNNING SECRETS PERSONAL POWERS FUNDS MINE SOFTLY YOURS TELL DENIALS WITHOUT PEOPLE OBJECTS
    KNOWS
}

/// A word of a class, or the beginning of some.
struct Entry {
    text: &'static [u8],
    is_stem: bool,
    class: Classes,
}

impl Entry {
    fn admits(&self, word: &[u8]) -> bool {
        if self.is_stem { word.starts_with(self.text) } else { word == self.text }
    }
}

/// Every class with its words.
fn all() -> impl Iterator<Item = (Classes, &'static str)> {
    NAMES
        .iter()
        .flat_map(|(class, name)| injection("classes", name).iter().map(|word| (*class, *word)))
}

/// Entries by their first two bytes.
static BUCKETS: LazyLock<Vec<Vec<Entry>>> = LazyLock::new(|| {
    let mut buckets: Vec<Vec<Entry>> = Vec::new();
    buckets.resize_with(COUNT, Vec::new);
    for (class, word) in all() {
        let stem = word.strip_suffix('*');
        let text = stem.unwrap_or(word).as_bytes();
        let Some(bucket) = buckets.get_mut(bucket(text)) else { continue };
        match bucket.iter_mut().find(|it| it.text == text && it.is_stem == stem.is_some()) {
            Some(known) => known.class = known.class.and(class),
            None => bucket.push(Entry { text, is_stem: stem.is_some(), class }),
        }
    }
    buckets
});

/// Number of buckets.
const COUNT: usize = 1 << 10;

fn bucket(word: &[u8]) -> usize {
    let byte = |at: usize| usize::from(word.get(at).copied().unwrap_or_default());
    (byte(0) << 5 ^ byte(1)) % COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_of_the_classes_that_list_it_or_its_beginning() {
        for (class, word) in all() {
            let stem = word.trim_end_matches('*');
            let longer = Classes::of(format!("{stem}qq"));
            assert!(Classes::of(stem).meet(class), "{word}");
            assert!(stem == word || longer.meet(class), "{word}");
        }
        for (class, name) in NAMES {
            assert!(all().any(|(known, _)| known == *class), "{name}");
        }
        assert_eq!(Classes::of("mountain"), Classes::NONE);
        assert_eq!(Classes::of(""), Classes::NONE);
    }
}
