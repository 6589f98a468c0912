//! Browser sessions: how they begin and how they end.

use std::collections::BTreeSet;

use portcullis_core::{
    audit::EventType,
    browser_session::{self, BrowserSecret},
    clock::Timestamp,
    id::{OrgId, PrincipalId, SessionId},
    principal::AuthMethod,
    refusal::Refusal,
};
use portcullis_store::{Assertion, BrowserSession, LoginRecord, SessionQuery};
use tokio::time::Instant;

use super::{Logins, OpenedSession, person::Person};
use crate::request::Origin;

/// Sessions that are read at once.
const PAGE: usize = 500;

/// A person who has proved who it is, and how.
#[derive(Debug)]
pub(super) struct ProvedPerson {
    pub(super) org_id: OrgId,
    pub(super) principal_id: PrincipalId,
    pub(super) method: AuthMethod,
    pub(super) issuer: Option<String>,
    pub(super) login: Option<LoginRecord>,
    pub(super) acr: Option<String>,
    pub(super) amr: BTreeSet<String>,
    pub(super) auth_time: Timestamp,
    /// Records that make a second login with the same proof fail.
    pub(super) once: Vec<Assertion>,
}

impl Logins {
    /// Begins a session for a person who has proved who it is, and ends the one that the browser
    /// had. `None` if the proof was used before, or the person may not log in. A crash after the
    /// store took it leaves a session whose secret no browser has.
    pub(super) async fn open(
        &self,
        proved: ProvedPerson,
        replaced: Option<&BrowserSecret>,
        origin: &Origin,
    ) -> Result<Option<OpenedSession>, Refusal> {
        let secret = BrowserSecret::generate(&*self.base.random);
        let now = self.base.now();
        let session = BrowserSession {
            id: SessionId::new(self.base.ids()),
            org_id: proved.org_id,
            principal_id: proved.principal_id,
            method: proved.method,
            issuer: proved.issuer,
            login: proved.login,
            acr: proved.acr,
            amr: proved.amr,
            auth_time: proved.auth_time,
            created_at: now,
            last_seen_at: now,
            ends_at: browser_session::ends_at(now, now),
            ended_at: None,
        };
        let looked_up = self.quotas.tenants.now();
        let living = self.living(session, looked_up, Instant::now()).await?;
        let Some(person) = living else { return Ok(None) };
        let store = &self.base.store;
        if !store.open_session(&person.session, &secret.hash(), &proved.once).await? {
            return Ok(None);
        }
        let id = person.session.id;
        self.record(EventType::LoginSucceeded, &person, id, origin).await?;
        if let Some(replaced) = replaced {
            self.replace(replaced, origin).await?;
        }
        Ok(Some(OpenedSession { secret, person }))
    }

    /// Ends the session that a browser had before.
    async fn replace(&self, replaced: &BrowserSecret, origin: &Origin) -> Result<(), Refusal> {
        let found = self.base.store.find_session_by_hash(&replaced.hash()).await?;
        let Some(session) = found else { return Ok(()) };
        match self.living(session, 0, Instant::now()).await? {
            Some(person) => self.end(&person, origin).await,
            None => Ok(()),
        }
    }

    /// Ends the session of a person: at once on this node, within five seconds on all.
    pub async fn end(&self, person: &Person, origin: &Origin) -> Result<(), Refusal> {
        self.end_one(person, person.session.id, origin).await
    }

    /// Ends every session of a person, on all devices, and the codes that came of them.
    pub async fn end_all(&self, person: &Person, origin: &Origin) -> Result<(), Refusal> {
        for session in self.of_person(person).await? {
            self.end_one(person, session.id, origin).await?;
        }
        let BrowserSession { org_id, principal_id, .. } = person.session;
        Ok(self.base.store.end_codes(org_id, principal_id, self.base.now()).await?)
    }

    /// The sessions of a person that have not ended, by their beginning; 500 at most.
    pub async fn of_person(&self, person: &Person) -> Result<Vec<BrowserSession>, Refusal> {
        let BrowserSession { org_id, principal_id, .. } = person.session;
        let (principal, now) = (Some(principal_id), self.base.now());
        let page = SessionQuery { principal, limit: PAGE, now, ..SessionQuery::default() };
        Ok(self.base.store.list_sessions(org_id, &page).await?)
    }

    /// Ends one session of a person. It is recorded before: a session that ended is in the log.
    async fn end_one(
        &self,
        person: &Person,
        id: SessionId,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        self.record(EventType::SessionEnded, person, id, origin).await?;
        let org = person.session.org_id;
        self.base.store.end_session(org, id, self.base.now()).await?;
        self.quotas.tenants.revoked(org);
        Ok(())
    }

    /// Records what a person did to a session.
    async fn record(
        &self,
        kind: EventType,
        person: &Person,
        id: SessionId,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        let org = person.session.org_id;
        let id = id.to_string();
        let mut event =
            self.access.identity_event(org, kind, person.actor(), "session", id, origin);
        let name = Some(person.name.as_str());
        event.detached = event.detached.keep("actor_name", name, &*self.base.random);
        self.audit.record(event).await
    }

    /// Does what must not stop halfway because a browser goes away.
    pub(super) async fn uncancelled<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.base.uncancelled(work).await?
    }
}
