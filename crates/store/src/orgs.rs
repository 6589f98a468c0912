//! The tenants and their plans.

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, id::OrgId, principal::Plan};

use crate::{
    Store,
    db::{Found, Readable, all, change, find, parse, read, row, run},
    error::StoreError,
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

row!(OrgRow {
    id: String,
    name: String,
    plan: String,
    plan_requests: Option<i64>,
    plan_invocations: Option<i64>,
    created_at: i64,
    disabled_at: Option<i64>,
});

impl Readable for OrgRow {
    const TABLE: &'static str = "orgs";
    type Record = Org;

    fn read(self) -> Result<Org, StoreError> {
        Ok(Org {
            id: parse(&self.id, "orgs.id")?,
            plan: plan_of(&self.plan, self.plan_requests, self.plan_invocations)?,
            name: self.name,
            created_at: Timestamp::from_micros(self.created_at),
            disabled_at: self.disabled_at.map(Timestamp::from_micros),
        })
    }
}

/// Reads back a plan from its three columns.
pub(crate) fn plan_of(
    name: &str,
    requests: Option<i64>,
    invocations: Option<i64>,
) -> Result<Plan, StoreError> {
    let limit = |limit: i64| u32::try_from(limit).unwrap_or(0);
    Plan::from_parts(name, requests.map(limit), invocations.map(limit))
        .ok_or(StoreError::Corrupt("orgs.plan"))
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
        let row: Option<OrgRow> =
            read!(self, unqueued id, |conn| find!(conn, "SELECT * FROM orgs WHERE id = $1" => id));
        row.map(OrgRow::read).transpose()
    }

    /// The org with this name.
    #[boxed]
    pub async fn find_org_by_name(&self, name: &str) -> Result<Option<Org>, StoreError> {
        let row: Option<OrgRow> = read!(self, installation, |conn| {
            find!(conn, "SELECT * FROM orgs WHERE name = $1" => name)
        });
        row.map(OrgRow::read).transpose()
    }

    /// Every org, by id; for the operator, who stands above the tenants.
    #[boxed]
    pub async fn list_orgs(&self) -> Result<Vec<Org>, StoreError> {
        let rows: Vec<Found<OrgRow>> =
            read!(self, installation, |conn| all!(conn, "SELECT * FROM orgs ORDER BY id"));
        Ok(self.readable(rows))
    }

    /// Gives the org another plan. `false` if there is no such org.
    #[boxed]
    pub async fn set_plan(&self, id: OrgId, plan: Plan) -> Result<bool, StoreError> {
        let (requests, invocations) = limits(plan);
        let changed = change!(self, id, |tx| {
            run!(
                tx, "UPDATE orgs SET plan = $2, plan_requests = $3, plan_invocations = $4 WHERE id = $1" =>
                id, plan.name(), requests, invocations
            )
        });
        Ok(changed > 0)
    }

    /// From now on none of the org's tokens is accepted. Keeps the moment of an earlier call.
    /// `false` if there is no such org.
    #[boxed]
    pub async fn disable_org(&self, id: OrgId, now: Timestamp) -> Result<bool, StoreError> {
        let changed = change!(self, id, |tx| {
            run!(tx, "UPDATE orgs SET disabled_at = COALESCE(disabled_at, $2) WHERE id = $1" =>
                id, now)
        });
        Ok(changed > 0)
    }

    /// The org's tokens are accepted again. `false` if there is no such org.
    #[boxed]
    pub async fn enable_org(&self, id: OrgId) -> Result<bool, StoreError> {
        let changed = change!(self, id, |tx| {
            run!(tx, "UPDATE orgs SET disabled_at = NULL WHERE id = $1" => id)
        });
        Ok(changed > 0)
    }
}
