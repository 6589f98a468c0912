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
    routing::{get, post},
};
use portcullis_core::{
    limits::Resource::{self, Requests},
    principal::Scope,
};
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder, Paths};
use utoipa_axum::routes;

use self::row::{Routes, Row};
use crate::{
    authorization,
    exchange::{
        Access::{self, AnyToken, Credential, Open, Probe, Public, Scoped, Token},
        RouteSpec,
        Thread::{self, Shared},
        Words::{Envelope, OAuth, Scim},
        spec::{
            FORM_LIMIT as FORM, GROUP_LIMIT as GROUP, INVOKE_LIMIT as LARGE, SMALL_LIMIT as SMALL,
        },
    },
    mcp::card,
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
        row(Scoped(Scope::McpsRead),        Requests,    Shared,     NONE,  || routes!(v1::prompts::list)),
        row(Scoped(Scope::McpsRead),        Requests,    Shared,     NONE,  || routes!(v1::prompts::get)),
        Row { spec: RouteSpec::INVOKE, routes: || routes!(v1::prompts::get_messages) },
        row(Scoped(Scope::McpsRead),        Requests,    Shared,     NONE,  || routes!(v1::skills::list)),
        row(Scoped(Scope::McpsRead),        Requests,    Shared,     NONE,  || routes!(v1::skills::get)),
        row(Scoped(Scope::McpsRead),        Requests,    Shared,     NONE,  || routes!(v1::resources::list)),
        Row { spec: RouteSpec::INVOKE, routes: || routes!(v1::resources::read) },
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
        row(Public,                         Requests,    Shared,     NONE,  || routes!(card::show_all)),
        row(Public,                         Requests,    Shared,     NONE,  || routes!(card::show_one)),
        row(Public,                         Requests,    Shared,     NONE,  || routes!(card::list)),
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
        row(Scoped(Scope::Admin),           Requests,    Shared,     SMALL, || routes!(v1::tokens::inspect)),
        row(Scoped(Scope::Admin),           Requests,    Shared,     NONE,  || routes!(v1::tools::list)),
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

/// A page of the console: its largest body, method and path, its name in the document, its handler, and what it is.
macro_rules! page {
    ($body:expr, $method:ident $path:literal, $id:ident, $($handler:ident)::+, $summary:literal) => {
        row(Open, Requests, Shared, $body, || {
            let operation = describe_page(stringify!($id), $summary);
            let mut paths = Paths::new();
            paths.add_path_operation($path, vec![page!(@ $method)], operation);
            (Vec::new(), paths, $method(console::$($handler)::+))
        })
    };
    (@ get) => { HttpMethod::Get };
    (@ post) => { HttpMethod::Post };
}

fn describe_page(id: &'static str, summary: &'static str) -> Operation {
    let operation = OperationBuilder::new().tag("console").operation_id(Some(id));
    operation.summary(Some(summary)).build()
}

/// The console.
#[rustfmt::skip]
fn pages() -> Vec<Row> {
    vec![
        page!(NONE,  get  "/console",                            console_home,             home::show,              "The first page of the console"),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::assets::show)),
        page!(NONE,  get  "/console/events",                     console_events,           events::list,            "Events, the newest first, with the filters of the API"),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::live::stream)),
        page!(NONE,  get  "/console/limits",                     console_limits,           limits::show,            "Limits of the plan and what is used of them"),
        page!(NONE,  get  "/console/log",                        console_log,              log::show,               "The log: its checkpoint, its exports and holds, and a check that it continues what was seen"),
        page!(FORM,  post "/console/log",                        console_export,           log::export,             "Begins an export of the log, from the form of its page"),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::log::file)),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::log::checkpoint)),
        page!(NONE,  get  "/console/events/{id}",                console_event,            events::show,            "One event: what was asked, decided, found and answered, and with `explain=1` why"),
        row(Open,                           Requests,    Shared,     NONE,  || routes!(console::events::proof)),
        page!(NONE,  get  "/console/approvals",                  console_approvals,        approvals::list,         "Approvals: those that wait, or those with the status that the query names"),
        page!(NONE,  get  "/console/approvals/{id}",             console_approval,         approvals::show,         "One approval: the call as it will be sent, who asked for it, and a form to decide"),
        page!(SMALL, post "/console/approvals/{id}",             console_decide,           approvals::decide,       "Decides about an approval, from the form of its page"),
        page!(NONE,  get  "/console/tools",                      console_tools,            tools::list,             "The tools, or the prompts, resources or skills, that the person sees, with the filters of the API, and what was left out"),
        page!(NONE,  get  "/console/tools/{id}",                 console_tool,             tools::show,             "One tool, prompt, resource, template or skill: its definition as accepted, who may use it, and a form to try it"),
        page!(LARGE, post "/console/tools/{id}",                 console_try_tool,         tools::call,             "Calls a tool, gets a prompt or reads a resource as the person, from the form of its page: a governed call like any other"),
        page!(NONE,  get  "/console/policies",                   console_policies,         policies::list,          "The policies in force and how often each decided, with the filters of the API"),
        page!(NONE,  get  "/console/policies/{id}",              console_policy,           policies::show,          "One policy: its text, where it comes from, what it reads, and how often it decided"),
        page!(NONE,  get  "/console/workbench",                  console_workbench,        workbench::show,         "The workbench with an empty draft"),
        page!(LARGE, post "/console/workbench",                  console_try_draft,        workbench::ask,          "Checks, simulates, replays or downloads a draft. Nothing is executed or put in force"),
        page!(NONE,  get  "/console/dlp",                        console_dlp,              dlp::show,               "An empty form"),
        page!(LARGE, post "/console/dlp",                        console_scan,             dlp::scan,               "Scans a text or a JSON value by the settings in force. It is not kept, recorded or logged"),
        page!(NONE,  get  "/console/providers",                  console_providers,        providers::list,         "Connections, with what the person may do to each"),
        page!(NONE,  get  "/console/providers/{slug}/connected", console_connected,        providers::connected,    "The page that a browser comes back to from the authorization of a provider: a button that\nconfirms. Nothing is connected before it is pressed"),
        page!(LARGE, post "/console/providers/connect",          console_connect,          providers::connect,      "Connects a provider, from the list or the page that the browser came back to"),
        page!(FORM,  post "/console/providers/{id}/refresh",     console_refresh_provider, providers::refresh,      "Refreshes a connection, from the list"),
        page!(FORM,  post "/console/providers/{id}/test",        console_test_provider,    providers::test,         "Asks a provider for its tools now, from the list"),
        page!(FORM,  post "/console/providers/{id}/disconnect",  console_disconnect,       providers::disconnect,   "Ends a connection, from the list"),
        page!(NONE,  get  "/console/people",                     console_people,           people::list,            "Users and service accounts, with forms that make and change them"),
        page!(FORM,  post "/console/people",                     console_create_principal, people::create,          "Makes a user or a service account, from the list"),
        page!(FORM,  post "/console/people/{id}",                console_change_principal, people::change,          "Changes the role of a user or the scopes of a service account, or switches either off or on"),
        page!(FORM,  post "/console/tokens",                     console_create_token,     people::create_token,    "Makes a token of a service account, and shows it this once"),
        page!(NONE,  get  "/console/tokens",                     console_tokens,           lists::tokens,           "The page of `GET /v1/tokens`"),
        page!(FORM,  post "/console/tokens/{id}/revoke",         console_revoke_token,     lists::revoke_token,     "Revokes a token, from the list of tokens"),
        page!(NONE,  get  "/console/sessions",                   console_sessions,         lists::sessions,         "The page of `GET /v1/sessions`"),
        page!(FORM,  post "/console/sessions/{id}/end",          console_end_session,      lists::end_session,      "Ends a browser session, from the list of sessions"),
        page!(NONE,  get  "/console/clients",                    console_clients,          lists::clients,          "The page of `GET /v1/consents`"),
        page!(FORM,  post "/console/clients/{id}/withdraw",      console_withdraw_consent, lists::withdraw_consent, "Withdraws a consent, from the list of clients"),
        page!(NONE,  get  "/console/waiting",                    console_waiting_tools,    lists::waiting,          "Definitions of tools that wait to be accepted, the accepted one beside the new one"),
        page!(FORM,  post "/console/waiting/{id}/accept",        console_accept_tool,      lists::accept_tool,      "Accepts the definition of a tool that was shown"),
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
