//! Clients that the gateway registered by itself at authorization servers.

use portcullis_core::clock::Timestamp;

use crate::{
    db::{Store, all, boxed, change, find, read, record, run},
    error::StoreError,
    secrets::{SealedSecret, drop_secrets, put_secret},
};

/// Kind under which secrets of clients are stored, without an org.
pub const CLIENT: &str = "client";

/// A registration of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthClient {
    /// At whom, exactly.
    pub issuer: String,
    pub redirect_uri: String,
    /// The id under which its secret is kept, if it has one.
    pub id: String,
    pub client_id: String,
    /// Authentication method at the token endpoint.
    pub method: String,
    pub registered_at: Timestamp,
    /// When its secret ends.
    pub expires_at: Option<Timestamp>,
}

record!(OAuthClient in "oauth_clients", |row| issuer, redirect_uri, id, client_id, method,
    registered_at, expires_at);

impl Store {
    /// The installation's client at an issuer, for this redirect URI.
    #[boxed]
    pub async fn find_oauth_client(
        &self,
        issuer: &str,
        redirect_uri: &str,
    ) -> Result<Option<OAuthClient>, StoreError> {
        let find = "SELECT * FROM oauth_clients WHERE issuer = $1 AND redirect_uri = $2";
        Ok(read!(self, installation, |conn| find!(conn, find => issuer, redirect_uri)))
    }

    /// Remembers a registration in the place of the one before.
    #[boxed]
    pub async fn keep_oauth_client(
        &self,
        client: &OAuthClient,
        secret: Option<&SealedSecret>,
    ) -> Result<(), StoreError> {
        change!(self, installation, |tx| {
            run!(tx, KEEP => &client.issuer, &client.redirect_uri, &client.id, &client.client_id,
                &client.method, client.registered_at, client.expires_at);
            if let Some(secret) = secret {
                put_secret(&mut tx, secret).await?;
            }
        });
        Ok(())
    }

    /// Forgets a registration, with its secret. Fails if it is not the one that is remembered.
    #[boxed]
    pub async fn forget_oauth_client(
        &self,
        issuer: &str,
        client_id: &str,
    ) -> Result<bool, StoreError> {
        Ok(change!(self, installation, |tx| {
            let ids: Vec<String> = all!(tx, scalar FORGET => issuer, client_id);
            for id in &ids {
                drop_secrets(&mut tx, "", CLIENT, id).await?;
            }
            !ids.is_empty()
        }))
    }
}

const FORGET: &str = "DELETE FROM oauth_clients WHERE issuer = $1 AND client_id = $2 RETURNING id";

const KEEP: &str = "
INSERT INTO oauth_clients (issuer, redirect_uri, id, client_id, method, registered_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (issuer, redirect_uri) DO UPDATE SET id = excluded.id,
    client_id = excluded.client_id, method = excluded.method,
    registered_at = excluded.registered_at, expires_at = excluded.expires_at";
