//! JWTs that may be used once, as the store remembers them.

use aws_lc_rs::digest;
use portcullis_core::trust::SingleUse;
use portcullis_store::Assertion;

/// The record of a JWT that may be used once.
pub(crate) fn record_of(once: &SingleUse) -> Assertion {
    let SingleUse { issuer, jti, until } = once;
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [issuer.as_bytes(), &[0], jti.as_bytes()] {
        context.update(part);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    Assertion { digest, expires_at: *until }
}
