//! Commands that name users and service accounts.

use portcullis_core::id::PrincipalId;
use portcullis_store::Principal;

use super::{Operator, OperatorError};

impl Operator {
    /// Finds a principal by its id, or by its name in the org that is named or in whichever there
    /// is one of that name.
    pub async fn principal_of(
        &self,
        org: Option<&str>,
        id_or_name: &str,
    ) -> Result<Principal, OperatorError> {
        let orgs = match org {
            Some(named) => vec![self.org(named).await?],
            None => self.store.list_orgs().await?,
        };
        let id: Option<PrincipalId> = id_or_name.parse().ok();
        let mut found = Vec::new();
        let mut told = Vec::new();
        for org in orgs {
            let of_org = match id {
                Some(id) => self.store.find_principal(org.id, id).await?,
                None => self.store.find_principal_by_name(org.id, id_or_name).await?,
            };
            told.extend(of_org.iter().map(|it| format!("{} of `{}`", it.id, org.name)));
            found.extend(of_org);
        }
        let name = id_or_name.to_owned();
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) => Err(OperatorError::SeveralPrincipals { name, found: told }),
            (None, _) => Err(OperatorError::NoPrincipal(name)),
        }
    }
}
