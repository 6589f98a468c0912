//! Finding the capability by which a resource is read that no list names.

use std::{cmp::Reverse, collections::HashSet, sync::Arc};

use super::{Capability, CapabilityId, CapabilityKind};
use crate::mcp::{
    skills,
    uris::{ResourceUri, Template},
};

/// Steps in which a URI is held against the templates of a provider.
const MOST_STEPS: usize = 200_000;

/// The one of these capabilities of its provider by which a resource is read that no list names: the template that makes
/// its URI, the one with the longest literal beginning first, or else what stands for all that is not listed. `None` if
/// there is neither, if readers understand the URI differently, or if that cannot be told within 200,000 steps.
#[must_use]
pub fn unlisted(
    id: &CapabilityId,
    known: impl IntoIterator<Item = Arc<Capability>>,
) -> Option<Arc<Capability>> {
    if id.kind() != CapabilityKind::Resource || id.is_unlisted() {
        return None;
    }
    let uri = ResourceUri::parse(id.name()).ok().filter(|it| it.is_normal() && it.is_plain())?;
    let (mut templates, mut all) = (Vec::new(), None);
    for it in known {
        match it.template().map(Template::literal_prefix) {
            Some(begin) if uri.as_str().starts_with(begin) => templates.push((begin.len(), it)),
            None if it.id.is_unlisted() => all = Some(it),
            Some(_) | None => {}
        }
    }
    templates.sort_by_key(|(literal, _)| Reverse(*literal));
    let mut steps = MOST_STEPS;
    for (_, it) in templates {
        let template = it.template()?;
        steps = steps.checked_sub(template.cost(&uri))?;
        if template.values(&uri).is_some() {
            return Some(it);
        }
    }
    all
}

/// The skill whose folder a resource lies in, or would for readers who take its URI for another, the innermost first; `known`
/// finds a skill by its id.
pub fn holding(
    id: &CapabilityId,
    mut known: impl FnMut(&CapabilityId) -> Option<Arc<Capability>>,
) -> Option<Arc<Capability>> {
    let uri = ResourceUri::parse(id.name()).ok()?;
    let of = |uri: String| {
        CapabilityId::of_kind(CapabilityKind::Skill, &format!("{}:{uri}", id.provider())).ok()
    };
    skills::above(&uri).filter_map(of).find_map(|skill| known(&skill))
}

/// True if one of these capabilities is this resource in another spelling, a template that makes its URI, or a skill whose
/// folder it lies in; also if that cannot be told within 200,000 steps.
#[must_use]
pub fn is_among<'a>(id: &CapabilityId, held: impl IntoIterator<Item = &'a CapabilityId>) -> bool {
    let Ok(uri) = ResourceUri::parse(id.name()) else { return false };
    let mut steps = MOST_STEPS;
    let mut makes = |template: &Template| match steps.checked_sub(template.cost(&uri)) {
        None => true,
        Some(left) => {
            steps = left;
            template.values(&uri).is_some()
        }
    };
    let place = uri.place();
    let skills: HashSet<String> = skills::above(&uri).collect();
    held.into_iter().any(|it| match it.kind() {
        CapabilityKind::Tool | CapabilityKind::Prompt => false,
        CapabilityKind::Resource => {
            ResourceUri::parse(it.name()).is_ok_and(|other| other.place() == place)
        }
        CapabilityKind::Template => Template::parse(it.name()).is_ok_and(|it| makes(&it)),
        CapabilityKind::Skill => skills.contains(it.name()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_known_in_other_spellings_and_by_templates() {
        let ids = |all: &[&str]| -> Vec<CapabilityId> {
            all.iter().map(|it| format!("resource:crm:{it}").parse().unwrap()).collect()
        };
        let mut held = ids(&["notes://h/quar", "notes://h/a:b", "notes://t/{name}"]);
        held.push("skill:crm:skill://acme/refunds/SKILL.md".parse().unwrap());
        for (uri, expected) in [
            ("notes://h/quar", true),
            ("notes://h/quar#", true),
            ("notes://h/quar?x", true),
            ("notes://h/quar/", true),
            ("notes://h:80/quar", true),
            ("notes://h/a%3Ab", true),
            ("notes://t/x", true),
            ("notes://h/other", false),
            ("notes://h/quar/b", false),
            ("notes://t/x/y", false),
            ("skill://acme/refunds/SKILL.md", true),
            ("skill://acme/refunds/a/b.md?c", true),
            ("SKILL://ACME/refunds", true),
            ("skill:acme/refunds/%61", true),
            ("skill:///acme//refunds/a", true),
            ("skill://acme/refunds2/a", false),
            ("skill://acme/SKILL.md", false),
            ("docs://acme/refunds/a", false),
        ] {
            assert_eq!(is_among(&ids(&[uri])[0], &held), expected, "{uri}");
        }
    }
}
