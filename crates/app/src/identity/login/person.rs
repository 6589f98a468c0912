//! The person behind a browser session.

use std::{collections::BTreeSet, sync::Arc};

use portcullis_core::{
    audit::{Actor, Auth},
    browser_session::{self, BrowserSecret},
    clock::Timestamp,
    lineage::Lineage,
    openid::StepUp,
    principal::{AuthMethod, Caller, Role, Scope, ScopeSet},
    refusal::Refusal,
};
use portcullis_store::BrowserSession;
use tokio::{sync::OnceCell, time::Instant};

use super::{Logins, TRUSTED_FOR};
use crate::{
    base::tenants::{Account, sources::LookUp},
    policies::limits::Refused,
    request::{Ctx, Origin, session::Session},
};

/// Seconds between two notes that a session was seen.
const NOTED_EVERY: i64 = 60;

/// A person with a live browser session.
#[derive(Debug)]
pub struct Person {
    /// The session, as it was when it was looked up: ids of org and principal, login, `acr`, `amr`,
    /// `auth_time`.
    pub session: BrowserSession,
    pub org_name: String,
    /// The person's name; never trusted.
    pub name: String,
    pub role: Role,
    /// The most that a token for this person may carry: what the role and the trust rule allow now.
    pub scopes: ScopeSet,
    /// The trust rule that a token for this person relies on.
    pub lineage: Lineage,
    /// The groups of the person, besides those that its login names.
    groups: BTreeSet<String>,
    account: Account,
    /// The person as a caller of use cases, once one was needed.
    caller: OnceCell<Arc<Session>>,
    /// In the order of revocations.
    looked_up: u64,
    asked: Instant,
}

impl Person {
    /// Account whose plan pays for what the person does.
    #[must_use]
    pub fn account(&self) -> Account {
        self.account.clone()
    }

    /// The person as the actor of an event.
    #[must_use]
    pub fn actor(&self) -> Actor {
        let trust = match &self.session.method {
            AuthMethod::Oidc { trust } => Some(trust.clone()),
            AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => None,
        };
        Actor {
            act: None,
            auth: Auth { method: self.session.method.name(), trust },
            client: None,
            id: Some(self.session.principal_id),
            token_id: None,
            kind: self.session.principal_id.kind().as_str(),
            via: None,
        }
    }
}

impl Logins {
    /// The person whose browser brings this secret. `None` if it opens nothing, which is charged to
    /// the source; refuses a source that did so too often, and all while this node cannot know what
    /// others ended.
    pub async fn person(
        self: &Arc<Self>,
        secret: &BrowserSecret,
        origin: &Origin,
    ) -> Result<Option<Arc<Person>>, Refused> {
        if !self.is_on() {
            return Ok(None);
        }
        let found = self.known_person(secret, origin).await;
        match found.map_err(|refusal| self.quotas.charged(refusal, origin))? {
            Some(person) => {
                self.note_use(&person, origin.arrived);
                Ok(Some(person))
            }
            None => self.charge(origin).map(|()| None),
        }
    }

    /// Counts a request of a person against the plan of the org.
    pub async fn admit(&self, person: &Person, origin: &Origin) -> Result<(), Refusal> {
        let whose = || (person.session.org_id, person.actor());
        self.quotas.admit(&person.account, whose, origin).await
    }

    /// A request of a person who uses the gateway with a browser: it calls the same use cases as a
    /// token of the person would, with every scope that the person's role and trust rule allow now.
    pub async fn ctx(&self, person: &Person, origin: &Arc<Origin>) -> Result<Ctx, Refusal> {
        let whole = || self.caller_of(person, person.scopes);
        let session = person.caller.get_or_try_init(whole).await?;
        Ok(Ctx { origin: Arc::clone(origin), session: Arc::clone(session), attendance: None })
    }

    /// The same for a request that may change something: with `admin` only if the login proves what `admin_acr` asks
    /// for. So a use case that touches what is another's or the org's, for which it asks for `admin`, refuses.
    pub async fn ctx_of_change(
        &self,
        person: &Person,
        origin: &Arc<Origin>,
    ) -> Result<Ctx, Refusal> {
        if self.proves(person, StepUp::Admin) {
            return self.ctx(person, origin).await;
        }
        let scopes = person.scopes.difference(ScopeSet::EMPTY.with(Scope::Admin));
        let session = self.caller_of(person, scopes).await?;
        Ok(Ctx { origin: Arc::clone(origin), session, attendance: None })
    }

    async fn caller_of(&self, person: &Person, scopes: ScopeSet) -> Result<Arc<Session>, Refusal> {
        let BrowserSession { org_id, principal_id, login, ends_at, .. } = &person.session;
        let caller = Caller {
            org_id: *org_id,
            plan: person.account.plan,
            principal_id: *principal_id,
            principal_name: person.name.clone(),
            role: person.role,
            via: None,
            token_id: None,
            label: None,
            scopes,
            method: person.session.method.clone(),
            allowed_from: None,
            lineage: Arc::new(person.lineage.clone()),
            client: None,
            is_operator: false,
        };
        let groups = person.groups.clone();
        let session = self.access.browser_caller(caller, login.clone(), groups, *ends_at).await?;
        Ok(Arc::new(session))
    }

    async fn known_person(
        &self,
        secret: &BrowserSecret,
        origin: &Origin,
    ) -> Result<Option<Arc<Person>>, Refusal> {
        self.access.in_touch()?;
        let hash = secret.hash();
        if let Some(person) = self.known.get(&hash)
            && self.quotas.tenants.is_current(&person.account.tenant, person.looked_up)
            && person.asked.elapsed() < TRUSTED_FOR
        {
            return Ok((person.session.ends_at > origin.arrived).then_some(person));
        }
        if !self.quotas.may_look_up_hash(LookUp::Cookie, &hash, origin) {
            return Ok(None);
        }
        let asked = Instant::now();
        let looked_up = self.quotas.tenants.now();
        let person = match self.base.store.find_session_by_hash(&hash).await? {
            Some(session) => self.living(session, looked_up, asked).await?,
            None => None,
        };
        match &person {
            Some(person) => {
                self.quotas.sources.note_live(&hash);
                self.known.insert(hash, Arc::clone(person));
            }
            None => self.quotas.sources.note_unknown(&hash),
        }
        Ok(person)
    }

    /// The person of a session. `None` if it has ended, or its principal, its org or the trust rule
    /// that it comes from is gone.
    pub(super) async fn living(
        &self,
        session: BrowserSession,
        looked_up: u64,
        asked: Instant,
    ) -> Result<Option<Arc<Person>>, Refusal> {
        if session.ended_at.is_some() || session.ends_at <= self.base.now() {
            return Ok(None);
        }
        let store = &self.base.store;
        let org = store.find_org(session.org_id).await?;
        let principal = store.find_principal(session.org_id, session.principal_id).await?;
        let org = org.filter(|org| org.disabled_at.is_none());
        let principal = principal.filter(|principal| principal.disabled_at.is_none());
        let (Some(org), Some(principal)) = (org, principal) else { return Ok(None) };
        let lineage = match &session.method {
            AuthMethod::Oidc { trust } => Lineage::login(trust, session.principal_id),
            AuthMethod::Operator | AuthMethod::Key { .. } | AuthMethod::Token => Lineage::default(),
        };
        let Some(bounds) = lineage.bounds(org.id, self.access.trust().rules()) else {
            return Ok(None);
        };
        let account = Account { tenant: self.quotas.tenants.tenant(org.id), plan: org.plan };
        Ok(Some(Arc::new(Person {
            session,
            org_name: org.name,
            groups: principal.all_groups(),
            name: principal.name,
            role: principal.role,
            scopes: principal.role.scopes().intersection(bounds),
            lineage,
            account,
            caller: OnceCell::new(),
            looked_up,
            asked,
        })))
    }

    /// Lets the session last on, at most once a minute. A crash before that costs a minute of it.
    fn note_use(self: &Arc<Self>, person: &Person, now: Timestamp) {
        let BrowserSession { org_id, id, created_at, last_seen_at, .. } = person.session;
        if now < last_seen_at.plus_seconds(NOTED_EVERY) {
            return;
        }
        let this = Arc::clone(self);
        self.base.spawn(async move {
            let ends_at = browser_session::ends_at(created_at, now);
            if let Err(error) = this.base.store.touch_session(org_id, id, now, ends_at).await {
                error.log();
            }
        });
    }
}
