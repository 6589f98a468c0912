//! Variables that stand for values of clients.

use std::collections::BTreeMap;

use portcullis_core::secret::Secret;

use super::secrets::{is_expanded, quote_name};

/// A variable of the gateway's environment that has to be set.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Content of the value, in words.
    pub(super) holds: String,
    pub(super) value: Option<Secret>,
}

/// Names of variables, each with what the client has in its place.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, Secret>);

impl Names {
    /// The variable for a value. One that is a reference itself stays it, so that an operator who
    /// has set it needs to do nothing.
    pub(super) fn variable(&mut self, slug: &str, part: &str, value: &str, what: &str) -> Variable {
        match Reference::parse(value) {
            Some(Reference::Environment(name, default)) => {
                self.0.insert(name.to_owned(), Secret::new(value.to_owned()));
                let default = default.filter(|it| !is_expanded(it) && !it.contains('\0'));
                let known = if default.is_some() { ", which has a default there" } else { "" };
                let holds = format!("{what}, as in the client{known}");
                let value = default.map(|default| Secret::new(default.to_owned()));
                Variable { name: name.to_owned(), holds, value }
            }
            Some(Reference::Asked(input)) => {
                let holds = format!("{what}, for which the client asks as {}", quote_name(input));
                Variable { name: self.free(&derived(slug, input), value), holds, value: None }
            }
            None => {
                // What the client puts together itself, or no variable can hold, is not known here.
                let is_known = !is_expanded(value) && !value.contains('\0');
                let known = is_known.then(|| Secret::new(value.to_owned()));
                let holds = format!("the value of {what}");
                Variable { name: self.free(&derived(slug, part), value), holds, value: known }
            }
        }
    }

    /// `name`, or the first of `name_2`, `name_3` and so on that stands for nothing else.
    fn free(&mut self, name: &str, value: &str) -> String {
        let mut free = name.to_owned();
        let mut number = 1;
        while self.0.get(&free).is_some_and(|known| known.expose() != value) {
            number += 1;
            free = format!("{name}_{number}");
        }
        self.0.insert(free.clone(), Secret::new(value.to_owned()));
        free
    }
}

/// A name that is no setting of the gateway. A part that begins with the slug does not repeat it.
fn derived(slug: &str, part: &str) -> String {
    let slug = upper(slug);
    let part = upper(part);
    let repeats = part.strip_prefix(&slug).is_some_and(|rest| rest.starts_with('_'));
    if repeats { format!("MCP_{part}") } else { format!("MCP_{slug}_{part}") }
}

fn upper(name: &str) -> String {
    name.chars()
        .map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' })
        .collect()
}

/// Reference that a client puts in the place of a whole value.
enum Reference<'a> {
    /// A variable of its environment, and what is taken if that is not set.
    Environment(&'a str, Option<&'a str>),
    /// Question to the person.
    Asked(&'a str),
}

impl<'a> Reference<'a> {
    /// `${NAME}`, `${env:NAME}`, `${NAME:-default}`, `$NAME` or `${input:ID}`, and nothing beside it.
    fn parse(value: &'a str) -> Option<Self> {
        let inner = match value.strip_prefix("${") {
            Some(rest) => rest.strip_suffix('}')?,
            None => value.strip_prefix('$')?,
        };
        if let Some(id) = inner.strip_prefix("input:") {
            return (!id.contains(['$', '}'])).then_some(Self::Asked(id));
        }
        let inner = inner.strip_prefix("env:").unwrap_or(inner);
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        is_usable_variable(name).then_some(Self::Environment(name, default))
    }
}

/// Default of a variable that is not set, if a value is a reference with one.
pub(super) fn default_of(value: &str) -> Option<&str> {
    match Reference::parse(value)? {
        Reference::Environment(_, default) => default,
        Reference::Asked(_) => None,
    }
}

/// A name that variables can have, and that the gateway does not take for a setting of its own.
pub(super) fn is_usable_variable(name: &str) -> bool {
    let letter = |it: u8| it.is_ascii_alphabetic() || it == b'_';
    name.bytes().next().is_some_and(letter)
        && name.bytes().all(|it| letter(it) || it.is_ascii_digit())
        && name.len() <= 128
        && !name.starts_with("PORTCULLIS_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_of_the_client_stays_one_unless_it_would_be_a_setting_of_ours() {
        for (value, name) in [
            ("${GITHUB_TOKEN}", "GITHUB_TOKEN"),
            ("${env:GITHUB_TOKEN}", "GITHUB_TOKEN"),
            ("${GITHUB_TOKEN:-x}", "GITHUB_TOKEN"),
            ("$GITHUB_TOKEN", "GITHUB_TOKEN"),
            ("${input:github-token}", "MCP_GIT_HUB_GITHUB_TOKEN"),
            ("${PORTCULLIS_KEYS__FILE}", "MCP_GIT_HUB_TOKEN"),
            ("${A}${B}", "MCP_GIT_HUB_TOKEN"),
            ("${A\n}", "MCP_GIT_HUB_TOKEN"),
            ("ghp_0123", "MCP_GIT_HUB_TOKEN"),
            ("$", "MCP_GIT_HUB_TOKEN"),
        ] {
            let variable = Names::default().variable("git-hub", "token", value, "it");
            assert_eq!(variable.name, name, "{value}");
        }
    }

    #[test]
    fn a_variable_stands_for_one_value_and_does_not_repeat_its_slug() {
        let mut names = Names::default();
        for (slug, part, value, name) in [
            ("db", "DB_URL", "a", "MCP_DB_URL"),
            ("db", "url", "b", "MCP_DB_URL_2"),
            ("db", "url", "a", "MCP_DB_URL"),
            ("a-b", "c", "a", "MCP_A_B_C"),
            ("a", "b_c", "b", "MCP_A_B_C_2"),
            ("dbx", "DB", "a", "MCP_DBX_DB"),
            ("x", "y", "${MCP_X_TOKEN}", "MCP_X_TOKEN"),
            ("x", "token", "a", "MCP_X_TOKEN_2"),
        ] {
            assert_eq!(names.variable(slug, part, value, "it").name, name, "{slug} {part} {value}");
        }
    }

    #[test]
    fn a_value_is_known_unless_the_client_has_to_find_it() {
        for (value, known) in [
            ("hunter2", Some("hunter2")),
            ("${TOKEN}", None),
            ("${TOKEN:-hunter2}", Some("hunter2")),
            ("${TOKEN:-${OTHER}}", None),
            ("${input:token}", None),
            ("a${B}", None),
            ("a\0b", None),
        ] {
            let variable = Names::default().variable("a", "b", value, "it");
            assert_eq!(variable.value.as_ref().map(Secret::expose), known, "{value}");
        }
    }
}
