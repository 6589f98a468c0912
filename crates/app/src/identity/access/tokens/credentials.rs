//! Credentials presented for an exchange: whose they are, and what they may buy.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, Auth},
    authorization::ClientGrant,
    id::{OrgId, PrincipalId, PrincipalKind},
    lifetime::AccessLife,
    lineage::Lineage,
    principal::ScopeSet,
    refusal::Refusal,
    secret::Secret,
    token::{CidrList, Token, TokenKind},
    trust::{
        CredentialCheck, Jwt, Subject, Thumbprint, TrustedSubject, TrustedUser, is_jwt_shaped,
    },
};
use portcullis_store::{Identity, Principal, ScimUser};

use super::{Purpose, Rejected};
use crate::{
    base::tenants::{Account, sources::LookUp},
    identity::access::{Access, proofs::UNBOUND, trust::TrustRefusal},
    policies::limits::Refused,
    request::{
        Origin,
        possession::{Possession, PresentedToken},
        session::Session,
    },
};

/// Kind of credential that the caller declares for the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectType {
    /// `urn:ietf:params:oauth:token-type:jwt`
    Jwt,
    /// `urn:ietf:params:oauth:token-type:access_token`
    AccessToken,
}

/// Credentials and parameters presented at `/v1/auth/token`.
#[derive(Debug, Default)]
pub struct Presented {
    /// The token in the header `Authorization`.
    pub bearer: Option<Secret>,
    /// True if it came as `Authorization: DPoP`.
    pub dpop: bool,
    /// The key that the sender proved to hold.
    pub key: Option<Thumbprint>,
    /// The body's `subject_token`.
    pub subject: Option<Secret>,
    /// The body's `subject_token_type`.
    pub subject_type: Option<SubjectType>,
    /// The body's `org_id`.
    pub org_id: Option<OrgId>,
}

/// Credentials that were found good: whose the new token will be, and who acts through it.
#[derive(Debug)]
pub struct Credentials {
    pub(super) subject: ProvenIdentity,
    pub(super) actor: Option<ProvenIdentity>,
}

/// Party that has proved its identity.
#[derive(Debug)]
pub(super) struct ProvenIdentity {
    pub(super) org_id: OrgId,
    pub(super) account: Account,
    pub(super) who: KnownPrincipal,
    /// Upper bound of the scopes of a token for it.
    pub(super) scopes: ScopeSet,
    pub(super) life: AccessLife,
    pub(super) proof: Proof,
    /// The client that it makes itself known by here.
    pub(super) granted: Option<ClientGrant>,
}

/// A principal that is there, or a user whose first login this is.
#[derive(Debug)]
pub(super) enum KnownPrincipal {
    Existing(PrincipalId, String),
    Login { user: TrustedUser, known: KnownUser },
}

/// A user who logs in, as far as the store knows one.
#[derive(Debug, Clone)]
pub(super) enum KnownUser {
    /// A principal that this login makes.
    New,
    Existing(Box<Principal>),
    /// An identity provider keeps it over SCIM; from this login on it is known by its subject.
    Provisioned(Box<ScimUser>),
}

impl KnownUser {
    pub(super) fn principal(&self) -> Option<&Principal> {
        match self {
            Self::New => None,
            Self::Existing(principal) => Some(principal),
            Self::Provisioned(person) => Some(&person.principal),
        }
    }
}

/// Proof of a party's identity.
#[derive(Debug)]
pub(super) enum Proof {
    Jwt(Box<TrustedSubject>),
    /// A signature with the registered key of this thumbprint.
    Key(String),
    Token(Arc<Session>),
}

impl ProvenIdentity {
    /// `None` when the rule names a principal that does not exist.
    fn new(trusted: TrustedSubject, known: KnownUser, account: Account) -> Option<Self> {
        let (role, kind) = match (&trusted.who, known.principal()) {
            (Subject::Fixed(id), Some(principal)) => (principal.role, id.kind()),
            (Subject::Fixed(_), None) => return None,
            // The issuer says what the user is today; the store follows when the token is issued.
            (Subject::User(user), _) => (user.role, PrincipalKind::User),
        };
        let who = match (&trusted.who, known) {
            (Subject::User(user), known) => KnownPrincipal::Login { user: user.clone(), known },
            (Subject::Fixed(id), known) => KnownPrincipal::Existing(
                *id,
                known.principal().map(|principal| principal.name.clone()).unwrap_or_default(),
            ),
        };
        Some(Self {
            org_id: trusted.org(),
            account,
            who,
            scopes: role.scopes().intersection(trusted.scopes()),
            life: AccessLife::of_login(kind, Some(trusted.max_ttl_seconds())),
            proof: Proof::Jwt(Box::new(trusted)),
            granted: None,
        })
    }

    /// The principal, unless it has still to be made.
    pub(super) fn id(&self) -> Option<PrincipalId> {
        match &self.who {
            KnownPrincipal::Existing(id, _) => Some(*id),
            KnownPrincipal::Login { known, .. } => known.principal().map(|principal| principal.id),
        }
    }

    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        match &self.proof {
            Proof::Jwt(_) | Proof::Key(_) => None,
            Proof::Token(session) => Some(session),
        }
    }

    /// Lineage of a token issued for it, once it is `principal`.
    pub(super) fn lineage(&self, principal: PrincipalId) -> Lineage {
        match &self.proof {
            Proof::Jwt(trusted) => Lineage::login(&trusted.rule.name, principal),
            Proof::Key(_) => Lineage::default(),
            Proof::Token(session) => Lineage::clone(&session.caller.lineage).derived(),
        }
    }

    /// Addresses that a token for it may be used from.
    pub(super) fn allowed_from(&self) -> Option<&CidrList> {
        self.session()?.caller.allowed_from.as_ref()
    }

    /// The party as the actor of an event.
    pub(super) fn actor(&self) -> Actor {
        match &self.proof {
            Proof::Token(session) => Actor::of(&session.caller),
            Proof::Jwt(trusted) => {
                let trust = Some(trusted.rule.name.clone());
                self.anew(Auth { method: "oidc", trust })
            }
            Proof::Key(_) => self.anew(Auth { method: "key", trust: None }),
        }
    }
}

impl ProvenIdentity {
    /// The party as an actor that comes without a token.
    fn anew(&self, auth: Auth) -> Actor {
        Actor {
            act: None,
            auth,
            client: None,
            id: self.id(),
            token_id: None,
            kind: self.id().map_or(PrincipalKind::User, PrincipalId::kind).as_str(),
            via: None,
        }
    }
}

impl Credentials {
    /// Org and actor of the request.
    pub(crate) fn whose(&self) -> (OrgId, Actor) {
        (self.subject.org_id, self.subject.actor())
    }

    /// Account whose plan pays for the exchange: that of the subject's org.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.subject.account
    }
}

impl Access {
    /// Finds out who presents what for an exchange, or says why it is worth nothing; every no is
    /// charged to the source.
    pub async fn credentials(
        self: &Arc<Self>,
        presented: Presented,
        origin: &Origin,
    ) -> Result<Credentials, Refused> {
        let found = self.parties(presented, origin).await;
        found.map_err(|rejected| self.turned_away(rejected, origin))
    }

    async fn parties(
        self: &Arc<Self>,
        presented: Presented,
        origin: &Origin,
    ) -> Result<Credentials, Rejected> {
        let Presented { bearer, dpop, key, subject, subject_type, org_id } = presented;
        let in_body = Possession::Proved(key);
        let in_header = if dpop { Possession::ProvedDpop(key) } else { in_body };
        let (subject, possession, actor) = match (subject, bearer) {
            (Some(subject), Some(bearer)) if subject != bearer => (subject, in_body, Some(bearer)),
            (Some(one), None) => (one, in_body, None),
            (_, Some(one)) => (one, in_header, None),
            (None, None) => return Err(Refusal::MissingToken.into()),
        };
        agrees(subject_type, &subject)?;
        let subject = self.party(&subject, possession, org_id, origin).await?;
        if org_id.is_some_and(|org| org != subject.org_id) {
            let message = "The credential belongs to another org than `org_id` says.";
            return Err(Refusal::bad_parameter("org_id", message).into());
        }
        let actor = match actor {
            None => None,
            Some(actor) => Some(self.actor(&actor, in_header, &subject, origin).await?),
        };
        Ok(Credentials { subject, actor })
    }

    async fn actor(
        self: &Arc<Self>,
        credential: &Secret,
        possession: Possession<'_>,
        subject: &ProvenIdentity,
        origin: &Origin,
    ) -> Result<ProvenIdentity, Rejected> {
        let actor = self.party(credential, possession, Some(subject.org_id), origin).await?;
        if actor.org_id != subject.org_id {
            let message = "The Bearer and the subject belong to different orgs.";
            return Err(Refusal::bad_request(message).into());
        }
        Ok(actor)
    }

    async fn party(
        self: &Arc<Self>,
        credential: &Secret,
        possession: Possession<'_>,
        org: Option<OrgId>,
        origin: &Origin,
    ) -> Result<ProvenIdentity, Rejected> {
        let text = credential.expose();
        match Token::parse(text) {
            Ok(token) if token.kind() == TokenKind::Refresh => {
                let hint = "a refresh token is for `POST /v1/auth/refresh`";
                Err(Refusal::WrongTokenKind { hint }.into())
            }
            Ok(_) => {
                let token = PresentedToken { text: Some(text), possession };
                Ok(self.session(token, Purpose::Exchange, origin).await?.into())
            }
            Err(_) if matches!(possession, Possession::ProvedDpop(_)) => Err(UNBOUND.into()),
            Err(_) if is_jwt_shaped(text) => self.trusted_party(text, org, origin).await,
            Err(_) => Err(Refusal::InvalidToken.into()),
        }
    }

    async fn trusted_party(
        self: &Arc<Self>,
        jwt: &str,
        org: Option<OrgId>,
        origin: &Origin,
    ) -> Result<ProvenIdentity, Rejected> {
        let untrusted = Refusal::InvalidCredential { check: CredentialCheck::Trust };
        if !self.quotas.may_look_up(LookUp::Assertion, origin) {
            return Err(untrusted.into());
        }
        let trusted = self.verify_subject(jwt, org, origin.arrived).await;
        let trusted = trusted.map_err(|refusal| self.distrusted(jwt, org, refusal))?;
        self.party_of(trusted).await
    }

    /// The party that a trust rule makes of a JWT, unless its org or principal is disabled, or it is no person
    /// whom the identity provider keeps, where the rule asks for that.
    pub(super) async fn party_of(
        self: &Arc<Self>,
        trusted: TrustedSubject,
    ) -> Result<ProvenIdentity, Rejected> {
        let untrusted = Refusal::InvalidCredential { check: CredentialCheck::Trust };
        let org_id = trusted.org();
        let org = self.base.store.find_org(org_id).await?;
        let org = org.filter(|org| org.disabled_at.is_none()).ok_or_else(|| untrusted.clone())?;
        let known = self.known_subject(&trusted).await?;
        let admitted = match known.principal() {
            Some(principal) => principal.disabled_at.is_none(),
            None => trusted.rule.scim.is_none(),
        };
        if !admitted {
            return Err(Rejected::of_jwt(&trusted, known.principal(), untrusted));
        }
        let account = Account { tenant: self.quotas.tenants.tenant(org_id), plan: org.plan };
        ProvenIdentity::new(trusted, known, account).ok_or(untrusted.into())
    }

    /// A JWT that maps to no principal. If its issuer did sign it, and lets into one org only, that
    /// org's log records it.
    pub(super) fn distrusted(
        &self,
        jwt: &str,
        org: Option<OrgId>,
        refusal: TrustRefusal,
    ) -> Rejected {
        let signed = match &refusal {
            TrustRefusal::Unavailable => false,
            TrustRefusal::Invalid(rejection) => match rejection.check() {
                CredentialCheck::Signature | CredentialCheck::Issuer => false,
                CredentialCheck::Audience
                | CredentialCheck::Time
                | CredentialCheck::Replay
                | CredentialCheck::Trust => true,
            },
        };
        let refusal = Refusal::from(refusal);
        match Jwt::parse_typed(jwt) {
            Ok(jwt) if signed => {
                let issuer = jwt.unverified().issuer();
                let mut orgs = self.trust.rules().of(issuer, org).map(|rule| rule.org);
                let whose = orgs.next().filter(|first| orgs.all(|other| other == *first));
                let actor = Actor {
                    auth: Auth { method: "oidc", trust: None },
                    kind: "anonymous",
                    ..Actor::system()
                };
                Rejected { whose: whose.map(|org| Box::new((org, actor))), ..refusal.into() }
            }
            Ok(_) | Err(_) => refusal.into(),
        }
    }

    /// The principal the JWT speaks for, if there is one already.
    async fn known_subject(
        self: &Arc<Self>,
        trusted: &TrustedSubject,
    ) -> Result<KnownUser, Refusal> {
        let org = trusted.org();
        let store = &self.base.store;
        let found = match &trusted.who {
            Subject::Fixed(id) => store.find_principal(org, *id).await?,
            Subject::User(user) => store.find_by_identity(org, identity(user)).await?,
        };
        match (found, &trusted.who, trusted.rule.scim) {
            (Some(found), _, _) => Ok(KnownUser::Existing(Box::new(found))),
            (None, Subject::User(user), Some(join)) => {
                let kept = store.find_scim_user_by(org, join.key, &user.subject).await?;
                let kept = kept.filter(|kept| join.takes(kept.pushed_by));
                Ok(kept.map_or(KnownUser::New, |kept| KnownUser::Provisioned(Box::new(kept))))
            }
            (None, Subject::User(_) | Subject::Fixed(_), _) => Ok(KnownUser::New),
        }
    }
}

impl From<Arc<Session>> for ProvenIdentity {
    fn from(session: Arc<Session>) -> Self {
        let caller = &session.caller;
        let life = if session.exchange_only {
            AccessLife::of_exchange_only(caller.principal_id.kind(), session.expires_at)
        } else {
            AccessLife::of_token(session.expires_at)
        };
        Self {
            org_id: caller.org_id,
            account: session.account(),
            who: KnownPrincipal::Existing(caller.principal_id, caller.principal_name.clone()),
            scopes: caller.scopes,
            life,
            proof: Proof::Token(session),
            granted: None,
        }
    }
}

impl Rejected {
    /// A JWT that a rule maps to a principal that may not come in.
    fn of_jwt(trusted: &TrustedSubject, known: Option<&Principal>, refusal: Refusal) -> Self {
        let actor = Actor {
            act: None,
            auth: Auth { method: "oidc", trust: Some(trusted.rule.name.clone()) },
            client: None,
            id: known.map(|principal| principal.id),
            token_id: None,
            kind: known.map_or(PrincipalKind::User, |principal| principal.id.kind()).as_str(),
            via: None,
        };
        Self { whose: Some(Box::new((trusted.org(), actor))), ..refusal.into() }
    }
}

pub(super) fn identity(user: &TrustedUser) -> Identity<'_> {
    Identity { issuer: &user.issuer, claim: &user.claim, subject: &user.subject }
}

/// Rejects a subject that is not of its declared type.
fn agrees(declared: Option<SubjectType>, subject: &Secret) -> Result<(), Refusal> {
    let ours = Token::parse(subject.expose()).is_ok();
    match declared {
        Some(SubjectType::Jwt) if ours => Err(Refusal::bad_request(
            "`subject_token_type` says JWT, but the subject is one of this gateway's tokens.",
        )),
        Some(SubjectType::AccessToken) if is_jwt_shaped(subject.expose()) => {
            Err(Refusal::bad_request(
                "`subject_token_type` says access token, but the subject is a JWT.",
            ))
        }
        Some(SubjectType::Jwt | SubjectType::AccessToken) | None => Ok(()),
    }
}
