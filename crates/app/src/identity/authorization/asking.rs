//! `/oauth/authorize`: from the request of a browser to the consent of a person.

use std::sync::Arc;

use portcullis_core::{
    audit::{EventType, checkpoint::hash_text},
    authorization::{
        AuthorizationRequest, ClientKind, ClientRequest, Face, OAuthError, OAuthErrorCode,
        PersonTerms, Terms,
    },
    id::ConsentId,
    oauth,
    openid::StepUp,
    principal::Scope,
    refusal::Refusal,
};
use portcullis_store::Consent;

use super::{Authorization, documents::FetchFor, events::EventSubject};
use crate::{identity::login::person::Person, request::Origin};

/// Question to a known person.
pub type ConsentQuestion = PersonTerms<Arc<Person>>;

/// Answer to a browser.
#[derive(Debug)]
pub enum Step {
    /// An error that is told on a page: it is not known where the browser may be sent, or the program is not let in
    /// that the address opens.
    Told(OAuthError),
    /// Back to the client.
    Redirect(String),
    /// A person has to log in, and comes back to this path of the gateway.
    LogIn(String),
    /// A person has to prove more, and comes back to this path of the gateway.
    StepUp(StepUp, String),
    /// A person has to consent.
    Ask(Box<ConsentQuestion>),
}

/// Answer of a person who was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Yes, and ask again the next time.
    Allow,
    /// Yes, also the next time the client asks for the same.
    AllowAndRemember,
    Deny,
    /// Neither: another person is to be asked.
    OtherAccount,
}

/// A person's answer to what a page showed.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub decision: Decision,
    /// Digest of what was shown, from the form.
    pub shown: &'a str,
}

/// The way of a request as far as it came.
enum Progress {
    Ended(Step),
    ConsentQuestion(Box<ConsentQuestion>),
}

/// Digest of what a person is shown, for the form of the page.
#[must_use]
pub fn shown_digest(asked: &ConsentQuestion) -> String {
    hash_text(&oauth::digest(&asked.consent_text()))
}

impl Authorization {
    /// Goes on with the request of a browser, as far as it can without a person's answer.
    ///
    /// # Errors
    /// A failure of the store or of the audit log.
    pub async fn begin(
        self: &Arc<Self>,
        query: &str,
        person: Option<&Arc<Person>>,
        origin: &Origin,
    ) -> Result<Step, Refusal> {
        let asked = match self.read_request(query, person, origin).await? {
            Progress::Ended(step) => return Ok(step),
            Progress::ConsentQuestion(asked) => *asked,
        };
        let consent = self.remembered(&asked).await?;
        match consent {
            Some(consent) => self.grant(asked, consent).await,
            None if asked.request().is_silent() => {
                let told = "the person has to consent";
                let error = OAuthError::new(OAuthErrorCode::ConsentRequired, told);
                self.back(asked.request(), Some(asked.person()), error).await
            }
            None => Ok(Step::Ask(Box::new(asked))),
        }
    }

    /// Does what a person answered. Asks again if what it answered to is not what is asked now.
    ///
    /// # Errors
    /// A failure of the store or of the audit log.
    pub async fn answered(
        self: &Arc<Self>,
        query: &str,
        person: Option<&Arc<Person>>,
        answer: Answer<'_>,
        origin: &Origin,
    ) -> Result<Step, Refusal> {
        let asked = match self.read_request(query, person, origin).await? {
            Progress::Ended(step) => return Ok(step),
            Progress::ConsentQuestion(asked) => asked,
        };
        if shown_digest(&asked) != answer.shown {
            return Ok(Step::Ask(asked));
        }
        match answer.decision {
            Decision::Deny => self.deny(*asked, origin).await,
            Decision::OtherAccount => self.switch(&asked, query, origin).await,
            Decision::Allow => self.allow(*asked, false, origin).await,
            Decision::AllowAndRemember => {
                let remembered = asked.redirect_uri().is_web();
                self.allow(*asked, remembered, origin).await
            }
        }
    }

    async fn read_request(
        &self,
        query: &str,
        person: Option<&Arc<Person>>,
        origin: &Origin,
    ) -> Result<Progress, Refusal> {
        let told = |error| Ok(Progress::Ended(Step::Told(error)));
        let Some(issuer) = self.issuer() else {
            return told(OAuthError::request("clients are not authorized here"));
        };
        let request = match AuthorizationRequest::parse(query) {
            Ok(request) => request,
            Err(error) => return told(error),
        };
        // A caller pays for the documents that it has fetched until it is known who it is.
        let fetcher = if person.is_some() { FetchFor::Person } else { FetchFor::Stranger };
        if fetcher == FetchFor::Stranger && self.is_unread(request.client_id()) {
            self.charge_stranger(origin)?;
        }
        let client = match self.client(request.client_id(), fetcher, origin).await {
            Ok(client) => client,
            Err(error) => return told(error),
        };
        let login = request.path();
        let request = match request.of(client).and_then(|request| self.permitted(request)) {
            Ok(request) => request,
            Err(error) => return told(error),
        };
        let terms = match request.terms(issuer, self.hosts()) {
            Ok(terms) => terms,
            Err((request, error)) => {
                return self.back(&request, person, error).await.map(Progress::Ended);
            }
        };
        match person {
            None if terms.request().is_silent() => {
                let error = OAuthError::new(OAuthErrorCode::LoginRequired, "nobody is logged in");
                self.back(terms.request(), None, error).await.map(Progress::Ended)
            }
            None => Ok(Progress::Ended(Step::LogIn(login))),
            Some(_) if terms.request().asks_for_login() => {
                Ok(Progress::Ended(Step::StepUp(StepUp::Again, login)))
            }
            Some(person) => match self.asked_of(terms, person, origin).await? {
                Progress::ConsentQuestion(asked) => self.proved_enough(asked, login).await,
                ended @ Progress::Ended(_) => Ok(ended),
            },
        }
    }

    /// A client that is to act as an admin is let in by a person whose login is good for changes of an admin.
    async fn proved_enough(
        &self,
        asked: Box<ConsentQuestion>,
        path: String,
    ) -> Result<Progress, Refusal> {
        let acts_as_admin = asked.scopes().contains(Scope::Admin);
        if !acts_as_admin || self.logins.proves(asked.person(), StepUp::Admin) {
            return Ok(Progress::ConsentQuestion(asked));
        }
        if asked.request().is_silent() {
            let told = "the person has to prove more at a login";
            let error = OAuthError::new(OAuthErrorCode::LoginRequired, told);
            return self
                .back(asked.request(), Some(asked.person()), error)
                .await
                .map(Progress::Ended);
        }
        Ok(Progress::Ended(Step::StepUp(StepUp::Admin, path)))
    }

    /// The question to a person; refused if the person has no access to the face or to any scope.
    async fn asked_of(
        &self,
        terms: Terms,
        person: &Arc<Person>,
        origin: &Origin,
    ) -> Result<Progress, Refusal> {
        let reached = match terms.face() {
            Face::All | Face::Rest => true,
            Face::One(slug) => self
                .catalogue
                .providers
                .get(slug.as_str())
                .is_some_and(|provider| provider.is_open_to(person.session.org_id)),
        };
        if !reached {
            return self.refused(terms.request(), OAuthError::target(), person, origin).await;
        }
        match terms.of_person(Arc::clone(person), person.scopes) {
            Ok(asked) => Ok(Progress::ConsentQuestion(Box::new(asked))),
            Err((request, error)) => self.refused(&request, error, person, origin).await,
        }
    }

    async fn refused(
        &self,
        request: &ClientRequest,
        error: OAuthError,
        person: &Arc<Person>,
        origin: &Origin,
    ) -> Result<Progress, Refusal> {
        self.record_denied(request, person, origin).await?;
        self.back(request, Some(person), error).await.map(Progress::Ended)
    }

    /// Tells an error to the client. For an address with a scheme of its own, and for a site of a client that
    /// registered itself, no operator vouches: only a person who let the client in is sent there (RFC 9700 §4.11.2).
    async fn back(
        &self,
        request: &ClientRequest,
        person: Option<&Arc<Person>>,
        error: OAuthError,
    ) -> Result<Step, Refusal> {
        let uri = request.redirect_uri();
        let is_vouched_for = match request.client().reference().kind {
            ClientKind::Declared => true,
            ClientKind::MetadataDocument => uri.scheme().is_none(),
            ClientKind::Registered => uri.scheme().is_none() && !uri.is_web(),
        };
        if is_vouched_for || self.has_let_in(person, request).await? {
            return Ok(self.returned(request, &error));
        }
        Ok(Step::Told(error))
    }

    fn returned(&self, request: &ClientRequest, error: &OAuthError) -> Step {
        Step::Redirect(request.failed(error, self.issuer().unwrap_or_default()))
    }

    async fn has_let_in(
        &self,
        person: Option<&Arc<Person>>,
        request: &ClientRequest,
    ) -> Result<bool, Refusal> {
        let Some(person) = person else { return Ok(false) };
        let session = &person.session;
        let client = &request.client().reference().id;
        let uri = request.redirect_uri().as_str();
        let store = &self.base.store;
        Ok(store.has_consented(session.org_id, session.principal_id, client, uri).await?)
    }

    /// An earlier consent to no less than what is asked for now.
    async fn remembered(&self, asked: &ConsentQuestion) -> Result<Option<ConsentId>, Refusal> {
        if asked.request().asks_for_consent() || !asked.redirect_uri().is_web() {
            return Ok(None);
        }
        let session = &asked.person().session;
        let client = asked.request().client().reference();
        let store = &self.base.store;
        let person = session.principal_id;
        let consent = store.find_consent_to(session.org_id, person, client, asked.face()).await?;
        let same = |consent: &Consent| {
            consent.remembered
                && consent.client == *client
                && consent.returns_to == asked.redirect_uri().as_str()
                && asked.scopes().is_subset_of(consent.scopes)
        };
        Ok(consent.filter(same).map(|consent| consent.id))
    }

    async fn allow(
        self: &Arc<Self>,
        asked: ConsentQuestion,
        remembered: bool,
        origin: &Origin,
    ) -> Result<Step, Refusal> {
        let now = self.base.now();
        let session = &asked.person().session;
        let client = asked.request().client().reference();
        let consent = Consent {
            id: ConsentId::new(self.base.ids()),
            org_id: session.org_id,
            principal_id: session.principal_id,
            client: client.clone(),
            face: asked.face().clone(),
            scopes: asked.scopes(),
            returns_to: asked.redirect_uri().as_str().to_owned(),
            remembered,
            created_at: now,
            renewed_at: now,
        };
        let id = self.base.store.keep_consent(&consent).await?;
        let about = EventSubject { kind: "consent", id: id.to_string() };
        let kind = EventType::ConsentGiven;
        // A crash before this line leaves a consent of which nothing came.
        self.audit.record(self.person_event(kind, asked.person(), client, about, origin)).await?;
        self.grant(asked, id).await
    }

    /// Signs the person out, so that another one logs in and is asked the same.
    async fn switch(
        &self,
        asked: &ConsentQuestion,
        query: &str,
        origin: &Origin,
    ) -> Result<Step, Refusal> {
        match AuthorizationRequest::parse(query) {
            Ok(request) => {
                self.logins.end(asked.person(), origin).await?;
                Ok(Step::StepUp(StepUp::Again, request.path()))
            }
            Err(error) => Ok(Step::Told(error)),
        }
    }

    async fn deny(&self, asked: ConsentQuestion, origin: &Origin) -> Result<Step, Refusal> {
        self.record_denied(asked.request(), asked.person(), origin).await?;
        let error = OAuthError::new(OAuthErrorCode::AccessDenied, "the person said no");
        if asked.redirect_uri().is_web() {
            // The page showed where it leads, and the person answered.
            return Ok(self.returned(asked.request(), &error));
        }
        self.back(asked.request(), Some(asked.person()), error).await
    }

    async fn record_denied(
        &self,
        request: &ClientRequest,
        person: &Person,
        origin: &Origin,
    ) -> Result<(), Refusal> {
        let client = request.client().reference();
        let about = EventSubject { kind: "client", id: client.id.clone() };
        let kind = EventType::ConsentDenied;
        self.audit.record(self.person_event(kind, person, client, about, origin)).await
    }
}
