//! Logins at an issuer by OpenID Connect: a browser is sent there, comes back with a code, and the ID token says
//! who the person is.
//!
//! Nothing is stored until the session begins. What has to be known when the browser comes back is in its cookie,
//! sealed, so that any node finishes what another one began, and no other browser can.

use std::sync::Arc;

use portcullis_core::{
    browser_session::{BrowserSecret, LocalPath},
    oauth::{TokenGrant, authorization_url},
    openid::{IssuerAnswer, IssuerCallback, IssuerMetadata, LoginAttempt, StepUp},
    principal::AuthMethod,
    refusal::Refusal,
    secret::Secret,
    trust::{CredentialCheck, IdTokenRequest, IdentifiedPerson},
};
use portcullis_store::LoginRecord;

use super::{
    Logins, OpenedSession,
    failure::{LoginError, LoginFailure},
    issuers::{IssuerCode, KnownIssuer, LoginIssuerState},
    person::Person,
    sessions::ProvedPerson,
};
use crate::{base::tenants::sources::LookUp, identity::access::proofs::record_of, request::Origin};

/// A login that has begun.
#[derive(Debug)]
pub struct BegunLogin {
    /// Address that the browser goes to.
    pub location: String,
    /// `state` of its request.
    pub state: String,
    /// Value of the cookie that it has to bring back.
    pub sealed: Secret,
}

impl Logins {
    /// The issuers at which people log in: name in addresses and on the page.
    pub fn issuers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.issuers.iter().map(|it| (it.settings.name.as_str(), it.settings.label.as_str()))
    }

    /// The state of each issuer, which is asked for it.
    pub async fn issuer_states(&self) -> Vec<LoginIssuerState> {
        let mut states = Vec::with_capacity(self.issuers.len());
        for issuer in &self.issuers {
            states.push(issuer.state(&self.outbound).await);
        }
        states
    }

    /// The issuer at which a person logged in, by its name in addresses.
    #[must_use]
    pub fn issuer_of(&self, person: &Person) -> Option<&str> {
        self.known_issuer_of(person).map(|known| known.settings.name.as_str())
    }

    fn known_issuer_of(&self, person: &Person) -> Option<&Arc<KnownIssuer>> {
        let issuer = person.session.issuer.as_deref()?;
        self.issuers.iter().find(|known| known.issuer() == issuer)
    }

    fn issuer_named(&self, name: &str) -> Option<&Arc<KnownIssuer>> {
        self.issuers.iter().find(|known| known.settings.name == name)
    }

    /// The address that issuers send browsers back to.
    fn redirect_uri(&self) -> Result<String, Refusal> {
        let url = self.providers.public_url().ok_or(Refusal::Internal)?;
        Ok(format!("{url}/login/callback"))
    }

    /// Begins a login at the issuer of this name, after which the browser goes to `return_to`. Another name is charged
    /// to the source.
    ///
    /// # Errors
    /// [`LoginFailure`].
    pub async fn begin_login(
        &self,
        name: &str,
        step_up: Option<StepUp>,
        return_to: Option<&LocalPath>,
        origin: &Origin,
    ) -> Result<BegunLogin, LoginFailure> {
        let unknown = || self.charged_for(LoginError::UnknownIssuer, origin);
        let issuer = self.issuer_named(name).ok_or_else(unknown)?;
        let now = self.base.now();
        let metadata = issuer.metadata(&self.outbound, now).await?;
        let random = &*self.base.random;
        let attempt = LoginAttempt::begin(name, step_up, return_to, now, random);
        let sealed = self.attempts.seal(&attempt, random).ok_or(Refusal::Internal)?;
        let location = self.request_of(issuer, &metadata, &attempt)?;
        Ok(BegunLogin { location, state: attempt.state().to_owned(), sealed })
    }

    /// The address of the authorization request (OpenID Connect Core §3.1.2.1).
    fn request_of(
        &self,
        issuer: &KnownIssuer,
        metadata: &IssuerMetadata,
        attempt: &LoginAttempt,
    ) -> Result<String, Refusal> {
        let settings = &issuer.settings;
        let scope = settings.scopes.join(" ");
        let redirect_uri = self.redirect_uri()?;
        let challenge = attempt.verifier().challenge();
        let levels = self.levels_for(issuer, attempt.step_up()).join(" ");
        let max_age = settings.max_age.map(|seconds| seconds.to_string());
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", settings.client_id.as_str()),
            ("redirect_uri", &redirect_uri),
            ("scope", &scope),
            ("state", attempt.state()),
            ("nonce", attempt.nonce()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if !levels.is_empty() {
            parameters.push(("acr_values", &levels));
        }
        if let Some(max_age) = &max_age {
            parameters.push(("max_age", max_age));
        }
        if attempt.step_up().is_some() {
            parameters.push(("prompt", "login"));
        }
        Ok(authorization_url(&metadata.authorization_endpoint, &parameters))
    }

    /// The levels of authentication that a login asks for.
    fn levels_for(&self, issuer: &KnownIssuer, step_up: Option<StepUp>) -> Vec<String> {
        let usual = || issuer.settings.acr_values.clone();
        match step_up {
            None | Some(StepUp::Again) => usual(),
            Some(StepUp::Admin) => self.admin_acr.clone(),
            Some(StepUp::Mfa) => {
                let rules = self.access.trust().rules().of(issuer.issuer(), None);
                let ours = rules.filter(|rule| rule.audience == issuer.settings.client_id);
                let mut levels: Vec<String> =
                    ours.flat_map(|rule| rule.login.mfa_acr.iter().cloned()).collect();
                levels.sort_unstable();
                levels.dedup();
                if levels.is_empty() { usual() } else { levels }
            }
        }
    }

    /// Finishes a login with the answer that a browser brought back from an issuer, and ends the session that the
    /// browser had. Gives the path as well that the login was begun for. Every failure is charged to the source.
    ///
    /// # Errors
    /// [`LoginFailure`].
    pub async fn finish_login(
        self: &Arc<Self>,
        query: &str,
        sealed: Option<&str>,
        replaced: Option<BrowserSecret>,
        origin: &Origin,
    ) -> Result<(OpenedSession, Option<LocalPath>), LoginFailure> {
        if !self.quotas.may_look_up(LookUp::Code, origin) {
            return Err(self.charged_for(LoginError::Stale, origin));
        }
        let Some((attempt, callback)) = self.attempt_of(query, sealed, origin) else {
            return Err(self.charged_for(LoginError::Stale, origin));
        };
        let this = Arc::clone(self);
        let from = origin.clone();
        let return_to = attempt.return_to();
        let work = async move {
            // What a person is told is no failure of the work.
            Ok(this.open_at_issuer(&attempt, callback, replaced.as_ref(), &from).await)
        };
        match self.uncancelled(work).await? {
            Err(LoginFailure::Told(error)) => Err(self.charged_for(error, origin)),
            done => done.map(|opened| (opened, return_to)),
        }
    }

    /// The login that this browser began, if this is the answer to it.
    fn attempt_of(
        &self,
        query: &str,
        sealed: Option<&str>,
        origin: &Origin,
    ) -> Option<(LoginAttempt, IssuerCallback)> {
        let attempt = self.attempts.open(sealed?, origin.arrived)?;
        let callback = IssuerCallback::parse(query)?;
        attempt.has_state(&callback.state).then_some((attempt, callback))
    }

    fn charged_for(&self, error: LoginError, origin: &Origin) -> LoginFailure {
        match self.charge(origin) {
            Ok(()) => LoginFailure::Told(error),
            Err(refused) => LoginFailure::Refusal(refused.refusal),
        }
    }

    async fn open_at_issuer(
        &self,
        attempt: &LoginAttempt,
        callback: IssuerCallback,
        replaced: Option<&BrowserSecret>,
        origin: &Origin,
    ) -> Result<OpenedSession, LoginFailure> {
        let issuer = self.issuer_named(attempt.issuer()).ok_or(LoginError::Stale)?;
        let metadata = issuer.metadata(&self.outbound, self.base.now()).await?;
        let named = match callback.iss.as_deref() {
            Some(iss) => iss == issuer.issuer(),
            None => !metadata.names_itself,
        };
        if !named {
            return Err(LoginError::OtherIssuer.into());
        }
        let code = match callback.answer {
            IssuerAnswer::Code(code) => code,
            IssuerAnswer::Refused(error) => return Err(LoginError::Refused(error).into()),
        };
        let granted = self.redeem(issuer, &metadata, attempt, &code).await?;
        self.open_for(issuer, attempt, &granted, replaced, origin).await
    }

    async fn redeem(
        &self,
        issuer: &KnownIssuer,
        metadata: &IssuerMetadata,
        attempt: &LoginAttempt,
        code: &Secret,
    ) -> Result<TokenGrant, LoginFailure> {
        let code = IssuerCode {
            code,
            attempt,
            redirect_uri: &self.redirect_uri()?,
            now: self.base.now(),
            random: &*self.base.random,
        };
        Ok(issuer.redeem(&self.outbound, metadata, code).await?)
    }

    /// Begins the session of the person that the ID token names.
    async fn open_for(
        &self,
        issuer: &KnownIssuer,
        attempt: &LoginAttempt,
        granted: &TokenGrant,
        replaced: Option<&BrowserSecret>,
        origin: &Origin,
    ) -> Result<OpenedSession, LoginFailure> {
        let id_token = granted.id_token.as_ref().ok_or(LoginError::IssuerDown)?;
        let request = IdTokenRequest {
            issuer: issuer.issuer(),
            client_id: &issuer.settings.client_id,
            nonce: attempt.nonce(),
            access_token: &granted.access_token,
            max_age: issuer.settings.max_age,
        };
        let identified = self.access.identified(id_token.expose(), &request, origin).await?;
        if let Some(step_up) = attempt.step_up()
            && !self.is_proved(step_up, identified.acr.as_deref(), identified.subject.login.mfa)
        {
            return Err(LoginError::NotEnough(step_up).into());
        }
        let principal_id = self.access.person_of(&identified.subject, origin).await?;
        let IdentifiedPerson { subject, acr, amr, auth_time } = identified;
        let single_use = subject.single_use.as_ref().map(record_of);
        let proved = ProvedPerson {
            org_id: subject.org(),
            principal_id,
            method: AuthMethod::Oidc { trust: subject.rule.name.clone() },
            issuer: Some(issuer.issuer().to_owned()),
            login: Some(LoginRecord { said: subject.login, said_at: self.base.now() }),
            acr,
            amr,
            auth_time,
            once: single_use.into_iter().chain([record_of(&attempt.once())]).collect(),
        };
        let opened = self.open(proved, replaced, origin).await?;
        Ok(opened.ok_or(LoginError::Untrusted(CredentialCheck::Replay))?)
    }

    /// Returns true if the login of a person proves this. A login anew is one that is yet to come.
    #[must_use]
    pub fn proves(&self, person: &Person, step_up: StepUp) -> bool {
        let session = &person.session;
        let mfa = session.login.as_ref().is_some_and(|login| login.said.mfa);
        step_up != StepUp::Again && self.is_proved(step_up, session.acr.as_deref(), mfa)
    }

    fn is_proved(&self, step_up: StepUp, acr: Option<&str>, mfa: bool) -> bool {
        match step_up {
            StepUp::Again => true,
            StepUp::Mfa => mfa,
            StepUp::Admin => {
                let is_listed = |acr: &str| self.admin_acr.iter().any(|level| level == acr);
                self.admin_acr.is_empty() || acr.is_some_and(is_listed)
            }
        }
    }

    /// The address at which a browser logs out at the issuer of a person as well, and from which it comes back to
    /// `/login` (RP-Initiated Logout). `None` if the issuer has no such place, or cannot be asked.
    ///
    /// The ID token is not kept, so that there is no `id_token_hint`: the issuer asks the person.
    pub async fn logout_address(&self, person: &Person) -> Option<String> {
        let issuer = self.known_issuer_of(person)?;
        let metadata = issuer.metadata(&self.outbound, self.base.now()).await.ok()?;
        let back = format!("{}/login", self.providers.public_url()?);
        let client_id = issuer.settings.client_id.as_str();
        let parameters = [("client_id", client_id), ("post_logout_redirect_uri", &back)];
        Some(authorization_url(metadata.end_session_endpoint.as_ref()?, &parameters))
    }
}
