//! Proofs of possession as they come with requests (DPoP, RFC 9449 §4.1).

use axum::{
    extract::Request,
    http::{HeaderName, header, uri::Authority},
};
use portcullis_app::PresentedProof;
use portcullis_core::{
    secret::Secret,
    trust::{ProofFault, TargetUri},
};

use super::Gateway;

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
    Some(Box::new(PresentedProof::new(proof, method, address(gateway, request))))
}

/// The address of a request as clients know it: below the public address of the gateway or, where
/// it has none, at the host that was asked for, if that is a name of the gateway.
fn address(gateway: &Gateway, request: &Request) -> Option<TargetUri> {
    let path = request.uri().path();
    if let Some(public) = gateway.app.providers.public_url() {
        return TargetUri::parse(&format!("{public}{path}"));
    }
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(Authority::as_str));
    let guard = &gateway.mcp.guard;
    let host = host.filter(|host| guard.knows(host))?;
    let scheme = if guard.is_secure() { "https" } else { "http" };
    TargetUri::parse(&format!("{scheme}://{host}{path}"))
}
