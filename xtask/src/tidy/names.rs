//! Names and subjects: parameters come one by one, a type has a name of its own in its crate, and
//! comments name who does something.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Violation,
    code::{Keep, before_tests, blanked},
    repository::{File, Repository},
};

/// Names of types that stand for two things in one crate. The number only goes down.
const MOST_SHARED: usize = 53;
/// Comment lines with a pronoun for a subject. The number only goes down.
const MOST_PRONOUNS: usize = 20;
const PRONOUNS: [&str; 5] = ["nobody", "somebody", "someone", "whoever", "says no"];
const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Finds tuples as parameters, and counts that have grown.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let files = || repository.rust().filter(|file| file.path.starts_with("crates/"));
    let tuples = files().flat_map(tuple_parameters);
    tuples.chain(shared_names(files())).chain(pronouns(files())).collect()
}

fn tuple_parameters(file: &File) -> Vec<Violation> {
    let code = blanked(&file.text, Keep::CodeOnly);
    let functions = code.match_indices("fn ").map(|(at, _)| at);
    let tuples = functions.filter(|at| code.get(*at..).is_some_and(takes_tuple));
    let line = |at: usize| code.get(..at).map_or(0, |before| before.matches('\n').count()) + 1;
    let violation = |at| {
        let what = "has a tuple as a parameter";
        Violation::new(&file.path, line(at), what, "take its parts one by one, or a struct")
    };
    tuples.map(violation).collect()
}

/// Returns true if the function that begins here destructures a tuple in its parameters.
fn takes_tuple(function: &str) -> bool {
    let mut rounds = 0_usize;
    let mut angles = 0_usize;
    let mut before = ' ';
    let mut starts = false;
    for (at, letter) in function.char_indices() {
        if starts && !letter.is_whitespace() {
            let rest = function.get(at..).unwrap_or_default();
            let rest = rest.strip_prefix("mut ").unwrap_or(rest);
            if is_tuple(rest) {
                return true;
            }
            starts = false;
        }
        match letter {
            '<' => angles += 1,
            '>' if before != '-' && before != '=' => angles = angles.saturating_sub(1),
            '(' | '[' => {
                rounds += 1;
                starts = letter == '(' && rounds == 1 && angles == 0;
            }
            ')' | ']' => rounds = rounds.saturating_sub(1),
            ',' => starts = rounds == 1 && angles == 0,
            '{' | ';' => return false,
            _ => {}
        }
        if letter == ')' && rounds == 0 && angles == 0 {
            return false;
        }
        before = letter;
    }
    false
}

/// Returns true for the parts of a tuple with their type behind them.
fn is_tuple(parameter: &str) -> bool {
    if !parameter.starts_with('(') || parameter.starts_with("()") {
        return false;
    }
    let mut depth = 0_usize;
    let end = parameter.find(|letter| {
        depth += usize::from(letter == '(');
        depth -= usize::from(letter == ')');
        depth == 0
    });
    let after = end.and_then(|end| parameter.get(end + 1..)).unwrap_or_default();
    after.trim_start().starts_with(':')
}

fn shared_names<'a>(files: impl Iterator<Item = &'a File>) -> Option<Violation> {
    let mut places: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for file in files.filter(|file| file.path.contains("/src/") && !file.path.contains("/tests")) {
        let in_crate = file.path.split('/').nth(1).unwrap_or_default();
        let code = blanked(before_tests(&file.text), Keep::CodeOnly);
        for name in code.lines().filter_map(type_of) {
            places.entry((in_crate, name.to_owned())).or_default().insert(&file.path);
        }
    }
    let shared: Vec<String> = places
        .into_iter()
        .filter(|(_, files)| files.len() > 1)
        .map(|((in_crate, name), _)| format!("{in_crate}::{name}"))
        .collect();
    let what = format!(
        "{} names of types stand for two things in a crate, {MOST_SHARED} are allowed: {}",
        shared.len(),
        shared.join(", ")
    );
    let remedy = "give the newest a name of its own";
    (shared.len() > MOST_SHARED).then(|| Violation::new("crates", 1, what, remedy))
}

/// The type that a line at the margin declares.
fn type_of(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let (keyword, rest) = line.split_once(' ')?;
    let name = rest.split(|it: char| !it.is_alphanumeric() && it != '_').next()?;
    (KEYWORDS.contains(&keyword) && !name.is_empty()).then_some(name)
}

fn pronouns<'a>(files: impl Iterator<Item = &'a File>) -> Option<Violation> {
    let lines = files.flat_map(|file| {
        let comments = file.text.lines().enumerate().filter(|(_, line)| has_pronoun(line));
        comments.map(move |(index, _)| format!("{}:{}", file.path, index + 1))
    });
    let lines: Vec<String> = lines.collect();
    let what = format!(
        "{} comments have a pronoun for a subject, {MOST_PRONOUNS} are allowed: {}",
        lines.len(),
        lines.join(", ")
    );
    let remedy = "name the operator, the caller, the client, the node";
    (lines.len() > MOST_PRONOUNS).then(|| Violation::new("crates", 1, what, remedy))
}

fn has_pronoun(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let comment = comment.to_lowercase();
    PRONOUNS.iter().any(|pronoun| {
        comment.match_indices(pronoun).any(|(at, _)| {
            let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
            let (before, after) = comment.split_at_checked(at).unwrap_or_default();
            let after = after.get(pronoun.len()..).unwrap_or_default();
            !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_is_found_wherever_it_stands_among_the_parameters() {
        for tuple in [
            "fn f((a, b): (A, B)) {}",
            "fn f(&self, x: X, (a, b): (A, B)) -> C {}",
            "fn f<T: Fn(A) -> B>(x: T, mut (a, b): (A, B)) {}",
            "fn f(\n    &self,\n    (a, b): (A, B),\n) {}",
        ] {
            assert!(takes_tuple(tuple), "{tuple}");
        }
        for other in [
            "fn f((): ()) {}",
            "fn f((a, b) in pairs()) {}",
            "fn f(x: (A, B)) {}",
            "fn f(x: HashMap<A, (B, C)>, y: Y) {}",
            "fn f(x: impl Fn((A, B)) -> C) -> (A, B) {}",
            "fn f() { g((1, 2)) }",
        ] {
            assert!(!takes_tuple(other), "{other}");
        }
    }

    #[test]
    fn a_type_is_read_from_its_line() {
        assert_eq!(type_of("pub(crate) struct Held<'a> {"), Some("Held"));
        assert_eq!(type_of("pub enum Kind {"), Some("Kind"));
        assert_eq!(type_of("type Fields = Vec<u8>;"), Some("Fields"));
        assert_eq!(type_of("    struct Inner;"), None);
        assert_eq!(type_of("pub use a::b;"), None);
    }

    #[test]
    fn pronouns_are_words_of_comments() {
        assert!(has_pronoun("    /// Nobody waits."));
        assert!(has_pronoun("// It says no."));
        assert!(!has_pronoun("let nobody = 1;"));
        assert!(!has_pronoun("/// Somebody's"[..4].trim()));
    }
}
