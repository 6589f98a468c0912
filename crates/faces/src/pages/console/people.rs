//! People and tokens as admins run them: principals are made, changed and switched off, tokens made.

use askama::Template;
use axum::{http::StatusCode, response::Response};
use portcullis_core::{id::PrincipalId, principal::Scope};
use serde_json::{Map, Value, json};

use super::{
    PageResult,
    json::Json,
    lists::act,
    render,
    signed_in::{Frame, Guest, GuestForm},
    table::{Filters, more},
};
use crate::{exchange::Segment, pages::form::Form, v1};

const PATH: &str = "/console/people";
const TOKENS: &str = "/console/tokens";
const DAY: i64 = 86_400;

#[derive(Template)]
#[template(path = "people.html")]
struct PeoplePage {
    frame: Frame,
    filters: Filters,
    people: Vec<Json>,
    more: Option<String>,
}

/// Users and service accounts, with forms that make and change them.
#[utoipa::path(
    get, path = "/console/people", tag = "console", operation_id = "console_people",
    responses(
        (status = 200, description = "a page; takes the filters of `GET /v1/principals`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks `admin`", content_type = "text/html"),
    )
)]
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(Some(Scope::Admin), &filters, v1::principals::list).await?;
    let frame = guest.frame("People", PATH);
    let more = more(PATH, &filters, reply.next.as_deref());
    Ok(render(StatusCode::OK, &PeoplePage { frame, filters, people: reply.items(), more }))
}

/// Makes a user or a service account, from the list.
#[utoipa::path(
    post, path = "/console/people", tag = "console", operation_id = "console_create_principal",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, `name`, `kind`, `role` of a user or `scopes` of a service account, `groups`"),
    responses(
        (status = 303, description = "made: back to the list; or to the login"),
        (status = 400, description = "no page of this session sent the form, or a page: the API refuses it", body = crate::exchange::ErrorAnswer),
        (status = 403, description = "a page: the person lacks `admin`, or the API is read-only here", content_type = "text/html"),
        (status = 409, description = "a page: the name is taken", content_type = "text/html"),
    )
)]
pub(crate) async fn create(GuestForm(guest, form): GuestForm) -> Response {
    let is_service = form.field("kind") == Some("service");
    let mut members = texts(&form, &["name", "kind"]);
    members.extend(texts(&form, if is_service { &["scopes"] } else { &["role"] }));
    let groups = form.field("groups").unwrap_or_default();
    let groups: Vec<&str> =
        groups.split([',', '\n']).map(str::trim).filter(|it| !it.is_empty()).collect();
    if !groups.is_empty() {
        members.insert("groups".to_owned(), json!(groups));
    }
    let body = guest.json_body(&Value::Object(members));
    act(&guest, Some(Scope::Admin), PATH, |caller| v1::principals::create(caller, body)).await
}

/// Changes the role of a user or the scopes of a service account, or switches either off or on.
#[utoipa::path(
    post, path = "/console/people/{id}", tag = "console", operation_id = "console_change_principal",
    params(("id" = String, Path, description = "`usr_` or `sa_` and a ULID")),
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, and `role`, `scopes` or `disabled`"),
    responses(
        (status = 303, description = "changed: back to the list; or to the login"),
        (status = 400, description = "no page of this session sent the form, or a page: the API refuses it", body = crate::exchange::ErrorAnswer),
        (status = 404, description = "a page: no such principal", content_type = "text/html"),
        (status = 409, description = "a page: it is the last admin", content_type = "text/html"),
    )
)]
pub(crate) async fn change(path: Segment, GuestForm(guest, form): GuestForm) -> Response {
    let mut members = texts(&form, &["role", "scopes"]);
    if let Some(disabled) = form.field("disabled") {
        members.insert("disabled".to_owned(), json!(disabled == "true"));
    }
    let body = guest.json_body(&Value::Object(members));
    act(&guest, Some(Scope::Admin), PATH, |caller| v1::principals::change(caller, path, body)).await
}

#[derive(Template)]
#[template(path = "token_made.html")]
struct MadePage {
    frame: Frame,
    made: Json,
    token: String,
}

/// Makes a token of a service account, and shows it this once.
#[utoipa::path(
    post, path = "/console/tokens", tag = "console", operation_id = "console_create_token",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, `principal_id`, `scopes`, `label`, `days`"),
    responses(
        (status = 200, description = "a page with the token", content_type = "text/html"),
        (status = 400, description = "no page of this session sent the form, or a page: the API refuses it", body = crate::exchange::ErrorAnswer),
        (status = 403, description = "a page: the person lacks `admin`, or the API is read-only here", content_type = "text/html"),
        (status = 404, description = "a page: no such service account", content_type = "text/html"),
    )
)]
pub(crate) async fn create_token(GuestForm(guest, form): GuestForm) -> Response {
    let mut members = texts(&form, &["principal_id", "scopes", "label"]);
    if let Some(named) = form.field("principal_id").map(str::trim)
        && named.parse::<PrincipalId>().is_err()
        && let Some(known) = guest.service_accounts().await.iter().find(|it| it.is("/name", named))
    {
        members.insert("principal_id".to_owned(), json!(known.text("/id")));
    }
    let days = form.field("days").unwrap_or_default().trim();
    if !days.is_empty() {
        // Text that is no number is refused by the API, in its own words.
        let seconds = days.parse::<i64>().ok().and_then(|days| days.checked_mul(DAY));
        members.insert("expires_in".to_owned(), seconds.map_or(json!(days), |it| json!(it)));
    }
    let body = guest.json_body(&Value::Object(members));
    match guest.ask(Some(Scope::Admin), |caller| v1::tokens::create(caller, body)).await {
        Ok(reply) => {
            let frame = guest.frame("New token", TOKENS);
            let token = reply.data.text("/token");
            render(StatusCode::OK, &MadePage { frame, made: reply.data, token })
        }
        Err(problem) => problem.page(&guest),
    }
}

/// The fields of these names that are not empty.
fn texts(form: &Form, names: &[&str]) -> Map<String, Value> {
    let filled = names.iter().filter_map(|name| {
        let text = form.field(name)?.trim();
        (!text.is_empty()).then(|| ((*name).to_owned(), json!(text)))
    });
    filled.collect()
}
