//! A link that logs a person in once.

use portcullis_core::{
    audit::EventType,
    browser_session::{BrowserSecret, LINK_LIFE},
    clock::Timestamp,
    id::PrincipalKind,
};
use portcullis_store::{LoginLink, Principal};

use super::{Operator, OperatorError};

/// A link that was just made; the only moment its secret is known.
#[derive(Debug)]
pub struct NewLoginLink {
    pub secret: BrowserSecret,
    pub expires_at: Timestamp,
}

impl Operator {
    /// Makes a link that logs the person in with one browser, within five minutes. Refuses service
    /// accounts and principals that are disabled.
    pub async fn login_link(&self, principal: &Principal) -> Result<NewLoginLink, OperatorError> {
        if principal.id.kind() != PrincipalKind::User {
            return Err(OperatorError::NotAPerson(principal.name.clone()));
        }
        if principal.disabled_at.is_some() {
            return Err(OperatorError::Disabled(principal.id.to_string()));
        }
        let secret = BrowserSecret::generate(&*self.random);
        let expires_at = self.clock.now().plus_seconds(LINK_LIFE);
        let link = LoginLink { org_id: principal.org_id, principal_id: principal.id, expires_at };
        self.tell(EventType::LoginLinkIssued, principal.org_id, "principal", principal.id).await?;
        self.store.insert_login_link(link, &secret.hash()).await?;
        Ok(NewLoginLink { secret, expires_at })
    }
}
