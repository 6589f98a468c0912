//! Connecting a provider: a key at once, or consent in two halves.
//!
//! The first half is a browser's: it carries a `state` that is good for one callback, and gets a
//! code that only it sees. The second half is the caller's who began: it brings that code. So
//! neither a link that is sent to a victim nor a code that is guessed connects anything.

mod authorize;
mod authorizer;
mod callback;
mod confirm;
mod disconnect;
mod events;
mod keys;
pub(crate) mod refresh;
mod registration;
mod rotate;
mod usable;

pub use self::{
    callback::{Callback, CalledBack},
    disconnect::{Disconnected, UpstreamRevocation},
    registration::{NotRegistered, RegisteredClient},
    rotate::{RotateError, rotate_secrets},
};

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use portcullis_core::{
    id::PrincipalKind,
    oauth::{Origin, ReturnTo},
    principal::Scope,
    refusal::{Refusal, Violation},
    secret::Secret,
};
use portcullis_store::ProviderOwner;
use utoipa::ToSchema;

use super::{Providers, view::ProviderView};
use crate::{
    catalogue::{auth::Auth, authorizer::Server, provider::Provider},
    request::Ctx,
};

/// Settings of connects in this installation.
#[derive(Debug)]
pub struct Connecting {
    /// The pages a browser may return to, besides its own machine.
    pub return_to: Vec<Origin>,
    /// Seconds an attempt is good for.
    pub attempt_seconds: i64,
    /// Name of the gateway in registrations.
    pub client_name: String,
    /// Days after which connections are forgotten whose provider is not configured any more.
    pub keep_missing_days: i64,
    /// Public address of the gateway for browsers: `https://host`, without a path.
    pub(crate) public_url: Arc<OnceLock<String>>,
}

impl Connecting {
    /// With what the configuration says.
    #[must_use]
    pub fn new(return_to: Vec<Origin>, attempt_seconds: i64, client_name: String) -> Self {
        Self {
            return_to,
            attempt_seconds,
            client_name,
            keep_missing_days: 7,
            public_url: Arc::default(),
        }
    }

    /// Says where browsers find the gateway; the first one who knows is believed.
    pub fn found_at(&self, url: &str) {
        let _ = self.public_url.set(url.trim_end_matches('/').to_owned());
    }

    fn public_url(&self) -> Result<&str, Refusal> {
        self.public_url.get().map(String::as_str).ok_or(Refusal::Internal)
    }

    /// The address, if it is a page of the gateway's own console: other paths of its host can be
    /// those of other programs.
    fn page_of_console(&self, text: &str) -> Option<ReturnTo> {
        if text.len() > ReturnTo::MAX_BYTES {
            return None;
        }
        let pages = format!("{}/console/", self.public_url.get()?);
        // Compared as it is kept, without `..` and other detours.
        ReturnTo::from_stored(text).filter(|address| address.as_str().starts_with(&pages))
    }

    /// Address that authorization servers send browsers back to.
    pub(crate) fn redirect_uri(&self) -> Result<String, Refusal> {
        Ok(format!("{}/oauth/callback", self.public_url()?))
    }

    /// The gateway's name where its metadata document is read.
    pub(crate) fn client_document_url(&self) -> Result<String, Refusal> {
        Ok(format!("{}/oauth/client-metadata.json", self.public_url()?))
    }
}

impl Providers {
    /// The address at which browsers find the gateway, once it is known.
    #[must_use]
    pub fn public_url(&self) -> Option<&str> {
        self.connecting.public_url.get().map(String::as_str)
    }

    /// Asks all providers that are connected with OAuth at the same time who authorizes access to
    /// them. A provider whose authorizer is not found within `patience` reports so itself.
    pub async fn find_authorizers(&self, patience: Duration) {
        let asked = self.catalogue.providers.values().map(async |provider| {
            let Some(settings) = provider.declared.auth.oauth() else { return };
            let found = tokio::time::timeout(patience, self.authorizer(provider, settings)).await;
            let why = match found {
                Ok(found) => match found.and_then(Server::require_issuer) {
                    Ok(_) => return,
                    Err(unknown) => unknown.to_string(),
                },
                Err(_) => format!("nobody answered within {} seconds", patience.as_secs()),
            };
            provider.stays(&why, self.base.clock.now());
        });
        futures_util::future::join_all(asked).await;
    }
}

/// Owner of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Me,
    Org,
}

/// The body of a connect.
#[derive(Debug, Clone, Default, ToSchema)]
#[schema(as = ConnectBody)]
pub struct ConnectRequest {
    /// Owner of the connection, `me` or `org`; if absent, the user, or the org of a service.
    #[schema(value_type = Option<String>, pattern = "^(me|org)$")]
    pub owner: Option<Owner>,
    /// Scopes that it shall permit, a subset of those that the operator allows; those that are
    /// configured if absent.
    #[schema(max_items = 100)]
    pub scopes: Option<Vec<String>>,
    /// Address that the browser goes to afterwards: an https address on an allowed origin, or
    /// `http://127.0.0.1:*`.
    #[schema(max_length = 2000)]
    pub return_to: Option<String>,
    /// The key, for a provider that takes one.
    #[schema(value_type = Option<String>, max_length = 8192)]
    pub api_key: Option<Secret>,
    /// The code that the browser was shown.
    #[schema(value_type = Option<String>, max_length = 100)]
    pub confirm: Option<Secret>,
}

/// Result of a connect.
#[derive(Debug)]
pub enum Connected {
    /// A browser has to go somewhere.
    Begun {
        view: Box<ProviderView>,
        authorization_url: String,
        expires_at: portcullis_core::clock::Timestamp,
    },
    Done(Box<ProviderView>),
}

/// A connect whose caller may ask for it.
#[derive(Debug, Clone)]
pub(crate) struct PermittedConnect {
    pub(crate) ctx: Ctx,
    pub(crate) provider: Arc<Provider>,
    pub(crate) owner: ProviderOwner,
}

impl Providers {
    /// Says where browsers find the gateway; the first one who knows is believed.
    pub fn found_at(&self, url: &str) {
        self.connecting.found_at(url);
    }

    /// Connects a provider, begins to, or ends it. It goes on when the caller hangs up.
    pub async fn connect(
        self: &Arc<Self>,
        ctx: Ctx,
        slug: String,
        request: ConnectRequest,
    ) -> Result<Connected, Refusal> {
        let this = Arc::clone(self);
        let org = ctx.caller().org_id;
        // Its tools are listed: that may be much work.
        let work = async move { this.connect_now(ctx, &slug, request).await };
        self.base.workers.spawn(org, &self.base.tasks, work).await.map_err(|_| Refusal::Internal)?
    }

    async fn connect_now(
        self: &Arc<Self>,
        ctx: Ctx,
        slug: &str,
        request: ConnectRequest,
    ) -> Result<Connected, Refusal> {
        let asked = self.permit_connect(ctx, slug, request.owner)?;
        match &asked.provider.declared.auth {
            Auth::None | Auth::ConfiguredKey => {
                only(&request, &[])?;
                self.connect_open(asked).await.map(to_connected)
            }
            Auth::Key(_) => {
                only(&request, &["api_key"])?;
                let missing = || wrong("api_key", "has to be given for this provider");
                let key = request.api_key.ok_or_else(missing)?;
                self.connect_key(asked, key).await.map(to_connected)
            }
            Auth::OAuth(_) => {
                let Some(code) = request.confirm else {
                    only(&request, &["scopes", "return_to"])?;
                    return self.begin(asked, request.scopes, request.return_to.as_deref()).await;
                };
                only(&ConnectRequest { confirm: None, ..request }, &[])?;
                self.confirm(asked, &code).await.map(to_connected)
            }
        }
    }

    /// Refuses a caller that may not connect this provider for this owner.
    fn permit_connect(
        &self,
        ctx: Ctx,
        slug: &str,
        owner: Option<Owner>,
    ) -> Result<PermittedConnect, Refusal> {
        let provider = self.open_to(&ctx).find(|it| it.declared.slug.as_str() == slug);
        let Some(provider) = provider.map(Arc::clone) else {
            let available = self.open_to(&ctx).map(|it| it.declared.slug.clone()).collect();
            return Err(Refusal::no_such_provider(slug, available));
        };
        let principal = ctx.caller().principal_id;
        let service = principal.kind() == PrincipalKind::Service;
        let usual = if service { Owner::Org } else { Owner::Me };
        let owners = provider.declared.owners;
        let owner = match owner.unwrap_or(usual) {
            Owner::Me if service => {
                return Err(wrong("owner", "can only be `org` for a service account"));
            }
            Owner::Me if !owners.me => {
                return Err(wrong("owner", "can only be `org` for this provider"));
            }
            Owner::Org if !owners.org => {
                return Err(wrong("owner", "can only be `me` for this provider"));
            }
            Owner::Me => ProviderOwner::Principal(principal),
            Owner::Org => {
                ctx.require(Scope::Admin)?;
                ProviderOwner::Org
            }
        };
        Ok(PermittedConnect { ctx, provider, owner })
    }
}

fn to_connected(view: ProviderView) -> Connected {
    Connected::Done(Box::new(view))
}

/// A member that is wrong, and what is.
pub(crate) fn wrong(name: &str, problem: &str) -> Refusal {
    Refusal::InvalidRequest {
        message: format!("The member `{name}` {problem}."),
        parameter: None,
        violations: vec![Violation {
            path: format!("/{name}"),
            keyword: None,
            message: problem.to_owned(),
        }],
    }
}

/// Rejects members that mean nothing for this provider.
fn only(request: &ConnectRequest, known: &[&str]) -> Result<(), Refusal> {
    let given = [
        ("scopes", request.scopes.is_some()),
        ("return_to", request.return_to.is_some()),
        ("api_key", request.api_key.is_some()),
        ("confirm", request.confirm.is_some()),
    ];
    match given.into_iter().find(|(name, given)| *given && !known.contains(name)) {
        Some((name, _)) => {
            Err(wrong(name, "means nothing here, for this provider works otherwise"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_return_to_pages_of_the_own_console_alone() {
        let connecting = Connecting::new(Vec::new(), 60, "Gateway".to_owned());
        assert!(connecting.page_of_console("https://gw.example/console/x").is_none(), "too early");
        connecting.found_at("https://gw.example/");

        for page in [
            "https://gw.example/console/providers/x/connected?y=1",
            "https://GW.example:443/console/",
        ] {
            assert!(connecting.page_of_console(page).is_some(), "{page}");
        }
        for elsewhere in [
            "https://gw.example/console",
            "https://gw.example/consoles/x",
            "https://gw.example/console/../mcp",
            "https://gw.example/console/%2e%2e/mcp",
            "https://gw.example/console\\..\\mcp",
            "https://gw.example.evil.example/console/x",
            "https://gw.example@evil.example/console/x",
            "https://user@gw.example/console/x",
            "https://gw.example\\@evil.example/console/x",
            "https://gw.example:8443/console/x",
            "http://gw.example/console/x",
            "//gw.example/console/x",
            "/console/x",
            "javascript://gw.example/console/x",
        ] {
            assert!(connecting.page_of_console(elsewhere).is_none(), "{elsewhere}");
        }
    }
}
