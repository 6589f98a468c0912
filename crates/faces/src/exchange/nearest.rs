//! Names of tools and prompts for a caller that asked for one that is not there: only of those that it may use.

use portcullis_app::{Ctx, Offered};
use portcullis_core::{capability::CapabilityKind, refusal::Refusal};

use super::outcome::{Content, Failure, Outcome};
use crate::gateway::Gateway;

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

    fn name<'a>(&self, tool: &'a Offered) -> &'a str {
        match self {
            Self::Id => tool.tool.id.short(),
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
        && let Some(kind) = kind_of(resource)
    {
        let asked = Asked::new(id);
        let distance = |tool: &Offered| asked.distance(tool.tool.id.short());
        if let Ok(near) = gateway.app.tools.near_tools(ctx, by.provider(), kind, distance).await {
            let near =
                near.iter().filter_map(|(distance, tool)| Some((*distance, by.name(tool.get()?))));
            *hint = hint_of(&near.take(MOST_NAMED).collect::<Vec<_>>());
        }
    }
    outcome
}

/// The kind of what was not found, if it has names.
fn kind_of(resource: &str) -> Option<CapabilityKind> {
    match resource {
        "mcp" => Some(CapabilityKind::Tool),
        "prompt" => Some(CapabilityKind::Prompt),
        _ => None,
    }
}

/// A hint that names these, of which the first is what was asked for in another spelling if its distance is 0.
fn hint_of(near: &[(usize, &str)]) -> Option<String> {
    let (distance, first) = near.first()?;
    if *distance == 0 {
        return Some(format!("Its name here is `{first}`."));
    }
    let all: Vec<String> = near.iter().map(|(_, name)| format!("`{name}`")).collect();
    Some(format!("The nearest: {}.", all.join(", ")))
}

/// A name that was asked for.
struct Asked {
    plain: Vec<u8>,
    /// Letters by which another one may differ.
    most: usize,
}

impl Asked {
    fn new(name: &str) -> Self {
        let plain = plain(name);
        let most = (plain.len() / 4).clamp(1, MOST_LETTERS);
        Self { plain, most }
    }

    /// Letters by which an id differs, if it is near.
    fn distance(&self, id: &str) -> Option<usize> {
        // It becomes no longer.
        if id.len() + self.most < self.plain.len() {
            return None;
        }
        distance(&self.plain, &plain(id), self.most)
    }
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

/// Letters to add, leave out or change between two names, if no more than `most`. Of each name only what is not the same
/// at its beginning is compared, and each letter only with those that are `most` places away.
fn distance(one: &[u8], other: &[u8], most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let (one, other) = (one.get(same..)?, other.get(same..)?);
    // The distance of what was read of `one` to each beginning of `other`; more than `most` where it is not needed.
    let mut distances: Vec<usize> = (0..=other.len()).collect();
    for (read, letter) in one.iter().enumerate() {
        let skipped = read.saturating_sub(most);
        let mut before = distances.get(skipped).copied()?;
        let mut last = if skipped == 0 { read + 1 } else { most + 1 };
        let mut smallest = last;
        let mut cells = distances.iter_mut().skip(skipped);
        if let Some(first) = cells.next() {
            *first = last;
        }
        for (cell, other) in cells.zip(other.iter().skip(skipped)).take(2 * most + 1) {
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
            let sought = Asked::new(asked);
            let near = tools.iter().filter_map(|(id, name)| Some((sought.distance(id)?, *name)));
            let mut near: Vec<_> = near.collect();
            near.sort_by_key(|(distance, _)| *distance);

            let found = near.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" ");
            assert_eq!(found, names, "{asked}");
            let hint = hint_of(&near).unwrap_or_default();
            assert_eq!(hint.starts_with("Its name here is `"), exact, "{asked}: {hint}");
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

    /// The same without a bound, by its definition.
    fn defined(one: &[u8], other: &[u8]) -> usize {
        match (one, other) {
            ([], rest) | (rest, []) => rest.len(),
            ([first, one @ ..], [second, other @ ..]) if first == second => defined(one, other),
            ([_, fewer @ ..], [_, less @ ..]) => {
                1 + defined(fewer, other).min(defined(one, less)).min(defined(fewer, less))
            }
        }
    }

    #[test]
    fn a_distance_up_to_the_bound_is_that_of_its_definition() {
        let mut names = vec![Vec::new()];
        for at in 0..63 {
            let longer: &Vec<u8> = &names[at / 2];
            let longer = longer.iter().copied().chain([b"ab"[at % 2]]).collect();
            names.push(longer);
        }
        for (one, other) in names.iter().flat_map(|one| names.iter().map(move |other| (one, other)))
        {
            for most in 1..=3 {
                let wanted = Some(defined(one, other)).filter(|distance| *distance <= most);
                assert_eq!(distance(one, other, most), wanted, "{one:?} {other:?} {most}");
            }
        }
    }
}
