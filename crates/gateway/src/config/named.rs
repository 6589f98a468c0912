//! Places of the configuration that name orgs and principals, by their ids or by their names.

use portcullis_core::id::{OrgId, PrincipalId};

use super::{Config, Provider, TrustEntry};

/// A place that names an org, and principals of it.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    /// The place, for people.
    pub(crate) place: String,
    pub(crate) org: &'a mut String,
    pub(crate) principals: Vec<&'a mut String>,
}

impl Named<'_> {
    fn has_names(&self) -> bool {
        !is_org(self.org) || self.principals.iter().any(|principal| !is_principal(principal))
    }
}

/// True if this is the id of an org, and not its name.
pub(crate) fn is_org(text: &str) -> bool {
    text.parse::<OrgId>().is_ok()
}

/// True if this is the id of a principal, and not its name.
pub(crate) fn is_principal(text: &str) -> bool {
    text.parse::<PrincipalId>().is_ok()
}

impl Config {
    /// The places that name an org or a principal by something else than an id.
    pub(crate) fn named(&mut self) -> Vec<Named<'_>> {
        let providers = self.providers.iter_mut().filter_map(Provider::named);
        let trust = self.trust.iter_mut().map(TrustEntry::named);
        providers.chain(trust).filter(Named::has_names).collect()
    }
}
