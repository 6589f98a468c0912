//! The built-in detectors as a page of the documentation, made from their definitions.

use std::fmt::Write as _;

use crate::{
    catalogue::{
        detector::{ALONE_BITS, Detector, Shape},
        load::Catalogue,
    },
    vocabulary::{Action, Category, Direction, Likelihood},
};

const HEAD: &str = "\
# What DLP detects

<!-- Made from the detectors' definitions: `cargo run -- dlp detectors > docs/detectors.md`. -->

Policies, `[dlp.detectors]` in the configuration and findings use these names, which do not change.
[dlp.md](dlp.md) explains the actions and [dlp-reference.md](dlp-reference.md) the rules.

A detector adds up evidence in bits: the form, check digits (one is worth about three bits), a
vendor's prefix, randomness, words near the match, and the two nearest JSON keys above it. From 16
bits on a match is reported as `possible`, from 24 as `likely`, from 32 as `very_likely`.

Each category has up to two tables: detectors with a form that is enough by itself, and detectors
that also need a word or another sign in their context. Words count within 64 characters before or
32 after the match and in keys, in any spelling: `tax id` is also `tax_id`, `taxId` and `TaxIDs`; a
key such as `order` or `timestamp` speaks against numbers. At most three words are shown, and none
if the only one is the beginning of the detector's name. The
[definitions](../crates/dlp/detectors/README.md) have all of them, and examples, which are tests.
";

/// The page, in Markdown, without a last line break.
#[must_use]
pub fn catalogue() -> String {
    let mut page = HEAD.to_owned();
    let all = Catalogue::all();
    let _ = write!(page, "\n{} detectors are built in.\n", all.len());
    for (category, title) in TITLES {
        let own = all.clone().map(AsRef::as_ref).filter(|it: &&Detector| it.category == *category);
        let own: Vec<&Detector> = own.collect();
        let does = |direction| word(category.usual_action(direction));
        let input = does(Direction::Input);
        let output = does(Direction::Output);
        let count = own.len();
        let _ = write!(
            page,
            "\n## {title}: `{}`\n\n{count} detectors; {input} on input and {output} on output.\n",
            category.as_str()
        );
        let (alone, beside): (Vec<_>, Vec<_>) = own.into_iter().partition(|it| is_telling(it));
        table("By itself | Finds", alone, &mut page);
        table("In context | Finds | Words", beside, &mut page);
    }
    page.truncate(page.trim_end().len());
    page
}

const TITLES: &[(Category, &str)] = &[
    (Category::Secret, "Secrets"),
    (Category::Financial, "Money"),
    (Category::NationalId, "Numbers of states"),
    (Category::Health, "Health"),
    (Category::Contact, "Contact"),
    (Category::Network, "Network"),
    (Category::Injection, "Instructions to a model"),
];

/// Writes the detectors below these column names.
fn table(columns: &str, detectors: Vec<&Detector>, page: &mut String) {
    if detectors.is_empty() {
        return;
    }
    let count = columns.split('|').count();
    let _ = write!(page, "\n{columns}\n{}\n", ["---"].repeat(count).join("|"));
    for detector in detectors {
        let _ = write!(page, "`{}` | {}", detector.name, finds(detector));
        let words = words(detector);
        if count > 2 && !words.is_empty() {
            let _ = write!(page, " | {words}");
        }
        page.push('\n');
    }
}

/// The description, without the condition that a column of the table has.
fn finds(detector: &Detector) -> String {
    let description = detector.description.as_str();
    let plain = [", beside words that name it", ", beside its name"]
        .into_iter()
        .find_map(|condition| description.strip_suffix(condition));
    plain.unwrap_or(description).replace('|', "\\|")
}

/// Whether the detector can fire without a word beside the value.
fn is_telling(detector: &Detector) -> bool {
    if detector.is_named() {
        return false;
    }
    let more = if let Shape::Number { alone, .. } = &detector.shape {
        if alone.is_empty() {
            return false;
        }
        ALONE_BITS
    } else {
        12
    };
    Likelihood::from_bits(detector.bits + more).is_some()
}

/// The words that speak for a detector: names of vendors for secrets that are looked for beside them. An only
/// word that begins the name of the detector is left out.
fn words(detector: &Detector) -> String {
    let words: &[String] = if detector.is_named() {
        &detector.literals
    } else if matches!(detector.shape, Shape::Digits { .. }) && detector.context_bits < 0 {
        // Its words speak against it.
        &[]
    } else {
        &detector.context
    };
    if let [only] = words
        && detector.name.starts_with(only.as_str())
    {
        return String::new();
    }
    let shown = words.iter().take(3).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    if words.len() > 3 { format!("{shown}, …") } else { shown }
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Flag => "flagged",
        Action::Redact => "redacted",
        Action::Block => "blocked",
    }
}
