//! Logins of people in browsers: how a browser session begins, whose it is, how it ends.
//!
//! **Invariant:** a session is always a new one: no secret that a browser brought becomes that of a
//! person who logs in. Nothing about a session is kept in memory for longer than five seconds.

pub(crate) mod failure;
pub(crate) mod issuers;
mod links;
pub(crate) mod listing;
pub(crate) mod openid;
pub(crate) mod person;
mod sessions;

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use portcullis_core::{browser_session::BrowserSecret, openid::LoginKey, refusal::Refusal};
use portcullis_upstream::Outbound;

use self::{
    issuers::{KnownIssuer, LoginIssuer},
    person::Person,
};
use super::access::Access;
use crate::{
    audit::Audit,
    base::{
        Base,
        caches::{Lifetime, NodeCache},
    },
    policies::{
        Policies,
        limits::{Quotas, Refused},
    },
    providers::Providers,
    request::Origin,
};

/// Time for which a session is trusted without asking the store.
const TRUSTED_FOR: Duration = Duration::from_secs(5);
/// Bytes that a person takes, about.
const PERSON_BYTES: usize = 2 << 10;

/// Ways to log in, as the configuration has them.
#[derive(Debug)]
pub struct LoginParts {
    /// Links of the operator's shell log people in.
    pub links: bool,
    pub issuers: Vec<LoginIssuer>,
    /// The levels of authentication that changes of an admin need; any when empty.
    pub admin_acr: Vec<String>,
    /// Seals logins that are under way.
    pub attempts: LoginKey,
    pub outbound: Outbound,
}

impl LoginParts {
    /// No way to log in.
    pub(crate) fn none(key: &[u8; 32], outbound: &Outbound) -> Self {
        Self {
            links: false,
            issuers: Vec::new(),
            admin_acr: Vec::new(),
            attempts: LoginKey::new(key),
            outbound: outbound.clone(),
        }
    }
}

/// Browser sessions of people.
#[derive(Debug)]
pub struct Logins {
    base: Arc<Base>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    access: Arc<Access>,
    providers: Arc<Providers>,
    links: bool,
    issuers: Vec<Arc<KnownIssuer>>,
    admin_acr: Vec<String>,
    attempts: LoginKey,
    outbound: Outbound,
    /// Sessions that were looked up, by the hash of their secret.
    known: Cache<[u8; 32], Arc<Person>>,
}

/// A session that has just begun; the only moment its secret is known.
#[derive(Debug)]
pub struct OpenedSession {
    pub secret: BrowserSecret,
    pub person: Arc<Person>,
}

impl Logins {
    pub(crate) fn new(
        policies: &Policies,
        providers: &Arc<Providers>,
        access: &Arc<Access>,
        parts: LoginParts,
    ) -> Self {
        let Policies { base, audit, quotas, .. } = policies;
        let LoginParts { links, issuers, admin_acr, attempts, outbound } = parts;
        let issuers = issuers.into_iter().map(|issuer| Arc::new(KnownIssuer::new(issuer)));
        Self {
            base: Arc::clone(base),
            audit: Arc::clone(audit),
            quotas: Arc::clone(quotas),
            access: Arc::clone(access),
            providers: Arc::clone(providers),
            links,
            issuers: issuers.collect(),
            admin_acr,
            attempts,
            outbound,
            known: NodeCache::Persons.make(Lifetime::Whole(TRUSTED_FOR), |_, _| PERSON_BYTES),
        }
    }

    /// Returns true if people can log in at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.links || !self.issuers.is_empty()
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
