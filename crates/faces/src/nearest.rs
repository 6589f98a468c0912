//! Names of tools for a caller that asked for one that is not there: only of those that it may use.

use portcullis_app::{Ctx, OfferedTool};
use portcullis_core::refusal::Refusal;

use super::{
    Gateway,
    outcome::{Content, Failure, Outcome},
};

/// Tools that are compared, at most.
const MOST_TOOLS: usize = 2_000;
/// Tools that are named, at most.
const MOST_NAMED: usize = 3;
/// Letters by which a name may differ, at most.
const MOST_LETTERS: usize = 4;

/// The way in which an endpoint names tools.
#[derive(Debug)]
pub(crate) enum NamedBy {
    /// REST: `hr:get_employee`.
    Id,
    /// `/mcp`: `hr__get_employee`.
    Name,
    /// `/mcp/{slug}`: `get_employee`.
    OwnName(String),
}

impl NamedBy {
    fn provider(&self) -> Option<&str> {
        match self {
            Self::Id | Self::Name => None,
            Self::OwnName(slug) => Some(slug),
        }
    }

    fn name<'a>(&self, tool: &'a OfferedTool) -> &'a str {
        match self {
            Self::Id => tool.tool.id.as_str(),
            Self::Name => &tool.name,
            Self::OwnName(_) => tool.tool.id.name(),
        }
    }
}

/// The same outcome; of a tool that is not there, with the name that it has here or the nearest ones.
pub(crate) async fn told(
    gateway: &Gateway,
    ctx: &Ctx,
    by: &NamedBy,
    mut outcome: Outcome,
) -> Outcome {
    if let Content::Failed(Failure::Refused(Refusal::NotFound { resource, id, hint })) =
        &mut outcome.content
        && *resource == "mcp"
        && let Ok(offered) = gateway.app.tools.offered_tools(ctx, by.provider()).await
    {
        *hint = hint_among(id, by, offered.iter());
    }
    outcome
}

fn hint_among<'a>(
    asked: &str,
    by: &NamedBy,
    tools: impl Iterator<Item = &'a OfferedTool>,
) -> Option<String> {
    let candidates = tools.take(MOST_TOOLS).map(|tool| (tool.tool.id.as_str(), by.name(tool)));
    let (exact, names) = nearest(asked, candidates);
    let first = names.first()?;
    if exact {
        return Some(format!("Its name here is `{first}`."));
    }
    let all: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Some(format!("The nearest: {}.", all.join(", ")))
}

/// Names of the nearest ids, the best first, and whether the first is what was asked for in another spelling.
fn nearest<'a>(
    asked: &str,
    named: impl Iterator<Item = (&'a str, &'a str)>,
) -> (bool, Vec<&'a str>) {
    let asked = plain(asked);
    let most = (asked.len() / 4).clamp(1, MOST_LETTERS);
    let mut near: Vec<(usize, &str)> =
        named.filter_map(|(id, name)| Some((distance(&asked, &plain(id), most)?, name))).collect();
    near.sort_by_key(|(distance, _)| *distance);
    let exact = near.first().is_some_and(|(distance, _)| *distance == 0);
    (exact, near.into_iter().take(MOST_NAMED).map(|(_, name)| name).collect())
}

/// A name without what its spellings differ in: case, and the letters between its parts.
fn plain(name: &str) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    for byte in name.bytes() {
        let byte = if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'_' };
        if byte != b'_' || plain.last() != Some(&b'_') {
            plain.push(byte);
        }
    }
    plain
}

/// Letters to add, leave out or change between two names, if no more than `most`. Names that are far apart cost
/// little: only the first letters are compared.
fn distance(one: &[u8], other: &[u8], most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    // The distance of what was read of `one` to each beginning of `other`.
    let mut distances: Vec<usize> = (0..=other.len()).collect();
    for (read, letter) in one.iter().enumerate() {
        let mut before = read;
        let mut last = read + 1;
        let mut smallest = last;
        let mut cells = distances.iter_mut();
        if let Some(first) = cells.next() {
            *first = last;
        }
        for (cell, other) in cells.zip(other) {
            let changed = before + usize::from(letter != other);
            before = *cell;
            last = changed.min(before + 1).min(last + 1);
            smallest = smallest.min(last);
            *cell = last;
        }
        if smallest > most {
            return None;
        }
    }
    distances.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_spellings_are_the_same_and_typos_are_near() {
        let tools = [
            ("hr:get_employee", "hr__get_employee"),
            ("hr:get_employees", "hr__get_employees"),
            ("hr:set_employee", "hr__set_employee"),
            ("hr:pay.out", "hr__pay_out"),
            ("crm:get", "crm__get"),
        ];
        for (asked, exact, names) in [
            ("hr__get_employee", true, "hr__get_employee hr__get_employees hr__set_employee"),
            ("HR:get-employee", true, "hr__get_employee hr__get_employees hr__set_employee"),
            ("hr:get_employe", false, "hr__get_employee hr__get_employees hr__set_employee"),
            ("hr__pay_out", true, "hr__pay_out"),
            ("hr:payout", false, "hr__pay_out"),
            ("crm:got", false, "crm__get"),
            ("get_employee", false, "hr__get_employee"),
            ("", false, ""),
            ("something:else", false, ""),
        ] {
            let (is_exact, found) = nearest(asked, tools.into_iter());

            assert_eq!((is_exact, found.join(" ").as_str()), (exact, names), "{asked}");
        }
    }

    #[test]
    fn distances_are_those_of_letters_up_to_a_bound() {
        for (one, other, wanted) in [
            ("", "", Some(0)),
            ("", "ab", Some(2)),
            ("abc", "abc", Some(0)),
            ("abc", "axc", Some(1)),
            ("abc", "acb", Some(2)),
            ("abcd", "bcd", Some(1)),
            ("kitten", "sitting", None),
            ("abc", "xyz", None),
            ("abc", "abcdef", None),
        ] {
            assert_eq!(distance(one.as_bytes(), other.as_bytes(), 2), wanted, "{one} {other}");
        }
    }
}
