//! The look at a credential in the header before the body beside it is read.

use std::sync::Arc;

use portcullis_core::{
    id::OrgId,
    refusal::Refusal,
    secret::Secret,
    token::{Token, TokenKind},
    trust::is_jwt_shaped,
};

use super::{Purpose, Rejected};
use crate::{
    identity::access::Access,
    policies::limits::Refused,
    request::{Origin, possession::PresentedToken},
};

/// The caller at an endpoint where the Bearer is the credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screened {
    /// A caller with a live token of this org.
    Known(OrgId),
    /// A caller of whom nothing is known before the body, or a signature, was looked at.
    Unknown,
}

impl Access {
    /// Looks at the token of an exchange before its body is read. Rejects one that is worth
    /// nothing whatever the body says, and a source whose bucket is empty; every rejection is
    /// charged to the source.
    pub async fn screen_exchange(
        self: &Arc<Self>,
        token: PresentedToken<'_>,
        origin: &Origin,
    ) -> Result<Screened, Refused> {
        let Some(bearer) = token.text else { return self.unknown(origin) };
        match Token::parse(bearer) {
            // That it is of the wrong kind is told by the exchange itself.
            Ok(token) if token.kind() == TokenKind::Refresh => self.unknown(origin),
            Ok(_) => {
                let session = self.session(token, Purpose::Exchange, origin).await;
                let session = session.map_err(|rejected| self.turned_away(rejected, origin))?;
                Ok(Screened::Known(session.caller.org_id))
            }
            Err(_) if is_jwt_shaped(bearer) => self.unknown(origin),
            Err(_) => Err(self.quotas.charged(Refusal::InvalidToken, origin)),
        }
    }

    /// The same for the Bearer of a refresh: a refresh token, or an access token of the same grant
    /// that may have expired.
    pub async fn screen_refresh(
        self: &Arc<Self>,
        bearer: Option<&Secret>,
        origin: &Origin,
    ) -> Result<Screened, Refused> {
        let screened = self.unknown(origin)?;
        let Some(bearer) = bearer.map(Secret::expose) else { return Ok(screened) };
        let is_ours = self.is_ours(bearer).await;
        is_ours.map_err(|refusal| self.turned_away(Rejected::from(refusal), origin))?;
        Ok(screened)
    }

    /// Rejects a source whose bucket is empty, beyond its share of look-ups.
    fn unknown(&self, origin: &Origin) -> Result<Screened, Refused> {
        if self.quotas.sources.may_send_a_body(origin.source_ip, origin.arrived) {
            return Ok(Screened::Unknown);
        }
        Err(self.quotas.charged(Refusal::InvalidToken, origin))
    }

    /// Rejects what was never one of our tokens.
    async fn is_ours(&self, bearer: &str) -> Result<(), Refusal> {
        let token = Token::parse(bearer).map_err(|_| super::no_token(bearer))?;
        let found = match token.kind() {
            TokenKind::Refresh => {
                self.base.store.find_refresh(&token.hash()).await.map(|it| it.is_some())
            }
            TokenKind::User | TokenKind::Service => {
                self.base.store.find_token_by_hash(&token.hash()).await.map(|it| it.is_some())
            }
        };
        match found {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::InvalidToken),
            Err(error) => Err(error.into()),
        }
    }
}
