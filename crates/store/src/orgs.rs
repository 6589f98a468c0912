//! The tenants and their plans.

use portcullis_core::{clock::Timestamp, id::OrgId, principal::Plan};

use crate::{
    db::{Row, Store, boxed, change, changed, find, list, read, record, run},
    error::{DriverError, StoreError},
};

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Org {
    pub id: OrgId,
    /// Its name for the operator; unique.
    pub name: String,
    pub plan: Plan,
    pub created_at: Timestamp,
    /// Since when none of its tokens is accepted, if so.
    pub disabled_at: Option<Timestamp>,
}

record!(Org in "orgs", |row| id, name, created_at, disabled_at,
    plan = plan_of(row, ["orgs.plan", "orgs.plan_requests", "orgs.plan_invocations"])?);

/// Reads back a plan from its three columns.
pub(crate) fn plan_of(row: Row<'_>, columns: [&'static str; 3]) -> Result<Plan, DriverError> {
    let [name, requests, invocations] = columns;
    let limit = |column| {
        let limit: Option<i64> = row.get(column)?;
        Ok::<_, DriverError>(limit.map(|limit| u32::try_from(limit).unwrap_or(0)))
    };
    let name: String = row.get(name)?;
    Plan::from_parts(&name, limit(requests)?, limit(invocations)?)
        .ok_or(DriverError::Corrupt("orgs.plan"))
}

fn limits(plan: Plan) -> (Option<i64>, Option<i64>) {
    match plan {
        Plan::Free | Plan::Pro => (None, None),
        Plan::Enterprise { requests, invocations } => {
            (Some(requests.get().into()), Some(invocations.get().into()))
        }
    }
}

impl Store {
    /// Adds an org, and the empty head of its audit log. Fails if its id or name exists.
    #[boxed]
    pub async fn create_org(&self, org: &Org) -> Result<(), StoreError> {
        let (requests, invocations) = limits(org.plan);
        change!(self, org.id, |tx| {
            run!(
                tx, "INSERT INTO orgs (id, name, plan, plan_requests, plan_invocations, created_at, \
                 disabled_at) VALUES ($1, $2, $3, $4, $5, $6, $7)"
                => org.id, &org.name, org.plan.name(), requests, invocations, org.created_at,
                org.disabled_at
            );
            run!(
                tx, "INSERT INTO audit_heads (org_id, size, last_position, last_recorded_at) \
                 VALUES ($1, 0, 0, 0)"
                => org.id
            );
        });
        Ok(())
    }

    /// The org with this id.
    #[boxed]
    pub async fn find_org(&self, id: OrgId) -> Result<Option<Org>, StoreError> {
        Ok(read!(self, unqueued id, |conn| {
            find!(conn, "SELECT * FROM orgs WHERE id = $1" => id)
        }))
    }

    /// The org with this name.
    #[boxed]
    pub async fn find_org_by_name(&self, name: &str) -> Result<Option<Org>, StoreError> {
        Ok(read!(self, installation, |conn| {
            find!(conn, "SELECT * FROM orgs WHERE name = $1" => name)
        }))
    }

    /// Every org, by id; for the operator, who stands above the tenants.
    #[boxed]
    pub async fn list_orgs(&self) -> Result<Vec<Org>, StoreError> {
        Ok(list!(self, installation, "SELECT * FROM orgs ORDER BY id"))
    }

    /// Gives the org another plan. `false` if there is no such org.
    #[boxed]
    pub async fn set_plan(&self, id: OrgId, plan: Plan) -> Result<bool, StoreError> {
        let (requests, invocations) = limits(plan);
        let set =
            "UPDATE orgs SET plan = $2, plan_requests = $3, plan_invocations = $4 WHERE id = $1";
        Ok(changed!(self, id, set => id, plan.name(), requests, invocations) > 0)
    }

    /// From now on none of the org's tokens is accepted. Keeps the moment of an earlier call.
    /// `false` if there is no such org.
    #[boxed]
    pub async fn disable_org(&self, id: OrgId, now: Timestamp) -> Result<bool, StoreError> {
        let disable = "UPDATE orgs SET disabled_at = COALESCE(disabled_at, $2) WHERE id = $1";
        Ok(changed!(self, id, disable => id, now) > 0)
    }

    /// The org's tokens are accepted again. `false` if there is no such org.
    #[boxed]
    pub async fn enable_org(&self, id: OrgId) -> Result<bool, StoreError> {
        Ok(changed!(self, id, "UPDATE orgs SET disabled_at = NULL WHERE id = $1" => id) > 0)
    }
}
