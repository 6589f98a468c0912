//! Commands on tokens.

use portcullis_core::{
    id::TokenId,
    principal::ScopeSet,
    token::{Token, TokenKind},
};
use portcullis_store::{Principal, StoreError, TokenRecord};
use serde::Serialize;

use super::{Operator, OperatorError};

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
}

impl Operator {
    /// Record and state of a token, given its id or the token itself.
    pub async fn inspect_token(&self, id_or_token: &str) -> Result<Inspected, OperatorError> {
        let unknown = |shown: &str| OperatorError::NoToken(shown.to_owned());
        if let Ok(token) = Token::parse(id_or_token) {
            let found = self.store.find_token_by_hash(&token.hash()).await?;
            if let Some(known) = found {
                return self.inspected(known.token).await;
            }
            // A secret is not printed back.
            let unreadable = !self.store.take_unreadable().is_empty();
            let corrupt = OperatorError::Store(StoreError::Corrupt("tokens"));
            return Err(if unreadable { corrupt } else { unknown(token.kind().prefix()) });
        }
        let id: TokenId = id_or_token.parse().map_err(|_| OperatorError::NotAToken)?;
        for org in self.store.list_orgs().await? {
            if let Some(record) = self.store.find_token(org.id, id).await? {
                return self.inspected(record).await;
            }
        }
        Err(unknown(id_or_token))
    }

    async fn inspected(&self, record: TokenRecord) -> Result<Inspected, OperatorError> {
        let org = self.org(&record.org_id.to_string()).await?;
        let principal = self.principal(record.principal_id).await?;
        let mut actors = Vec::new();
        for actor in record.lineage.actors() {
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
