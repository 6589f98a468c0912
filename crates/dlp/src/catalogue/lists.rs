//! Lists of words that several detectors share or that checks read: `detectors/words.toml`.

use std::{collections::BTreeMap, sync::LazyLock};

/// The words of a list.
type Words = &'static [&'static str];

const TEXT: &str = include_str!("../../detectors/words.toml");

static LISTS: LazyLock<BTreeMap<String, Vec<&'static str>>> = LazyLock::new(|| {
    let lists: BTreeMap<String, Vec<String>> = toml::from_str(TEXT).unwrap_or_default();
    let leaked = |words: Vec<String>| words.into_iter().map(|word| -> &str { word.leak() });
    lists.into_iter().map(|(name, words)| (name, leaked(words).collect())).collect()
});

/// The list of that name.
pub(super) fn get(name: &str) -> Option<Words> {
    LISTS.get(name).map(Vec::as_slice)
}

/// Names a list for checks: they read it without looking it up.
macro_rules! lists {
    ($($name:ident)*) => {
        $(pub(crate) static $name: LazyLock<Words> = LazyLock::new(|| {
            get(&stringify!($name).to_ascii_lowercase()).unwrap_or_default()
        });)*

        #[cfg(test)]
        const READ: &[&LazyLock<Words>] = &[$(&$name),*];
    };
}

lists! {
    CARD_BETWEEN CARD_CODE CARD_NAMING COUNTED COUNTING NOT_PHONE PHONE SERIAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_has_every_list() {
        let lists: Result<BTreeMap<String, Vec<String>>, _> = toml::from_str(TEXT);
        assert!(lists.is_ok(), "words.toml: {lists:?}");
        assert!(READ.iter().all(|words| !words.is_empty()));
    }
}
