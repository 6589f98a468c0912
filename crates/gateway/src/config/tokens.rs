//! `[tokens]`: how long a login lasts.

use portcullis_core::lifetime::{GrantLife, LONGEST_GRANT};
use serde::Deserialize;

use super::times::Seconds;

/// Lifetime of a login. Access tokens have their lifetimes from their trust rules.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tokens {
    /// A refresh token that is not used for so long is worth nothing; 24 hours when absent.
    refresh_idle: Option<Seconds>,
    /// From its login on it can be refreshed for so long; 7 days when absent, 30 at most.
    refresh_absolute: Option<Seconds>,
}

impl Tokens {
    /// The same, with what is absent filled in.
    pub(crate) fn grant_life(self) -> GrantLife {
        let usual = GrantLife::default();
        GrantLife {
            idle: self.refresh_idle.map_or(usual.idle, |seconds| seconds.0),
            absolute: self.refresh_absolute.map_or(usual.absolute, |seconds| seconds.0),
        }
    }

    /// Rejects a login that lasts for longer than any may.
    pub(super) fn check(self) -> Result<(), String> {
        let days = LONGEST_GRANT / 86_400;
        if self.grant_life().absolute > LONGEST_GRANT {
            return Err(format!("`tokens.refresh_absolute` can be {days} days at most"));
        }
        Ok(())
    }
}
