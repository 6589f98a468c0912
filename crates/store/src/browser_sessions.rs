//! Browser sessions of people, and the links that log a person in once. What is stored of their
//! secrets is the SHA-256.

mod links;

use std::collections::BTreeSet;

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, SessionId},
    principal::AuthMethod,
};
use serde_json::json;

pub use self::links::LoginLink;
use crate::{
    db::{Row, Store, boxed, change, changed, find, list, read, record, run},
    error::{DriverError, StoreError},
    filters,
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

filters::filter! {
    /// Page of the sessions of an org that have not ended, by id.
    SessionQuery {
        #[serde(deserialize_with = "filters::search")]
        q: Option<String> = "only those of people of whose names or addresses a word begins so, in any case", max_length = 64, pattern = "[^, ]";
        principal: Option<PrincipalId> as Option<String> = "only this person's; another's needs `admin`", pattern = "^(usr|sa)_[0-7][0-9A-HJKMNP-TV-Z]{25}$";
    } at { after: Option<SessionId>, limit: usize, now: Timestamp }
}

record!(BrowserSession in "browser_sessions", |row| id, org_id, principal_id, issuer, acr,
    auth_time, created_at, last_seen_at, ends_at, ended_at, method = method_of(row)?,
    login = LoginRecord::of_row(row, "created_at")?, amr = row.json("browser_sessions.amr")?);

fn method_of(row: Row<'_>) -> Result<AuthMethod, DriverError> {
    let name: String = row.get("browser_sessions.method")?;
    match (name.as_str(), row.get("browser_sessions.trust")?) {
        ("operator", None) => Ok(AuthMethod::Operator),
        ("oidc", Some(trust)) => Ok(AuthMethod::Oidc { trust }),
        _ => Err(DriverError::Corrupt("browser_sessions.method")),
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
        Ok(read!(self, installation, |conn| {
            find!(conn, "SELECT * FROM browser_sessions WHERE hash = $1" => hash.as_slice())
        }))
    }

    /// The org's session with this id.
    #[boxed]
    pub async fn find_session(
        &self,
        org: OrgId,
        id: SessionId,
    ) -> Result<Option<BrowserSession>, StoreError> {
        Ok(read!(self, org, |conn| {
            find!(conn, "SELECT * FROM browser_sessions WHERE org_id = $1 AND id = $2" => org, id)
        }))
    }

    /// A page of the org's sessions that have not ended, by id.
    pub async fn list_sessions(
        &self,
        org: OrgId,
        page: &SessionQuery,
    ) -> Result<Vec<BrowserSession>, StoreError> {
        let after = page.after.map(|id| id.to_string()).unwrap_or_default();
        let list = match (page.q.as_ref(), page.principal) {
            (Some(_), None) => search(),
            (Some(_), Some(_)) => list_of(&format!("principal_id = $3 AND {}", begins("$3", "$6"))),
            (None, Some(_)) => list_of("principal_id = $3 AND $6 = ''"),
            (None, None) => list_of("$3 IS NULL AND $6 = ''"),
        };
        let beginning = beginning(page.q.as_deref());
        Ok(list!(self, org, list => org, after, page.principal, page.now, page.limit, beginning))
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
        changed!(self, org, TOUCH => org, id, seen, ends_at);
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
        Ok(changed!(self, org, END => org, id, now) > 0)
    }

    /// Forgets sessions of all tenants that could not be used any more before this moment.
    #[boxed]
    pub async fn forget_sessions(&self, before: Timestamp) -> Result<u64, StoreError> {
        let forget = "DELETE FROM browser_sessions WHERE ends_at < $1";
        Ok(changed!(self, installation, forget => before))
    }
}

const OPEN: &str = "
INSERT INTO browser_sessions (org_id, id, principal_id, hash, method, trust, issuer, said, acr, amr,
    auth_time, created_at, last_seen_at, ends_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

fn list_of(which: &str) -> String {
    format!(
        "SELECT * FROM browser_sessions WHERE org_id = $1 AND id > $2 AND {which} \
         AND ended_at IS NULL AND ends_at > $4 ORDER BY id LIMIT $5"
    )
}

fn search() -> String {
    let people = people("$6");
    format!(
        "SELECT b.* FROM {people} CROSS JOIN browser_sessions b
WHERE b.org_id = $1 AND b.principal_id = people.id AND b.id > $2
    AND $3 IS NULL AND b.ended_at IS NULL AND b.ends_at > $4
ORDER BY b.id LIMIT $5"
    )
}

const TOUCH: &str = "
UPDATE browser_sessions SET last_seen_at = $3, ends_at = $4
WHERE org_id = $1 AND id = $2 AND last_seen_at < $3";

const END: &str = "
UPDATE browser_sessions SET ended_at = $3
WHERE org_id = $1 AND id = $2 AND ended_at IS NULL AND ends_at > $3";
