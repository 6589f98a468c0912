//! The browser that asks for a page, and the person behind it, if one is signed in.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::request::Parts,
};
use portcullis_app::{Origin, Person};
use portcullis_core::{
    browser_session::{BrowserSecret, FormToken},
    refusal::Refusal,
};

use crate::{
    exchange::{Exchange, Outcome, RequestBody, host},
    gateway::Gateway,
    pages::form::Form,
};

/// A person with a live session, and the token of its forms.
#[derive(Debug)]
pub(crate) struct SignedIn {
    pub(crate) person: Arc<Person>,
    /// Stands as `form_token` in every form of the session.
    pub(crate) form_token: FormToken,
}

/// A browser. Refuses with 429 a source that brought secrets too often that open nothing, and a
/// person whose org has used up its requests.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) exchange: Arc<Exchange>,
    /// The person; `None` if the browser is not signed in.
    pub(crate) signed_in: Option<SignedIn>,
    /// The secret that it brought, whether it opens something or not.
    pub(super) secret: Option<BrowserSecret>,
    /// True if a page of this gateway sent the request.
    own_page: bool,
}

impl FromRequestParts<Arc<Gateway>> for Visitor {
    type Rejection = Outcome;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Outcome> {
        let exchange = Arc::clone(Exchange::of(parts)?);
        let secret = gateway.session_secret(&parts.headers);
        let signed_in = match &secret {
            Some(secret) => person(gateway, &exchange, secret).await?,
            None => None,
        };
        let host = host::named(&parts.headers, &parts.uri);
        let scheme = if gateway.is_secure() { "https" } else { "http" };
        let own_page = gateway.mcp.guard.is_own_page(scheme, host, &parts.headers);
        Ok(Self { exchange, signed_in, secret, own_page })
    }
}

/// A form of a browser. Refuses one that no page of this gateway sent before it is read.
#[derive(Debug)]
pub(crate) struct VisitorForm(pub(crate) Visitor, pub(crate) Form);

impl FromRequest<Arc<Gateway>> for VisitorForm {
    type Rejection = Outcome;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Outcome> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, gateway).await?;
        let body = RequestBody::of(&visitor.exchange, parts.headers, body, gateway);
        let read = visitor.read_form(body, gateway).await;
        match read {
            Ok(form) => Ok(Self(visitor, form)),
            Err(refusal) if visitor.signed_in.is_some() => Err(refusal.into()),
            // A visitor of whom nothing is known pays for what is wrong with its form.
            Err(refusal) => {
                let origin = &visitor.exchange.origin;
                Err(gateway.app.quotas.charge_source(refusal, origin).refusal.into())
            }
        }
    }
}

impl Visitor {
    /// Reads a form, if the sender may send one.
    pub(crate) async fn read_form(
        &self,
        body: RequestBody,
        gateway: &Gateway,
    ) -> Result<Form, Refusal> {
        self.require_own_page()?;
        if self.signed_in.is_none() {
            gateway.app.quotas.screen_sender(&self.exchange.origin)?;
        }
        Form::read(body).await
    }

    /// The person, if the browser is still signed in at the moment of `origin`.
    pub(crate) async fn look_again(
        &self,
        gateway: &Gateway,
        origin: &Origin,
    ) -> Option<Arc<Person>> {
        let secret = self.secret.as_ref()?;
        gateway.app.logins.person(secret, origin).await.ok().flatten()
    }

    /// Refuses a form that no page of this gateway sent.
    fn require_own_page(&self) -> Result<(), Refusal> {
        if self.own_page { Ok(()) } else { Err(foreign()) }
    }

    /// The person who is signed in now, if a form came from a page of another session: a login in another tab has
    /// replaced it since. The form decides nothing.
    pub(crate) fn signed_in_since(&self, form_token: Option<&str>) -> Option<&SignedIn> {
        let sent = form_token.filter(|_| self.own_page)?;
        self.signed_in.as_ref().filter(|it| !it.form_token.is(sent))
    }

    /// The person who sent a form with this `form_token` from a page of its session. `None` if the
    /// browser is not signed in.
    pub(crate) fn sender(&self, form_token: Option<&str>) -> Result<Option<&SignedIn>, Refusal> {
        self.require_own_page()?;
        match &self.signed_in {
            None => Ok(None),
            Some(it) if it.form_token.is(form_token.unwrap_or_default()) => Ok(Some(it)),
            Some(_) => Err(foreign()),
        }
    }
}

fn foreign() -> Refusal {
    Refusal::bad_request(
        "This form was not sent by a page of this gateway that belongs to your session. Load the page \
         anew and try again.",
    )
}

async fn person(
    gateway: &Gateway,
    exchange: &Exchange,
    secret: &BrowserSecret,
) -> Result<Option<SignedIn>, Outcome> {
    let logins = &gateway.app.logins;
    let found = logins.person(secret, &exchange.origin).await;
    let Some(person) = found.map_err(|refused| Outcome::from(refused.refusal))? else {
        return Ok(None);
    };
    exchange.set_account(person.account());
    logins.admit(&person, &exchange.origin).await?;
    Ok(Some(SignedIn { person, form_token: secret.form_token() }))
}
