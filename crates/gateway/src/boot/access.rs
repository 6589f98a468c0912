//! The parts by which callers and people are known.

use portcullis_app::{AccessParts, Trust};
use portcullis_core::{
    openid::{LOGIN_ATTEMPTS, LoginKey},
    trust::DPOP_NONCES,
};
use portcullis_upstream::Outbound;
use tokio_util::task::TaskTracker;

use super::{BootError, derived};
use crate::config::Config;

/// Seals logins that are under way.
pub(super) fn login_key(key: &[u8; 32]) -> LoginKey {
    LoginKey::new(&derived(key, LOGIN_ATTEMPTS))
}

/// The parts of access.
pub(super) fn parts(
    config: &Config,
    key: &[u8; 32],
    outbound: &Outbound,
    tasks: &TaskTracker,
) -> Result<AccessParts, BootError> {
    let trusted = config.trusted()?;
    Ok(AccessParts {
        trust: Trust::new(trusted.rules, trusted.keys, outbound, tasks),
        grant_life: config.tokens.grant_life(),
        dpop_key: derived(key, DPOP_NONCES),
    })
}
