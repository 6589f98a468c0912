//! Metadata of the gateway for OAuth clients (RFC 9728, RFC 8414).

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use portcullis_core::{
    authorization::Face,
    principal::{Scope, ScopeSet},
    refusal::Refusal,
    trust::PROOF_ALGORITHMS,
};
use serde_json::{Value, json};
use utoipa::{
    IntoResponses,
    openapi::{self, ContentBuilder, Object, RefOr, ResponseBuilder},
};

use super::{json_answer, offered};
use crate::{
    exchange::{Outcome, Segment, host, segment},
    gateway::Gateway,
};

/// The scopes that clients are told of; the order in which people think of them.
const SCOPES: [&str; 2] = ["mcps:read", "mcps:invoke"];

/// A route at a path of its own, with the name of its operation and its answer.
macro_rules! route {
    ($(#[$doc:meta])* $name:ident, $path:tt, $operation:tt, |$asker:ident| $answer:expr) => {
        $(#[$doc])*
        #[utoipa::path(
            get, path = $path, tag = "oauth", operation_id = $operation, responses(Described)
        )]
        pub(crate) async fn $name($asker: Asker) -> Response {
            $answer
        }
    };
}

route!(
    /// The protected resource `/mcp` (RFC 9728).
    resource, "/.well-known/oauth-protected-resource", "protected_resource",
    |asker| asker.protected("/mcp")
);
route!(
    /// The protected resource `/mcp`, at its path form.
    resource_all, "/.well-known/oauth-protected-resource/mcp", "protected_resource_mcp",
    |asker| asker.protected("/mcp")
);
route!(
    /// The protected resource `/mcp/`, as clients name it that compare addresses to the letter.
    resource_folder, "/.well-known/oauth-protected-resource/mcp/", "protected_resource_folder",
    |asker| asker.protected("/mcp/")
);

/// The protected resource of one provider.
#[utoipa::path(
    get, path = "/.well-known/oauth-protected-resource/mcp/{slug}", tag = "oauth", operation_id = "protected_resource_provider",
    params(("slug" = String, Path, description = "slug of a provider; the answer is the same whether there is one")),
    responses(Described)
)]
pub(crate) async fn resource_one(asker: Asker, slug: Segment) -> Response {
    match Face::one(&segment(slug)) {
        Some(face) => asker.protected(&face.path()),
        None => Outcome::from(Refusal::not_found("path", "no slug")).into_response(),
    }
}

route!(
    /// The protected resource `/v1`: REST, for clients that the operator declares.
    resource_rest, "/.well-known/oauth-protected-resource/v1", "protected_resource_rest",
    |asker| {
        let scopes: Vec<&str> = ScopeSet::ALL.iter().map(Scope::as_str).collect();
        asker.described(&Face::Rest.path(), &scopes)
    }
);
route!(
    /// The authorization server (RFC 8414).
    server, "/.well-known/oauth-authorization-server", "authorization_server",
    |asker| asker.answer_with(server_metadata)
);
route!(
    /// The authorization server, at the path form of `/mcp`.
    server_all, "/.well-known/oauth-authorization-server/mcp", "authorization_server_mcp",
    |asker| asker.answer_with(server_metadata)
);

/// The authorization server, at the path form of one provider.
#[utoipa::path(
    get, path = "/.well-known/oauth-authorization-server/mcp/{slug}", tag = "oauth", operation_id = "authorization_server_provider",
    params(("slug" = String, Path, description = "slug of a provider; the answer is the same for each")),
    responses(Described)
)]
pub(crate) async fn server_one(asker: Asker) -> Response {
    asker.answer_with(server_metadata)
}

fn server_metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/oauth/authorize"),
        "token_endpoint": format!("{issuer}/oauth/token"),
        "registration_endpoint": format!("{issuer}/oauth/register"),
        "revocation_endpoint": format!("{issuer}/oauth/revoke"),
        "introspection_endpoint": format!("{issuer}/oauth/introspect"),
        "scopes_supported": SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": super::token::GRANT_TYPES,
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": PROOF_ALGORITHMS,
        "dpop_signing_alg_values_supported": PROOF_ALGORITHMS,
        "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"],
        "revocation_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
    })
}

/// Anyone who asks what this gateway is.
pub(crate) struct Asker {
    gateway: Arc<Gateway>,
    /// Host of the request.
    host: String,
}

impl FromRequestParts<Arc<Gateway>> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Infallible> {
        let host = host::named(&parts.headers, &parts.uri).unwrap_or_default().to_owned();
        Ok(Self { gateway: Arc::clone(gateway), host })
    }
}

impl Asker {
    fn protected(&self, path: &str) -> Response {
        self.described(path, &SCOPES)
    }

    /// The resource is named by the host that was asked, as its client names it, if that is one of the gateway's.
    fn described(&self, path: &str, scopes: &[&str]) -> Response {
        let hosts = self.gateway.app.authorization.hosts();
        self.answer_with(|issuer| {
            let own = hosts.address_at(issuer, &self.host);
            json!({
                "resource": format!("{own}{path}"),
                "authorization_servers": [issuer],
                "scopes_supported": scopes,
                "bearer_methods_supported": ["header"],
                "dpop_signing_alg_values_supported": PROOF_ALGORITHMS,
                "dpop_bound_access_tokens_required": false,
                "resource_name": "Portcullis",
            })
        })
    }

    fn answer_with(&self, document: impl Fn(&str) -> Value) -> Response {
        let (_, issuer) = match offered(&self.gateway) {
            Ok(offered) => offered,
            Err(answer) => return answer,
        };
        json_answer(StatusCode::OK, &document(issuer))
    }
}

/// The answers of these routes.
struct Described;

impl IntoResponses for Described {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let answers =
            [("200", "metadata"), ("404", "clients are not authorized here, or this is no slug")];
        let content = || ContentBuilder::new().schema(Some(Object::new())).build();
        let answer = |description: &str| {
            let json = "application/json";
            ResponseBuilder::new().description(description).content(json, content()).build()
        };
        answers
            .into_iter()
            .map(|(status, description)| (status.to_owned(), RefOr::T(answer(description))))
            .collect()
    }
}
