//! Commands on orgs.

use portcullis_core::{audit::EventType, id::OrgId, principal::Plan};
use portcullis_store::{Org, StoreError};

use super::{Operator, OperatorError};
use crate::identity::directory::check_name;

/// Change of an org by the operator.
#[derive(Debug, Clone, Copy)]
pub enum OrgChange {
    Plan(Plan),
    /// From now on none of its tokens is accepted.
    Disabled,
    /// Its tokens are accepted again, those that have not ended meanwhile.
    Enabled,
}

impl Operator {
    /// Makes an org.
    pub async fn create_org(&self, name: &str, plan: Plan) -> Result<Org, OperatorError> {
        check_name(name)?;
        let org = Org {
            id: OrgId::new(self.ids()),
            name: name.to_owned(),
            plan,
            created_at: self.clock.now(),
            disabled_at: None,
        };
        match self.store.create_org(&org).await {
            Ok(()) => {
                self.tell(EventType::OrgChanged, org.id, "org", org.id).await?;
                Ok(org)
            }
            Err(StoreError::Conflict(_)) => Err(OperatorError::Taken(name.to_owned())),
            Err(error) => Err(error.into()),
        }
    }

    /// Every org.
    pub async fn orgs(&self) -> Result<Vec<Org>, OperatorError> {
        Ok(self.store.list_orgs().await?)
    }

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

    /// Changes the org with this id or name, and gives it as it is then; running nodes follow within 5 seconds.
    pub async fn change_org(
        &self,
        id_or_name: &str,
        change: OrgChange,
    ) -> Result<Org, OperatorError> {
        let id = self.org(id_or_name).await?.id;
        self.tell(EventType::OrgChanged, id, "org", id).await?;
        match change {
            OrgChange::Plan(plan) => self.store.set_plan(id, plan).await?,
            OrgChange::Disabled => self.store.disable_org(id, self.clock.now()).await?,
            OrgChange::Enabled => self.store.enable_org(id).await?,
        };
        self.org(&id.to_string()).await
    }
}
