//! Logins by a link of the operator: `portcullis login-link`.

use std::{collections::BTreeSet, sync::Arc};

use portcullis_core::{
    audit::{Actor, Auth, EventType},
    browser_session::BrowserSecret,
    principal::AuthMethod,
    refusal::Refusal,
    trust::CredentialCheck,
};
use portcullis_store::LoginLink;

use super::{Logins, OpenedSession, sessions::ProvedPerson};
use crate::{base::tenants::sources::LookUp, policies::limits::Refused, request::Origin};

/// Refusal of a link that logs no person in.
const WORTHLESS: Refusal = Refusal::InvalidCredential { check: CredentialCheck::Replay };

impl Logins {
    /// Name and org of the person whom a link logs in. Nothing is used up. `None` if the link was
    /// used, is too old or never was one, which is charged to the source.
    pub async fn linked(
        &self,
        secret: &BrowserSecret,
        origin: &Origin,
    ) -> Result<Option<(String, String)>, Refused> {
        let found = self.find_linked(secret, origin).await;
        match found.map_err(|refusal| self.quotas.charged(refusal, origin))? {
            Some(found) => Ok(Some(found)),
            None => self.charge(origin).map(|()| None),
        }
    }

    async fn find_linked(
        &self,
        secret: &BrowserSecret,
        origin: &Origin,
    ) -> Result<Option<(String, String)>, Refusal> {
        if !self.links || !self.quotas.may_look_up(LookUp::Code, origin) {
            return Ok(None);
        }
        let store = &self.base.store;
        let link = store.find_login_link(&secret.hash(), self.base.now()).await?;
        let Some(LoginLink { org_id, principal_id, .. }) = link else { return Ok(None) };
        let org = store.find_org(org_id).await?;
        let principal = store.find_principal(org_id, principal_id).await?;
        Ok(principal.zip(org).map(|(principal, org)| (principal.name, org.name)))
    }

    /// Logs a person in by a link, which is used up by that. `None` if it logs no person in, which is
    /// charged to the source.
    pub async fn log_in_by_link(
        self: &Arc<Self>,
        secret: BrowserSecret,
        replaced: Option<BrowserSecret>,
        origin: &Origin,
    ) -> Result<Option<OpenedSession>, Refused> {
        let may = self.quotas.may_look_up(LookUp::Code, origin);
        let opened = if self.links && may {
            let this = Arc::clone(self);
            let from = origin.clone();
            let work = async move { this.use_link(&secret, replaced.as_ref(), &from).await };
            self.uncancelled(work).await.map_err(|refusal| self.quotas.charged(refusal, origin))?
        } else {
            None
        };
        match opened {
            Some(opened) => Ok(Some(opened)),
            None => self.charge(origin).map(|()| None),
        }
    }

    async fn use_link(
        &self,
        secret: &BrowserSecret,
        replaced: Option<&BrowserSecret>,
        origin: &Origin,
    ) -> Result<Option<OpenedSession>, Refusal> {
        let now = self.base.now();
        let link = self.base.store.take_login_link(&secret.hash(), now).await?;
        let Some(LoginLink { org_id, principal_id, .. }) = link else { return Ok(None) };
        let proved = ProvedPerson {
            org_id,
            principal_id,
            method: AuthMethod::Operator,
            issuer: None,
            login: None,
            acr: None,
            amr: BTreeSet::new(),
            auth_time: now,
            once: Vec::new(),
        };
        let opened = self.open(proved, replaced, origin).await?;
        if opened.is_none() {
            let actor = Actor {
                auth: Auth { method: "operator", trust: None },
                id: Some(principal_id),
                kind: principal_id.kind().as_str(),
                ..Actor::system()
            };
            self.audit.note_refused(EventType::LoginFailed, org_id, actor, &WORTHLESS, origin);
        }
        Ok(opened)
    }
}
