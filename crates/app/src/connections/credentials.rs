//! What is sealed of a connection: its credential, and what it may be used for.

use portcullis_core::{refusal::Refusal, secret::Secret};
use portcullis_store::{CONNECTION, CREDENTIAL, ProviderRecord, SealedSecret};
use portcullis_upstream as upstream;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::{App, providers::Auth, vault::Kept};

/// A credential as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct StoredCredential {
    /// What goes with calls: an access token or a key.
    pub(crate) token: Secret,
    /// What gets the next one.
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

impl App {
    /// Seals the credential of a connection.
    pub(crate) fn sealed_credential(
        &self,
        org: &str,
        row: &str,
        credential: &StoredCredential,
    ) -> Result<SealedSecret, Refusal> {
        let kept = Kept { org, kind: CONNECTION, row, field: CREDENTIAL };
        self.sealed(&kept, &credential.encode())
    }

    /// The credential of a connection; `None` if it has none, or none that opens.
    pub(crate) async fn stored_credential(
        &self,
        record: &ProviderRecord,
    ) -> Result<Option<StoredCredential>, Refusal> {
        let found = self.store.credential_of(record.org_id, record.id).await;
        let found = found.map_err(|error| crate::store_failed(&error))?;
        let Some(secret) = found else { return Ok(None) };
        Ok(StoredCredential::decode(&self.opened(&secret)?))
    }
}
