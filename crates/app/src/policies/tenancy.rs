//! Policies shown to an org: those that can concern it.

use std::collections::BTreeSet;

use portcullis_core::{
    id::{OrgId, PrincipalId},
    policy::{OrgView, PolicySet},
    refusal::Refusal,
};

use super::Policies;

impl Policies {
    /// The org as policies can name it, when these principals are named.
    pub(crate) async fn org_view(
        &self,
        org: OrgId,
        named: &BTreeSet<PrincipalId>,
    ) -> Result<OrgView, Refusal> {
        let members = if named.is_empty() {
            Vec::new()
        } else {
            let found = self.base.store.principals_among(org, named).await;
            found?.into_keys().collect()
        };
        let foreign =
            self.catalogue.providers.values().filter(|provider| !provider.is_open_to(org));
        let foreign = foreign.map(|provider| provider.declared.slug.to_string());
        Ok(OrgView::new(org, members, foreign))
    }

    /// The org as the policies of this set name it.
    pub(crate) async fn org_view_of(
        &self,
        org: OrgId,
        set: &PolicySet,
    ) -> Result<OrgView, Refusal> {
        self.org_view(org, &set.named_principals()).await
    }
}
