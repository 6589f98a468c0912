//! Users who come from a trusted issuer: made at their first login, kept in step at each one.

use std::sync::Arc;

use portcullis_core::{
    audit::{Event, EventType},
    id::{OrgId, PrincipalId, PrincipalKind},
    principal::Role,
    refusal::Refusal,
    trust::{CredentialCheck, IdTokenRequest, IdentifiedPerson, TrustedSubject, TrustedUser},
};
use portcullis_store::{Changed, LastAdmin, Principal, PrincipalChange, ScimUser, StoreError};
use serde_json::json;

use super::credentials::{KnownPrincipal, KnownUser, ProvenIdentity, identity};
use crate::{audit::events::row_of, identity::access::Access, request::Origin};

impl Access {
    /// The person that an ID token says has logged in, by exactly one trust rule. A no is recorded in the log of the
    /// org, if it is known.
    pub(crate) async fn identified(
        &self,
        id_token: &str,
        request: &IdTokenRequest<'_>,
        origin: &Origin,
    ) -> Result<IdentifiedPerson, Refusal> {
        let found = self.trust().verify_id_token(id_token, request, origin.arrived).await;
        found.map_err(|refusal| {
            let rejected = self.distrusted(id_token, None, refusal);
            self.noted(EventType::LoginFailed, rejected, origin)
        })
    }

    /// The principal of a person who logs in: made at the first login, with today's role. Refused, which is
    /// recorded, if the principal or its org is disabled.
    pub(crate) async fn person_of(
        self: &Arc<Self>,
        subject: &TrustedSubject,
        origin: &Origin,
    ) -> Result<PrincipalId, Refusal> {
        let party = self.party_of(subject.clone()).await;
        let party =
            party.map_err(|rejected| self.noted(EventType::LoginFailed, rejected, origin))?;
        self.ensure_principal(&party, origin).await.map(|(id, _)| id)
    }

    /// The principal of a party and its name: made if this is its first login, given today's role
    /// if the issuer says another one.
    pub(super) async fn ensure_principal(
        &self,
        party: &ProvenIdentity,
        origin: &Origin,
    ) -> Result<(PrincipalId, String), Refusal> {
        let (user, known) = match &party.who {
            KnownPrincipal::Existing(id, name) => return Ok((*id, name.clone())),
            KnownPrincipal::Login { user, known } => (user, known.clone()),
        };
        let principal = match known {
            KnownUser::Existing(principal) => *principal,
            KnownUser::New => self.first_login(party, user, origin).await?,
            KnownUser::Provisioned(kept) => self.join(party, user, *kept, origin).await?,
        };
        let principal = Box::pin(self.follow_role(party, user.role, principal, origin)).await?;
        if principal.disabled_at.is_some() {
            return Err(Refusal::InvalidCredential { check: CredentialCheck::Trust });
        }
        Ok((principal.id, principal.name))
    }

    /// Gives the principal the role that its login says, unless it is the last admin of its org. Gives the principal as
    /// it is then.
    async fn follow_role(
        &self,
        party: &ProvenIdentity,
        role: Role,
        mut principal: Principal,
        origin: &Origin,
    ) -> Result<Principal, Refusal> {
        while principal.disabled_at.is_none() && principal.role != role {
            let event = row_of(&self.principal_event(party, principal.id, origin));
            let after = Principal { role, ..principal.clone() };
            let last_admin = LastAdmin::Kept;
            let change = PrincipalChange { before: &principal, after: &after, last_admin };
            match self.base.store.change_principal(&change, &event).await? {
                Changed::Done => {
                    // Tokens of earlier logins have today's role at once.
                    self.quotas.tenants.revoked(party.org_id);
                    principal = after;
                }
                Changed::LastAdmin => {
                    self.audit.record(self.kept_admin(party, role, principal.id, origin)).await?;
                    break;
                }
                // Changed by another one meanwhile: what it is now counts.
                Changed::Stale => {
                    let now = self.base.store.find_principal(party.org_id, principal.id).await?;
                    principal = now.ok_or(Refusal::Internal)?;
                }
            }
        }
        Ok(principal)
    }

    /// A login says another role of the last admin, who keeps it: an org always has an admin.
    fn kept_admin(
        &self,
        party: &ProvenIdentity,
        said: Role,
        id: PrincipalId,
        origin: &Origin,
    ) -> Event {
        tracing::warn!(
            org = %party.org_id, principal = %id, role = said.name(),
            "a login says another role of the last admin of its org, who stays admin: give another person the role admin"
        );
        let change = json!({
            "source": "login", "action": "role_kept", "role": Role::Admin.name(), "login_role": said.name(),
        });
        let mut event = self.principal_event(party, id, origin);
        event.detached = event.detached.keep("change", Some(change), &*self.base.random);
        event
    }

    /// Makes the subject known as the person whom the identity provider keeps. Rejects it if that person is known by
    /// any subject of any issuer already: what a provider writes later gives no user what another one has.
    async fn join(
        &self,
        party: &ProvenIdentity,
        user: &TrustedUser,
        kept: ScimUser,
        origin: &Origin,
    ) -> Result<Principal, Refusal> {
        let event = row_of(&self.principal_event(party, kept.principal.id, origin));
        let now = self.base.clock.now();
        if self.base.store.link_identity(&kept, identity(user), now, &event).await? {
            return Ok(kept.principal);
        }
        let there = self.user(party.org_id, user).await?;
        there.ok_or(Refusal::InvalidCredential { check: CredentialCheck::Trust })
    }

    /// Creates the user. If another login creates it at the same moment, that user counts.
    async fn first_login(
        &self,
        party: &ProvenIdentity,
        user: &TrustedUser,
        origin: &Origin,
    ) -> Result<Principal, Refusal> {
        let id = PrincipalId::new(PrincipalKind::User, self.base.ids());
        let now = self.base.clock.now();
        let principal = Principal::new(id, party.org_id, user.name.clone(), user.role, now);
        // Names are unique in an org, and people's are not.
        let told_apart = format!("{} ({})", user.name, principal.id);
        for name in [user.name.clone(), told_apart] {
            let principal = Principal { name, ..principal.clone() };
            match self.base.store.create_with_identity(&principal, identity(user)).await {
                Ok(()) => {
                    self.audit.record(self.principal_event(party, principal.id, origin)).await?;
                    return Ok(principal);
                }
                Err(StoreError::Conflict(_)) => {
                    if let Some(there) = self.user(party.org_id, user).await? {
                        return Ok(there);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Internal)
    }

    async fn user(&self, org: OrgId, user: &TrustedUser) -> Result<Option<Principal>, Refusal> {
        let found = self.base.store.find_by_identity(org, identity(user)).await;
        found.map_err(Refusal::from)
    }

    fn principal_event(
        &self,
        party: &ProvenIdentity,
        principal: PrincipalId,
        origin: &Origin,
    ) -> Event {
        let mut actor = party.actor();
        actor.id = Some(principal);
        let org = party.org_id;
        let kind = EventType::PrincipalChanged;
        self.identity_event(org, kind, actor, "principal", principal.to_string(), origin)
    }
}
