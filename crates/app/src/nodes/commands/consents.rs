//! Commands on consents to OAuth clients.

use portcullis_core::{
    audit::EventType,
    id::{ConsentId, OrgId},
};
use portcullis_store::ConsentPage;

use super::{Shell, ShellError};
use crate::identity::authorization::ConsentView;

/// Consents that are read at once.
const PAGE: u32 = 500;

impl Shell {
    /// The consents of an org, by id; only those that `search` finds, if it is given.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn consents(
        &self,
        org: OrgId,
        search: Option<&str>,
    ) -> Result<Vec<ConsentView>, ShellError> {
        let mut all = Vec::new();
        let mut page = ConsentPage { search, limit: PAGE, ..ConsentPage::default() };
        loop {
            let found = self.store.list_consents(org, page).await?;
            page.after = found.last().map(|last| last.id);
            let is_last = found.len() < PAGE as usize;
            all.extend(found.into_iter().map(ConsentView::from));
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Withdraws a consent, and revokes the tokens that came of it. Gives the number of those that were live.
    ///
    /// # Errors
    /// [`ShellError::NoConsent`]; a failure of the store or of the audit log.
    pub async fn withdraw_consent(&self, org: OrgId, id: ConsentId) -> Result<usize, ShellError> {
        if self.store.find_consent(org, id).await?.is_none() {
            return Err(ShellError::NoConsent(id.to_string()));
        }
        self.tell(EventType::ConsentWithdrawn, org, "consent", id).await?;
        Ok(self.store.withdraw_consent(org, id, self.clock.now()).await?)
    }
}
