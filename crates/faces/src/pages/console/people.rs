//! People and tokens as admins run them: principals are made, changed and switched off, tokens made.

use axum::{http::StatusCode, response::Response};
use portcullis_core::{id::PrincipalId, principal::Scope};
use serde_json::{Value, json};

use super::{
    PageResult,
    form::{Choices, FormState},
    json::Json,
    lists::{act, show_tokens},
    render, see_other,
    signed_in::{Guest, GuestForm},
    table::Filters,
};
use crate::{exchange::Segment, pages::html::Html, v1};

const PATH: &str = "/console/people";
const TOKENS: &str = "/console/tokens";
const DAY: i64 = 86_400;
const ROLES: Choices = &[("member", "member"), ("auditor", "auditor"), ("admin", "admin")];

page! { PeoplePage = "people.html";
    filters: Filters, people: Vec<Json>, more: Html,
    /// The forms that make a user and a service account.
    user: FormState, account: FormState,
}

/// Users and service accounts, with forms that make and change them.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    page(&guest, filters, FormState::default(), FormState::default()).await
}

async fn page(guest: &Guest, filters: Filters, user: FormState, account: FormState) -> PageResult {
    let reply = guest.list(Some(Scope::Admin), &filters, v1::principals::list).await?;
    let frame = guest.frame("People", PATH);
    let more = reply.more(PATH, &filters, "More");
    let status = if user.status() == StatusCode::OK { account.status() } else { user.status() };
    let people = reply.items();
    Ok(render(status, &PeoplePage { frame, filters, people, more, user, account }))
}

/// Makes a user or a service account, from the list.
pub(crate) async fn create(GuestForm(guest, form): GuestForm) -> PageResult {
    let is_service = form.field("kind") == Some("service");
    let mut members = form.texts(&["name", "kind"]);
    members.extend(form.texts(if is_service { &["scopes"] } else { &["role"] }));
    let groups = form.field("groups").unwrap_or_default();
    let groups: Vec<&str> =
        groups.split([',', '\n']).map(str::trim).filter(|it| !it.is_empty()).collect();
    if !groups.is_empty() {
        members.insert("groups".to_owned(), json!(groups));
    }
    let body = guest.json_body(&Value::Object(members));
    match guest.ask(Some(Scope::Admin), |caller| v1::principals::create(caller, body)).await {
        Ok(_) => Ok(see_other(PATH)),
        Err(problem) => {
            let refused = guest.refuse(&form, problem)?;
            let other = FormState::default();
            let (user, account) = if is_service { (other, refused) } else { (refused, other) };
            page(&guest, Filters::default(), user, account).await
        }
    }
}

/// Changes the role of a user or the scopes of a service account, or switches either off or on.
pub(crate) async fn change(path: Segment, GuestForm(guest, form): GuestForm) -> Response {
    let mut members = form.texts(&["role", "scopes"]);
    if let Some(disabled) = form.field("disabled") {
        members.insert("disabled".to_owned(), json!(disabled == "true"));
    }
    let body = guest.json_body(&Value::Object(members));
    act(&guest, Some(Scope::Admin), PATH, |caller| v1::principals::change(caller, path, body)).await
}

page! { MadePage = "token_made.html"; made: Json, token: String }

/// Makes a token of a service account, and shows it this once.
pub(crate) async fn create_token(GuestForm(guest, form): GuestForm) -> PageResult {
    let mut members = form.texts(&["principal_id", "scopes", "label"]);
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
            Ok(render(StatusCode::OK, &MadePage { frame, made: reply.data, token }))
        }
        Err(problem) => {
            let refused = guest.refuse(&form, problem)?;
            show_tokens(&guest, &Filters::default(), refused).await
        }
    }
}
