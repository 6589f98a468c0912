//! Places of the configuration that name orgs and principals, by their ids or by their names.

use portcullis_core::id::{OrgId, PrincipalId};

/// A place that names an org, and principals of it.
#[derive(Debug)]
pub(crate) struct NamedOrg<'a> {
    /// The place, for people.
    pub(crate) place: String,
    pub(crate) org: &'a mut String,
    pub(crate) principals: Vec<&'a mut String>,
}

impl NamedOrg<'_> {
    pub(super) fn has_names(&self) -> bool {
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
