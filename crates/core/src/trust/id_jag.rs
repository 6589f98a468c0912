//! Identity Assertion JWT Authorization Grants
//! (draft-ietf-oauth-identity-assertion-authz-grant-04): an issuer that is trusted for the login of
//! people says that a client may act for one of them here.

use std::sync::Arc;

use crate::{
    clock::Timestamp,
    id::OrgId,
    principal::{Scope, ScopeSet},
    trust::{
        Claims, JwtType, Recipient, Rejection, TrustRule, TrustRules, TrustedSubject, Verified,
        assertion::LONGEST_SECONDS,
    },
};

/// Resources that one of them is for at most.
const MAX_RESOURCES: usize = 16;
/// Claims that tell one tenant from another, where issuer and subject alone name several people.
const TENANTS: [&str; 2] = ["tenant", "aud_tenant"];

impl TrustRules {
    /// Returns the person that a verified ID-JAG lets `client` act for, with the scopes and
    /// resources that the issuer left. `client` has to have proved that it is that client.
    ///
    /// Exactly one rule with `id_jag` must match; `aud` is the issuer of `recipient` alone,
    /// `client_id` the client, `iat` and `jti` are there, and it lives an hour at most. A tenant
    /// is accepted only by a rule that expects it, for a subject is unique within a tenant.
    pub fn admit_id_jag(
        &self,
        verified: Verified<'_>,
        client: &str,
        recipient: &Recipient,
        org: Option<OrgId>,
        now: Timestamp,
    ) -> Result<TrustedSubject, Rejection> {
        let claims = verified.claims_of(JwtType::IdJag)?;
        self.trusts(claims.issuer(), org)?;
        if !claims.is_only_for(&recipient.issuer) {
            return Err(Rejection::WrongAudience);
        }
        let rule = self.admitted(claims, org, now, |rule| rule.id_jag)?.rule;
        let expires_at = claims.check_short(now, LONGEST_SECONDS)?;
        if claims.members().get("iat").is_none() {
            return Err(Rejection::BadTime("there is no `iat`"));
        }
        if claims.members().get("client_id").and_then(|id| id.as_str()) != Some(client) {
            return Err(Rejection::WrongClient);
        }
        rule.knows_tenants_of(claims)?;
        Ok(TrustedSubject {
            asserted: asserted(claims, rule)?,
            resources: resources(claims)?,
            ..rule.subject(claims, expires_at)?
        })
    }
}

impl TrustRule {
    /// Fails if the claims name a tenant about which the rule expects nothing.
    fn knows_tenants_of(&self, claims: &Claims) -> Result<(), Rejection> {
        let is_expected = |tenant: &str| self.expects.iter().any(|(it, _)| it.as_str() == tenant);
        let mut named = TENANTS.into_iter().filter(|it| claims.members().get(it).is_some());
        if named.all(is_expected) {
            Ok(())
        } else {
            Err(Rejection::WrongPurpose("it names a tenant, and the rule's `match` names none"))
        }
    }
}

/// Scopes that the issuer left. Without a `scope` that is what a token has that asks for nothing.
/// Names of scopes that are not of this gateway count for nothing; details of an authorization
/// (RFC 9396) could narrow it in ways that are not known here.
fn asserted(claims: &Claims, rule: &Arc<TrustRule>) -> Result<ScopeSet, Rejection> {
    if claims.members().get("authorization_details").is_some() {
        return Err(Rejection::WrongPurpose("`authorization_details` are not known here"));
    }
    let Some(scope) = claims.members().get("scope") else {
        return Ok(rule.scopes.unless_asked_for());
    };
    let scope = scope.as_str().ok_or(Rejection::Malformed("`scope` is not a text"))?;
    Ok(scope.split(' ').filter_map(|name| name.parse::<Scope>().ok()).collect())
}

fn resources(claims: &Claims) -> Result<Vec<String>, Rejection> {
    let listed = claims.members().get("resource").is_some();
    let resources = claims.texts("resource", MAX_RESOURCES).filter(|it| !listed || !it.is_empty());
    let resources =
        resources.ok_or(Rejection::Malformed("`resource` is not a list of addresses"))?;
    Ok(resources.into_iter().map(str::to_owned).collect())
}
