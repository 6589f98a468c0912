//! Lists of words that are looked through for each value.

/// Words that a text separates by spaces, found by their first byte.
pub(super) struct WordList(Box<[&'static str]>);

impl WordList {
    /// The words of a text.
    pub(super) fn of(list: &'static str) -> Self {
        let mut words: Vec<&str> = list.split(' ').collect();
        words.sort_unstable();
        Self(words.into())
    }

    /// Returns true if a word is one of the list.
    pub(super) fn holds(&self, word: &str) -> bool {
        self.0.binary_search(&word).is_ok()
    }

    /// The words with which a text begins.
    pub(super) fn prefixes(&self, text: &str) -> impl Iterator<Item = &'static str> {
        let first = text.bytes().next();
        let before = self.0.partition_point(|word| word.bytes().next() < first);
        let behind = self.0.get(before..).unwrap_or_default().iter();
        let alike = behind.copied().take_while(move |word| word.bytes().next() == first);
        alike.filter(move |word| text.starts_with(word))
    }
}

/// Words that a text may end with, by their last byte.
pub(super) struct WordEnds(Vec<Vec<&'static str>>);

impl WordEnds {
    pub(super) fn of(words: &[&'static str]) -> Self {
        let ending_with = |last: u8| {
            let alike = words.iter().filter(|word| word.bytes().last() == Some(last));
            alike.copied().collect()
        };
        Self((0..=u8::MAX).map(ending_with).collect())
    }

    /// The words with which a text ends.
    pub(super) fn ends_of(&self, text: &str) -> impl Iterator<Item = &'static str> {
        let last = text.bytes().last();
        let alike = last.and_then(|last| self.0.get(usize::from(last))).into_iter().flatten();
        alike.copied().filter(move |word| text.ends_with(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole_and_as_beginnings() {
        let list = WordList::of("vault: env( env: ${ é");

        assert!(list.holds("env:") && list.holds("é"));
        assert!(!list.holds("env") && !list.holds("") && !list.holds("env:x"));
        assert_eq!(list.prefixes("env:DB").collect::<Vec<_>>(), ["env:"]);
        assert_eq!(list.prefixes("${env:").collect::<Vec<_>>(), ["${"]);
        assert_eq!(list.prefixes("").count(), 0);
    }

    #[test]
    fn words_are_found_as_ends() {
        let list = WordEnds::of(&["key", "apikey", "token", "clé"]);

        assert_eq!(list.ends_of("my_apikey").collect::<Vec<_>>(), ["key", "apikey"]);
        assert_eq!(list.ends_of("clé").collect::<Vec<_>>(), ["clé"]);
        assert_eq!(list.ends_of("keys").count() + list.ends_of("").count(), 0);
    }
}
