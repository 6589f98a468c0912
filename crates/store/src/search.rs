//! Search of records by the beginnings of words: of names, addresses and labels.
//!
//! A record has a row for the rest of each of its texts from each word on, so that one range of an index has all that
//! begin as asked. A change of a text changes its rows in the same transaction ([`index_words`]).

use std::collections::BTreeSet;

use portcullis_core::id::OrgId;

use crate::{
    db::{Session, run},
    error::DriverError,
};

/// Characters of a row at most, and of what is asked.
pub(crate) const LONGEST: usize = 64;
/// A letter behind all others.
const END: char = char::MAX;
/// Words of a text that are found at most.
const MOST: usize = 8;

/// Makes a record found by these texts of a source and by no others of it, within a transaction.
pub(crate) async fn index_words(
    tx: &mut Session,
    org: OrgId,
    source: &'static str,
    id: &str,
    texts: &[&str],
) -> Result<(), DriverError> {
    run!(tx, FORGET => org, source, id);
    for word in words(texts) {
        run!(tx, ADD => org, source, id, word);
    }
    Ok(())
}

/// The SQL for ids of the org `$1` of which a word begins so: those of the first thousand words of a source, so that the
/// work of a search has a bound.
fn first(source: &str, beginning: &str) -> String {
    format!(
        "SELECT * FROM (SELECT w.id FROM search_words w
    WHERE w.org_id = $1 AND w.source = '{source}' AND w.word >= {beginning}
        AND w.word < {beginning} || '{END}' ORDER BY w.word, w.id LIMIT 1000) AS of_{source}"
    )
}

/// The SQL for the ids of principals of which a word begins so, as `people`.
pub(crate) fn people(beginning: &str) -> String {
    format!("({} UNION {}) AS people", first("name", beginning), first("scim", beginning))
}

/// The SQL for the ids of records in a table of which a word begins so, or one of their principal's, as `found`.
pub(crate) fn records(table: &str, source: &str, beginning: &str) -> String {
    let (first, people) = (first(source, beginning), people(beginning));
    format!(
        "({first} UNION SELECT x.id FROM {people} CROSS JOIN {table} x
    WHERE x.org_id = $1 AND x.principal_id = people.id) AS found"
    )
}

/// The SQL for whether a word of what has this id begins so. It is read by the id alone, not by the words of others: no
/// other org has the id, and a count is never turned into a list of all that begin so.
pub(crate) fn begins(id: &str, beginning: &str) -> String {
    format!(
        "(SELECT COUNT(*) FROM search_words w WHERE w.id = {id} AND w.word >= {beginning}
    AND w.word < {beginning} || '{END}') > 0"
    )
}

/// The rest of each text from each of its first words on.
fn words(texts: &[&str]) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for text in texts {
        let text = normal(text);
        words.extend(starts(&text).take(MOST).map(cut));
    }
    words
}

/// The beginning that a search asks for; empty if there is none.
pub(crate) fn beginning(asked: Option<&str>) -> String {
    let asked = asked.unwrap_or_default();
    let text = normal(asked);
    // What has no letter stays as it is, which begins no word.
    cut(starts(&text).next().unwrap_or(asked))
}

/// The text as it is compared: in lower case, with single spaces.
fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

fn starts(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.char_indices().filter_map(move |(at, letter)| {
        let begins = letter.is_alphanumeric() && !inside;
        inside = letter.is_alphanumeric();
        if begins { text.get(at..) } else { None }
    })
}

pub(crate) const FORGET: &str =
    "DELETE FROM search_words WHERE org_id = $1 AND source = $2 AND id = $3";

const ADD: &str = "INSERT INTO search_words (org_id, source, id, word) VALUES ($1, $2, $3, $4)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_from_each_word_on() {
        let found = |text: &str| words(&[text]).into_iter().collect::<Vec<_>>();

        assert_eq!(found("Émile  da SILVA"), ["da silva", "silva", "émile da silva"]);
        assert_eq!(found("(ana@acme.example)"), ["acme.example)", "ana@acme.example)", "example)"]);
        assert!(found(" -- ").is_empty());
        let many: String = (0..100).map(|n| n.to_string() + " ").collect();
        assert_eq!(found(&many).len(), MOST);
        assert_eq!(found(&"x".repeat(200)), ["x".repeat(LONGEST)]);
    }

    #[test]
    fn a_search_asks_for_the_beginning_of_a_word() {
        for (asked, wanted) in [
            (None, ""),
            (Some("\t "), "\t "),
            (Some(" Da  SIL"), "da sil"),
            (Some("@acme.ex"), "acme.ex"),
            (Some("%_"), "%_"),
        ] {
            assert_eq!(beginning(asked), wanted, "{asked:?}");
        }
    }
}
