//! New tokens for a principal.

use portcullis_core::{
    clock::Timestamp,
    id::{GrantId, Ids, PrincipalId, TokenId},
    principal::ScopeSet,
    token::{CidrList, Token, TokenKind},
    trust::Thumbprint,
};
use portcullis_store::{Principal, TokenRecord};

use super::{DirectoryError, MAX_DAYS};

/// Days a token lives unless told otherwise.
const DEFAULT_DAYS: i64 = 90;
const DAY: i64 = 24 * 60 * 60;

/// A token that was just made; the only moment its text is known.
#[derive(Debug)]
pub struct NewToken {
    /// The token, to be handed to its owner.
    pub token: Token,
    pub record: TokenRecord,
}

/// Properties of a new token.
#[derive(Debug, Clone)]
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
    /// The key that it is bound to, if it is.
    pub dpop_jkt: Option<Thumbprint>,
}

impl TokenRequest {
    /// The token for its principal, not stored yet. It can do no more than the principal's role
    /// allows, and it always ends.
    pub(crate) fn into_token(
        self,
        principal: &Principal,
        ids: Ids<'_>,
        now: Timestamp,
    ) -> Result<NewToken, DirectoryError> {
        let allowed = principal.role.scopes();
        let scopes = self.scopes.unwrap_or_else(|| principal.role.default_scopes());
        if !scopes.is_subset_of(allowed) {
            return Err(DirectoryError::TooMuch { asked: scopes, allowed });
        }
        let lifetime = self.lifetime_seconds.unwrap_or(DEFAULT_DAYS * DAY);
        if !(60..=MAX_DAYS * DAY).contains(&lifetime) {
            return Err(DirectoryError::Lifetime);
        }
        let token = Token::generate(TokenKind::of_principal(principal.id.kind()), ids.random);
        let record = TokenRecord {
            label: self.label,
            allowed_cidrs: self.allowed_from,
            exchange_only: self.exchange_only,
            dpop_jkt: self.dpop_jkt,
            ..TokenRecord::of_operator(
                TokenId::new(ids),
                principal.org_id,
                principal.id,
                GrantId::new(ids),
                scopes,
                now,
                now.plus_seconds(lifetime),
            )
        };
        Ok(NewToken { token, record })
    }
}
