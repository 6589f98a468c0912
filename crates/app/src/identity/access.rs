//! Callers: their tokens and sessions, and trust rules.

pub(crate) mod keys;
pub(crate) mod proofs;
pub(crate) mod token_use;
pub(crate) mod tokens;
pub(crate) mod trust;
pub(crate) mod watch;

use std::sync::Arc;

use portcullis_core::{lifetime::GrantLife, refusal::Refusal, trust::DpopNonces};

use self::{proofs::Proofs, token_use::UsedTokens, tokens::Sessions, trust::Trust, watch::Watch};
use crate::{
    audit::Audit,
    base::{Base, cluster::Cluster},
    policies::{Policies, limits::Quotas},
    providers::Providers,
    request::screening::Screening,
};

/// Settings of access.
#[derive(Debug)]
pub struct AccessParts {
    pub trust: Trust,
    pub grant_life: GrantLife,
    /// The key of the nonces of proofs of possession.
    pub dpop_key: [u8; 32],
}

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
    proofs: Proofs,
}

impl Access {
    pub(crate) fn new(
        policies: &Policies,
        providers: &Arc<Providers>,
        cluster: Option<Arc<Cluster>>,
        AccessParts { trust, grant_life, dpop_key }: AccessParts,
    ) -> Self {
        let Policies { base, screening, audit, quotas, .. } = policies;
        let nonces = DpopNonces::new(&dpop_key, &*base.random);
        Self {
            base: Arc::clone(base),
            screening: Arc::clone(screening),
            audit: Arc::clone(audit),
            quotas: Arc::clone(quotas),
            providers: Arc::clone(providers),
            cluster,
            sessions: Sessions::new(),
            watch: Watch::new(),
            used_tokens: UsedTokens::default(),
            trust,
            grant_life,
            proofs: Proofs::new(nonces),
        }
    }

    /// Fails while this node cannot know what other nodes have revoked.
    pub(crate) fn in_touch(&self) -> Result<(), Refusal> {
        self.cluster.as_ref().map_or(Ok(()), |cluster| cluster.in_touch())
    }
}
