//! Credentials at the token endpoint of the authorization server: signatures with registered keys,
//! and assertions of trusted issuers (RFC 7523).

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, Auth},
    authorization::{ClientGrant, ClientKind, ClientRef},
    id::PrincipalId,
    lifetime::AccessLife,
    principal::ScopeSet,
    refusal::Refusal,
    secret::Secret,
    trust::{ClientAssertion, CredentialCheck, Jwt, JwtType, KeySet, Recipient, SingleUse},
};
use portcullis_store::{Principal, PrincipalKey};

use super::{
    Rejected,
    credentials::{Credentials, KnownPrincipal, Proof, ProvenIdentity},
};
use crate::{
    base::tenants::{Account, sources::LookUp},
    identity::access::{Access, proofs::record_of, trust::TrustRefusal},
    policies::limits::Refused,
    request::Origin,
};

impl Access {
    /// Credentials of the service account that signed `assertion` with a key that is registered
    /// for it; every rejection is charged to the source.
    pub async fn key_credentials(
        self: &Arc<Self>,
        assertion: &Secret,
        origin: &Origin,
    ) -> Result<Credentials, Refused> {
        let party = self.key_party(assertion.expose(), origin).await;
        let party = party.map_err(|rejected| self.turned_away(rejected, origin))?;
        Ok(Credentials { subject: party, actor: None })
    }

    /// Credentials that an assertion of a trusted issuer makes: an ID-JAG those of a person for
    /// whom `client` acts, which has proved that it is that client; any other JWT those of a
    /// workload. Every rejection is charged to the source.
    pub async fn assertion_credentials(
        self: &Arc<Self>,
        assertion: &Secret,
        client: Option<&str>,
        origin: &Origin,
    ) -> Result<Credentials, Refused> {
        let party = self.assertion_party(assertion.expose(), client, origin).await;
        let party = party.map_err(|rejected| self.turned_away(rejected, origin))?;
        Ok(Credentials { subject: party, actor: None })
    }

    async fn assertion_party(
        self: &Arc<Self>,
        assertion: &str,
        client: Option<&str>,
        origin: &Origin,
    ) -> Result<ProvenIdentity, Rejected> {
        if !self.quotas.may_look_up(LookUp::Assertion, origin) {
            return Err(Refusal::InvalidCredential { check: CredentialCheck::Trust }.into());
        }
        let recipient = self.recipient()?;
        let jwt = Jwt::parse_typed(assertion).map_err(TrustRefusal::from).map_err(Refusal::from)?;
        let now = origin.arrived;
        let trusted = match (jwt.kind(), client) {
            (JwtType::IdJag, Some(client)) => {
                self.trust.verify_id_jag(&jwt, client, &recipient, now).await
            }
            (JwtType::IdJag, None) => {
                let message = "An ID-JAG is presented by a client that authenticates itself.";
                return Err(Refusal::bad_request(message).into());
            }
            (JwtType::Identity | JwtType::ClientAuthentication, _) => {
                self.trust.verify_workload(&jwt, &recipient, now).await
            }
        };
        self.party_of(trusted.map_err(|refusal| self.distrusted(assertion, None, refusal))?).await
    }

    async fn key_party(
        self: &Arc<Self>,
        assertion: &str,
        origin: &Origin,
    ) -> Result<ProvenIdentity, Rejected> {
        let refused = |check| Refusal::InvalidCredential { check };
        if !self.quotas.may_look_up(LookUp::Assertion, origin) {
            return Err(refused(CredentialCheck::Signature).into());
        }
        let recipient = self.recipient()?;
        let assertion = ClientAssertion::parse(assertion).map_err(|it| refused(it.check()))?;
        let id: Option<PrincipalId> = assertion.client().parse().ok();
        let unknown = || refused(CredentialCheck::Signature);
        let id = id.ok_or_else(unknown)?;
        let principal = self.base.store.find_key_owner(id).await?.ok_or_else(unknown)?;
        let keys = self.base.store.list_principal_keys(principal.org_id, id).await?;
        let signed = signed(&assertion, &keys, &recipient, origin);
        let (thumbprint, once) = signed.map_err(|check| match check {
            // Anyone can name an account; its org hears of what its own keys signed.
            CredentialCheck::Signature => refused(check).into(),
            CredentialCheck::Issuer
            | CredentialCheck::Audience
            | CredentialCheck::Time
            | CredentialCheck::Replay
            | CredentialCheck::Trust => of_account(&principal, refused(check)),
        })?;
        let org = self.base.store.find_org(principal.org_id).await?;
        let org = org.filter(|org| org.disabled_at.is_none()).ok_or_else(unknown)?;
        if principal.disabled_at.is_some() {
            return Err(of_account(&principal, refused(CredentialCheck::Trust)));
        }
        if !self.base.store.use_assertion(record_of(&once)).await? {
            return Err(of_account(&principal, refused(CredentialCheck::Replay)));
        }
        Ok(ProvenIdentity {
            org_id: org.id,
            account: Account { tenant: self.quotas.tenants.tenant(org.id), plan: org.plan },
            scopes: principal.role.scopes(),
            life: AccessLife::of_login(id.kind(), None),
            who: KnownPrincipal::Existing(id, principal.name),
            proof: Proof::Key(thumbprint),
            granted: None,
        })
    }

    /// The addresses by which assertions name this gateway.
    pub(crate) fn recipient(&self) -> Result<Recipient, Refusal> {
        let issuer = self.providers.public_url().ok_or(Refusal::Internal)?.to_owned();
        Ok(Recipient { token_endpoint: format!("{issuer}/oauth/token"), issuer })
    }
}

impl Credentials {
    /// The scopes of a token that asks for `asked`, cut to what the credentials leave (RFC 6749
    /// §3.3). Without a wish they are the usual ones, and those that an ID-JAG names.
    #[must_use]
    pub fn narrowed(&self, asked: Option<ScopeSet>) -> ScopeSet {
        let allowed = self.subject.scopes;
        let named = matches!(&self.subject.proof, Proof::Jwt(trusted) if trusted.rule.id_jag);
        match asked {
            Some(asked) => asked.intersection(allowed),
            None if named => allowed,
            None => allowed.unless_asked_for(),
        }
    }

    /// The resources that an ID-JAG is for; anything when empty.
    #[must_use]
    pub fn resources(&self) -> &[String] {
        match &self.subject.proof {
            Proof::Jwt(trusted) => &trusted.resources,
            Proof::Key(_) | Proof::Token(_) => &[],
        }
    }

    /// The service account itself as the client of its tokens.
    #[must_use]
    pub fn as_client(&self) -> ClientRef {
        let (id, name) = match &self.subject.who {
            KnownPrincipal::Existing(id, name) => (id.to_string(), name.clone()),
            KnownPrincipal::Login { user, .. } => (String::new(), user.name.clone()),
        };
        ClientRef { id, kind: ClientKind::Declared, name }
    }

    /// The same credentials for a token of a client.
    #[must_use]
    pub fn granted_to(self, granted: ClientGrant) -> Self {
        let subject = ProvenIdentity { granted: Some(granted), ..self.subject };
        Self { subject, ..self }
    }
}

/// The thumbprint of the key that signed, and the record by which the assertion is used once.
fn signed(
    assertion: &ClientAssertion,
    keys: &[PrincipalKey],
    recipient: &Recipient,
    origin: &Origin,
) -> Result<(String, SingleUse), CredentialCheck> {
    let mut failed = CredentialCheck::Signature;
    for PrincipalKey { key, .. } in keys {
        match assertion.check(&KeySet::of_registered([key]), recipient, origin.arrived) {
            Ok(once) => return Ok((key.thumbprint().to_owned(), once)),
            Err(rejection) if rejection.check() == CredentialCheck::Signature => {}
            Err(rejection) => failed = rejection.check(),
        }
    }
    Err(failed)
}

/// A refusal that the log of the account's org records.
fn of_account(principal: &Principal, refusal: Refusal) -> Rejected {
    let actor = Actor {
        auth: Auth { method: "key", trust: None },
        id: Some(principal.id),
        kind: principal.id.kind().as_str(),
        ..Actor::system()
    };
    Rejected { whose: Some(Box::new((principal.org_id, actor))), ..refusal.into() }
}
