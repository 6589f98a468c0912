//! Resources of which a caller is told that they changed.

use portcullis_core::capability::CapabilityKind;
use portcullis_upstream::Watch;

use super::{Tools, parse_id};
use crate::{catalogue::connection::Connection, request::Ctx};

/// A resource that is watched until this is dropped.
#[derive(Debug)]
pub struct ResourceWatch {
    watch: Watch,
    /// Another connection took the place of the one at which it was watched.
    is_new: bool,
}

impl ResourceWatch {
    /// Waits until the server said that it tells of the resource.
    pub async fn wait_until_told(&self) {
        self.watch.wait_until_told().await;
    }

    /// Returns true if the server tells of the resource.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.watch.is_told()
    }

    /// Returns true if the resource may have changed since this was asked last.
    pub fn has_changed(&mut self) -> bool {
        self.watch.has_changed() | std::mem::take(&mut self.is_new)
    }
}

impl Tools {
    /// Watches a resource that a list names for the caller; one that is `known` goes on if it is watched at the same
    /// connection. `None` where it is not listed, or its server tells of no changes. No URI that a caller made up goes to a
    /// server.
    #[must_use]
    pub fn watch(
        &self,
        ctx: &Ctx,
        provider: &str,
        uri: &str,
        known: Option<ResourceWatch>,
    ) -> Option<ResourceWatch> {
        let asked = parse_id(CapabilityKind::Resource, &format!("{provider}:{uri}")).ok()?;
        // Few of what may be asked for is listed, and the rest takes longer to find.
        let connection = ctx.session.connections.get(provider)?;
        self.catalogue.tool_through(connection, asked.as_str())?;
        let visible = self.find_used(ctx, &asked, Some(uri)).ok()?;
        if visible.tool.id != asked {
            return None;
        }
        let server = visible.connection.server();
        let was_watched = known.is_some();
        if let Some(known) = known.filter(|known| server.is_watched_by(&known.watch)) {
            return Some(known);
        }
        let watch = server.watch(ctx.caller().org_id, uri)?;
        Some(ResourceWatch { watch, is_new: was_watched })
    }

    /// Returns true if a provider that the caller reaches here tells of changes of its resources.
    #[must_use]
    pub fn tells_of_resources(&self, ctx: &Ctx, provider: Option<&str>) -> bool {
        let tells = |it: &Connection| {
            let server = it.server();
            server.kinds().contains(&CapabilityKind::Resource) && server.tells_of_resources()
        };
        let mut connections = ctx.session.connections.iter();
        connections.any(|it| provider.is_none_or(|slug| it.slug() == slug) && tells(it))
    }
}
