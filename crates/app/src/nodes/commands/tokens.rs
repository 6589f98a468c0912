//! Commands on tokens.

use portcullis_core::{
    audit::EventType,
    id::{GrantId, OrgId, PrincipalId, TokenId},
    lineage::Lineage,
    principal::{AuthMethod, ScopeSet},
    token::{CidrList, Token, TokenKind},
};
use portcullis_store::{Principal, StoreError, TokenPage, TokenRecord};
use serde::Serialize;

use super::{Shell, ShellError};

/// Days a token lives unless told otherwise.
const DEFAULT_DAYS: i64 = 90;
/// Days a token may live at most.
pub(super) const MAX_DAYS: i64 = 365;
const DAY: i64 = 24 * 60 * 60;

/// A token that was just made; the only moment its text is known.
#[derive(Debug)]
pub struct NewToken {
    /// The token, to be handed to its owner.
    pub token: Token,
    pub record: TokenRecord,
    /// Scopes that its principal may have and that a token has only if they are asked for by name.
    pub unnamed: ScopeSet,
}

/// Properties of a new token.
#[derive(Debug)]
pub struct TokenRequest {
    pub principal: PrincipalId,
    /// Scopes of the token; `None` means the default of the role.
    pub scopes: Option<ScopeSet>,
    /// Lifetime in seconds; `None` means 90 days.
    pub lifetime_seconds: Option<i64>,
    /// Free text recorded in every event.
    pub label: Option<String>,
    pub allowed_from: Option<CidrList>,
    /// True if it can only be exchanged for another token.
    pub exchange_only: bool,
}

/// A token as the operator asks about it.
#[derive(Debug)]
pub struct Inspected {
    pub record: TokenRecord,
    pub principal: Principal,
    /// Scopes that are effective under its principal's role of today.
    pub scopes: ScopeSet,
    pub state: TokenState,
}

/// State of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    Live,
    Expired,
    Revoked,
    /// The refresh token was used.
    Spent,
    /// Its principal is disabled, or one that acts through it.
    PrincipalDisabled,
    OrgDisabled,
    /// The token was delegated before trust rules were stored with tokens.
    LineageUnknown,
}

impl Shell {
    /// Makes a token. It can do no more than its principal's role allows, and it always ends.
    pub async fn create_token(&self, request: TokenRequest) -> Result<NewToken, ShellError> {
        let principal = self.principal(request.principal).await?;
        let allowed = principal.role.scopes();
        let scopes = request.scopes.unwrap_or_else(|| principal.role.default_scopes());
        let unnamed = match request.scopes {
            Some(_) => ScopeSet::EMPTY,
            None => allowed.difference(scopes),
        };
        if !scopes.is_subset_of(allowed) {
            return Err(ShellError::TooMuch { asked: scopes, allowed });
        }
        let lifetime = request.lifetime_seconds.unwrap_or(DEFAULT_DAYS * DAY);
        if !(60..=MAX_DAYS * DAY).contains(&lifetime) {
            return Err(ShellError::Lifetime);
        }
        let now = self.clock.now();
        let token = Token::generate(TokenKind::of_principal(principal.id.kind()), &*self.random);
        let record = TokenRecord {
            id: TokenId::new(self.ids()),
            kind: token.kind(),
            org_id: principal.org_id,
            principal_id: principal.id,
            via: None,
            grant_id: GrantId::new(self.ids()),
            parent_id: None,
            via_token_id: None,
            scopes,
            label: request.label,
            method: AuthMethod::Operator,
            issued_at: now,
            expires_at: now.plus_seconds(lifetime),
            revoked_at: None,
            last_used_at: None,
            allowed_cidrs: request.allowed_from,
            exchange_only: request.exchange_only,
            lineage: Some(Lineage::default()),
        };
        self.tell(EventType::TokenIssued, principal.org_id, "token", record.id).await?;
        self.store.insert_token(&record, &token.hash()).await?;
        Ok(NewToken { token, record, unnamed })
    }

    /// The tokens of an org, newest last.
    pub async fn tokens(&self, org: OrgId) -> Result<Vec<TokenRecord>, ShellError> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page = TokenPage { principal_id: None, after, limit: 500 };
            let page = self.store.list_tokens(org, page).await?;
            // A short page is not the last: rows that cannot be read are left out of it.
            let Some(last) = page.last() else { return Ok(all) };
            after = Some(last.id);
            all.extend(page);
        }
    }

    /// Revokes a token and what descends from it; gives how many others fell with it. Running
    /// nodes follow within 5 seconds.
    pub async fn revoke_token(&self, id: TokenId) -> Result<u64, ShellError> {
        for org in self.store.list_orgs().await? {
            if self.store.find_token(org.id, id).await?.is_some() {
                self.tell(EventType::TokenRevoked, org.id, "token", id).await?;
                let others = self.store.revoke_token(org.id, id, self.clock.now()).await?;
                return others.ok_or_else(|| ShellError::NoToken(id.to_string()));
            }
        }
        Err(ShellError::NoToken(id.to_string()))
    }

    /// Record and state of a token, given its id or the token itself.
    pub async fn inspect_token(&self, id_or_token: &str) -> Result<Inspected, ShellError> {
        let unknown = |shown: &str| ShellError::NoToken(shown.to_owned());
        if let Ok(token) = Token::parse(id_or_token) {
            let found = self.store.find_token_by_hash(&token.hash()).await?;
            if let Some(known) = found {
                return self.inspected(known.token).await;
            }
            // A secret is not printed back.
            let unreadable = !self.store.take_unreadable().is_empty();
            let corrupt = ShellError::Store(StoreError::Corrupt("tokens"));
            return Err(if unreadable { corrupt } else { unknown(token.kind().prefix()) });
        }
        let id: TokenId = id_or_token.parse().map_err(|_| ShellError::NotAToken)?;
        for org in self.store.list_orgs().await? {
            if let Some(record) = self.store.find_token(org.id, id).await? {
                return self.inspected(record).await;
            }
        }
        Err(unknown(id_or_token))
    }

    async fn inspected(&self, record: TokenRecord) -> Result<Inspected, ShellError> {
        let org = self.org(&record.org_id.to_string()).await?;
        let principal = self.principal(record.principal_id).await?;
        let mut actors = Vec::new();
        for actor in record.lineage.iter().flat_map(Lineage::actors) {
            actors.push(self.principal(*actor).await?);
        }
        let spent = match record.kind {
            TokenKind::Refresh => self.store.is_spent(org.id, record.id).await?,
            TokenKind::User | TokenKind::Service => false,
        };
        let mut involved = std::iter::once(&principal).chain(&actors);
        let disabled = involved.any(|principal| principal.disabled_at.is_some());
        let state = match record.revoked_at {
            Some(_) => TokenState::Revoked,
            None if record.lineage.is_none() => TokenState::LineageUnknown,
            None if spent => TokenState::Spent,
            None if record.expires_at <= self.clock.now() => TokenState::Expired,
            None if org.disabled_at.is_some() => TokenState::OrgDisabled,
            None if disabled => TokenState::PrincipalDisabled,
            None => TokenState::Live,
        };
        let roles = std::iter::once(&principal).chain(&actors).map(|it| it.role.scopes());
        let scopes = roles.fold(record.scopes, ScopeSet::intersection);
        Ok(Inspected { record, principal, scopes, state })
    }
}
