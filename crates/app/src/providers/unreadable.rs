//! A look at everything that is stored and read row by row, for the operator: what cannot be read?

use std::collections::BTreeSet;

use portcullis_core::id::OrgId;
use portcullis_store::{
    CONNECTION, Pin, PinVersion, SealedSecret, StoreError, TokenPage, UnreadableRow,
};

use super::{Providers, credentials::StoredCredential, vault::unopened};

/// Rows that are read at once.
const PAGE: u32 = 500;

impl Providers {
    /// Every row that cannot be read and every sealed value that does not open, by name. What a
    /// running node meets of them it leaves out; here they are looked for.
    pub async fn unreadable(&self) -> Result<BTreeSet<UnreadableRow>, StoreError> {
        for org in self.base.store.list_orgs().await? {
            self.read_org(org.id).await?;
        }
        self.read_secrets().await?;
        self.read_pins().await?;
        self.base.store.expired_attempts(self.base.clock.now(), PAGE).await?;
        self.base.store.abandoned_intents(PAGE).await?;
        Ok(self.base.store.take_unreadable())
    }

    async fn read_org(&self, org: OrgId) -> Result<(), StoreError> {
        self.base.store.list_providers(org).await?;
        self.base.store.list_principals(org).await?;
        let mut after = None;
        loop {
            let page = TokenPage { principal_id: None, after, limit: PAGE };
            let tokens = self.base.store.list_tokens(org, page).await?;
            let Some(last) = tokens.last() else { return Ok(()) };
            after = Some(last.id);
        }
    }

    async fn read_secrets(&self) -> Result<(), StoreError> {
        let mut after: Option<SealedSecret> = None;
        loop {
            let page = self.base.store.secrets_not_under("", after.as_ref(), PAGE).await?;
            for secret in &page {
                self.read_secret(secret);
            }
            let Some(last) = page.into_iter().next_back() else { return Ok(()) };
            after = Some(last);
        }
    }

    fn read_secret(&self, secret: &SealedSecret) {
        match self.open(secret) {
            Err(error) => self.base.store.left_out(unopened(secret, &error)),
            Ok(plain)
                if secret.kind == CONNECTION && StoredCredential::decode(&plain).is_none() =>
            {
                let row =
                    format!("org_id {} kind {CONNECTION} row_id {}", secret.org_id, secret.row_id);
                let why = "it opens, and is no credential".to_owned();
                self.base.store.left_out(UnreadableRow { table: "secrets", row, why });
            }
            Ok(_) => {}
        }
    }

    async fn read_pins(&self) -> Result<(), StoreError> {
        let mut after: Option<Pin> = None;
        loop {
            let beyond = after.as_ref().map(|pin| (&pin.tool, pin.org));
            let page = self.base.store.page_pins(beyond, PAGE).await?;
            let unreadable = |pin: &&Pin| {
                pin.accepted.as_ref().is_some_and(|it| it.version == PinVersion::UNREADABLE)
            };
            for pin in page.iter().filter(unreadable) {
                let row = format!("capability_id {}", pin.tool);
                let why = "what was accepted of the tool cannot be read".to_owned();
                self.base.store.left_out(UnreadableRow { table: "capability_pins", row, why });
            }
            let Some(last) = page.into_iter().next_back() else { return Ok(()) };
            after = Some(last);
        }
    }
}
