//! The person who looks at a page of the console.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use portcullis_app::{Ctx, Stages};
use portcullis_core::{hidden::spelled, openid::StepUp, principal::Scope, refusal::Refusal};

use super::{assets, see_other};
use crate::{
    exchange::{Outcome, RequestBody},
    gateway::Gateway,
    pages::{
        form::Form,
        html::{Html, forward, hidden, html, markup, page},
        login::{SignedIn, Visitor, login_address, step_up_address},
    },
};

/// A person who is signed in, as the caller of operations.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(super) gateway: Arc<Gateway>,
    pub(super) ctx: Ctx,
    visitor: Visitor,
    /// Page to which the person comes back after it proved `login.admin_acr`, without which `ctx` lacks the scope
    /// `admin`.
    unproved: Option<String>,
}

impl FromRequestParts<Arc<Gateway>> for Guest {
    type Rejection = Response;

    /// Sends a browser that is not signed in to the login, from which it comes back to this page, or to the one that its
    /// form was on. The form is not sent again.
    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Response> {
        if !gateway.console {
            return Err(switched_off());
        }
        let visitor = Visitor::from_request_parts(parts, gateway).await;
        let visitor = visitor.map_err(IntoResponse::into_response)?;
        let Some(SignedIn { person, .. }) = &visitor.signed_in else {
            return Err(if parts.method == Method::GET {
                let back = parts.uri.path_and_query().map_or("/console", |it| it.as_str());
                see_other(&login_address(back))
            } else {
                // What follows a form by redirects has to obey the policy of its page, and the issuer is elsewhere.
                let page = page_of_form(&parts.headers);
                let back = page.unwrap_or_else(|| list_of(parts.uri.path()));
                forward("Log in", &login_address(&back))
            });
        };
        let (logins, origin) = (&gateway.app.logins, &visitor.exchange.origin);
        let ctx = if parts.method.is_safe() {
            logins.ctx(person, origin).await
        } else {
            logins.ctx_of_change(person, origin).await
        };
        let ctx = ctx.map_err(|refusal| Outcome::from(refusal).into_response())?;
        let is_less = ctx.caller().scopes != person.scopes;
        let unproved = is_less.then(|| list_of(parts.uri.path()));
        Ok(Self { gateway: Arc::clone(gateway), ctx, visitor, unproved })
    }
}

/// The page of the console that a form was on, with its query, if the browser names one.
fn page_of_form(headers: &HeaderMap) -> Option<String> {
    let (_, from) = headers.get(header::REFERER)?.to_str().ok()?.split_once("://")?;
    let (_, page) = from.split_once("/console")?;
    (page.is_empty() || page.starts_with(['/', '?'])).then(|| format!("/console{page}"))
}

/// The page in the navigation to which a form belongs.
fn list_of(path: &str) -> String {
    path.split('/').take(3).collect::<Vec<_>>().join("/")
}

/// A form that a page of the person's session sent. Refuses every other form.
#[derive(Debug)]
pub(crate) struct GuestForm(pub(super) Guest, pub(super) Form);

impl FromRequest<Arc<Gateway>> for GuestForm {
    type Rejection = Response;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let guest = Guest::from_request_parts(&mut parts, gateway).await?;
        let refused = |refusal| Outcome::from(refusal).into_response();
        let body = RequestBody::of(&guest.visitor.exchange, parts.headers, body, gateway);
        let form = guest.visitor.read_form(body, gateway).await.map_err(refused)?;
        guest.check(&form).map_err(refused)?;
        Ok(Self(guest, form))
    }
}

fn switched_off() -> Response {
    let text =
        "<p>The console is switched off: <code>[console] enabled</code> in the configuration.</p>";
    page(StatusCode::NOT_FOUND, "No console", &markup(text))
}

/// Everything of a page around its content.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) person: String,
    pub(super) org: String,
    pub(super) role: &'static str,
    /// Field with the token of the session, without which no form is taken.
    pub(super) token: Html,
    pub(super) navigation: Html,
    /// Versions of style sheet and script, so that browsers may keep them.
    pub(super) style: &'static str,
    pub(super) script: &'static str,
}

/// A page of the navigation: its group, path and name, and the scope that it needs.
type PageEntry = (&'static str, &'static str, &'static str, Option<Scope>);

/// Pages of the navigation, those of a group together.
const PAGES: [PageEntry; 15] = [
    ("Activity", "/console", "Home", None),
    ("Activity", "/console/events", "Events", None),
    ("Activity", "/console/log", "Log", Some(Scope::AuditRead)),
    ("Activity", "/console/approvals", "Approvals", Some(Scope::ApprovalsRead)),
    ("Catalogue", "/console/tools", "Capabilities", Some(Scope::McpsRead)),
    ("Catalogue", "/console/waiting", "Waiting tools", Some(Scope::Admin)),
    ("Catalogue", "/console/providers", "Providers", Some(Scope::ProvidersRead)),
    ("Rules", "/console/policies", "Policies", Some(Scope::PoliciesRead)),
    ("Rules", "/console/workbench", "Workbench", Some(Scope::PoliciesRead)),
    ("Rules", "/console/dlp", "DLP", Some(Scope::PoliciesRead)),
    ("Rules", "/console/limits", "Limits", Some(Scope::Admin)),
    ("Access", "/console/people", "People", Some(Scope::Admin)),
    ("Access", "/console/tokens", "Tokens", Some(Scope::Admin)),
    ("Access", "/console/sessions", "Sessions", None),
    ("Access", "/console/clients", "Clients", None),
];

impl Guest {
    /// The frame of a page; `path` is that of its entry in the navigation.
    pub(super) fn frame(&self, title: impl Into<String>, path: &str) -> Frame {
        let signed_in = self.visitor.signed_in.as_ref();
        Frame {
            title: title.into(),
            person: spelled(&self.ctx.caller().principal_name).into_owned(),
            org: signed_in.map(|it| spelled(&it.person.org_name).into_owned()).unwrap_or_default(),
            role: self.ctx.caller().role.name(),
            token: signed_in
                .map(|it| hidden("form_token", it.form_token.expose()))
                .unwrap_or_default(),
            navigation: self.navigation(path),
            style: assets::style_version(),
            script: assets::script_version(),
        }
    }

    /// The links of all pages that the person may see.
    fn navigation(&self, here: &str) -> Html {
        let link = |&(_, path, name, _): &PageEntry| {
            let current = markup(if path == here { " aria-current=\"page\"" } else { "" });
            html("<a href=\"{}\"{}>{}</a>\n", &[&path, &current, &name])
        };
        let group = |pages: &[PageEntry]| {
            let allowed = pages.iter().filter(|page| page.3.is_none_or(|scope| self.may(scope)));
            let links: Html = allowed.map(link).collect();
            let name = pages.first().filter(|_| !links.is_empty());
            let show =
                |name: &PageEntry| html("<div><span>{}</span>\n{}</div>\n", &[&name.0, &links]);
            name.map(show).unwrap_or_default()
        };
        PAGES.chunk_by(|page, next| page.0 == next.0).map(group).collect()
    }

    /// The address at which the person proves more and comes back to `return_to`; `None` if the login
    /// proves it already.
    pub(super) fn step_up(&self, step_up: StepUp, return_to: &str) -> Option<String> {
        let person = &self.visitor.signed_in.as_ref()?.person;
        let proves = self.gateway.app.logins.proves(person, step_up);
        (!proves).then(|| step_up_address(step_up, return_to))
    }

    /// The person with every scope, for a form that changes nothing of the org: policies judge a call by them.
    pub(super) async fn whole(mut self) -> Result<Self, Response> {
        if let Some(SignedIn { person, .. }) = &self.visitor.signed_in
            && self.unproved.take().is_some()
        {
            let ctx = self.gateway.app.logins.ctx(person, &self.ctx.origin).await;
            self.ctx = ctx.map_err(|refusal| Outcome::from(refusal).into_response())?;
        }
        Ok(self)
    }

    /// The address at which the person proves what `admin` asks for; `None` if it is proved, or not the person's.
    pub(super) fn proof_address(&self) -> Option<String> {
        self.unproved.as_deref().map(|back| step_up_address(StepUp::Admin, back))
    }

    /// Looks again who is signed in, for a page that stays open. False if the session has ended.
    pub(super) async fn look_again(&mut self) -> bool {
        let origin = Arc::make_mut(&mut self.ctx.origin);
        origin.arrived = self.gateway.app.base.now();
        // The trace of the request ends with its head.
        origin.stages = Stages::untraced();
        let Some(person) = self.visitor.look_again(&self.gateway, &self.ctx.origin).await else {
            return false;
        };
        let ctx = self.gateway.app.logins.ctx(&person, &self.ctx.origin).await;
        self.unproved = None;
        ctx.map(|ctx| self.ctx = ctx).is_ok()
    }

    /// Refuses a form that no page of this session sent.
    pub(super) fn check(&self, form: &Form) -> Result<(), Refusal> {
        self.visitor.sender(form.field("form_token")).map(|_| ())
    }
}
