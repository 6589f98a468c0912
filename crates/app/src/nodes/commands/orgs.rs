//! The org that a command names.

use portcullis_core::id::OrgId;
use portcullis_store::Org;

use super::{Operator, OperatorError};

impl Operator {
    /// The org with this id or name.
    pub async fn org(&self, id_or_name: &str) -> Result<Org, OperatorError> {
        let found = match id_or_name.parse::<OrgId>() {
            Ok(id) => self.store.find_org(id).await?,
            Err(_) => self.store.find_org_by_name(id_or_name).await?,
        };
        found.ok_or_else(|| OperatorError::NoOrg(id_or_name.to_owned()))
    }

    /// The org with this id or name; the only one there is where none is named.
    pub async fn org_or_only(&self, named: Option<&str>) -> Result<Org, OperatorError> {
        if let Some(id_or_name) = named {
            return self.org(id_or_name).await;
        }
        let mut all = self.store.list_orgs().await?;
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) => Err(OperatorError::OrgNotNamed),
            (None, _) => Err(OperatorError::NoOrgs),
        }
    }
}
