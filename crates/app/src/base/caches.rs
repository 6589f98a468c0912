//! Caches of a node. Each has a bound in bytes, whoever fills it, and a row in `docs/operator.md`.

use std::{hash::Hash, time::Duration};

use moka::{policy::EvictionPolicy, sync::Cache};

portcullis_core::words! {
    /// A cache, by its name in the table of the operator's guide.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum NodeCache {
        Sessions = "verified tokens",
        Persons = "browser sessions",
        Connections = "connections to providers",
        ToolLists = "tool lists",
        Offers = "tool lists as clients see them",
        LastOffers = "the last tool list of each provider",
        Pages = "pages of tool lists",
        Sources = "addresses of unauthenticated callers",
        LiveSecrets = "hashes of tokens and cookies that were valid within the hour",
        UnknownSecrets = "hashes of tokens and cookies that were unknown a minute ago",
        ConsentedDocuments = "metadata documents of clients with a consent",
        OtherDocuments = "metadata documents of other clients",
    }
}

/// Time for which an entry is kept at most.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lifetime {
    /// Until there is no room.
    Unbounded,
    /// Since it was used last.
    Unused(Duration),
    /// Since it was put in.
    Whole(Duration),
}

impl NodeCache {
    /// MiB of all its entries.
    const fn mebibytes(self) -> u64 {
        match self {
            Self::Sessions => 400,
            Self::Offers => 128,
            Self::Persons | Self::Connections => 100,
            Self::ToolLists | Self::LastOffers | Self::Pages => 64,
            Self::Sources => 32,
            Self::LiveSecrets => 16,
            Self::ConsentedDocuments | Self::OtherDocuments => 4,
            Self::UnknownSecrets => 1,
        }
    }

    /// The entry that is forgotten first. What strangers put in takes the place of what was not used
    /// for longer, so that there is always room for the newest.
    fn policy(self) -> EvictionPolicy {
        match self {
            Self::ConsentedDocuments | Self::OtherDocuments | Self::UnknownSecrets => {
                EvictionPolicy::lru()
            }
            Self::Sessions
            | Self::Persons
            | Self::Connections
            | Self::ToolLists
            | Self::Offers
            | Self::LastOffers
            | Self::Pages
            | Self::Sources
            | Self::LiveSecrets => EvictionPolicy::tiny_lfu(),
        }
    }

    /// The cache, whose entries take as many bytes as `weight` tells.
    #[expect(clippy::disallowed_methods, reason = "the one place that makes caches")]
    pub(crate) fn make<K, V>(
        self,
        lifetime: Lifetime,
        weight: impl Fn(&K, &V) -> usize + Send + Sync + 'static,
    ) -> Cache<K, V>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let weight =
            move |key: &K, value: &V| u32::try_from(weight(key, value).max(1)).unwrap_or(u32::MAX);
        let cache = Cache::builder()
            .name(self.as_str())
            .max_capacity(self.mebibytes() << 20)
            .eviction_policy(self.policy())
            .weigher(weight);
        match lifetime {
            Lifetime::Unbounded => cache,
            Lifetime::Unused(time) => cache.time_to_idle(time),
            Lifetime::Whole(time) => cache.time_to_live(time),
        }
        .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [NodeCache; 12] = [
        NodeCache::Sessions,
        NodeCache::Persons,
        NodeCache::Connections,
        NodeCache::ToolLists,
        NodeCache::Offers,
        NodeCache::LastOffers,
        NodeCache::Pages,
        NodeCache::Sources,
        NodeCache::LiveSecrets,
        NodeCache::UnknownSecrets,
        NodeCache::ConsentedDocuments,
        NodeCache::OtherDocuments,
    ];

    #[test]
    fn every_cache_has_its_row_in_the_operators_guide() {
        let guide = include_str!("../../../../docs/operator.md");
        let (_, table) = guide.split_once("| Cache | MiB |\n|---|---|\n").unwrap();
        let (table, _) = table.split_once("\n\n").unwrap();
        let (variants, _) = include_str!("caches.rs").split_once("impl NodeCache").unwrap();

        let row = |it: &NodeCache| format!("| {} | {} |", it.as_str(), it.mebibytes());
        let rows: Vec<String> = ALL.iter().map(row).collect();

        assert_eq!(table.lines().collect::<Vec<_>>(), rows);
        assert_eq!(variants.matches(" = \"").count(), ALL.len(), "each variant is listed");
    }

    #[test]
    fn a_cache_holds_no_more_bytes_than_its_bound() {
        let cache =
            NodeCache::OtherDocuments.make(Lifetime::Unbounded, |_: &u32, bytes: &usize| *bytes);

        for number in 0..1_000 {
            cache.insert(number, 100 << 10);
            cache.run_pending_tasks();
        }

        assert!(cache.weighted_size() <= 4 << 20, "{}", cache.weighted_size());
        assert!(cache.get(&999).is_some(), "the newest is kept");
    }
}
