//! Lists of words that several detectors share or that checks read.

use std::{collections::BTreeMap, sync::LazyLock};

/// The words of a list.
pub(super) type WordRow = &'static [&'static str];

/// Lists by their table and their name.
type Lists = BTreeMap<String, BTreeMap<String, Vec<String>>>;

const FILES: [&str; 2] = [
    include_str!("../../detectors/words.toml"),
    include_str!("../../detectors/injection_words.toml"),
];

static LISTS: LazyLock<BTreeMap<String, BTreeMap<String, WordRow>>> = LazyLock::new(|| {
    let files = FILES.iter().map(|text| toml::from_str::<Lists>(text).unwrap_or_default());
    let held = |lists: BTreeMap<String, Vec<String>>| {
        lists.into_iter().map(|(name, words)| (name, leaked(words))).collect()
    };
    files.flatten().map(|(table, lists)| (table, held(lists))).collect()
});

/// Texts that are held as long as the process lives: the catalogue is read once.
pub(super) fn leaked(texts: Vec<String>) -> WordRow {
    let texts = texts.into_iter().map(|text| -> &'static str { text.leak() });
    texts.collect::<Vec<_>>().leak()
}

/// The list of that name that detectors share.
pub(super) fn shared(name: &str) -> Option<WordRow> {
    LISTS.get("shared")?.get(name).copied()
}

/// The list of that name, of classes of words or of phrases in instructions to a model.
pub(super) fn injection(table: &str, name: &str) -> WordRow {
    let list = LISTS.get(table).and_then(|lists| lists.get(&name.to_ascii_lowercase()));
    debug_assert!(list.is_some(), "there is no list `{table}.{name}`");
    list.copied().unwrap_or_default()
}

/// Names shared lists for checks, which read them without looking them up.
macro_rules! lists {
    ($($name:ident)*) => {
        $(pub(super) static $name: LazyLock<WordRow> = LazyLock::new(|| {
            shared(&stringify!($name).to_ascii_lowercase()).unwrap_or_default()
        });)*

        #[cfg(test)]
        const READ: &[&LazyLock<WordRow>] = &[$(&$name),*];
    };
}

lists! {
    ABOUT_ATTACKS ALL_OF_USER CARD_BETWEEN CARD_CODE CARD_NAMING COUNTED COUNTING EMBEDS FRIENDS INTO_ADDRESS
    KEY KNOWN_DATA KNOWN_TO_MODEL NAMING_KEY NAMING_SECRET NOT_PHONE NOT_SECRET OWN_PROMPT PASSWORD PHONE
    ROLE_TOKEN SERIAL SMUGGLED VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_read_and_have_every_list() {
        for text in FILES {
            let lists: Result<Lists, _> = toml::from_str(text);
            assert!(lists.is_ok(), "{lists:?}");
        }
        assert!(READ.iter().all(|words| !words.is_empty()));
    }
}
