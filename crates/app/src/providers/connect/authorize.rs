//! The beginning of a connect: where the browser has to go.

use std::sync::Arc;

use portcullis_core::{
    audit::EventType,
    id::{GrantId, ProviderId},
    oauth::{PkceVerifier, ReturnTo, State, authorization_url, digest},
    refusal::Refusal,
    secret::Secret,
};
use portcullis_store::{ATTEMPT, NewAttempt, ProviderStatus};
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::{Connected, PermittedConnect, events::About, wrong};
use crate::{
    catalogue::{auth::OAuthSettings, authorizer::Server},
    providers::{Providers, vault::SecretPlace},
};

/// The field of what it takes to go on with an attempt.
pub(super) const BEGUN: &str = "begun";
const MAX_SCOPES: usize = 100;

/// State that is needed to continue an attempt, sealed beside it.
#[derive(Debug, Clone)]
pub(super) struct AttemptState {
    pub(super) verifier: Secret,
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) resource: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) return_to: Option<String>,
}

impl AttemptState {
    fn encode(&self) -> Zeroizing<Vec<u8>> {
        let value = json!({
            "verifier": self.verifier.expose(),
            "issuer": self.issuer,
            "client_id": self.client_id,
            "resource": self.resource,
            "scopes": self.scopes,
            "return_to": self.return_to,
        });
        Zeroizing::new(value.to_string().into_bytes())
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let members: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        let scopes = members.get("scopes")?.as_array()?;
        Some(Self {
            verifier: Secret::new(text("verifier")?),
            issuer: text("issuer")?,
            client_id: text("client_id")?,
            resource: text("resource"),
            scopes: scopes.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            return_to: text("return_to"),
        })
    }
}

impl Providers {
    /// Begins a connect: remembers what it takes to go on, and gives where the browser goes.
    /// Earlier attempts of the same caller for the same connection end.
    pub(super) async fn begin(
        self: &Arc<Self>,
        connect: PermittedConnect,
        scopes: Option<Vec<String>>,
        return_to: Option<&str>,
    ) -> Result<Connected, Refusal> {
        let provider = Arc::clone(&connect.provider);
        let settings = provider.declared.auth.oauth().ok_or(Refusal::Internal)?;
        let return_to = match return_to {
            Some(text) => {
                let own = || self.connecting.page_of_console(text);
                Some(ReturnTo::parse(text, &self.connecting.return_to).or_else(own).ok_or_else(
                    || {
                        wrong(
                            "return_to",
                            "has to be on an origin that the operator allows in `[connect]`",
                        )
                    },
                )?)
            }
            None => None,
        };
        if let Some(asked_for) = &scopes {
            permitted(settings, asked_for)?;
        }
        let id = ProviderId::new(self.base.ids());
        let known = self.authorizer(&provider, settings).await;
        let server = match known.and_then(Server::require_issuer) {
            Ok(server) => server,
            Err(unknown) => {
                let refusal = provider.unknown(&unknown);
                return Err(self.connect_failed(&connect, id, refusal).await);
            }
        };
        let scopes = choose_scopes(settings, &server, scopes)?;
        let client = match self.client_at(&provider, settings, &server).await {
            Ok(client) => client,
            Err(refusal) => return Err(self.connect_failed(&connect, id, refusal).await),
        };
        let begun = AttemptState {
            verifier: PkceVerifier::generate(&*self.base.random).secret().clone(),
            issuer: server.issuer.clone(),
            client_id: client.id,
            resource: server.resource.clone(),
            scopes,
            return_to: return_to.map(|it| it.as_str().to_owned()),
        };
        self.remember(&connect, id, &server, &begun).await
    }

    async fn remember(
        self: &Arc<Self>,
        connect: &PermittedConnect,
        id: ProviderId,
        server: &Server,
        begun: &AttemptState,
    ) -> Result<Connected, Refusal> {
        let settings = connect.provider.declared.auth.oauth().ok_or(Refusal::Internal)?;
        let caller = connect.ctx.caller();
        let slug = connect.provider.declared.slug.as_str();
        let earlier =
            self.base.store.attempts_of(caller.org_id, caller.principal_id, slug, connect.owner);
        for attempt in earlier.await? {
            self.give_up(&attempt, "superseded").await;
        }
        let record = self.first_record(connect, id).await?;
        let about = About::of(connect, record.id);
        let details = json!({ "scopes": begun.scopes, "issuer": begun.issuer });
        let started = self.connection_event(
            &connect.ctx,
            EventType::ProviderConnectStarted,
            &about,
            &details,
        );
        self.audit.record(started).await?;
        let attempt_id = GrantId::new(self.base.ids()).to_string().replace("grn_", "att_");
        let org = caller.org_id.to_string();
        let kept = SecretPlace { org: &org, kind: ATTEMPT, row: &attempt_id, field: BEGUN };
        let state = State::generate(&*self.base.random);
        let expires_at = self.base.clock.now().plus_seconds(self.connecting.attempt_seconds);
        let attempt = NewAttempt {
            org_id: caller.org_id,
            provider_id: record.id,
            slug: slug.to_owned(),
            owner: connect.owner,
            principal_id: caller.principal_id,
            state_hash: digest(state.expose()),
            expires_at,
            secret: self.sealed(&kept, &begun.encode())?,
            id: attempt_id.clone(),
        };
        self.base.store.begin_attempt(&attempt).await?;
        let authorization_url = self.authorization(settings, server, begun, &state)?;
        let mut view = self.view(record).ok_or(Refusal::Internal)?;
        if view.connected_at.is_none() {
            view.status = ProviderStatus::Pending;
        }
        Ok(Connected::Begun { view: Box::new(view), authorization_url, expires_at })
    }

    fn authorization(
        &self,
        settings: &OAuthSettings,
        server: &Server,
        begun: &AttemptState,
        state: &State,
    ) -> Result<String, Refusal> {
        let redirect_uri = self.connecting.redirect_uri()?;
        let challenge = PkceVerifier::from_stored(begun.verifier.clone()).challenge();
        let separator = settings.scope_separator.to_string();
        let scope = begun.scopes.join(&separator);
        let mut parameters: Vec<(&str, &str)> = settings
            .authorize_parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        parameters.extend([
            ("response_type", "code"),
            ("client_id", begun.client_id.as_str()),
            ("redirect_uri", redirect_uri.as_str()),
            ("state", state.expose()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ]);
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        if let Some(resource) = &begun.resource {
            parameters.push(("resource", resource));
        }
        Ok(authorization_url(server.authorize.address(), &parameters))
    }
}

/// Rejects scopes that the operator does not allow.
fn permitted(settings: &OAuthSettings, asked: &[String]) -> Result<(), Refusal> {
    let fits = asked.len() <= MAX_SCOPES
        && asked.iter().all(|scope| portcullis_core::oauth::is_scope(scope));
    if !fits {
        return Err(wrong("scopes", "has to be a list of at most 100 OAuth scopes"));
    }
    let allowed = settings.allowed_scopes.as_deref();
    match allowed.and_then(|allowed| asked.iter().find(|scope| !allowed.contains(scope))) {
        Some(_) => Err(wrong("scopes", "asks for more than the operator allows for this provider")),
        None => Ok(()),
    }
}

/// The scopes to ask for: those of the caller, the operator's, those that the server's challenge
/// names, or all it lists. Without a list of the operator, only what the server lists can be had.
fn choose_scopes(
    settings: &OAuthSettings,
    server: &Server,
    asked: Option<Vec<String>>,
) -> Result<Vec<String>, Refusal> {
    if let Some(asked) = asked {
        let known = |scope: &String| {
            settings.allowed_scopes.is_some()
                || settings.default_scopes.contains(scope)
                || server.wanted.contains(scope)
                || server.listed.contains(scope)
        };
        return if asked.iter().all(known) {
            Ok(asked)
        } else {
            Err(wrong("scopes", "asks for scopes that this provider does not list"))
        };
    }
    let sources = [&settings.default_scopes, &server.wanted, &server.listed];
    let first = sources.into_iter().find(|scopes| !scopes.is_empty());
    let mut scopes = first.cloned().unwrap_or_default();
    if let Some(allowed) = &settings.allowed_scopes {
        scopes.retain(|scope| allowed.contains(scope));
    }
    Ok(scopes)
}
