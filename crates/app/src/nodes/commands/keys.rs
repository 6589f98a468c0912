//! Commands on the public keys of service accounts.

use portcullis_core::{
    audit::EventType,
    id::{PrincipalId, PrincipalKind},
    trust::PublicKey,
};
use portcullis_store::{KeyAdded, MAX_PRINCIPAL_KEYS, PrincipalKey};

use super::{Shell, ShellError};
use crate::identity::access::keys::target;

impl Shell {
    /// The keys of a service account, the oldest first.
    pub async fn principal_keys(&self, id: PrincipalId) -> Result<Vec<PrincipalKey>, ShellError> {
        let principal = self.principal(id).await?;
        Ok(self.store.list_principal_keys(principal.org_id, id).await?)
    }

    /// Registers a key for a service account. The same key again is no error.
    pub async fn add_principal_key(
        &self,
        id: PrincipalId,
        key: PublicKey,
    ) -> Result<PrincipalKey, ShellError> {
        if id.kind() != PrincipalKind::Service {
            return Err(ShellError::KeyOfUser);
        }
        let principal = self.principal(id).await?;
        let known = self.store.list_principal_keys(principal.org_id, id).await?;
        if let Some(known) = known.iter().find(|it| it.key.thumbprint() == key.thumbprint()) {
            return Ok(known.clone());
        }
        if known.len() >= MAX_PRINCIPAL_KEYS {
            return Err(ShellError::TooManyKeys);
        }
        let name = target(id, key.thumbprint());
        let new = PrincipalKey {
            org_id: principal.org_id,
            principal_id: id,
            key,
            created_at: self.clock.now(),
            last_used_at: None,
        };
        self.tell(EventType::PrincipalKeyAdded, principal.org_id, "principal_key", name).await?;
        match self.store.add_principal_key(&new).await? {
            KeyAdded::Done | KeyAdded::Known => Ok(new),
            KeyAdded::Full => Err(ShellError::TooManyKeys),
        }
    }

    /// Removes a key and revokes the tokens that it bought; running nodes follow within 5 seconds.
    /// Gives the number of tokens that were live.
    pub async fn remove_principal_key(
        &self,
        id: PrincipalId,
        thumbprint: &str,
    ) -> Result<u64, ShellError> {
        let org = self.principal(id).await?.org_id;
        let keys = self.store.list_principal_keys(org, id).await?;
        let unknown = || ShellError::NoKey(thumbprint.to_owned());
        let known = keys.iter().find(|it| it.key.thumbprint() == thumbprint);
        let thumbprint = known.ok_or_else(unknown)?.key.thumbprint();
        let name = target(id, thumbprint);
        self.tell(EventType::PrincipalKeyRemoved, org, "principal_key", name).await?;
        let now = self.clock.now();
        let removed = self.store.remove_principal_key(org, id, thumbprint, now).await?;
        removed.ok_or_else(unknown)
    }
}
