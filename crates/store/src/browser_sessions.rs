//! Browser sessions of people, and the links that log a person in once. What is stored of their
//! secrets is the SHA-256.

mod links;

use std::collections::BTreeSet;

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, SessionId},
    principal::AuthMethod,
};
use serde_json::json;

pub use self::links::LoginLink;
use crate::{
    db::{Found, Readable, Store, all, change, find, parse, read, row, run},
    error::StoreError,
    logins::LoginRecord,
    search::{beginning, begins, people},
    tokens::Assertion,
};

/// A login of a person in a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSession {
    pub id: SessionId,
    pub org_id: OrgId,
    pub principal_id: PrincipalId,
    /// By a link of the operator, or by a JWT of an issuer.
    pub method: AuthMethod,
    /// The issuer, if one said who it is.
    pub issuer: Option<String>,
    /// Claims of the login, if an issuer made some.
    pub login: Option<LoginRecord>,
    /// Level of authentication that the issuer names.
    pub acr: Option<String>,
    /// Methods of authentication that the issuer names (RFC 8176).
    pub amr: BTreeSet<String>,
    /// When the person was last asked for credentials.
    pub auth_time: Timestamp,
    pub created_at: Timestamp,
    /// The minute it was last seen, about.
    pub last_seen_at: Timestamp,
    /// From when on it is not accepted, unless it is seen before.
    pub ends_at: Timestamp,
    /// When a person ended it, if one did.
    pub ended_at: Option<Timestamp>,
}

/// Page of the sessions of an org that have not ended, by id.
#[derive(Debug, Clone, Copy)]
pub struct SessionPage<'a> {
    pub principal_id: Option<PrincipalId>,
    /// Only those of people of whose names or addresses a word begins so.
    pub search: Option<&'a str>,
    pub after: Option<SessionId>,
    pub limit: u32,
    pub now: Timestamp,
}

row!(SessionRow {
    id: String,
    org_id: String,
    principal_id: String,
    method: String,
    trust: Option<String>,
    issuer: Option<String>,
    said: Option<String>,
    acr: Option<String>,
    amr: String,
    auth_time: i64,
    created_at: i64,
    last_seen_at: i64,
    ends_at: i64,
    ended_at: Option<i64>,
});

impl Readable for SessionRow {
    const TABLE: &'static str = "browser_sessions";
    type Record = BrowserSession;

    fn read(self) -> Result<BrowserSession, StoreError> {
        let amr = serde_json::from_str(&self.amr)
            .map_err(|_| StoreError::Corrupt("browser_sessions.amr"))?;
        Ok(BrowserSession {
            id: parse(&self.id, "browser_sessions.id")?,
            org_id: parse(&self.org_id, "browser_sessions.org_id")?,
            principal_id: parse(&self.principal_id, "browser_sessions.principal_id")?,
            method: match (self.method.as_str(), self.trust) {
                ("operator", None) => AuthMethod::Operator,
                ("oidc", Some(trust)) => AuthMethod::Oidc { trust },
                _ => return Err(StoreError::Corrupt("browser_sessions.method")),
            },
            issuer: self.issuer,
            login: LoginRecord::read(self.said, Some(self.created_at))?,
            acr: self.acr,
            amr,
            auth_time: Timestamp::from_micros(self.auth_time),
            created_at: Timestamp::from_micros(self.created_at),
            last_seen_at: Timestamp::from_micros(self.last_seen_at),
            ends_at: Timestamp::from_micros(self.ends_at),
            ended_at: self.ended_at.map(Timestamp::from_micros),
        })
    }
}

impl Store {
    /// Remembers a new session by the hash of its secret. `false`, and nothing is made, if one of the
    /// `assertions` that it comes from was used before, or the access of its person ended meanwhile.
    #[boxed]
    pub async fn open_session(
        &self,
        session: &BrowserSession,
        hash: &[u8; 32],
        assertions: &[Assertion],
    ) -> Result<bool, StoreError> {
        let trust = match &session.method {
            AuthMethod::Oidc { trust } => Some(trust.as_str()),
            AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => None,
        };
        change!(self, session.org_id, |tx| {
            // What ends all logins of the person later finds this one.
            tx.lock_tokens(&session.org_id.to_string()).await?;
            let enabled: Option<i32> = find!(tx, scalar crate::tokens::IS_ENABLED =>
                session.org_id, session.principal_id);
            if enabled.is_none() {
                return Ok(false);
            }
            for assertion in assertions {
                let first = run!(tx, crate::tokens::REMEMBER => assertion.digest.as_slice(),
                    assertion.expires_at);
                if first == 0 {
                    return Ok(false);
                }
            }
            run!(tx, OPEN => session.org_id, session.id, session.principal_id, hash.as_slice(),
                session.method.name(), trust, session.issuer.as_deref(),
                session.login.as_ref().map(LoginRecord::text), session.acr.as_deref(),
                json!(session.amr).to_string(), session.auth_time, session.created_at,
                session.last_seen_at, session.ends_at);
        });
        Ok(true)
    }

    /// The session whose secret has this hash, in whatever state it is. The secret alone identifies
    /// the org.
    #[boxed]
    pub async fn find_session_by_hash(
        &self,
        hash: &[u8; 32],
    ) -> Result<Option<BrowserSession>, StoreError> {
        let row: Option<SessionRow> = read!(self, installation, |conn| {
            find!(conn, "SELECT * FROM browser_sessions WHERE hash = $1" => hash.as_slice())
        });
        row.map(SessionRow::read).transpose()
    }

    /// The org's session with this id.
    #[boxed]
    pub async fn find_session(
        &self,
        org: OrgId,
        id: SessionId,
    ) -> Result<Option<BrowserSession>, StoreError> {
        let row: Option<SessionRow> = read!(self, org, |conn| {
            find!(conn, "SELECT * FROM browser_sessions WHERE org_id = $1 AND id = $2" => org, id)
        });
        row.map(SessionRow::read).transpose()
    }

    /// A page of the org's sessions that have not ended, by id.
    pub async fn list_sessions(
        &self,
        org: OrgId,
        page: SessionPage<'_>,
    ) -> Result<Vec<BrowserSession>, StoreError> {
        let after = page.after.map(|id| id.to_string()).unwrap_or_default();
        let list = match (page.search, page.principal_id) {
            (Some(_), None) => SEARCH,
            (Some(_), Some(_)) => SEARCH_OF_PRINCIPAL,
            (None, Some(_)) => LIST_OF_PRINCIPAL,
            (None, None) => LIST,
        };
        let beginning = beginning(page.search);
        let rows: Vec<Found<SessionRow>> = read!(self, org, |conn| {
            all!(conn, list => org, after, page.principal_id, page.now, page.limit, beginning)
        });
        Ok(self.readable(rows))
    }

    /// Notes that a session was seen, and until when it lasts by that; an older moment never
    /// replaces a newer one.
    #[boxed]
    pub async fn touch_session(
        &self,
        org: OrgId,
        id: SessionId,
        seen: Timestamp,
        ends_at: Timestamp,
    ) -> Result<(), StoreError> {
        change!(self, org, |tx| {
            run!(tx, TOUCH => org, id, seen, ends_at);
        });
        Ok(())
    }

    /// Ends a session. `false` if the org has none of this id that has not ended.
    #[boxed]
    pub async fn end_session(
        &self,
        org: OrgId,
        id: SessionId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let ended = change!(self, org, |tx| run!(tx, END => org, id, now));
        Ok(ended > 0)
    }

    /// Forgets sessions of all tenants that could not be used any more before this moment.
    #[boxed]
    pub async fn forget_sessions(&self, before: Timestamp) -> Result<u64, StoreError> {
        let forgotten = change!(self, installation, |tx| {
            run!(tx, "DELETE FROM browser_sessions WHERE ends_at < $1" => before)
        });
        Ok(forgotten)
    }
}

const OPEN: &str = "
INSERT INTO browser_sessions (org_id, id, principal_id, hash, method, trust, issuer, said, acr, amr,
    auth_time, created_at, last_seen_at, ends_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

macro_rules! list_sql {
    ($($of:tt)+) => {
        concat!(
            "SELECT * FROM browser_sessions WHERE org_id = $1 AND id > $2 AND ",
            $($of)+,
            " AND ended_at IS NULL AND ends_at > $4 ORDER BY id LIMIT $5"
        )
    };
}

const LIST: &str = list_sql!("$3 IS NULL AND $6 = ''");
const LIST_OF_PRINCIPAL: &str = list_sql!("principal_id = $3 AND $6 = ''");
const SEARCH_OF_PRINCIPAL: &str = list_sql!("principal_id = $3 AND ", begins!("$3", "$6"));

const SEARCH: &str = concat!(
    "SELECT b.* FROM ",
    people!("$6"),
    " CROSS JOIN browser_sessions b
WHERE b.org_id = $1 AND b.principal_id = people.id AND b.id > $2
    AND $3 IS NULL AND b.ended_at IS NULL AND b.ends_at > $4
ORDER BY b.id LIMIT $5"
);

const TOUCH: &str = "
UPDATE browser_sessions SET last_seen_at = $3, ends_at = $4
WHERE org_id = $1 AND id = $2 AND last_seen_at < $3";

const END: &str = "
UPDATE browser_sessions SET ended_at = $3
WHERE org_id = $1 AND id = $2 AND ended_at IS NULL AND ends_at > $3";
