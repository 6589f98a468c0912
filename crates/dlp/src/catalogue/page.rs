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

These names are what policies, `[dlp.detectors]` in the configuration and findings use; they do not
change. Every example on this page is also a test.

A detector adds up evidence in bits: its form, check digits, a vendor's prefix, randomness, words
near the match, and the two nearest JSON keys above it. From 16 bits on it reports a match as
`possible`, from 24 as `likely`, from 32 as `very_likely`; `min_likelihood` sets a higher bar for one
detector. One check digit is worth about three bits: a number that could be anything fires only
beside a word that names it, however right its check digits are. A key such as `order` or
`timestamp` speaks against numbers.

In the tables, **Alone** says whether a form of it is telling by itself. **Words** count within 64
characters before or 32 after the match and in keys, in any spelling: `tax id` is also `tax_id`,
`taxId` and `TaxIDs`. Secrets in examples are cut short, so that scanners do not take this page for
a leak.

Names of persons and addresses in prose need a model and are not among them; an external detector
can be added for those who have one.
";

/// The page, in Markdown, without a last line break.
#[must_use]
pub fn catalogue() -> String {
    let mut page = HEAD.to_owned();
    let all = Catalogue::all();
    let _ = write!(page, "\n{} detectors are built in.\n", all.len());
    for (category, title) in TITLES {
        let own: Vec<_> = all.clone().filter(|found| found.category == *category).collect();
        let does = |direction| word(category.usual_action(direction));
        let input = does(Direction::Input);
        let output = does(Direction::Output);
        let count = own.len();
        let _ = write!(
            page,
            "\n## {title}: `{}`\n\n{count} detectors. By default {input} on input and {output} on output.\n\n\
             | Detector | Finds | Alone | Words | Fires | Passes |\n|---|---|---|---|---|---|\n",
            category.as_str()
        );
        for detector in own {
            line(detector, &mut page);
        }
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

fn line(detector: &Detector, page: &mut String) {
    let is_secret = detector.category == Category::Secret;
    let examples = |list: &[String]| {
        let shown = list.iter().take(2).map(|example| code(&shortened(example, is_secret)));
        shown.collect::<Vec<_>>().join("<br>")
    };
    let _ = writeln!(
        page,
        "| `{}` | {} | {} | {} | {} | {} |",
        detector.name,
        detector.description.replace('|', "\\|"),
        if is_telling(detector) { "yes" } else { "" },
        words(detector),
        examples(&detector.positives),
        examples(&detector.negatives),
    );
}

/// Returns true if it can fire without a word beside it.
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

/// The words that speak for it: names of vendors for secrets that are looked for beside them.
fn words(detector: &Detector) -> String {
    let words: &[String] = if detector.is_named() {
        &detector.literals
    } else if matches!(detector.shape, Shape::Digits { .. }) && detector.context_bits < 0 {
        // Its words speak against it.
        &[]
    } else {
        &detector.context
    };
    let shown = words.iter().take(6).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    if words.len() > 6 { format!("{shown}, …") } else { shown }
}

/// Shortens an example: of a secret, less is left than anyone could use.
fn shortened(example: &str, is_secret: bool) -> String {
    let longest = if is_secret { 22 } else { 60 };
    let plain = example.replace('\n', "⏎");
    if plain.chars().count() <= longest {
        return plain;
    }
    plain.chars().take(longest).chain(['…']).collect()
}

fn code(text: &str) -> String {
    let fence = if text.contains('`') { "``" } else { "`" };
    format!("{fence}{}{fence}", text.replace('|', "\\|"))
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Flag => "flagged",
        Action::Redact => "redacted",
        Action::Block => "blocked",
    }
}
