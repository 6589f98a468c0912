//! Lists that are one table each: tokens, sessions, clients; and tools that wait.

use axum::{http::StatusCode, response::Response};
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    api::ApiReply,
    form::FormState,
    json::Json,
    render, see_other,
    signed_in::{Guest, GuestForm},
    table::{
        Cell::{Badge, Code, Named, Text, Time},
        Column, Filters,
    },
};
use crate::{
    client_settings::{ClientEntry, McpClient},
    exchange::{HandlerResult, NoQuery, Outcome, Segment, WithQuery, segment},
    pages::html::Html,
    v1,
};

page! { TablePage<'a> = "table.html";
    page: &'a ListPage, filters: &'a Filters, below: Below, items: Vec<Json>, more: Html,
}

/// The part of a page below its list.
enum Below {
    Nothing,
    /// A form that makes a token of one of these service accounts.
    TokenForm(Vec<Json>, Box<FormState>),
    /// Settings with which clients use the gateway, and the address by which they do.
    Settings(String, Vec<ShownSettings>),
}

/// Settings of one client.
struct ShownSettings {
    client: McpClient,
    text: String,
    link: Option<String>,
}

/// A list of the console.
struct ListPage {
    path: &'static str,
    /// Attributes of the search.
    search: &'static str,
    title: &'static str,
    about: &'static str,
    empty: &'static str,
    columns: &'static [Column],
    action: Action,
}

/// The button at the end of a row, which sends a form.
struct Action {
    /// Last part of the address, behind the id of the row.
    name: &'static str,
    label: &'static str,
    /// Question that the browser asks before.
    question: &'static str,
    /// State of the rows that have the button; all have it without one.
    state: Option<&'static str>,
}

impl Action {
    fn is_for(&self, item: &Json) -> bool {
        self.state.is_none_or(|state| item.is("/state", state))
    }
}

const TOKENS: ListPage = ListPage {
    path: "/console/tokens",
    search: "size=\"24\" maxlength=\"64\" placeholder=\"label or principal\"",
    title: "Tokens",
    about: "Access and refresh tokens of the org. Their secrets are not kept.",
    empty: "There is no token yet. Make one for a service account below.",
    columns: &[
        ("Principal", Named("/principal_name", "/principal_id")),
        ("Label", Text("/label")),
        ("State", Badge("/state")),
        ("Scopes", Text("/scopes")),
        ("Last used", Time("/last_used_at")),
        ("Ends", Time("/expires_at")),
        ("Id", Code("/id")),
    ],
    action: Action {
        name: "revoke",
        label: "Revoke",
        question: "Programs that use this token are refused at once. Revoke it?",
        state: Some("live"),
    },
};

const SESSIONS: ListPage = ListPage {
    path: "/console/sessions",
    search: "size=\"24\" maxlength=\"64\" placeholder=\"name or address\"",
    title: "Sessions",
    about: "Browsers that are signed in.",
    empty: "No browser is signed in.",
    columns: &[
        ("Person", Named("/principal_name", "/principal_id")),
        ("Signed in by", Text("/method")),
        ("Issuer", Text("/issuer")),
        ("Since", Time("/created_at")),
        ("Last seen", Time("/last_seen_at")),
        ("Id", Code("/id")),
    ],
    action: Action {
        name: "end",
        label: "Sign out",
        question: "That browser is signed out within five seconds. Go on?",
        state: None,
    },
};

const CLIENTS: ListPage = ListPage {
    path: "/console/clients",
    search: "size=\"24\" maxlength=\"64\" placeholder=\"client or person\"",
    title: "Clients",
    about: "MCP clients that people let act for them.",
    empty: "No client was let in yet. Add the gateway to one by the settings below.",
    columns: &[
        ("Client", Named("/client/name", "/client/id")),
        ("Kind", Badge("/client/kind")),
        ("Returns to", Code("/returns_to")),
        ("Endpoint", Code("/endpoint")),
        ("Scopes", Text("/scope")),
        ("Person", Named("/principal_name", "/principal_id")),
        ("Allowed", Time("/renewed_at")),
    ],
    action: Action {
        name: "withdraw",
        label: "Withdraw",
        question: "The tokens of this client end at once. Withdraw the consent?",
        state: None,
    },
};

/// The page of `GET /v1/tokens`.
pub(crate) async fn tokens(guest: Guest, filters: Filters) -> PageResult {
    show_tokens(&guest, &filters, FormState::default()).await
}

/// The list above the form that makes a token.
pub(super) async fn show_tokens(guest: &Guest, filters: &Filters, form: FormState) -> PageResult {
    let reply = guest.list(Some(Scope::Admin), filters, v1::tokens::list).await?;
    let below = Below::TokenForm(guest.service_accounts().await, Box::new(form));
    Ok(guest.show_list(&TOKENS, filters, &reply, below))
}

/// The page of `GET /v1/sessions`.
pub(crate) async fn sessions(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(None, &filters, v1::sessions::list).await?;
    Ok(guest.show_list(&SESSIONS, &filters, &reply, Below::Nothing))
}

/// The page of `GET /v1/consents`.
pub(crate) async fn clients(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(None, &filters, v1::consents::list).await?;
    Ok(guest.show_list(&CLIENTS, &filters, &reply, guest.client_settings()))
}

impl Guest {
    fn show_list(
        &self,
        page: &ListPage,
        filters: &Filters,
        reply: &ApiReply,
        below: Below,
    ) -> Response {
        let status = match &below {
            Below::TokenForm(_, form) => form.status(),
            Below::Nothing | Below::Settings(..) => StatusCode::OK,
        };
        let frame = self.frame(page.title, page.path);
        let more = reply.more(page.path, filters, "More");
        let table = TablePage { frame, page, filters, below, items: reply.items(), more };
        render(status, &table)
    }

    /// The first service accounts that are in use.
    pub(super) async fn service_accounts(&self) -> Vec<Json> {
        let filters = "role=service&disabled=false&limit=100";
        self.items(Some(Scope::Admin), filters, v1::principals::list).await
    }

    /// Settings of the usual clients, which log people in where this gateway authorizes clients.
    fn client_settings(&self) -> Below {
        let app = &self.gateway.app;
        let url = format!("{}/mcp", app.providers.public_url().unwrap_or("https://<this gateway>"));
        let token = app.authorization.issuer().is_none().then_some("PORTCULLIS_TOKEN");
        let entry = ClientEntry { name: "portcullis", url: &url, token };
        let settings = McpClient::ALL.map(|client| ShownSettings {
            client,
            text: client.settings(&entry),
            link: client.link(&entry),
        });
        Below::Settings(url, settings.into())
    }
}

/// Does what a form asks for by an operation of the API, and goes back to the list.
pub(super) async fn act<F>(
    guest: &Guest,
    scope: Option<Scope>,
    back: &str,
    operation: impl FnOnce(NoQuery) -> F,
) -> Response
where
    F: Future<Output = HandlerResult>,
{
    match guest.ask(scope, operation).await {
        Ok(_) => see_other(back),
        Err(problem) => guest.step_up_of(&problem).unwrap_or_else(|| problem.page(guest)),
    }
}

/// Revokes a token, from the list of tokens.
pub(crate) async fn revoke_token(path: Segment, GuestForm(guest, _): GuestForm) -> Response {
    let revoke = |caller| v1::tokens::revoke(caller, path);
    act(&guest, Some(Scope::Admin), TOKENS.path, revoke).await
}

/// Ends a browser session, from the list of sessions.
pub(crate) async fn end_session(path: Segment, GuestForm(guest, _): GuestForm) -> Response {
    act(&guest, None, SESSIONS.path, |caller| v1::sessions::end(caller, path)).await
}

/// Withdraws a consent, from the list of clients.
pub(crate) async fn withdraw_consent(path: Segment, GuestForm(guest, _): GuestForm) -> Response {
    let withdraw =
        |NoQuery(ctx, gateway)| v1::consents::withdraw(WithQuery(ctx, gateway, None), path);
    act(&guest, None, CLIENTS.path, withdraw).await
}

const WAITING: &str = "/console/waiting";

page! { WaitingPage = "waiting.html"; tools: Vec<Json>, more: Html }

/// Definitions of tools that wait to be accepted, the accepted one beside the new one.
pub(crate) async fn waiting(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(Some(Scope::Admin), &filters, v1::tools::waiting).await?;
    let frame = guest.frame("Waiting tools", WAITING);
    let more = reply.more(WAITING, &filters, "More");
    Ok(render(StatusCode::OK, &WaitingPage { frame, tools: reply.items(), more }))
}

/// Accepts the definition of a tool that was shown.
pub(crate) async fn accept_tool(path: Segment, GuestForm(guest, form): GuestForm) -> Response {
    let version = form.field("version").unwrap_or_default().to_owned();
    let id = segment(path);
    let accept = async move |NoQuery(ctx, gateway)| {
        let accepted = gateway.app.administration.accept_tool(&ctx, &id, &version).await?;
        Ok(Outcome::data(&accepted))
    };
    act(&guest, Some(Scope::Admin), WAITING, accept).await
}
