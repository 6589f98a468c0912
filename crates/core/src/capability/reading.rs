//! What a resource is read by that no list names.

use std::{cmp::Reverse, sync::Arc};

use super::{Capability, CapabilityId, CapabilityKind};
use crate::mcp::uris::{ResourceUri, Template};

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
