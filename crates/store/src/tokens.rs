//! Tokens: what is stored is the SHA-256, never the token.

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
    authorization::granted_of,
    db::{Db, FromRow, Readable, Row, Store, boxed, changed, columns, find, list, read, record},
    error::{DriverError, StoreError},
    logins::LoginRecord,
    orgs::{Org, plan_of},
    principals::{Principal, role_of},
    revocation::revoked_above,
};

/// The SQL for tokens with all that decides about them; `which` says which.
fn known_tokens(db: &Db, which: &str) -> String {
    // The roles of everybody who acts through a token, as JSON.
    let actors = db.pick(
        "(SELECT json_group_array(json_array(v.role, v.scopes, v.disabled_at))
        FROM json_each(t.lineage, '$.actors') a
        CROSS JOIN principals v ON v.org_id = t.org_id AND v.id = a.value)",
        "(SELECT jsonb_agg(jsonb_build_array(v.role, v.scopes, v.disabled_at))::text
        FROM jsonb_array_elements_text(t.lineage::jsonb -> 'actors') AS a (id)
        JOIN principals v ON v.org_id = t.org_id AND v.id = a.id)",
    );
    let revoked = revoked_above();
    format!(
        "
SELECT t.*,
    p.name AS principal_name, p.role AS principal_role, p.scopes AS principal_scopes,
    p.groups AS principal_groups, p.provisioned_groups AS principal_provisioned_groups,
    p.created_at AS principal_created_at, p.disabled_at AS principal_disabled_at,
    o.name AS org_name, o.plan AS org_plan, o.plan_requests AS org_plan_requests,
    o.plan_invocations AS org_plan_invocations, o.created_at AS org_created_at,
    o.disabled_at AS org_disabled_at, CASE WHEN t.via IS NOT NULL THEN {actors} END AS actors,
    {revoked} AS revoked_from, l.said, l.said_at, g.granted
FROM tokens t
JOIN principals p ON p.org_id = t.org_id AND p.id = t.principal_id
JOIN orgs o ON o.id = t.org_id
LEFT JOIN logins l ON l.org_id = t.org_id AND l.grant_id = t.grant_id
LEFT JOIN client_grants g ON g.org_id = t.org_id AND g.grant_id = t.grant_id
WHERE {which}"
    )
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

record!(TokenRecord in "tokens", |row| id, org_id, principal_id, via, grant_id, parent_id,
    via_token_id, scopes, label, issued_at, expires_at, revoked_at, last_used_at, allowed_cidrs,
    exchange_only, dpop_jkt, kind, method = method_of(row)?,
    // A token that descends from unknown ones, or is bound to an unknown key, is not found.
    lineage = row.json("tokens.lineage")?);

columns!(TokenKind => String: |word| Self::from_word(&word););

fn method_of(row: Row<'_>) -> Result<AuthMethod, DriverError> {
    let name: String = row.get("tokens.method")?;
    Ok(match (name.as_str(), row.get("tokens.trust")?) {
        ("operator", None) => AuthMethod::Operator,
        ("oidc", Some(trust)) => AuthMethod::Oidc { trust },
        ("key", Some(thumbprint)) => AuthMethod::Key { thumbprint },
        ("token", None) => AuthMethod::Token,
        _ => return Err(DriverError::Corrupt("tokens.method")),
    })
}

impl FromRow for KnownToken {
    fn from_row(row: Row<'_>) -> Result<Self, DriverError> {
        let token = TokenRecord::from_row(row)?;
        let revoked_at = token.revoked_at.or(row.get("revoked_from")?);
        let token = TokenRecord { revoked_at, ..token };
        let principal = Principal {
            id: token.principal_id,
            org_id: token.org_id,
            name: row.get("principal_name")?,
            role: role_of(row, ["principal_role", "principal_scopes"])?,
            groups: row.json("principal_groups")?,
            provisioned_groups: row.json("principal_provisioned_groups")?,
            created_at: row.get("principal_created_at")?,
            disabled_at: row.get("principal_disabled_at")?,
        };
        let org = Org {
            id: token.org_id,
            name: row.get("org_name")?,
            plan: plan_of(row, ["org_plan", "org_plan_requests", "org_plan_invocations"])?,
            created_at: row.get("org_created_at")?,
            disabled_at: row.get("org_disabled_at")?,
        };
        let actors: Option<String> = row.get("actors")?;
        let actors = actors.as_deref().map_or(Ok(Vec::new()), actors_of)?;
        let login = LoginRecord::of_row(row, "said_at")?;
        Ok(Self { token, principal, login, client: granted_of(row)?, actors, org })
    }
}

impl Readable for KnownToken {
    const TABLE: &'static str = "tokens";
    type Record = Self;

    fn read(self) -> Result<Self, StoreError> {
        Ok(self)
    }
}

/// From the JSON that the statement makes of their rows.
fn actors_of(rows: &str) -> Result<Vec<ActorState>, DriverError> {
    let corrupt = || DriverError::Corrupt("tokens.lineage");
    let rows: Vec<(String, String, Option<i64>)> =
        serde_json::from_str(rows).map_err(|_| corrupt())?;
    let state = |(role, scopes, disabled_at): (String, String, Option<i64>)| {
        let disabled_at = disabled_at.map(Timestamp::from_micros);
        let role = scopes.parse().ok().and_then(|scopes| Role::from_parts(&role, scopes));
        Ok(ActorState { role: role.ok_or_else(corrupt)?, disabled_at })
    };
    rows.into_iter().map(state).collect()
}

impl Store {
    /// The token with this hash, with its principal and org, in whatever state they are. One of which
    /// a row cannot be read is left out.
    #[boxed]
    pub async fn find_token_by_hash(
        &self,
        hash: &TokenHash,
    ) -> Result<Option<KnownToken>, StoreError> {
        let find = known_tokens(&self.db, "t.hash = $1");
        Ok(list!(self, installation, find => hash.as_bytes().as_slice()).pop())
    }

    /// The tokens with these ids, as [`Self::find_token_by_hash`] finds each; those that are gone
    /// are left out.
    #[boxed]
    pub async fn find_tokens(&self, ids: &[TokenId]) -> Result<Vec<KnownToken>, StoreError> {
        let find = known_tokens(&self.db, &format!("t.id IN {}", self.db.texts("$1")));
        Ok(list!(self, installation, find => json!(ids).to_string()))
    }

    /// The org's token with this id.
    #[boxed]
    pub async fn find_token(
        &self,
        org: OrgId,
        id: TokenId,
    ) -> Result<Option<TokenRecord>, StoreError> {
        Ok(read!(self, org, |conn| {
            find!(conn, "SELECT * FROM tokens WHERE org_id = $1 AND id = $2" => org, id)
        }))
    }

    /// A page of the org's tokens, by id.
    #[boxed]
    pub async fn list_tokens(
        &self,
        org: OrgId,
        page: TokenPage,
    ) -> Result<Vec<TokenRecord>, StoreError> {
        let after = page.after.map(|id| id.to_string()).unwrap_or_default();
        Ok(match page.principal_id {
            None => list!(self, org, LIST => org, after, page.limit),
            Some(principal) => {
                list!(self, org, LIST_OF_PRINCIPAL => org, after, page.limit, principal)
            }
        })
    }

    /// Remembers when tokens were last seen; an older moment never replaces a newer one.
    #[boxed]
    pub async fn touch_tokens(&self, seen: &[(TokenId, Timestamp)]) -> Result<(), StoreError> {
        let touch = self.db.pick(TOUCH_SQLITE, TOUCH_POSTGRES);
        // A few at a time: while they are written, nothing else writes to SQLite.
        for seen in seen.chunks(TOUCHED_AT_ONCE) {
            let seen: Vec<_> = seen.iter().map(|(id, at)| (id, at.as_micros())).collect();
            let seen = json!(seen).to_string();
            changed!(self, installation, touch => &seen);
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
