//! Lists that are one table each: tokens, sessions, clients; and tools that wait.

use askama::Template;
use axum::{http::StatusCode, response::Response};
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    api::ApiReply,
    json::Json,
    render, see_other,
    signed_in::{Frame, Guest, GuestForm},
    table::{
        Action, Column, Filters,
        Look::{self, Badge, Code, Named, Text, Time},
        TableRow, more,
    },
};
use crate::{
    client_settings::{ClientEntry, McpClient},
    exchange::{HandlerResult, NoQuery, Outcome, Segment, WithQuery, segment},
    pages::html::forward,
    v1,
};

#[derive(Template)]
#[template(path = "table.html")]
struct TablePage<'a> {
    frame: Frame,
    path: &'static str,
    filters: &'a Filters,
    /// Words by which a search finds the rows.
    found_by: &'static str,
    /// Contents of the list, in a sentence.
    about: &'static str,
    /// Sentence in place of an empty list: what to do.
    empty: &'static str,
    below: Below,
    columns: Vec<&'static str>,
    rows: Vec<TableRow>,
    more: Option<String>,
}

/// The part of a page below its list.
enum Below {
    Nothing,
    /// A form that makes a token of one of these service accounts.
    TokenForm(Vec<Json>),
    /// Settings with which clients use the gateway, and the address by which they do.
    Settings(String, Vec<ShownSettings>),
}

/// Settings of one client.
struct ShownSettings {
    client: McpClient,
    text: String,
    link: Option<String>,
}

/// The kind of that part.
#[derive(Clone, Copy)]
enum Extra {
    None,
    TokenForm,
    Settings,
}

/// A list of the console.
struct ListPage {
    path: &'static str,
    found_by: &'static str,
    title: &'static str,
    about: &'static str,
    empty: &'static str,
    columns: &'static [Column],
    below: Extra,
    action: fn(&Json) -> Option<Action>,
}

const TOKENS: ListPage = ListPage {
    path: "/console/tokens",
    found_by: "label or principal",
    title: "Tokens",
    about: "Access and refresh tokens of the org. Their secrets are not kept.",
    empty: "There is no token yet. Make one for a service account below.",
    columns: &[
        Column::new("Principal", "/principal_name", Named("/principal_id")),
        Column::new("Label", "/label", Text),
        Column::new("State", "/state", Badge),
        Column::new("Scopes", "/scopes", Text),
        Column::new("Last used", "/last_used_at", Time),
        Column::new("Ends", "/expires_at", Time),
        Column::new("Id", "/id", Code),
    ],
    below: Extra::TokenForm,
    action: |token| {
        token.is("/state", "live").then(|| Action {
            path: format!("/console/tokens/{}/revoke", token.text("/id")),
            label: "Revoke",
            question: "Programs that use this token are refused at once. Revoke it?",
        })
    },
};

const SESSIONS: ListPage = ListPage {
    path: "/console/sessions",
    found_by: "name or address",
    title: "Sessions",
    about: "Browsers that are signed in.",
    empty: "No browser is signed in.",
    columns: &[
        Column::new("Person", "/principal_name", Named("/principal_id")),
        Column::new("Signed in by", "/method", Text),
        Column::new("Issuer", "/issuer", Text),
        Column::new("Since", "/created_at", Time),
        Column::new("Last seen", "/last_seen_at", Time),
        Column::new("Id", "/id", Code),
    ],
    below: Extra::None,
    action: |session| {
        Some(Action {
            path: format!("/console/sessions/{}/end", session.text("/id")),
            label: "Sign out",
            question: "That browser is signed out within five seconds. Go on?",
        })
    },
};

const CLIENTS: ListPage = ListPage {
    path: "/console/clients",
    found_by: "client or person",
    title: "Clients",
    about: "MCP clients that people let act for them.",
    empty: "No client was let in yet. Add the gateway to one by the settings below.",
    columns: &[
        Column::new("Client", "/client/name", Named("/client/id")),
        Column::new("Kind", "/client/kind", Badge),
        Column::new("Returns to", "/returns_to", Code),
        Column::new("Endpoint", "/endpoint", Code),
        Column::new("Scopes", "/scope", Text),
        Column::new("Person", "/principal_name", Named("/principal_id")),
        Column::new("Allowed", "/renewed_at", Time),
    ],
    below: Extra::Settings,
    action: |consent| {
        Some(Action {
            path: format!("/console/clients/{}/withdraw", consent.text("/id")),
            label: "Withdraw",
            question: "The tokens of this client end at once. Withdraw the consent?",
        })
    },
};

/// The page of `GET /v1/tokens`.
#[utoipa::path(
    get, path = "/console/tokens", tag = "console", operation_id = "console_tokens",
    responses(
        (status = 200, description = "a page; takes the filters of `GET /v1/tokens`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks the scope", content_type = "text/html"),
    )
)]
pub(crate) async fn tokens(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(Some(Scope::Admin), &filters, v1::tokens::list).await?;
    Ok(guest.show_list(&TOKENS, &filters, &reply).await)
}

/// The page of `GET /v1/sessions`.
#[utoipa::path(
    get, path = "/console/sessions", tag = "console", operation_id = "console_sessions",
    responses(
        (status = 200, description = "a page; takes the filters of `GET /v1/sessions`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks the scope", content_type = "text/html"),
    )
)]
pub(crate) async fn sessions(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(None, &filters, v1::sessions::list).await?;
    Ok(guest.show_list(&SESSIONS, &filters, &reply).await)
}

/// The page of `GET /v1/consents`.
#[utoipa::path(
    get, path = "/console/clients", tag = "console", operation_id = "console_clients",
    responses(
        (status = 200, description = "a page; takes the filters of `GET /v1/consents`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks the scope", content_type = "text/html"),
    )
)]
pub(crate) async fn clients(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(None, &filters, v1::consents::list).await?;
    Ok(guest.show_list(&CLIENTS, &filters, &reply).await)
}

impl Guest {
    async fn show_list(&self, page: &ListPage, filters: &Filters, reply: &ApiReply) -> Response {
        let row = |item: Json| TableRow::of(&item, page.columns, (page.action)(&item));
        let table = TablePage {
            frame: self.frame(page.title, page.path),
            path: page.path,
            filters,
            found_by: page.found_by,
            about: page.about,
            empty: page.empty,
            below: self.below(page).await,
            columns: page.columns.iter().map(|column| column.name).collect(),
            rows: reply.items().into_iter().map(row).collect(),
            more: more(page.path, filters, reply.next.as_deref()),
        };
        render(StatusCode::OK, &table)
    }

    async fn below(&self, page: &ListPage) -> Below {
        match page.below {
            Extra::None => Below::Nothing,
            Extra::TokenForm => Below::TokenForm(self.service_accounts().await),
            Extra::Settings => self.client_settings(),
        }
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
        Err(problem) => match guest.proof_address() {
            // What is another's is not found without `admin`.
            Some(address) if problem.status == StatusCode::NOT_FOUND => forward("Log in", &address),
            Some(_) | None => problem.page(guest),
        },
    }
}

/// Revokes a token, from the list of tokens.
#[utoipa::path(
    post, path = "/console/tokens/{id}/revoke", tag = "console", operation_id = "console_revoke_token",
    params(("id" = String, Path, description = "`tok_` and a ULID")),
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`"),
    responses(
        (status = 303, description = "revoked: back to the list; or to the login"),
        (status = 400, description = "no page of this session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 404, description = "a page: no such token", content_type = "text/html"),
    )
)]
pub(crate) async fn revoke_token(path: Segment, GuestForm(guest, _): GuestForm) -> Response {
    let revoke = |caller| v1::tokens::revoke(caller, path);
    act(&guest, Some(Scope::Admin), TOKENS.path, revoke).await
}

/// Ends a browser session, from the list of sessions.
#[utoipa::path(
    post, path = "/console/sessions/{id}/end", tag = "console", operation_id = "console_end_session",
    params(("id" = String, Path, description = "`ses_` and a ULID")),
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`"),
    responses(
        (status = 303, description = "ended: back to the list; or to the login"),
        (status = 400, description = "no page of this session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 404, description = "a page: no such session", content_type = "text/html"),
    )
)]
pub(crate) async fn end_session(path: Segment, GuestForm(guest, _): GuestForm) -> Response {
    act(&guest, None, SESSIONS.path, |caller| v1::sessions::end(caller, path)).await
}

/// Withdraws a consent, from the list of clients.
#[utoipa::path(
    post, path = "/console/clients/{id}/withdraw", tag = "console", operation_id = "console_withdraw_consent",
    params(("id" = String, Path, description = "`con_` and a ULID")),
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`"),
    responses(
        (status = 303, description = "withdrawn: back to the list; or to the login"),
        (status = 400, description = "no page of this session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 404, description = "a page: no such consent", content_type = "text/html"),
    )
)]
pub(crate) async fn withdraw_consent(path: Segment, GuestForm(guest, _): GuestForm) -> Response {
    let withdraw =
        |NoQuery(ctx, gateway)| v1::consents::withdraw(WithQuery(ctx, gateway, None), path);
    act(&guest, None, CLIENTS.path, withdraw).await
}

const WAITING: &str = "/console/waiting";

#[derive(Template)]
#[template(path = "waiting.html")]
struct WaitingPage {
    frame: Frame,
    tools: Vec<Json>,
    more: Option<String>,
}

/// Definitions of tools that wait to be accepted, the accepted one beside the new one.
#[utoipa::path(
    get, path = "/console/waiting", tag = "console", operation_id = "console_waiting_tools",
    responses(
        (status = 200, description = "a page of tools that wait", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks `admin`", content_type = "text/html"),
    )
)]
pub(crate) async fn waiting(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(Some(Scope::Admin), &filters, v1::tools::waiting).await?;
    let frame = guest.frame("Waiting tools", WAITING);
    let more = more(WAITING, &filters, reply.next.as_deref());
    Ok(render(StatusCode::OK, &WaitingPage { frame, tools: reply.items(), more }))
}

/// Accepts the definition of a tool that was shown.
#[utoipa::path(
    post, path = "/console/waiting/{id}/accept", tag = "console", operation_id = "console_accept_tool",
    params(("id" = String, Path, description = "`<provider>:<tool_name>`")),
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, and `version` as it was shown"),
    responses(
        (status = 303, description = "accepted: back to the list; or to the login"),
        (status = 400, description = "no page of this session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 404, description = "a page: no such tool", content_type = "text/html"),
        (status = 409, description = "a page: another version waits by now", content_type = "text/html"),
    )
)]
pub(crate) async fn accept_tool(path: Segment, GuestForm(guest, form): GuestForm) -> Response {
    let version = form.field("version").unwrap_or_default().to_owned();
    let id = segment(path);
    let accept = async move |NoQuery(ctx, gateway)| {
        let accepted = gateway.app.administration.accept_tool(&ctx, &id, &version).await?;
        Ok(Outcome::data(&accepted))
    };
    act(&guest, Some(Scope::Admin), WAITING, accept).await
}
