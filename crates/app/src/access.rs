//! Callers: their tokens and sessions, and trust rules.

pub(crate) mod keys;
pub(crate) mod token_use;
pub(crate) mod tokens;
pub(crate) mod trust;
pub(crate) mod watch;

use std::sync::Arc;

use portcullis_core::{lifetime::GrantLife, refusal::Refusal};

use self::{token_use::UsedTokens, tokens::Sessions, trust::Trust, watch::Watch};
use crate::{
    audit::Audit, base::Base, cluster::Cluster, foundation::Foundation, limits::Quotas,
    providers::Providers, screening::Screening,
};

/// Sessions of callers, and the tokens they come from.
#[derive(Debug)]
pub struct Access {
    pub(crate) base: Arc<Base>,
    screening: Arc<Screening>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    providers: Arc<Providers>,
    cluster: Option<Arc<Cluster>>,
    sessions: Sessions,
    watch: Watch,
    pub(crate) used_tokens: UsedTokens,
    trust: Trust,
    grant_life: GrantLife,
}

impl Access {
    pub(crate) fn new(
        foundation: &Foundation,
        providers: &Arc<Providers>,
        cluster: Option<Arc<Cluster>>,
        trust: Trust,
        grant_life: GrantLife,
    ) -> Self {
        let Foundation { base, screening, audit, quotas, .. } = foundation.clone();
        Self {
            base,
            screening,
            audit,
            quotas,
            providers: Arc::clone(providers),
            cluster,
            sessions: Sessions::new(),
            watch: Watch::new(),
            used_tokens: UsedTokens::default(),
            trust,
            grant_life,
        }
    }

    /// Fails while this node cannot know what other nodes have revoked.
    pub(crate) fn in_touch(&self) -> Result<(), Refusal> {
        self.cluster.as_ref().map_or(Ok(()), |cluster| cluster.in_touch())
    }
}
