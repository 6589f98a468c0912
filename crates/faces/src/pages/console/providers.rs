//! Connections to providers: their states, and forms that connect, confirm, refresh and end them.

use axum::{extract::Path, http::StatusCode, response::Response};
use portcullis_core::principal::Scope;
use serde_json::{Map, Value, json};

use super::{
    PageResult,
    api::{ApiReply, Problem},
    form::{Choices, FormState},
    json::Json,
    lists::act,
    render, see_other,
    signed_in::{Guest, GuestForm},
    table::Filters,
    tools,
};
use crate::{
    exchange::{Segment, segment},
    pages::{
        form::Form,
        html::{Html, forward},
    },
    v1,
};

const PATH: &str = "/console/providers";

page! { ProvidersPage = "providers.html";
    providers: Vec<Json>,
    /// Providers without a connection.
    waiting: Vec<Json>, more: Html,
    /// True if the person may connect for itself, and for the org.
    may_write: bool, is_admin: bool,
    /// Answer to a test of a connection.
    tested: Option<Json>,
    /// The form that connects any provider.
    form: FormState,
}

impl ProvidersPage {
    /// Owners of a connection that the person may make.
    fn all_owners(&self) -> Choices {
        if self.is_admin { &[("me", "me"), ("org", "the org")] } else { &[("me", "me")] }
    }

    fn may_change(&self, provider: &Json) -> bool {
        self.may_write && (self.is_admin || !provider.is("/owner/type", "org"))
    }

    fn may_connect(&self, waiting: &Json, owner: &str) -> bool {
        self.may_write && waiting.is(&format!("/for_{owner}"), "true")
    }
}

/// Connections, with what the person may do to each.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    page(&guest, &filters, None, FormState::default()).await
}

async fn page(
    guest: &Guest,
    filters: &Filters,
    tested: Option<Json>,
    form: FormState,
) -> PageResult {
    let scope = Some(Scope::ProvidersRead);
    let reply = guest.list(scope, filters, v1::providers::list).await?;
    let waiting = guest.items(scope, "limit=200", v1::providers::waiting).await;
    let page = ProvidersPage {
        frame: guest.frame("Providers", PATH),
        more: reply.more(PATH, filters, "More"),
        providers: reply.items(),
        waiting,
        may_write: guest.may(Scope::ProvidersWrite),
        is_admin: guest.may(Scope::Admin),
        tested,
        form,
    };
    Ok(render(page.form.status(), &page))
}

page! { ConfirmPage = "connected.html";
    slug: String,
    /// `org` or `me`: owner of the connection that was begun.
    owner: &'static str,
    /// The code that the browser came back with.
    code: String,
    /// The reason that there is none.
    error: String,
}

/// The page that a browser comes back to from the authorization of a provider: a button that
/// confirms. Nothing is connected before it is pressed.
pub(crate) async fn connected(guest: Guest, path: Segment, query: Filters) -> Response {
    let code = query.text("confirm").to_owned();
    let error = query.text("error").to_owned();
    if code.is_empty() && error.is_empty() {
        return see_other(PATH);
    }
    let frame = guest.frame("Connect", PATH);
    let slug = Json(Value::String(segment(path))).text("");
    let owner = if query.is("owner", "org") { "org" } else { "me" };
    render(StatusCode::OK, &ConfirmPage { frame, slug, owner, code, error })
}

/// Connects a provider, from the list or the page that the browser came back to.
pub(crate) async fn connect(GuestForm(mut guest, form): GuestForm) -> PageResult {
    match guest.connect(&form).await {
        // Not a redirect: the authorization is elsewhere, where forms of this page may not lead.
        Ok(reply) if reply.data.has("/authorization_url") => {
            let address = reply.data.at("/authorization_url");
            Ok(forward("Connect", address.0.as_str().unwrap_or(PATH)))
        }
        Ok(_) => match form.field("tool") {
            // A call that waited for the connection goes on, by what the person reaches now.
            Some(tool) if guest.look_again().await => tools::call_from(&guest, tool, &form).await,
            Some(_) | None => Ok(see_other(PATH)),
        },
        Err(problem) => {
            let refused = guest.refuse(&form, problem)?;
            page(&guest, &Filters::default(), None, refused).await
        }
    }
}

impl Guest {
    async fn connect(&self, form: &Form) -> Result<ApiReply, Problem> {
        let slug = form.field("slug").unwrap_or_default().trim();
        let mut members = form.texts(&["owner", "api_key", "confirm"]);
        let is_begin = ["api_key", "confirm"].iter().all(|name| !members.contains_key(*name));
        if is_begin && let Some(url) = self.gateway.app.providers.public_url() {
            let owner = form.field("owner").unwrap_or("me");
            let back = format!("{url}{PATH}/{slug}/connected?owner={owner}");
            members.insert("return_to".to_owned(), json!(back));
            match self.ask_connect(slug, &members).await {
                // A provider without authorization sends no browser back.
                Err(problem) if problem.violation("/return_to").is_some() => {}
                other => return other,
            }
            members.remove("return_to");
        }
        self.ask_connect(slug, &members).await
    }

    async fn ask_connect(
        &self,
        slug: &str,
        members: &Map<String, Value>,
    ) -> Result<ApiReply, Problem> {
        let body = self.json_body(&Value::Object(members.clone()));
        let path = Ok(Path(slug.to_owned()));
        let connect = |caller| v1::providers::connect(caller, path, body);
        self.ask(Some(Scope::ProvidersWrite), connect).await
    }
}

/// Asks a provider for its tools now, from the list.
pub(crate) async fn test(path: Segment, GuestForm(guest, _): GuestForm) -> PageResult {
    let body = guest.no_body();
    let test = |caller| v1::providers::test(caller, path, body);
    let tested = guest.ask(Some(Scope::ProvidersWrite), test).await;
    let tested = tested.map_err(|problem| problem.page(&guest))?.data;
    page(&guest, &Filters::default(), Some(tested), FormState::default()).await
}

/// Refreshes a connection, from the list.
pub(crate) async fn refresh(path: Segment, GuestForm(guest, _): GuestForm) -> Response {
    let body = guest.no_body();
    let refresh = |caller| v1::providers::refresh(caller, path, body);
    act(&guest, Some(Scope::ProvidersWrite), PATH, refresh).await
}

/// Ends a connection, from the list.
pub(crate) async fn disconnect(path: Segment, GuestForm(guest, _): GuestForm) -> Response {
    let disconnect = |caller| v1::providers::disconnect(caller, path);
    act(&guest, Some(Scope::ProvidersWrite), PATH, disconnect).await
}
