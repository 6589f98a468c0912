//! Sealed parts of a connection: its credential and the scopes of it.

use portcullis_core::{refusal::Refusal, secret::Secret};
use portcullis_store::{
    CONNECTION, CREDENTIAL, ProviderRecord, ProviderStatus, SealedSecret, StoreError, UnreadableRow,
};
use portcullis_upstream as upstream;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::{Providers, vault::SecretPlace};
use crate::catalogue::auth::Auth;

/// A credential as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct StoredCredential {
    /// Credential of calls: an access token or a key.
    pub(crate) token: Secret,
    pub(crate) refresh: Option<Secret>,
    /// The MCP server it is for: it is shown to no other.
    pub(crate) server: String,
    /// The authorization server that granted it, and what the gateway is called there.
    pub(crate) issuer: Option<String>,
    pub(crate) client_id: Option<String>,
    /// The `resource` it was asked for.
    pub(crate) resource: Option<String>,
    /// The same for all that came of one consent.
    pub(crate) consent: String,
}

/// The content of the place of a connection's credential.
pub(crate) enum CredentialPlace {
    Absent,
    Whole(StoredCredential),
    /// Something that cannot be read: it was changed, or its key is not there.
    Unreadable,
}

impl CredentialPlace {
    /// The credential, if it can be read.
    pub(crate) fn whole(self) -> Option<StoredCredential> {
        match self {
            Self::Whole(credential) => Some(credential),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

impl StoredCredential {
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let text = |secret: &Option<Secret>| secret.as_ref().map(|it| it.expose().to_owned());
        let value = json!({
            "token": self.token.expose(),
            "refresh": text(&self.refresh),
            "server": self.server,
            "issuer": self.issuer,
            "client_id": self.client_id,
            "resource": self.resource,
            "consent": self.consent,
        });
        Zeroizing::new(value.to_string().into_bytes())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let members: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            token: Secret::new(text("token")?),
            refresh: text("refresh").map(Secret::new),
            server: text("server")?,
            issuer: text("issuer"),
            client_id: text("client_id"),
            resource: text("resource"),
            consent: text("consent")?,
        })
    }

    /// As it goes upstream; `None` if the provider does not take it any more, or is another one
    /// by now.
    pub(crate) fn header(&self, auth: &Auth, server: &str) -> Option<upstream::Credential> {
        if self.server != server {
            return None;
        }
        auth.header(&self.token)
    }
}

impl Providers {
    /// Seals the credential of a connection.
    pub(crate) fn sealed_credential(
        &self,
        org: &str,
        row: &str,
        credential: &StoredCredential,
    ) -> Result<SealedSecret, Refusal> {
        let kept = SecretPlace { org, kind: CONNECTION, row, field: CREDENTIAL };
        self.sealed(&kept, &credential.encode())
    }

    /// The credential of a connection. One that cannot be read is told by name and concerns no
    /// other connection; only a store that does not answer is a failure.
    pub(crate) async fn stored_credential(
        &self,
        record: &ProviderRecord,
    ) -> Result<CredentialPlace, Refusal> {
        let unreadable = |why: String| {
            let org = record.org_id;
            let row = record.id;
            let slug = &record.slug;
            let row = format!("org_id {org} kind {CONNECTION} row_id {row} provider {slug}");
            self.base.store.left_out(UnreadableRow { table: "secrets", row, why });
            Ok(CredentialPlace::Unreadable)
        };
        let secret = match self.base.store.credential_of(record.org_id, record.id).await {
            Ok(Some(secret)) => secret,
            Ok(None) => return Ok(CredentialPlace::Absent),
            Err(error @ StoreError::Corrupt(_)) => return unreadable(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        match self.open(&secret) {
            Ok(bytes) => match StoredCredential::decode(&bytes) {
                Some(credential) => Ok(CredentialPlace::Whole(credential)),
                None => unreadable("it opens, and is no credential".to_owned()),
            },
            Err(error) => unreadable(error.to_string()),
        }
    }

    /// Says of a connection that its credential cannot be read, until it is connected again.
    pub(crate) async fn mark_unreadable(&self, record: &mut ProviderRecord) {
        match record.status {
            ProviderStatus::Connected | ProviderStatus::Error => {
                self.mark(record, ProviderStatus::Error, Some(UNREADABLE)).await;
            }
            // A person has to connect it anyway.
            ProviderStatus::NeedsAuth | ProviderStatus::Pending | ProviderStatus::Starting => {}
        }
    }

    /// Takes that back: its key was missing, and is there again.
    pub(crate) async fn unmark_unreadable(&self, record: &mut ProviderRecord) {
        if record.is_marked_unreadable() {
            self.mark(record, ProviderStatus::Connected, None).await;
        }
    }

    async fn mark(
        &self,
        record: &mut ProviderRecord,
        status: ProviderStatus,
        why: Option<&'static str>,
    ) {
        if record.status == status && record.last_error.as_deref() == why {
            return;
        }
        let org = record.org_id;
        let id = record.id;
        let revision = record.revision;
        let now = self.base.clock.now();
        let set = self.base.store.set_status_of(org, id, revision, status, why, now).await;
        if let Err(error) = set {
            error.log();
        }
        record.status = status;
        record.last_error = why.map(str::to_owned);
    }
}

/// The last error of a connection whose credential cannot be read.
const UNREADABLE: &str = "the stored credential cannot be read: connect it again";

/// Connections that said so when they were last looked at.
pub(crate) trait Marked {
    fn is_marked_unreadable(&self) -> bool;
}

impl Marked for ProviderRecord {
    fn is_marked_unreadable(&self) -> bool {
        self.status == ProviderStatus::Error && self.last_error.as_deref() == Some(UNREADABLE)
    }
}
