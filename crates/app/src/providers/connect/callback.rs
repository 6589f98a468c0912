//! The browser comes back (RFC 6749 §4.1.2): its `state` is all it has, and good for once.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_core::{
    audit::{EventType, OutcomeStatus},
    oauth::{
        Confirmation, MAX_TOKEN_BYTES, ReturnTo, State, TokenGrant, TokenRefusal, is_same_issuer,
    },
    refusal::Refusal,
    secret::Secret,
};
use portcullis_store::{ATTEMPT, Attempt, Grant, NewCredential};
use portcullis_upstream::{Client, OAuthError};
use serde_json::{Value, json};

use super::{
    authorize::{AttemptState, BEGUN},
    events::{About, failed},
};
use crate::{
    base::tenants::sources::LookUp,
    catalogue::{auth::OAuthSettings, authorizer::Server, provider::Provider},
    policies::limits::Refused,
    providers::{Providers, credentials::StoredCredential, vault::SecretPlace},
    request::Origin,
};

/// The field of what was granted to an attempt.
pub(super) const GRANTED: &str = "granted";

/// Parameters that a browser brings; each at most once.
#[derive(Debug, Clone, Default)]
pub struct Callback {
    /// The one-time value of the attempt.
    pub state: Option<String>,
    pub code: Option<Secret>,
    /// Issuer that sent the browser (RFC 9207).
    pub iss: Option<String>,
    /// Error that came instead of a code.
    pub error: Option<String>,
}

/// Page to show a browser.
#[derive(Debug)]
pub enum CalledBack {
    /// Nothing is known of this state: it is wrong, old or used.
    Unknown,
    /// The browser is sent on to this address.
    Redirect(String),
    /// The code to bring back.
    Code {
        provider: String,
        code: Confirmation,
    },
    Done {
        provider: String,
    },
    /// The connect was refused, or failed.
    Failed {
        provider: String,
        /// In one of our words.
        error: &'static str,
    },
}

/// Reason that an attempt failed, in one word.
type Why = &'static str;

impl Providers {
    /// Takes a browser that comes back. An unknown state is charged to its source.
    pub async fn called_back(
        self: &Arc<Self>,
        callback: Callback,
        origin: &Origin,
    ) -> Result<CalledBack, Refused> {
        let this = Arc::clone(self);
        let from = origin.clone();
        let work = async move { this.take_back(callback, &from).await };
        let taken = self.base.uncancelled(work).await.unwrap_or_else(Err);
        match taken {
            Ok(CalledBack::Unknown) => {
                let refused =
                    self.quotas.charge_source(Refusal::bad_request("unknown state"), origin);
                let charged = matches!(refused.refusal, Refusal::InvalidRequest { .. });
                if charged { Ok(CalledBack::Unknown) } else { Err(refused) }
            }
            Ok(taken) => Ok(taken),
            Err(refusal) => Err(refusal.into()),
        }
    }

    async fn take_back(
        self: &Arc<Self>,
        callback: Callback,
        origin: &Origin,
    ) -> Result<CalledBack, Refusal> {
        let hash = callback.state.as_deref().and_then(State::hash_of);
        let Some(hash) = hash else { return Ok(CalledBack::Unknown) };
        if !self.quotas.may_look_up(LookUp::Code, origin) {
            return Ok(CalledBack::Unknown);
        }
        let attempt = self.base.store.call_attempt_back(&hash, self.base.clock.now()).await;
        let attempt = attempt?;
        let Some(attempt) = attempt else { return Ok(CalledBack::Unknown) };
        let Some((provider, begun)) = self.find_begun(&attempt).await? else {
            return Ok(CalledBack::Unknown);
        };
        let name = provider.declared.name.clone();
        let back = begun.return_to.as_deref().and_then(ReturnTo::from_stored);
        let id = attempt.provider_id.to_string();
        match self.redeem(&provider, &attempt, &begun, callback, origin).await? {
            Ok(None) => Ok(match back {
                Some(back) => CalledBack::Redirect(back.with(&[("provider_id", &id)])),
                None => CalledBack::Done { provider: name },
            }),
            Ok(Some(code)) => Ok(match back {
                Some(back) => CalledBack::Redirect(
                    back.with(&[("provider_id", &id), ("confirm", code.expose())]),
                ),
                None => CalledBack::Code { provider: name, code },
            }),
            Err(error) => {
                self.browser_failed(&attempt, error, origin).await?;
                Ok(match back {
                    Some(back) => {
                        CalledBack::Redirect(back.with(&[("provider_id", &id), ("error", error)]))
                    }
                    None => CalledBack::Failed { provider: name, error },
                })
            }
        }
    }

    /// State that is needed to continue an attempt; `None` if its provider is not configured any
    /// more.
    pub(super) async fn find_begun(
        &self,
        attempt: &Attempt,
    ) -> Result<Option<(Arc<Provider>, AttemptState)>, Refusal> {
        let org = attempt.org_id.to_string();
        let found = self.base.store.find_secret(&org, ATTEMPT, &attempt.id, BEGUN).await;
        let Some(sealed) = found? else { return Ok(None) };
        let begun = AttemptState::decode(&self.opened(&sealed)?);
        let provider = self.catalogue.providers.get(&attempt.slug);
        let provider = provider.filter(|provider| provider.is_open_to(attempt.org_id));
        Ok(provider.map(Arc::clone).zip(begun))
    }

    /// Checks who sent the browser, and gets tokens for its code. Gives the code to confirm with,
    /// or nothing if this installation asks for none.
    async fn redeem(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
        attempt: &Attempt,
        begun: &AttemptState,
        callback: Callback,
        origin: &Origin,
    ) -> Result<Result<Option<Confirmation>, Why>, Refusal> {
        let Some(settings) = provider.declared.auth.oauth() else { return Ok(Err("server_error")) };
        let known = self.authorizer(provider, settings).await;
        let server = match known {
            Ok(server) if is_same_issuer(&server.issuer, &begun.issuer) => server,
            Ok(_) => return Ok(Err("issuer_mismatch")),
            Err(unknown) => {
                provider.unknown(&unknown);
                return Ok(Err("temporarily_unavailable"));
            }
        };
        // Before anything is redeemed: a code of another server must not go to this one (RFC 9207). Here the
        // name counts to the letter, as the server writes it.
        match callback.iss.as_deref() {
            Some(iss) if iss != server.issuer => return Ok(Err("issuer_mismatch")),
            None if server.tells_issuer => return Ok(Err("issuer_mismatch")),
            Some(_) | None => {}
        }
        if let Some(error) = callback.error.as_deref() {
            return Ok(Err(known_error(error)));
        }
        let Some(code) = callback.code else { return Ok(Err("invalid_request")) };
        let client = self.client_at(provider, settings, &server).await?;
        if client.id != begun.client_id {
            return Ok(Err("server_error"));
        }
        let granted = self.exchange_code(&server, settings, &client, begun, &code).await;
        let granted = match granted {
            Ok(granted) => granted,
            Err(error) => {
                tracing::warn!(provider = %attempt.slug, %error, "a code was not redeemed");
                if error == OAuthError::Refused(TokenRefusal::InvalidClient) {
                    self.forget_client(provider, &server, &client).await?;
                }
                return Ok(Err("code_not_redeemed"));
            }
        };
        self.grant(provider, attempt, begun, granted, origin).await
    }

    async fn exchange_code(
        &self,
        server: &Server,
        settings: &OAuthSettings,
        client: &Client,
        begun: &AttemptState,
        code: &Secret,
    ) -> Result<TokenGrant, OAuthError> {
        let redirect_uri = self.connecting.redirect_uri().unwrap_or_default();
        let mut form: Vec<(&str, &str)> = vec![
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &redirect_uri),
            ("code_verifier", begun.verifier.expose()),
        ];
        if let Some(resource) = &begun.resource {
            form.push(("resource", resource));
        }
        let more = settings.token_parameters.iter();
        form.extend(more.map(|(name, value)| (name.as_str(), value.as_str())));
        self.outbound.request_token(&server.token, client, &form, MAX_TOKEN_BYTES).await
    }

    /// Keeps what was granted until it is confirmed, or takes it into use at once.
    async fn grant(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
        attempt: &Attempt,
        begun: &AttemptState,
        granted: TokenGrant,
        origin: &Origin,
    ) -> Result<Result<Option<Confirmation>, Why>, Refusal> {
        let pending = Pending::of(provider, begun, granted, self.base.clock.now().as_seconds());
        let confirmed = provider.declared.auth.oauth().is_some_and(|it| !it.confirmation);
        if confirmed {
            let taken = self.complete(provider, attempt, &pending, origin).await;
            if taken.is_err() {
                self.revoke_upstream(provider, &pending.credential).await;
            }
            return Ok(taken.map(|()| None).map_err(|_| "server_error"));
        }
        let code = Confirmation::generate(&*self.base.random);
        let org = attempt.org_id.to_string();
        let kept = SecretPlace { org: &org, kind: ATTEMPT, row: &attempt.id, field: GRANTED };
        let secret = self.sealed(&kept, &pending.encode())?;
        let granted = self.base.store.grant_attempt(attempt, &code.hash(), &secret).await;
        if !granted? {
            self.revoke_upstream(provider, &pending.credential).await;
            return Ok(Err("expired"));
        }
        Ok(Ok(Some(code)))
    }

    /// Without a confirmation the callback itself completes the connection.
    async fn complete(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
        attempt: &Attempt,
        pending: &Pending,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        let org = attempt.org_id;
        let id = attempt.provider_id;
        let credential = &pending.credential;
        let header = provider.declared.auth.header(&credential.token).ok_or(Refusal::Internal)?;
        let tried_at = self.base.clock.now();
        let listed = self.tried(org, provider, &header, &pending.scopes).await?;
        let account = self.account_of(provider, &header).await.or_else(|| pending.account());
        let about = About { org, id, owner: attempt.owner, slug: attempt.slug.clone() };
        let details = json!({ "scopes": pending.scopes, "issuer": credential.issuer });
        let event = self.browser_event(origin, EventType::ProviderConnected, &about, &details);
        self.audit.record(event).await?;
        let secret = self.sealed_credential(&org.to_string(), &id.to_string(), credential)?;
        let new = NewCredential { secret, grant: self.grant_of(pending), account };
        let kept = self.base.store.keep_credential(org, id, &new, self.base.clock.now()).await;
        let kept = kept?.ok_or(Refusal::Internal)?;
        self.keep_list(org, id, &listed).await?;
        self.base.store.end_attempt(attempt).await?;
        self.adopt(kept, tried_at).await.map(|_| ())
    }

    /// Description of a grant that is stored beside it.
    pub(super) fn grant_of(&self, pending: &Pending) -> Grant {
        let now = self.base.clock.now();
        let expires_at = pending.expires_in.map(|seconds| {
            portcullis_core::clock::Timestamp::default()
                .plus_seconds(pending.at)
                .plus_seconds(seconds)
        });
        let refreshable = pending.credential.refresh.is_some();
        Grant {
            audience: pending.credential.issuer.clone(),
            scopes: pending.scopes.clone(),
            expires_at,
            refreshable,
            refreshed_at: Some(now),
            refresh_due_at: expires_at
                .filter(|_| refreshable)
                .map(|at| super::refresh::due_at(now, at, &*self.base.random)),
            refresh_failures: 0,
        }
    }

    async fn browser_failed(
        self: &Arc<Self>,
        attempt: &Attempt,
        error: Why,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        let about = About {
            org: attempt.org_id,
            id: attempt.provider_id,
            owner: attempt.owner,
            slug: attempt.slug.clone(),
        };
        let details = json!({ "reason": error });
        let event = self.browser_event(origin, EventType::ProviderConnectFailed, &about, &details);
        let code = "provider_auth_required";
        let ended = self.forget(attempt).await;
        self.audit.record(failed(event, OutcomeStatus::Denied, code, 302)).await?;
        ended
    }
}

/// Grant of an attempt that is not confirmed yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) credential: StoredCredential,
    pub(super) scopes: Vec<String>,
    expires_in: Option<i64>,
    at: i64,
    account: (Option<String>, Option<String>),
}

impl Pending {
    fn of(provider: &Provider, begun: &AttemptState, granted: TokenGrant, at: i64) -> Self {
        // The verifier is good for one consent, and so names it.
        let consent = STANDARD.encode(portcullis_core::oauth::digest(begun.verifier.expose()));
        Self {
            credential: StoredCredential {
                token: granted.access_token,
                refresh: granted.refresh_token,
                server: provider.declared.address().to_owned(),
                issuer: Some(begun.issuer.clone()),
                client_id: Some(begun.client_id.clone()),
                resource: begun.resource.clone(),
                consent,
            },
            // RFC 6749 §5.1: the requested scopes, if the answer names none.
            scopes: granted.scopes.unwrap_or_else(|| begun.scopes.clone()),
            expires_in: granted.expires_in,
            at,
            account: granted.account,
        }
    }

    pub(super) fn account(&self) -> Option<portcullis_store::Account> {
        let (id, name) = self.account.clone();
        (id.is_some() || name.is_some()).then_some(portcullis_store::Account { id, name })
    }

    fn encode(&self) -> zeroize::Zeroizing<Vec<u8>> {
        let credential = self.credential.encode();
        let value = json!({
            "credential": String::from_utf8_lossy(&credential),
            "scopes": self.scopes,
            "expires_in": self.expires_in,
            "at": self.at,
            "account": self.account,
        });
        zeroize::Zeroizing::new(value.to_string().into_bytes())
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let credential = StoredCredential::decode(value.get("credential")?.as_str()?.as_bytes())?;
        let texts = |member: &str| -> Option<Vec<Option<String>>> {
            let list = value.get(member)?.as_array()?;
            Some(list.iter().map(|it| it.as_str().map(str::to_owned)).collect())
        };
        let mut account = texts("account")?.into_iter();
        Some(Self {
            credential,
            scopes: texts("scopes")?.into_iter().flatten().collect(),
            expires_in: value.get("expires_in").and_then(Value::as_i64),
            at: value.get("at")?.as_i64()?,
            account: (account.next().flatten(), account.next().flatten()),
        })
    }
}

/// The error of a server as one of the words of RFC 6749 §4.1.2.1; nothing else is passed on.
fn known_error(error: &str) -> Why {
    const KNOWN: [Why; 7] = [
        "access_denied", "invalid_request", "unauthorized_client", "unsupported_response_type",
        "invalid_scope", "server_error", "temporarily_unavailable",
    ];
    KNOWN.into_iter().find(|known| *known == error).unwrap_or("server_error")
}
