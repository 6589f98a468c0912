//! Commands on logins of people: a link that logs one in once, and their browser sessions.

use portcullis_core::{
    audit::EventType,
    browser_session::{BrowserSecret, LINK_LIFE},
    clock::Timestamp,
    id::{OrgId, PrincipalId, PrincipalKind, SessionId},
};
use portcullis_store::{BrowserSession, LoginLink, Principal, SessionPage};

use super::{Shell, ShellError};

/// A link that was just made; the only moment its secret is known.
#[derive(Debug)]
pub struct NewLoginLink {
    pub secret: BrowserSecret,
    pub expires_at: Timestamp,
}

impl Shell {
    /// Makes a link that logs the person in with one browser, within five minutes. Refuses service
    /// accounts and principals that are disabled.
    pub async fn login_link(&self, principal: &Principal) -> Result<NewLoginLink, ShellError> {
        if principal.id.kind() != PrincipalKind::User {
            return Err(ShellError::NotAPerson(principal.name.clone()));
        }
        if principal.disabled_at.is_some() {
            return Err(ShellError::Disabled(principal.id.to_string()));
        }
        let secret = BrowserSecret::generate(&*self.random);
        let expires_at = self.clock.now().plus_seconds(LINK_LIFE);
        let link = LoginLink { org_id: principal.org_id, principal_id: principal.id, expires_at };
        self.tell(EventType::LoginLinkIssued, principal.org_id, "principal", principal.id).await?;
        self.store.insert_login_link(link, &secret.hash()).await?;
        Ok(NewLoginLink { secret, expires_at })
    }

    /// The browser sessions of the org that have not ended, by their beginning; only those of one
    /// principal, or those that `search` finds, if it is given.
    pub async fn sessions(
        &self,
        org: OrgId,
        principal_id: Option<PrincipalId>,
        search: Option<&str>,
    ) -> Result<Vec<BrowserSession>, ShellError> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let now = self.clock.now();
            let page = SessionPage { search, principal_id, after, limit: 500, now };
            let page = self.store.list_sessions(org, page).await?;
            // A short page is not the last: rows that cannot be read are left out of it.
            let Some(last) = page.last() else { return Ok(all) };
            after = Some(last.id);
            all.extend(page);
        }
    }

    /// Ends a browser session in whichever org it is. Running nodes follow within 5 seconds.
    pub async fn end_session(&self, id: SessionId) -> Result<(), ShellError> {
        let now = self.clock.now();
        for org in self.store.list_orgs().await? {
            let found = self.store.find_session(org.id, id).await?;
            let live = |it: &BrowserSession| it.ended_at.is_none() && it.ends_at > now;
            if found.is_some_and(|session| live(&session)) {
                self.tell(EventType::SessionEnded, org.id, "session", id).await?;
                self.store.end_session(org.id, id, now).await?;
                return Ok(());
            }
        }
        Err(ShellError::NoSession(id.to_string()))
    }
}
