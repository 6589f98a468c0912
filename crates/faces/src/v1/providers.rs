//! `/v1/providers`: the connections the caller may use, and making and ending them.

use portcullis_app::{
    AuthKind, Awaited, ConnectRequest, Connected, Owner, OwnerView, ProviderQuery, ProviderView,
    UpstreamRevocation, WaitingProvider, Whose,
};
use portcullis_core::{
    capability::ProviderSlug,
    clock::Timestamp,
    id::{OrgId, PrincipalId, PrincipalKind, ProviderId},
    refusal::Refusal,
    secret::Secret,
};
use portcullis_store::ProviderStatus;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, NoQuery, One, Outcome, Paged, RequestBody,
    WithQuery,
    body::{self, text, wrong_member},
};

const FILTERS: [&str; 3] = ["slug", "status", "owner"];
const STATUSES: [&str; 5] = ["pending", "starting", "connected", "needs_auth", "error"];
const MEMBERS: [&str; 5] = ["owner", "scopes", "return_to", "api_key", "confirm"];
/// Scopes of one request.
const MAX_SCOPES: usize = 100;

/// Lists connections by slug.
#[utoipa::path(
    get, path = "/v1/providers", tag = "providers", operation_id = "list_providers",
    params(
        ("slug" = Option<String>, Query, description = "slugs, comma-separated", pattern = "[^, ]"),
        ("status" = Option<String>, Query, description = "statuses, comma-separated; default all but `pending`", pattern = "^(pending|starting|connected|needs_auth|error)(,(pending|starting|connected|needs_auth|error))*$"),
        ("owner" = Option<String>, Query, description = "`org`, `me` or the id of a principal (admin)", pattern = "^(org|me|(usr|sa)_[0-7][0-9A-HJKMNP-TV-Z]{25})$"),
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of connections", body = Paged<Items<Provider>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let list = Listing::read(&gateway, &ctx, "providers", &FILTERS, raw.as_deref())?;
    let query = &list.query;
    let statuses = query.any_of("status", &STATUSES)?;
    let wanted = ProviderQuery {
        slugs: query.list("slug"),
        statuses: (!statuses.is_empty()).then_some(statuses),
        whose: whose(query.text("owner"))?,
        after: list.after.as_deref().and_then(|after| {
            after.split_once(' ').map(|(slug, id)| (slug.to_owned(), id.to_owned()))
        }),
        limit: list.limit,
    };
    let (found, more) = gateway.app.providers.list(&ctx, &wanted).await?;
    let end = found.last().filter(|_| more).map(|view| format!("{} {}", view.slug, view.id));
    let items = found.iter().map(Provider::of).collect();
    Ok(list.answer(&Items { items }, end.as_deref()))
}

fn whose(owner: Option<&str>) -> Result<Whose, Refusal> {
    match owner {
        None => Ok(Whose::Visible),
        Some("org") => Ok(Whose::Org),
        Some("me") => Ok(Whose::Mine),
        Some(id) => id.parse().map(Whose::Of).map_err(|_| {
            Refusal::bad_parameter("owner", "`owner` takes org, me or the id of a principal.")
        }),
    }
}

/// Lists the providers without a connection that the caller could use, by slug, with what each waits for.
///
/// A connection that was begun and not confirmed is none.
#[utoipa::path(
    get, path = "/v1/providers/waiting", tag = "providers", operation_id = "list_waiting_providers",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of providers", body = Paged<Items<Waiting>>),
    )
)]
pub(crate) async fn waiting(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let listing = Listing::read(&gateway, &ctx, "waiting_providers", &[], raw.as_deref())?;
    let mut all = gateway.app.providers.waiting(&ctx).await?;
    all.retain(|it| listing.after.as_deref().is_none_or(|after| it.slug.as_str() > after));
    let items: Vec<_> = all.iter().take(listing.limit).map(Waiting::of).collect();
    let last = items.last().filter(|_| all.len() > listing.limit);
    let end = last.map(|it| it.slug.as_str().to_owned());
    Ok(listing.answer(&Items { items }, end.as_deref()))
}

/// One connection.
#[utoipa::path(
    get, path = "/v1/providers/{id}", tag = "providers", operation_id = "get_provider",
    params(("id" = String, Path, description = "`prv_` and a ULID")),
    responses(
        (status = 200, description = "the connection", body = One<Provider>),
    )
)]
pub(crate) async fn get(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    let view = gateway.app.providers.provider(&ctx, &segment(path)).await?;
    Ok(Outcome::data(&Provider::of(&view)))
}

/// Connects a provider: begins consent, ends it, or takes a key.
///
/// `{}` begins consent (202) or connects a provider without credentials; `api_key` connects one that
/// takes a key; `confirm` ends what was begun.
#[utoipa::path(
    post, path = "/v1/providers/{slug}/connect", tag = "providers", operation_id = "connect_provider",
    params(("slug" = String, Path, description = "what to connect")),
    request_body = Option<ConnectRequest>,
    responses(
        (status = 200, description = "the connection, `connected`", body = One<Provider>),
        (status = 202, description = "a browser has to go to `authorization_url`", body = One<Connecting>),
        (status = 400, description = "bad request, wrong code, or a key that the provider refuses", body = ErrorAnswer),
        (status = 403, description = "the token lacks `providers:write`, or `admin` for the org", body = ErrorAnswer),
        (status = 404, description = "no such provider; `details.available` lists those there are", body = ErrorAnswer),
        (status = 502, description = "the provider or its authorization server failed", body = ErrorAnswer),
        (status = 504, description = "the provider was too slow", body = ErrorAnswer),
    )
)]
pub(crate) async fn connect(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
    request: RequestBody,
) -> HandlerResult {
    let members = request.optional_object().await?;
    let request = parse_connect(members)?;
    match gateway.app.providers.connect(ctx, segment(path), request).await? {
        Connected::Done(view) => Ok(Outcome::data(&Provider::of(&view))),
        Connected::Begun { view, authorization_url, expires_at } => {
            Ok(Outcome::begun(&Connecting {
                provider: PendingProvider {
                    id: view.id,
                    slug: &view.slug,
                    name: &view.name,
                    status: view.status,
                },
                authorization_url: &authorization_url,
                expires_at,
            }))
        }
    }
}

fn parse_connect(mut members: Map<String, Value>) -> Result<ConnectRequest, Refusal> {
    body::only(&members, &MEMBERS)?;
    let members = &mut members;
    let owner = match text(members, "owner", 10)?.as_deref() {
        None => None,
        Some("me") => Some(Owner::Me),
        Some("org") => Some(Owner::Org),
        Some(_) => return Err(wrong_member("owner", "can be `me` or `org`")),
    };
    Ok(ConnectRequest {
        owner,
        scopes: scopes(members)?,
        return_to: text(members, "return_to", 2_000)?,
        api_key: text(members, "api_key", 8 << 10)?.map(Secret::new),
        confirm: text(members, "confirm", 100)?.map(Secret::new),
    })
}

fn scopes(members: &mut Map<String, Value>) -> Result<Option<Vec<String>>, Refusal> {
    let wrong = || wrong_member("scopes", "has to be a list of at most 100 texts");
    let list = match members.remove("scopes") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) if list.len() <= MAX_SCOPES => list,
        Some(_) => return Err(wrong()),
    };
    let texts = list.into_iter().map(|scope| match scope {
        Value::String(text) => Ok(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong())
        }
    });
    texts.collect::<Result<_, _>>().map(Some)
}

/// Ends a connection: its credentials are deleted here, then revoked at the provider.
#[utoipa::path(
    delete, path = "/v1/providers/{id}", tag = "providers", operation_id = "disconnect_provider",
    params(("id" = String, Path, description = "`prv_` and a ULID")),
    responses(
        (status = 200, description = "gone; `upstream_revocation` is `done`, `failed` or `unsupported`", body = One<DisconnectedProvider>),
        (status = 403, description = "the token lacks `providers:write`, or `admin`", body = ErrorAnswer),
    )
)]
pub(crate) async fn disconnect(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    let gone = gateway.app.providers.disconnect(ctx, segment(path)).await?;
    Ok(Outcome::data(&DisconnectedProvider {
        id: gone.id,
        slug: &gone.slug,
        disconnected: true,
        upstream_revocation: gone.upstream_revocation,
    }))
}

/// Gets new credentials from the provider now, and reads its tools anew.
#[utoipa::path(
    post, path = "/v1/providers/{id}/refresh", tag = "providers", operation_id = "refresh_provider",
    params(("id" = String, Path, description = "`prv_` and a ULID")),
    responses(
        (status = 200, description = "the connection", body = One<Provider>),
        (status = 400, description = "the body is not empty", body = ErrorAnswer),
        (status = 403, description = "the token lacks `providers:write`, or `admin`", body = ErrorAnswer),
        (status = 409, description = "connect it again, or there is nothing to refresh with", body = ErrorAnswer),
        (status = 502, description = "the provider or its authorization server failed", body = ErrorAnswer),
        (status = 504, description = "the provider was too slow", body = ErrorAnswer),
    )
)]
pub(crate) async fn refresh(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
    request: RequestBody,
) -> HandlerResult {
    let members = request.optional_object().await?;
    body::only(&members, &[])?;
    let view = gateway.app.providers.refresh_connection(ctx, segment(path)).await?;
    Ok(Outcome::data(&Provider::of(&view)))
}

/// Asks a provider for its tools now, and tells how its connection stands.
#[utoipa::path(
    post, path = "/v1/providers/{id}/test", tag = "providers", operation_id = "test_provider",
    params(("id" = String, Path, description = "`prv_` and a ULID")),
    responses(
        (status = 200, description = "what came of it, also when the provider failed", body = One<TestedProvider>),
        (status = 400, description = "the body is not empty", body = ErrorAnswer),
        (status = 403, description = "the token lacks `providers:write`", body = ErrorAnswer),
        (status = 503, description = "the gateway cannot read what it remembers", body = ErrorAnswer),
    )
)]
pub(crate) async fn test(
    NoQuery(ctx, gateway): NoQuery,
    path: Segment,
    request: RequestBody,
) -> HandlerResult {
    let members = request.optional_object().await?;
    body::only(&members, &[])?;
    let test = gateway.app.providers.test_connection(&ctx, &segment(path)).await?;
    let failure = test.failure.as_ref();
    Ok(Outcome::data(&TestedProvider {
        provider: Provider::of(&test.provider),
        reached: failure.is_none(),
        took_ms: u64::try_from(test.took.as_millis()).unwrap_or(u64::MAX),
        error: failure
            .map(|refusal| TestFailure { code: refusal.code(), message: refusal.to_string() }),
    }))
}

/// A connection that was tested.
#[derive(Serialize, ToSchema)]
pub(crate) struct TestedProvider<'a> {
    provider: Provider<'a>,
    /// True if the provider listed its tools.
    reached: bool,
    /// Milliseconds until it had, or had failed.
    took_ms: u64,
    error: Option<TestFailure>,
}

/// The reason that a provider did not list its tools, in the words of a call's error.
#[derive(Serialize, ToSchema)]
struct TestFailure {
    #[schema(example = "upstream_timeout")]
    code: &'static str,
    message: String,
}

/// A connection to a provider.
#[derive(Serialize, ToSchema)]
pub(crate) struct Provider<'a> {
    id: ProviderId,
    #[schema(value_type = String, example = "github")]
    slug: &'a ProviderSlug,
    /// Its name for people.
    name: &'a str,
    status: ProviderStatus,
    owner: ProviderOwner,
    auth: ProviderAuth<'a>,
    account: Option<ProviderAccount<'a>>,
    /// Kinds of what it offers that the configuration lets through: `tools`, `prompts`, `resources`, `apps`.
    #[schema(value_type = Vec<String>)]
    exposes: &'a [&'static str],
    /// Kinds and extensions (by their ids) that its server declares and that do not pass: `expose` does not name them, or
    /// the gateway does not know them. As the server said last to this node.
    dropped: &'a [String],
    /// Number of tools that it offers.
    tools: usize,
    /// Last error.
    last_error: Option<&'a str>,
    connected_at: Option<Timestamp>,
    updated_at: Timestamp,
}

/// A provider without a connection, which the caller could use with one.
#[derive(Serialize, ToSchema)]
pub(crate) struct Waiting<'a> {
    #[schema(value_type = String, example = "github")]
    slug: &'a ProviderSlug,
    /// Its name for people.
    name: &'a str,
    /// Kinds of what it offers that the configuration lets through: `tools`, `prompts`, `resources`, `apps`.
    #[schema(value_type = Vec<String>)]
    exposes: &'a [&'static str],
    waits_for: Awaited,
    /// True if a user may connect it for itself.
    for_me: bool,
    /// True if an admin may connect it for the org.
    for_org: bool,
}

impl<'a> Waiting<'a> {
    fn of(provider: &'a WaitingProvider) -> Self {
        Self {
            slug: &provider.slug,
            name: &provider.name,
            exposes: &provider.exposes,
            waits_for: provider.waits_for,
            for_me: provider.owners.me,
            for_org: provider.owners.org,
        }
    }
}

/// The org or principal that a connection belongs to.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ProviderOwner {
    Org { id: OrgId },
    User { id: PrincipalId },
    Service { id: PrincipalId },
}

/// Authentication of the gateway to a provider.
#[derive(Serialize, ToSchema)]
struct ProviderAuth<'a> {
    #[serde(rename = "type")]
    kind: AuthKind,
    /// Scopes of its credentials.
    #[schema(value_type = Vec<String>)]
    scopes: &'a [String],
    expires_at: Option<Timestamp>,
    refreshable: bool,
    last_refreshed_at: Option<Timestamp>,
}

/// The account at the provider.
#[derive(Serialize, ToSchema)]
struct ProviderAccount<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
}

/// A connect that a browser has to go on with.
#[derive(Serialize, ToSchema)]
pub(crate) struct Connecting<'a> {
    provider: PendingProvider<'a>,
    /// Address that the browser has to go to.
    authorization_url: &'a str,
    /// When it has to be done.
    expires_at: Timestamp,
}

/// A connection that is being made.
#[derive(Serialize, ToSchema)]
struct PendingProvider<'a> {
    id: ProviderId,
    #[schema(value_type = String)]
    slug: &'a ProviderSlug,
    name: &'a str,
    status: ProviderStatus,
}

/// A connection that is no more.
#[derive(Serialize, ToSchema)]
pub(crate) struct DisconnectedProvider<'a> {
    id: ProviderId,
    #[schema(value_type = String)]
    slug: &'a ProviderSlug,
    /// Always `true`.
    disconnected: bool,
    upstream_revocation: UpstreamRevocation,
}

impl<'a> Provider<'a> {
    fn of(view: &'a ProviderView) -> Self {
        let account = view.account.as_ref();
        Self {
            id: view.id,
            slug: &view.slug,
            name: &view.name,
            status: view.status,
            owner: match view.owner {
                OwnerView::Org(id) => ProviderOwner::Org { id },
                OwnerView::Principal(id) => match id.kind() {
                    PrincipalKind::User => ProviderOwner::User { id },
                    PrincipalKind::Service => ProviderOwner::Service { id },
                },
            },
            auth: ProviderAuth {
                kind: view.auth,
                scopes: &view.grant.scopes,
                expires_at: view.grant.expires_at,
                refreshable: view.grant.refreshable,
                last_refreshed_at: view.grant.refreshed_at,
            },
            account: account.map(|account| ProviderAccount {
                id: account.id.as_deref(),
                name: account.name.as_deref(),
            }),
            exposes: &view.exposes,
            dropped: &view.dropped,
            tools: view.tools,
            last_error: view.last_error.as_deref(),
            connected_at: view.connected_at,
            updated_at: view.updated_at,
        }
    }
}
