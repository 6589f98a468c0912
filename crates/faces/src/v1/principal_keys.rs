//! `/v1/principals/{id}/keys`: the public keys by which service accounts prove themselves.

use portcullis_core::{
    clock::Timestamp,
    id::PrincipalId,
    refusal::Refusal,
    trust::{MAX_PUBLIC_KEY_BYTES, PublicKey, PublicKeyError},
};
use portcullis_store::PrincipalKey;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Segment, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, NoQuery, One, Outcome, Query, RequestBody, WithQuery,
    body::{self, text, wrong_member},
};

const MEMBERS: [&str; 2] = ["jwk", "pem"];
/// Characters of an id; longer ones name no key.
const MAX_KEY_ID: usize = 64;

/// Lists the keys of a service account, the oldest first: eight at most.
#[utoipa::path(
    get, path = "/v1/principals/{id}/keys", tag = "principals", operation_id = "list_principal_keys",
    params(("id" = String, Path, description = "`sa_` and a ULID")),
    responses(
        (status = 200, description = "the keys", body = One<Items<Key>>),
    )
)]
pub(crate) async fn list(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    let keys = gateway.app.access.principal_keys(&ctx, principal(path)?).await?;
    Ok(Outcome::data(&Items { items: keys.iter().map(Key::of).collect() }))
}

/// Registers a public key for a service account. The same key again is no error.
#[utoipa::path(
    post, path = "/v1/principals/{id}/keys", tag = "principals", operation_id = "add_principal_key",
    params(("id" = String, Path, description = "`sa_` and a ULID")),
    request_body = NewKey,
    responses(
        (status = 200, description = "the key, good from now on", body = One<Key>),
        (status = 400, description = "no public key that can be used, or there are eight already", body = ErrorAnswer),
    )
)]
pub(crate) async fn add(
    WithQuery(ctx, gateway, raw): WithQuery,
    path: Segment,
    request: RequestBody,
) -> HandlerResult {
    gateway.app.administration.writable()?;
    Query::parse(raw.as_deref(), &[])?;
    let key = parse_key(request.optional_object().await?)?;
    let principal = principal(path)?;
    gateway.app.administration.admit_key(&ctx, principal).await?;
    let key = gateway.app.access.add_principal_key(ctx, principal, key).await?;
    Ok(Outcome::data(&Key::of(&key)))
}

/// Removes a key of a service account, and revokes the tokens that it bought.
#[utoipa::path(
    delete, path = "/v1/principals/{id}/keys", tag = "principals", operation_id = "remove_principal_key",
    params(
        ("id" = String, Path, description = "`sa_` and a ULID"),
        ("key_id" = String, Query, description = "the key's thumbprint", pattern = "^[A-Za-z0-9_-]{43}$"),
    ),
    responses(
        (status = 200, description = "the key buys nothing any more", body = One<RemovedKey>),
        (status = 404, description = "no such principal in this org, or it has no such key", body = ErrorAnswer),
    )
)]
pub(crate) async fn remove(
    WithQuery(ctx, gateway, raw): WithQuery,
    path: Segment,
) -> HandlerResult {
    gateway.app.administration.writable()?;
    let query = Query::parse(raw.as_deref(), &["key_id"])?;
    let key_id = query.short("key_id", MAX_KEY_ID)?.ok_or_else(|| {
        Refusal::bad_parameter("key_id", "`key_id` is missing: it says which key to remove.")
    })?;
    let principal = principal(path)?;
    let removed = gateway.app.access.remove_principal_key(ctx, principal, key_id.clone()).await?;
    let tokens_revoked = removed.tokens_revoked;
    Ok(Outcome::data(&RemovedKey { removed: true, key_id: &key_id, tokens_revoked }))
}

fn principal(path: Segment) -> Result<PrincipalId, Refusal> {
    let id = segment(path);
    id.parse().map_err(|_| Refusal::not_found("principal", &id))
}

fn parse_key(mut members: Map<String, Value>) -> Result<PublicKey, Refusal> {
    body::only(&members, &MEMBERS)?;
    let wrong = |name: &str, error: PublicKeyError| {
        wrong_member(name, &format!("is no key that can be registered: {error}"))
    };
    match (members.remove("jwk"), text(&mut members, "pem", MAX_PUBLIC_KEY_BYTES)?) {
        (Some(jwk), None) => PublicKey::of_jwk(&jwk).map_err(|error| wrong("jwk", error)),
        (None, Some(pem)) => PublicKey::parse(&pem).map_err(|error| wrong("pem", error)),
        (Some(_), Some(_)) | (None, None) => {
            Err(Refusal::bad_request("The key is given either as `jwk` or as `pem`."))
        }
    }
}

/// The body of a registration: one of the two.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body, which is read by its members")]
pub(crate) struct NewKey {
    /// A public JWK (RFC 7517) for RS256, PS256, ES256 or `EdDSA`.
    #[schema(value_type = Option<Object>)]
    jwk: Option<Value>,
    /// The same in PEM, `BEGIN PUBLIC KEY`, at most 16 KiB.
    #[schema(max_length = 16384)]
    pem: Option<String>,
}

/// A public key of a service account.
#[derive(Serialize, ToSchema)]
#[schema(as = PrincipalKey)]
pub(crate) struct Key<'a> {
    /// Its thumbprint (RFC 7638), which an assertion may name in `kid`.
    #[schema(example = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")]
    id: &'a str,
    /// The key, with the `kid` that it came with.
    #[schema(value_type = Object)]
    jwk: &'a Value,
    created_at: Timestamp,
    /// When it last bought a token that is still kept.
    last_used_at: Option<Timestamp>,
}

impl<'a> Key<'a> {
    fn of(key: &'a PrincipalKey) -> Self {
        let PrincipalKey { key, created_at, last_used_at, .. } = key;
        Self {
            id: key.thumbprint(),
            jwk: key.jwk(),
            created_at: *created_at,
            last_used_at: *last_used_at,
        }
    }
}

/// A key that was removed.
#[derive(Serialize, ToSchema)]
#[schema(as = RemovedPrincipalKey)]
pub(crate) struct RemovedKey<'a> {
    removed: bool,
    key_id: &'a str,
    /// Live tokens that fell with it.
    tokens_revoked: u64,
}
