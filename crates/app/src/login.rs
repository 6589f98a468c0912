//! Logins of people in browsers: how a browser session begins, whose it is, how it ends.
//!
//! **Invariant:** a session is always a new one: no secret that a browser brought becomes that of a
//! person who logs in. Nothing about a session is kept in memory for longer than five seconds.

mod links;
pub(crate) mod listing;
pub(crate) mod person;
mod sessions;

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use portcullis_core::{browser_session::BrowserSecret, refusal::Refusal};

use self::person::Person;
use crate::{
    access::Access,
    audit::Audit,
    base::Base,
    ctx::Origin,
    foundation::Foundation,
    limits::{Quotas, Refused},
};

/// Time for which a session is trusted without asking the store.
const TRUSTED_FOR: Duration = Duration::from_secs(5);
const MAX_PERSONS: u64 = 50_000;

/// Ways to log in, as the configuration has them.
#[derive(Debug, Clone, Copy)]
pub struct LoginParts {
    /// Links of the operator's shell log people in.
    pub links: bool,
}

/// Browser sessions of people.
#[derive(Debug)]
pub struct Logins {
    base: Arc<Base>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    access: Arc<Access>,
    links: bool,
    /// Sessions that were looked up, by the hash of their secret.
    known: Cache<[u8; 32], Arc<Person>>,
}

/// A session that has just begun; the only moment its secret is known.
#[derive(Debug)]
pub struct Opened {
    pub secret: BrowserSecret,
    pub person: Arc<Person>,
}

impl Logins {
    pub(crate) fn new(foundation: &Foundation, access: &Arc<Access>, parts: LoginParts) -> Self {
        let Foundation { base, audit, quotas, .. } = foundation.clone();
        let LoginParts { links } = parts;
        let known = Cache::builder().max_capacity(MAX_PERSONS).time_to_live(TRUSTED_FOR).build();
        Self { base, audit, quotas, access: Arc::clone(access), links, known }
    }

    /// Returns true if people can log in at all.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.links
    }

    /// Charges the source for a secret that opens nothing; refuses one that did so too often.
    fn charge(&self, origin: &Origin) -> Result<(), Refused> {
        let refused = self.quotas.charged(Refusal::InvalidToken, origin);
        if let Refusal::RateLimited { .. } = refused.refusal { Err(refused) } else { Ok(()) }
    }

    /// Returns true if links of the operator log people in.
    #[must_use]
    pub const fn takes_links(&self) -> bool {
        self.links
    }
}
