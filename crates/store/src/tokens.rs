//! Tokens: what is stored is the SHA-256, never the token.

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    authorization::ClientGrant,
    clock::Timestamp,
    id::{GrantId, OrgId, PrincipalId, TokenId},
    lineage::Lineage,
    principal::{AuthMethod, Role, ScopeSet},
    token::{CidrList, TokenHash, TokenKind},
    trust::Thumbprint,
};
use serde_json::json;

mod descent;
mod forget;
mod issue;
mod pages;
mod refresh;
mod revoke;
#[cfg(test)]
mod work;

pub(crate) use self::issue::{IS_ENABLED, REMEMBER};
pub use self::{
    issue::{Assertion, Issue, Issued, MAX_ANCESTORS, MAX_LIVE_CHILDREN, NewRefresh, NewToken},
    pages::{ListedState, ListedToken, TokenQuery, TokensPage},
    refresh::{KnownRefresh, Pair, Rotated, Rotation},
};

use crate::{
    authorization::granted,
    db::{Db, Found, Readable, Store, all, change, find, parse, parse_some, read, row, run},
    error::StoreError,
    logins::LoginRecord,
    orgs::{Org, plan_of},
    principals::{Principal, groups_of, role_of},
};

/// The SQL for the roles of everybody who acts through the token `t`, as JSON.
macro_rules! actors_of_token {
    (sqlite) => {
        "(SELECT json_group_array(json_array(v.role, v.scopes, v.disabled_at))
        FROM json_each(t.lineage, '$.actors') a
        CROSS JOIN principals v ON v.org_id = t.org_id AND v.id = a.value)"
    };
    (postgres) => {
        "(SELECT jsonb_agg(jsonb_build_array(v.role, v.scopes, v.disabled_at))::text
        FROM jsonb_array_elements_text(t.lineage::jsonb -> 'actors') AS a (id)
        JOIN principals v ON v.org_id = t.org_id AND v.id = a.id)"
    };
}

/// The SQL for tokens with all that decides about them; `$which` says which.
macro_rules! known_tokens {
    ($dialect:ident, $which:literal) => {
        concat!(
            "
SELECT t.*,
    p.name AS principal_name, p.role AS principal_role, p.scopes AS principal_scopes,
    p.groups AS principal_groups, p.provisioned_groups AS principal_provisioned_groups,
    p.created_at AS principal_created_at, p.disabled_at AS principal_disabled_at,
    o.name AS org_name, o.plan AS org_plan, o.plan_requests AS org_plan_requests,
    o.plan_invocations AS org_plan_invocations, o.created_at AS org_created_at,
    o.disabled_at AS org_disabled_at,
    CASE WHEN t.via IS NOT NULL THEN ",
            actors_of_token!($dialect),
            " END AS actors,
    ",
            $crate::revocation::revoked_above!(),
            " AS revoked_from,
    l.said, l.said_at, g.granted
FROM tokens t
JOIN principals p ON p.org_id = t.org_id AND p.id = t.principal_id
JOIN orgs o ON o.id = t.org_id
LEFT JOIN logins l ON l.org_id = t.org_id AND l.grant_id = t.grant_id
LEFT JOIN client_grants g ON g.org_id = t.org_id AND g.grant_id = t.grant_id
WHERE ",
            $which
        )
    };
}

/// All that is known of a token but its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its id, which may be shown.
    pub id: TokenId,
    pub kind: TokenKind,
    pub org_id: OrgId,
    pub principal_id: PrincipalId,
    /// Actor for the principal, if it was delegated.
    pub via: Option<PrincipalId>,
    /// The tokens that are revoked together.
    pub grant_id: GrantId,
    /// The token it was attenuated or delegated from.
    pub parent_id: Option<TokenId>,
    /// The token the actor of a delegation presented.
    pub via_token_id: Option<TokenId>,
    pub scopes: ScopeSet,
    /// Its own name for itself; never trusted.
    pub label: Option<String>,
    pub method: AuthMethod,
    pub issued_at: Timestamp,
    /// From when on it is not accepted.
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    /// The minute it was last seen.
    pub last_used_at: Option<Timestamp>,
    /// Networks it may be used from; `None` means anywhere.
    pub allowed_cidrs: Option<CidrList>,
    /// True if it can only be exchanged for another token.
    pub exchange_only: bool,
    /// The credentials it descends from.
    pub lineage: Lineage,
    /// The key that it is bound to; `None` if any bearer may use it.
    pub dpop_jkt: Option<Thumbprint>,
}

impl TokenRecord {
    /// A token as an operator makes one: it descends from no other, and any bearer may use it from
    /// anywhere.
    #[must_use]
    pub fn of_operator(
        id: TokenId,
        org_id: OrgId,
        principal_id: PrincipalId,
        grant_id: GrantId,
        scopes: ScopeSet,
        issued_at: Timestamp,
        expires_at: Timestamp,
    ) -> Self {
        Self {
            id,
            kind: TokenKind::of_principal(principal_id.kind()),
            org_id,
            principal_id,
            via: None,
            grant_id,
            parent_id: None,
            via_token_id: None,
            scopes,
            label: None,
            method: AuthMethod::Operator,
            issued_at,
            expires_at,
            revoked_at: None,
            last_used_at: None,
            allowed_cidrs: None,
            exchange_only: false,
            lineage: Lineage::default(),
            dpop_jkt: None,
        }
    }
}

/// A token and all that decides whether and for what it is accepted. It counts as revoked if its grant is, or what
/// it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownToken {
    pub token: TokenRecord,
    pub principal: Principal,
    /// Claims of the login that the token comes from, if any.
    pub login: Option<LoginRecord>,
    pub client: Option<ClientGrant>,
    /// Everybody who acts through it, in no order.
    pub actors: Vec<ActorState>,
    pub org: Org,
}

/// State of an actor of a delegation that decides about the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActorState {
    pub role: Role,
    pub disabled_at: Option<Timestamp>,
}

/// Page of the tokens of an org, by id.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenPage {
    pub principal_id: Option<PrincipalId>,
    pub after: Option<TokenId>,
    pub limit: u32,
}

row!(TokenRow {
    id: String,
    kind: String,
    org_id: String,
    principal_id: String,
    via: Option<String>,
    grant_id: String,
    parent_id: Option<String>,
    via_token_id: Option<String>,
    scopes: String,
    label: Option<String>,
    method: String,
    trust: Option<String>,
    issued_at: i64,
    expires_at: i64,
    revoked_at: Option<i64>,
    last_used_at: Option<i64>,
    allowed_cidrs: Option<String>,
    exchange_only: i64,
    lineage: String,
    dpop_jkt: Option<String>,
});

impl Readable for TokenRow {
    const TABLE: &'static str = "tokens";
    type Record = TokenRecord;

    fn read(self) -> Result<TokenRecord, StoreError> {
        Ok(TokenRecord {
            id: parse(&self.id, "tokens.id")?,
            kind: TokenKind::from_word(&self.kind).ok_or(StoreError::Corrupt("tokens.kind"))?,
            org_id: parse(&self.org_id, "tokens.org_id")?,
            principal_id: parse(&self.principal_id, "tokens.principal_id")?,
            via: parse_some(self.via.as_deref(), "tokens.via")?,
            grant_id: parse(&self.grant_id, "tokens.grant_id")?,
            parent_id: parse_some(self.parent_id.as_deref(), "tokens.parent_id")?,
            via_token_id: parse_some(self.via_token_id.as_deref(), "tokens.via_token_id")?,
            scopes: parse(&self.scopes, "tokens.scopes")?,
            label: self.label,
            method: match (self.method.as_str(), self.trust) {
                ("operator", None) => AuthMethod::Operator,
                ("oidc", Some(trust)) => AuthMethod::Oidc { trust },
                ("key", Some(thumbprint)) => AuthMethod::Key { thumbprint },
                ("token", None) => AuthMethod::Token,
                _ => return Err(StoreError::Corrupt("tokens.method")),
            },
            issued_at: Timestamp::from_micros(self.issued_at),
            expires_at: Timestamp::from_micros(self.expires_at),
            revoked_at: self.revoked_at.map(Timestamp::from_micros),
            last_used_at: self.last_used_at.map(Timestamp::from_micros),
            allowed_cidrs: parse_some(self.allowed_cidrs.as_deref(), "tokens.allowed_cidrs")?,
            exchange_only: self.exchange_only != 0,
            // A token that descends from unknown ones, or is bound to an unknown key, is not found.
            lineage: serde_json::from_str(&self.lineage)
                .map_err(|_| StoreError::Corrupt("tokens.lineage"))?,
            dpop_jkt: parse_some(self.dpop_jkt.as_deref(), "tokens.dpop_jkt")?,
        })
    }
}

row!(OwnerRow {
    principal_name: String,
    principal_role: String,
    principal_scopes: String,
    principal_groups: String,
    principal_provisioned_groups: String,
    principal_created_at: i64,
    principal_disabled_at: Option<i64>,
    org_name: String,
    org_plan: String,
    org_plan_requests: Option<i64>,
    org_plan_invocations: Option<i64>,
    org_created_at: i64,
    org_disabled_at: Option<i64>,
    actors: Option<String>,
    revoked_from: Option<i64>,
    said: Option<String>,
    said_at: Option<i64>,
    granted: Option<String>,
});

impl OwnerRow {
    fn read(self, mut token: TokenRecord) -> Result<KnownToken, StoreError> {
        token.revoked_at = token.revoked_at.or(self.revoked_from.map(Timestamp::from_micros));
        let principal = Principal {
            id: token.principal_id,
            org_id: token.org_id,
            name: self.principal_name,
            role: role_of(&self.principal_role, &self.principal_scopes)?,
            groups: groups_of(&self.principal_groups)?,
            provisioned_groups: groups_of(&self.principal_provisioned_groups)?,
            created_at: Timestamp::from_micros(self.principal_created_at),
            disabled_at: self.principal_disabled_at.map(Timestamp::from_micros),
        };
        let org = Org {
            id: token.org_id,
            name: self.org_name,
            plan: plan_of(&self.org_plan, self.org_plan_requests, self.org_plan_invocations)?,
            created_at: Timestamp::from_micros(self.org_created_at),
            disabled_at: self.org_disabled_at.map(Timestamp::from_micros),
        };
        let actors = self.actors.as_deref().map_or(Ok(Vec::new()), actors)?;
        let login = LoginRecord::read(self.said, self.said_at)?;
        let client = granted(self.granted.as_deref())?;
        Ok(KnownToken { token, principal, login, client, actors, org })
    }
}

/// From the JSON that the statement makes of their rows.
fn actors(rows: &str) -> Result<Vec<ActorState>, StoreError> {
    let rows: Vec<(String, String, Option<i64>)> =
        serde_json::from_str(rows).map_err(|_| StoreError::Corrupt("tokens.lineage"))?;
    let state = |(role, scopes, disabled_at): (String, String, Option<i64>)| {
        let disabled_at = disabled_at.map(Timestamp::from_micros);
        Ok(ActorState { role: role_of(&role, &scopes)?, disabled_at })
    };
    rows.into_iter().map(state).collect()
}

row!(KnownRow of { token: TokenRow, owner: OwnerRow });

impl Readable for KnownRow {
    const TABLE: &'static str = "tokens";
    type Record = KnownToken;

    fn read(self) -> Result<KnownToken, StoreError> {
        self.owner.read(self.token.read()?)
    }
}

impl Store {
    /// The token with this hash, with its principal and org, in whatever state they are. One of which
    /// a row cannot be read is left out.
    #[boxed]
    pub async fn find_token_by_hash(
        &self,
        hash: &TokenHash,
    ) -> Result<Option<KnownToken>, StoreError> {
        let find = match &self.db {
            Db::Sqlite { .. } => known_tokens!(sqlite, "t.hash = $1"),
            Db::Postgres(_) => known_tokens!(postgres, "t.hash = $1"),
        };
        let rows: Vec<Found<KnownRow>> =
            read!(self, installation, |conn| all!(conn, find => hash.as_bytes().as_slice()));
        Ok(self.readable(rows).pop())
    }

    /// The tokens with these ids, as [`Self::find_token_by_hash`] finds each; those that are gone
    /// are left out.
    #[boxed]
    pub async fn find_tokens(&self, ids: &[TokenId]) -> Result<Vec<KnownToken>, StoreError> {
        let find = match &self.db {
            Db::Sqlite { .. } => {
                known_tokens!(sqlite, "t.id IN (SELECT value FROM json_each($1))")
            }
            Db::Postgres(_) => {
                known_tokens!(postgres, "t.id IN (SELECT jsonb_array_elements_text($1::jsonb))")
            }
        };
        let ids = json!(ids).to_string();
        let rows: Vec<Found<KnownRow>> = read!(self, installation, |conn| all!(conn, find => &ids));
        Ok(self.readable(rows))
    }

    /// The org's token with this id.
    #[boxed]
    pub async fn find_token(
        &self,
        org: OrgId,
        id: TokenId,
    ) -> Result<Option<TokenRecord>, StoreError> {
        let row: Option<TokenRow> = read!(self, org, |conn| {
            find!(conn, "SELECT * FROM tokens WHERE org_id = $1 AND id = $2" => org, id)
        });
        row.map(TokenRow::read).transpose()
    }

    /// A page of the org's tokens, by id.
    #[boxed]
    pub async fn list_tokens(
        &self,
        org: OrgId,
        page: TokenPage,
    ) -> Result<Vec<TokenRecord>, StoreError> {
        let after = page.after.map(|id| id.to_string()).unwrap_or_default();
        let rows: Vec<Found<TokenRow>> = read!(self, org, |conn| match page.principal_id {
            None => all!(conn, LIST => org, after, page.limit),
            Some(principal) => all!(conn, LIST_OF_PRINCIPAL => org, after, page.limit, principal),
        });
        Ok(self.readable(rows))
    }

    /// Remembers when tokens were last seen; an older moment never replaces a newer one.
    #[boxed]
    pub async fn touch_tokens(&self, seen: &[(TokenId, Timestamp)]) -> Result<(), StoreError> {
        let touch = match &self.db {
            Db::Sqlite { .. } => TOUCH_SQLITE,
            Db::Postgres(_) => TOUCH_POSTGRES,
        };
        // A few at a time: while they are written, nothing else writes to SQLite.
        for seen in seen.chunks(TOUCHED_AT_ONCE) {
            let seen: Vec<_> = seen.iter().map(|(id, at)| (id, at.as_micros())).collect();
            let seen = json!(seen).to_string();
            change!(self, installation, |tx| {
                run!(tx, touch => &seen);
            });
        }
        Ok(())
    }
}

/// Tokens whose last use is written in one transaction.
const TOUCHED_AT_ONCE: usize = 1000;

const TOUCH_SQLITE: &str = "
UPDATE tokens SET last_used_at = seen.at
FROM (SELECT value ->> 0 AS id, value ->> 1 AS at FROM json_each($1)) AS seen
WHERE tokens.id = seen.id AND COALESCE(tokens.last_used_at, 0) < seen.at";

/// Behind row-level security, an index is taken for values that are known alone: `OFFSET 0` makes them so.
const TOUCH_POSTGRES: &str = "
UPDATE tokens SET last_used_at = seen.at
FROM (SELECT value ->> 0 AS id, (value ->> 1)::bigint AS at
    FROM jsonb_array_elements($1::jsonb) OFFSET 0) AS seen
WHERE tokens.id = seen.id AND COALESCE(tokens.last_used_at, 0) < seen.at";

const LIST: &str = "SELECT * FROM tokens WHERE org_id = $1 AND id > $2 ORDER BY id LIMIT $3";

const LIST_OF_PRINCIPAL: &str = "
SELECT * FROM tokens WHERE org_id = $1 AND id > $2 AND principal_id = $4 ORDER BY id LIMIT $3";
