//! Proofs of possession as they come with requests (DPoP, RFC 9449 §4.1).

use axum::{extract::Request, http::HeaderName};
use portcullis_app::PresentedProof;
use portcullis_core::{
    secret::Secret,
    trust::{ProofFault, TargetUri},
};

use super::host;
use crate::gateway::Gateway;

const DPOP: HeaderName = HeaderName::from_static("dpop");
/// The nonce that the next proof has to be made with.
pub(crate) const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The proof in the headers of a request, if there is one.
pub(crate) fn presented(gateway: &Gateway, request: &Request) -> Option<Box<PresentedProof>> {
    let mut values = request.headers().get_all(DPOP).iter();
    let first = values.next()?;
    let proof = match values.next() {
        Some(_) => Err(ProofFault::Several),
        None => match first.to_str() {
            Ok(text) => Ok(Secret::new(text.to_owned())),
            Err(_) => Err(ProofFault::Form),
        },
    };
    let method = request.method().to_string();
    Some(Box::new(PresentedProof::new(proof, method, addresses(gateway, request))))
}

/// The addresses of a request as clients know it: below the public address of the gateway, and at the host that
/// was asked for, if that is a name of the gateway.
fn addresses(gateway: &Gateway, request: &Request) -> Vec<TargetUri> {
    let path = request.uri().path();
    let host = host::named(request.headers(), request.uri());
    let guard = &gateway.mcp.guard;
    let at = |address: &str| TargetUri::parse(&format!("{address}{path}"));
    if let Some(public) = gateway.app.providers.public_url() {
        let hosts = gateway.app.authorization.hosts();
        let asked = host.and_then(|host| at(&hosts.address_at(public, host)));
        return at(public).into_iter().chain(asked).collect();
    }
    let scheme = if guard.is_secure() { "https" } else { "http" };
    let known = host.filter(|host| guard.knows(host));
    known.and_then(|host| at(&format!("{scheme}://{host}"))).into_iter().collect()
}
