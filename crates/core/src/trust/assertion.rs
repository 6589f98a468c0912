//! Assertions that are presented at the token endpoint (RFC 7523): for whom they have to be meant.

use crate::{
    clock::Timestamp,
    id::{OrgId, PrincipalKind},
    trust::{Claims, JwtType, Rejection, RuleSubject, TrustRules, TrustedSubject, Verified},
};

/// Longest lifetime in seconds of an ID-JAG and of a client's assertion. Each is remembered until
/// it ends, so that it is used once.
pub(super) const LONGEST_SECONDS: i64 = 60 * 60;

/// The gateway as the audience of an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// The issuer of its authorization server (RFC 8414).
    pub issuer: String,
    pub token_endpoint: String,
}

impl Recipient {
    /// Returns true if the claims name one of the two addresses in `aud`.
    fn is_named_by(&self, claims: &Claims) -> bool {
        claims.is_for(&self.issuer) || claims.is_for(&self.token_endpoint)
    }

    /// Returns true if the claims name these addresses in `aud`, and no other.
    pub(super) fn is_all_of(&self, claims: &Claims) -> bool {
        let ours = |audience: &str| audience == self.issuer || audience == self.token_endpoint;
        let named = claims.texts("aud", 2).unwrap_or_default();
        !named.is_empty() && named.into_iter().all(ours)
    }
}

impl TrustRules {
    /// Returns the service account that a verified JWT of a workload speaks for at the token
    /// endpoint (RFC 7523 §3). Exactly one rule for a service account must match, and `aud` must
    /// hold an address of `recipient` besides what the rule wants there: the ID token of a person
    /// is no workload.
    pub fn admit_workload(
        &self,
        verified: Verified<'_>,
        recipient: &Recipient,
        org: Option<OrgId>,
        now: Timestamp,
    ) -> Result<TrustedSubject, Rejection> {
        let claims = verified.claims_of(JwtType::Identity)?;
        let admitted = self.admitted(claims, org, now, |rule| match &rule.who {
            RuleSubject::Fixed(principal) => {
                !rule.id_jag && principal.kind() == PrincipalKind::Service
            }
            RuleSubject::User { .. } => false,
        })?;
        if !recipient.is_named_by(claims) {
            return Err(Rejection::WrongAudience);
        }
        admitted.rule.subject(claims, admitted.expires_at)
    }
}
