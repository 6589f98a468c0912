//! The route table: every operation beside what it needs.

mod cors;
mod drain_body;
mod frame;
mod health;
mod metrics;
mod openapi;
pub(crate) mod operator;
pub(crate) mod prefix;
pub(crate) mod router;
mod row;
mod traces;

use std::sync::LazyLock;

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_core::{
    limits::Resource::{self, Requests},
    principal::Scope,
};
use utoipa_axum::routes;

use self::row::{Routes, Row};
use crate::{
    authorization,
    exchange::{
        Access::{self, AnyToken, Credential, Open, Probe, Scoped, Token},
        RouteSpec,
        Thread::{self, Shared},
        Words::{Envelope, OAuth, Scim},
        spec::{
            FORM_LIMIT as FORM, GROUP_LIMIT as GROUP, INVOKE_LIMIT as LARGE, SMALL_LIMIT as SMALL,
        },
    },
    pages::{approvals, console, landing, login, oauth},
    scim, v1,
};

/// The bodies of operations that read none.
const NONE: usize = 0;

/// Every operation.
pub(super) fn table() -> Vec<Row> {
    let all = [api(), administration(), provisioning(), oauth_server(), pages()];
    all.into_iter().flatten().collect()
}

/// An operation: who may ask for it, the limit that is shown with its answers, the thread that
/// handles it, the largest body in bytes, and the handler.
fn row(
    access: Access,
    limit: Resource,
    thread: Thread,
    body: usize,
    routes: fn() -> Routes,
) -> Row {
    Row { spec: RouteSpec { access, limit, thread, body, words: Envelope }, routes }
}

/// An operation that speaks OAuth.
fn oauth(access: Access, body: usize, routes: fn() -> Routes) -> Row {
    let spec = RouteSpec { access, limit: Requests, thread: Shared, body, words: OAuth };
    Row { spec, routes }
}

/// An operation of identity providers.
fn provider(body: usize, routes: fn() -> Routes) -> Row {
    let access = Scoped(Scope::Scim);
    let spec = RouteSpec { access, limit: Requests, thread: Shared, body, words: Scim };
    Row { spec, routes }
}

/// Calls and what surrounds them, pages and probes.
#[rustfmt::skip]
fn api() -> Vec<Row> {
    vec![
        row(Credential,                     Requests,    Shared,     SMALL, || routes!(v1::auth::exchange::exchange)),
        row(AnyToken,                       Requests,    Shared,     NONE,  || routes!(v1::auth::revoke)),
        row(Credential,                     Requests,    Shared,     SMALL, || routes!(v1::auth::refresh::refresh)),
        row(Scoped(Scope::McpsRead),        Requests,    Shared,     NONE,  || routes!(v1::mcps::list)),
        row(Scoped(Scope::McpsRead),        Requests,    Shared,     NONE,  || routes!(v1::mcps::get)),
        row(Scoped(Scope::McpsRead),        Requests,    Shared,     NONE,  || routes!(v1::mcps::left_out)),
        Row { spec: RouteSpec::INVOKE, routes: || routes!(v1::invoke::invoke) },
        row(Scoped(Scope::ProvidersRead),   Requests,    Shared,     NONE,  || routes!(v1::providers::list)),
        row(Scoped(Scope::ProvidersRead),   Requests,    Shared,     NONE,  || routes!(v1::providers::waiting)),
        row(Scoped(Scope::ProvidersRead),   Requests,    Shared,     NONE,  || routes!(v1::providers::get)),
        row(Scoped(Scope::ProvidersWrite),  Requests,    Shared,     NONE,  || routes!(v1::providers::disconnect)),
        row(Scoped(Scope::ProvidersWrite),  Requests,    Shared,     SMALL, || routes!(v1::providers::connect)),
        row(Scoped(Scope::ProvidersWrite),  Requests,    Shared,     SMALL, || routes!(v1::providers::refresh)),
        row(Scoped(Scope::ProvidersWrite),  Requests,    Shared,     SMALL, || routes!(v1::providers::test)),
        row(Scoped(Scope::PoliciesRead),    Requests,    Shared,     NONE,  || routes!(v1::policies::list)),
        row(Scoped(Scope::PoliciesRead),    Requests,    Shared,     NONE,  || routes!(v1::policies::get)),
        row(Scoped(Scope::PoliciesRead),    Requests,    Shared,     LARGE, || routes!(v1::simulate::simulate)),
        row(Scoped(Scope::PoliciesRead),    Requests,    Shared,     LARGE, || routes!(v1::policy_check::check)),
        row(Scoped(Scope::PoliciesRead),    Requests,    Shared,     LARGE, || routes!(v1::dlp::scan)),
        row(Token,                          Requests,    Shared,     NONE,  || routes!(v1::events::list)),
        row(Token,                          Requests,    Shared,     NONE,  || routes!(v1::events::get)),
        row(Token,                          Requests,    Shared,     NONE,  || routes!(v1::checkpoint::proof)),
        row(Scoped(Scope::AuditRead),       Requests,    Shared,     NONE,  || routes!(v1::checkpoint::get)),
        row(Scoped(Scope::AuditRead),       Requests,    Shared,     NONE,  || routes!(v1::counts::get)),
        row(Scoped(Scope::AuditRead),       Requests,    Shared,     NONE,  || routes!(v1::counts::by_tool)),
        row(Scoped(Scope::AuditExport),     Requests,    Shared,     SMALL, || routes!(v1::exports::create)),
        row(Scoped(Scope::AuditExport),     Requests,    Shared,     NONE,  || routes!(v1::exports::get)),
        row(Scoped(Scope::AuditExport),     Requests,    Shared,     NONE,  || routes!(v1::exports::file)),
        row(Scoped(Scope::ApprovalsRead),   Requests,    Shared,     NONE,  || routes!(v1::approvals::list)),
        row(Scoped(Scope::ApprovalsRead),   Requests,    Shared,     NONE,  || routes!(v1::approvals::get)),
        row(Scoped(Scope::ApprovalsDecide), Requests,    Shared,     SMALL, || routes!(v1::approvals::decide)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(landing::show)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(login::show)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(login::links::show)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(login::links::log_in)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(login::issuers::begin)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(login::issuers::finish)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(login::logout::log_out)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(approvals::show)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(oauth::callback)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(oauth::client_metadata)),
        row(Probe,                          Requests,    Shared,     NONE,  || routes!(health::healthz)),
        row(Probe,                          Requests,    Shared,     NONE,  || routes!(health::readyz)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(document)),
    ]
}

/// Administration of an org, and what people let in.
#[rustfmt::skip]
fn administration() -> Vec<Row> {
    vec![
        row(Token,                          Requests,    Shared,     NONE,  || routes!(v1::sessions::list)),
        row(Token,                          Requests,    Shared,     NONE,  || routes!(v1::sessions::end)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::principal_keys::list)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     SMALL, || routes!(v1::principal_keys::add)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::principal_keys::remove)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::org::get)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::principals::list)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     SMALL, || routes!(v1::principals::create)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::principals::get)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     SMALL, || routes!(v1::principals::change)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::tokens::list)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     SMALL, || routes!(v1::tokens::create)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::tokens::revoke)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::tools::waiting)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     SMALL, || routes!(v1::tools::accept)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     SMALL, || routes!(v1::policy_overrides::set)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::policy_overrides::remove)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::holds::list)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     SMALL, || routes!(v1::holds::lay)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::holds::lift)),
        row(Token,                          Requests,    Shared,     NONE,  || routes!(v1::consents::list)),
        row(Token,                          Requests,    Shared,     NONE,  || routes!(v1::consents::withdraw)),
    ]
}

/// Provisioning by identity providers.
#[rustfmt::skip]
fn provisioning() -> Vec<Row> {
    vec![
        provider(NONE,  || routes!(scim::users::list)),
        provider(LARGE, || routes!(scim::users::create)),
        provider(NONE,  || routes!(scim::users::get)),
        provider(LARGE, || routes!(scim::users::replace)),
        provider(LARGE, || routes!(scim::users::patch)),
        provider(NONE,  || routes!(scim::users::delete)),
        provider(NONE,  || routes!(scim::groups::list)),
        provider(GROUP, || routes!(scim::groups::create)),
        provider(NONE,  || routes!(scim::groups::get)),
        provider(GROUP, || routes!(scim::groups::replace)),
        provider(GROUP, || routes!(scim::groups::patch)),
        provider(NONE,  || routes!(scim::groups::delete)),
        provider(NONE,  || routes!(scim::discovery::config)),
        provider(NONE,  || routes!(scim::discovery::schemas)),
        provider(NONE,  || routes!(scim::discovery::schema)),
        provider(NONE,  || routes!(scim::discovery::resource_types)),
        provider(NONE,  || routes!(scim::discovery::resource_type)),
        provider(NONE,  || routes!(scim::discovery::bulk)),
    ]
}

/// The authorization server.
#[rustfmt::skip]
fn oauth_server() -> Vec<Row> {
    vec![
        oauth(Open,                                                  NONE,  || routes!(authorization::metadata::resource)),
        oauth(Open,                                                  NONE,  || routes!(authorization::metadata::resource_all)),
        oauth(Open,                                                  NONE,  || routes!(authorization::metadata::resource_folder)),
        oauth(Open,                                                  NONE,  || routes!(authorization::metadata::resource_one)),
        oauth(Open,                                                  NONE,  || routes!(authorization::metadata::resource_rest)),
        oauth(Open,                                                  NONE,  || routes!(authorization::metadata::server)),
        oauth(Open,                                                  NONE,  || routes!(authorization::metadata::server_all)),
        oauth(Open,                                                  NONE,  || routes!(authorization::metadata::server_one)),
        oauth(Open,                                                  SMALL, || routes!(authorization::register::register)),
        oauth(Open,                                                  NONE,  || routes!(authorization::register::show)),
        oauth(Open,                                                  SMALL, || routes!(authorization::token::token)),
        oauth(Open,                                                  SMALL, || routes!(authorization::revoke::revoke)),
        oauth(Scoped(Scope::TokensIntrospect),                       SMALL, || routes!(authorization::introspect::introspect)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(authorization::authorize::show)),
        row(Open,                           Requests,    Shared,     SMALL, || routes!(authorization::authorize::decide)),
    ]
}

/// The console.
#[rustfmt::skip]
fn pages() -> Vec<Row> {
    vec![
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::home::show)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::assets::show)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::events::list)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::live::stream)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::limits::show)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::log::show)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::log::export)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::log::file)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::log::checkpoint)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::events::show)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::events::proof)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::approvals::list)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::approvals::show)),
        row(Open,                           Requests,    Shared,     SMALL, || routes!(console::approvals::decide)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::tools::list)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::tools::show)),
        row(Open,                           Requests,    Shared,     LARGE, || routes!(console::tools::call)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::policies::list)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::policies::show)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::workbench::show)),
        row(Open,                           Requests,    Shared,     LARGE, || routes!(console::workbench::ask)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::dlp::show)),
        row(Open,                           Requests,    Shared,     LARGE, || routes!(console::dlp::scan)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::providers::list)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::providers::connected)),
        row(Open,                           Requests,    Shared,     LARGE, || routes!(console::providers::connect)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::providers::refresh)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::providers::test)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::providers::disconnect)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::people::list)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::people::create)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::people::change)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::people::create_token)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::lists::tokens)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::lists::revoke_token)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::lists::sessions)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::lists::end_session)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::lists::clients)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::lists::withdraw_consent)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::lists::waiting)),
        row(Open,                           Requests,    Shared,     FORM,  || routes!(console::lists::accept_tool)),
    ]
}

/// The OpenAPI 3.1 document as JSON; written once, for anybody may ask for it.
#[must_use]
pub fn openapi() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        serde_json::to_string_pretty(&openapi::document(table())).unwrap_or_default()
    });
    &DOCUMENT
}

/// The OpenAPI 3.1 document of this API.
#[utoipa::path(
    get, path = "/openapi.json", tag = "health", operation_id = "get_openapi",
    responses((status = 200, description = "the OpenAPI 3.1 document", body = Object))
)]
pub(crate) async fn document() -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::OK, json, openapi()).into_response()
}

#[cfg(test)]
mod tests {
    use super::{prefix::can_be_below, row::operations, *};

    #[test]
    fn a_gateway_is_not_below_one_of_its_own_paths() {
        for routes in table().iter().map(|row| (row.routes)()) {
            for (path, _) in operations(&routes).filter(|(path, _)| *path != "/") {
                assert!(!can_be_below(path), "{path}");
            }
        }
        for free in ["", "/portcullis", "/tools/v1", "/mcps"] {
            assert!(can_be_below(free), "{free}");
        }
        for own in ["/mcp", "/mcp/x", "/metrics"] {
            assert!(!can_be_below(own), "{own}");
        }
    }

    #[test]
    fn an_operation_stands_in_the_table_once() {
        let rows: Vec<Routes> = table().iter().map(|row| (row.routes)()).collect();
        let mut all: Vec<_> = rows.iter().flat_map(operations).collect();
        let count = all.len();

        all.sort_by_key(|(path, method)| (path.to_string(), method.to_string()));
        all.dedup();

        assert_eq!(all.len(), count);
        assert_eq!(rows.len(), count);
    }

    #[test]
    fn only_calls_run_on_the_thread_of_their_connection_and_show_the_limit_of_invocations() {
        for row in table() {
            let RouteSpec { access, limit, thread, .. } = row.spec;
            let call = matches!(access, Access::Call(_));
            let shown = limit == Resource::Invocations;

            assert_eq!((shown, thread == Thread::Connection), (call, call), "{access:?}");
        }
    }
}
