//! Names under which the tools of several providers stand in one list.
//!
//! A name is `{slug}__{tool}` in the alphabet that model APIs take, `[A-Za-z0-9_-]{1,64}`. A slug
//! holds no `_`, so the first `__` ends it and tools of two providers never share a name. Within a
//! provider, names that are cut or that would be equal end in six digits of the id's digest.

use std::collections::{HashMap, HashSet};

use crate::{capability::CapabilityId, json};

/// Stands between slug and tool.
pub const SEPARATOR: &str = "__";
const LONGEST: usize = 64;
const DIGITS: usize = 6;

/// The names of all tools of one provider, in the order of `ids`. Where even the digits are the
/// same, only the first has a name.
#[must_use]
pub fn offered(ids: &[&CapabilityId]) -> Vec<Option<String>> {
    let plain: Vec<String> = ids.iter().map(|id| plain(id)).collect();
    let mut marked: Vec<bool> = plain.iter().map(|name| name.len() > LONGEST).collect();
    loop {
        let names = names(ids, &plain, &marked);
        let mut count: HashMap<&str, usize> = HashMap::new();
        for name in &names {
            *count.entry(name.as_str()).or_default() += 1;
        }
        let twice = |name: &String| count.get(name.as_str()).is_some_and(|count| *count > 1);
        let more: Vec<bool> =
            names.iter().zip(&marked).map(|(name, marked)| *marked || twice(name)).collect();
        if more == marked {
            let mut taken = HashSet::new();
            return names.into_iter().map(|it| taken.insert(it.clone()).then_some(it)).collect();
        }
        marked = more;
    }
}

/// The slug and the rest of a name; `None` if it has no slug.
#[must_use]
pub fn slug_of(name: &str) -> Option<(&str, &str)> {
    name.split_once(SEPARATOR)
}

fn plain(id: &CapabilityId) -> String {
    let name = id.name().replace(['.', ':', '/', ' '], "_");
    format!("{}{SEPARATOR}{name}", id.provider())
}

fn names(ids: &[&CapabilityId], plain: &[String], marked: &[bool]) -> Vec<String> {
    let all = ids.iter().zip(plain).zip(marked);
    all.map(|((id, plain), marked)| if *marked { with_digits(id, plain) } else { plain.clone() })
        .collect()
}

fn with_digits(id: &CapabilityId, plain: &str) -> String {
    let digest = json::sha256(&[id.as_str().as_bytes()]);
    let digits = digest.strip_prefix("sha256:").and_then(|hex| hex.get(..DIGITS));
    let head = plain.get(..LONGEST - DIGITS - 1).unwrap_or(plain);
    format!("{head}_{}", digits.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names_of(ids: &[&str]) -> Vec<Option<String>> {
        let ids: Vec<CapabilityId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        offered(&ids.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_name_is_slug_and_tool_without_punctuation() {
        let ids = ["github:list_repos", "github:issues.create", "github:__x", "github:a/b: c"];
        let names = names_of(&ids);

        let expected =
            ["github__list_repos", "github__issues_create", "github____x", "github__a_b__c"];
        assert_eq!(names, expected.map(|name| Some(name.to_owned())));
        assert_eq!(slug_of("github____x"), Some(("github", "__x")));
        assert_eq!(slug_of("call_tool"), None);
    }

    #[test]
    fn names_that_would_be_equal_are_both_told_apart_by_their_ids() {
        let names = names_of(&["a:x.y", "a:x_y", "a:z"]);

        let all: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
        assert!(all[0].starts_with("a__x_y_") && all[1].starts_with("a__x_y_"), "{all:?}");
        assert!(all[0] != all[1] && all[0].len() == "a__x_y_".len() + 6, "{all:?}");
        assert_eq!(all[2], "a__z");
        // A tool that is named as another one would be is told apart as well.
        let twin = format!("a:{}", all[0].strip_prefix("a__").unwrap());
        let again = names_of(&["a:x.y", "a:x_y", &twin]);
        let distinct: HashSet<_> = again.iter().flatten().collect();
        assert_eq!(distinct.len(), 3, "{again:?}");
    }

    proptest! {
        #[test]
        fn names_fit_model_apis_and_are_distinct(tools in prop::collection::btree_set("[A-Za-z0-9_.:/-]{1,128}( [A-Za-z0-9:/]{1,60})?", 1..20)) {
            let slug = "s".repeat(63);
            let ids: Vec<CapabilityId> = tools.iter().map(|it| format!("{slug}:{it}").parse().unwrap()).collect();

            let names: Vec<_> = offered(&ids.iter().collect::<Vec<_>>()).into_iter().flatten().collect();

            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            prop_assert!(names.iter().all(|it| (1..=64).contains(&it.len()) && it.bytes().all(fits)));
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        }
    }
}
