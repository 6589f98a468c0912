//! The challenge to a client that was refused at an MCP endpoint (RFC 6750 §3, RFC 9728 §5.1).

use axum::http::{HeaderMap, header};
use portcullis_core::{authorization::Face, refusal::Refusal, trust::PROOF_ALGORITHMS};

use crate::{
    exchange::outcome::{in_words, insert},
    gateway::Gateway,
};

/// Scopes that a client needs at an MCP endpoint, as those without a token are told.
const USUAL: &str = "mcps:read mcps:invoke";

/// Says in the challenge of a refusal at the MCP endpoint `asked`, a host and a path, where a token is to be had, if
/// clients are authorized here.
pub(crate) fn complete(gateway: &Gateway, asked: &str, refusal: &Refusal, headers: &mut HeaderMap) {
    let authorization = &gateway.app.authorization;
    let Some(issuer) = authorization.issuer() else { return };
    if !headers.contains_key(header::WWW_AUTHENTICATE) {
        return;
    }
    let at = asked.find('/').unwrap_or(asked.len());
    let (host, path) = asked.split_at_checked(at).unwrap_or_default();
    let own = authorization.hosts().address_at(issuer, host);
    insert(headers, header::WWW_AUTHENTICATE, &challenge(&own, path, refusal));
}

fn challenge(own: &str, path: &str, refusal: &Refusal) -> String {
    let slug = path.strip_prefix("/mcp/");
    let is_face = slug.is_some_and(|slug| slug.is_empty() || Face::one(slug).is_some());
    let path = if is_face { path } else { "/mcp" };
    let metadata = document(own, path);
    let proof = matches!(refusal, Refusal::InvalidProof { .. });
    let needed = if let Refusal::InsufficientScope { required } = refusal {
        Some(required.as_str())
    } else {
        None
    };
    let error = match needed {
        Some(_) => ", error=\"insufficient_scope\"",
        None if *refusal == Refusal::MissingToken => "",
        None => ", error=\"invalid_token\"",
    };
    let scope = needed.unwrap_or(USUAL);
    if proof {
        let algorithms = PROOF_ALGORITHMS.join(" ");
        let error = refusal.code();
        return format!(
            "DPoP resource_metadata=\"{metadata}\", scope=\"{scope}\", algs=\"{algorithms}\", \
             error=\"{error}\"{}",
            in_words(refusal)
        );
    }
    let told = in_words(refusal);
    format!("Bearer resource_metadata=\"{metadata}\", scope=\"{scope}\"{error}{told}")
}

/// The address of the metadata: a path of the gateway stands behind the name of the document (RFC 9728 §3.1).
fn document(own: &str, path: &str) -> String {
    let (scheme, rest) = own.split_once("://").unwrap_or_default();
    let (host, prefix) =
        rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or_default();
    format!("{scheme}://{host}/.well-known/oauth-protected-resource{prefix}{path}")
}

#[cfg(test)]
mod tests {
    use portcullis_core::{principal::Scope, trust::ProofFault};

    use super::*;

    #[test]
    fn a_challenge_names_the_metadata_of_its_face() {
        let own = "https://gw.example";
        let at = |path: &str, refusal: &Refusal| challenge(own, path, refusal);

        assert_eq!(
            at("/mcp", &Refusal::MissingToken),
            "Bearer resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/mcp\", \
             scope=\"mcps:read mcps:invoke\""
        );
        let one = at("/mcp/github", &Refusal::InvalidToken);
        assert!(one.contains("/mcp/github\"") && one.ends_with("error=\"invalid_token\""), "{one}");
        assert!(at("/mcp/", &Refusal::MissingToken).contains("resource/mcp/\""));
        assert!(at("/mcp/%22x", &Refusal::MissingToken).contains("resource/mcp\""));
        let below = challenge("https://gw.example:8443/a", "/mcp/github", &Refusal::MissingToken);
        assert!(
            below.contains(
                "\"https://gw.example:8443/.well-known/oauth-protected-resource/a/mcp/github\""
            ),
            "{below}"
        );
        for (fault, error, words) in [
            (ProofFault::Nonce, "use_dpop_nonce", "The DPoP proof needs a nonce: "),
            (ProofFault::Time, "use_dpop_nonce", "The DPoP proof needs a nonce: its `iat`"),
            (ProofFault::Token, "invalid_dpop_proof", "The DPoP proof is wrong: `ath`"),
        ] {
            let told = at("/mcp", &Refusal::InvalidProof { fault, address: None });
            let error = format!("error=\"{error}\", error_description=\"{words}");
            assert!(told.starts_with("DPoP resource_metadata=") && told.contains(&error), "{told}");
        }
        let required = Scope::McpsInvoke;
        let scope = at("/mcp", &Refusal::InsufficientScope { required });
        assert!(scope.contains("scope=\"mcps:invoke\", error=\"insufficient_scope\""), "{scope}");
    }
}
