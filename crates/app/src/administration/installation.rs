//! Use cases of the operator of the installation, which no token opens: orgs, and links that log a person in.

use portcullis_core::{
    audit::EventType,
    browser_session::{BrowserSecret, LINK_LIFE},
    clock::Timestamp,
    id::PrincipalKind,
    principal::Plan,
    refusal::Refusal,
};
use portcullis_store::{LoginLink, Org, Principal, StoreError};

use super::{Administration, broken};
use crate::{identity::directory::check_name, request::Ctx};

/// Change of an org by the operator.
#[derive(Debug, Clone, Copy)]
pub enum OrgChange {
    Plan(Plan),
    /// From now on none of its tokens is accepted.
    Disabled,
    /// Its tokens are accepted again, those that have not ended meanwhile.
    Enabled,
}

/// A link that was just made; the only moment its secret is known.
#[derive(Debug)]
pub struct NewLoginLink {
    pub secret: BrowserSecret,
    pub principal: Principal,
    pub expires_at: Timestamp,
}

impl Administration {
    /// Every org.
    pub async fn orgs(&self) -> Result<Vec<Org>, Refusal> {
        Ok(self.base.store.list_orgs().await?)
    }

    /// Makes the org that the caller is of, whose id is a new one.
    pub async fn create_org(&self, ctx: &Ctx, name: String, plan: Plan) -> Result<Org, Refusal> {
        check_name(&name).map_err(broken)?;
        let id = ctx.caller().org_id;
        let org = Org { id, name, plan, created_at: self.base.now(), disabled_at: None };
        match self.base.store.create_org(&org).await {
            Ok(()) => self.record_org_change(ctx).await.map(|()| org),
            Err(StoreError::Conflict(_)) => Err(Refusal::bad_request(format!(
                "There is an org `{}` already; names are unique in an installation.",
                org.name
            ))),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes the caller's org, and gives it as it is then; running nodes follow within 5 seconds.
    pub async fn change_org(&self, ctx: &Ctx, change: OrgChange) -> Result<Org, Refusal> {
        let (store, id) = (&self.base.store, ctx.caller().org_id);
        self.record_org_change(ctx).await?;
        match change {
            OrgChange::Plan(plan) => store.set_plan(id, plan).await?,
            OrgChange::Disabled => store.disable_org(id, self.base.now()).await?,
            OrgChange::Enabled => store.enable_org(id).await?,
        };
        self.found_org(ctx).await
    }

    async fn record_org_change(&self, ctx: &Ctx) -> Result<(), Refusal> {
        let org = ctx.caller().org_id;
        self.audit.record(self.event(ctx, EventType::OrgChanged, "org", org, None)).await
    }

    /// Makes a link that logs the person in with one browser, within five minutes. Refuses service
    /// accounts and principals that are disabled.
    pub async fn login_link(&self, ctx: &Ctx, id: &str) -> Result<NewLoginLink, Refusal> {
        let principal = self.found(ctx, id).await?;
        if principal.id.kind() != PrincipalKind::User {
            return Err(Refusal::bad_request(format!(
                "`{}` is a service account; people log in, and it has tokens (`portcullis token create`).",
                principal.name
            )));
        }
        if principal.disabled_at.is_some() {
            return Err(Refusal::bad_request(format!(
                "{id} is disabled: no login of it is accepted until `portcullis principal enable`."
            )));
        }
        let secret = BrowserSecret::generate(&*self.base.random);
        let expires_at = self.base.now().plus_seconds(LINK_LIFE);
        let link = LoginLink { org_id: principal.org_id, principal_id: principal.id, expires_at };
        let event = self.event(ctx, EventType::LoginLinkIssued, "principal", principal.id, None);
        self.audit.record(event).await?;
        self.base.store.insert_login_link(link, &secret.hash()).await?;
        Ok(NewLoginLink { secret, principal, expires_at })
    }
}
