//! Authorization requests (RFC 6749 §4.1.1), step by step up to the consent of a person.

use super::{
    Client, ClientAuthentication, ClientGrant, CodeChallenge, Face, MAX_CLIENT_ID, OAuthError,
    OAuthErrorCode, OAuthForm, OwnHosts, RedirectUri,
};
use crate::{
    id::ConsentId,
    principal::{Scope, ScopeSet},
    trust::Thumbprint,
};

/// Longest `state` in bytes.
const MAX_STATE: usize = 2_048;
/// Values of `prompt` by which a client wants a login before anything else (OpenID Connect Core §3.1.2.1).
const LOGIN_PROMPTS: [&str; 2] = ["login", "select_account"];

/// The scopes of a client that asks for none.
pub const DEFAULT_SCOPES: ScopeSet = ScopeSet::EMPTY.with(Scope::McpsRead).with(Scope::McpsInvoke);

/// A request whose parameters can be read. Nothing is known of its client.
#[derive(Debug, Clone)]
pub struct AuthorizationRequest {
    client_id: String,
    form: OAuthForm,
}

impl AuthorizationRequest {
    /// Reads a query.
    ///
    /// # Errors
    /// `invalid_request`, which can be told on a page only: it is not known where the browser may be sent.
    pub fn parse(query: &str) -> Result<Self, OAuthError> {
        let form = OAuthForm::parse(query.as_bytes())?;
        let client_id = form.required("client_id")?.to_owned();
        if client_id.len() > MAX_CLIENT_ID {
            return Err(OAuthError::request("client_id is too long"));
        }
        Ok(Self { client_id, form })
    }

    /// The id of the client that asks.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The path of this request at the gateway, to come back to after a login: without a wish for one, which is
    /// fulfilled then.
    #[must_use]
    pub fn path(&self) -> String {
        let mut form = self.form.clone();
        if form.get("prompt").is_some() {
            let left = prompts(&self.form).filter(|prompt| !LOGIN_PROMPTS.contains(prompt));
            form = form.with("prompt", &left.collect::<Vec<_>>().join(" "));
        }
        format!("/oauth/authorize?{}", form.encoded())
    }

    /// The request of a client that is known, to return to an address of its own. One that has a single
    /// address may leave it out.
    ///
    /// # Errors
    /// `invalid_request` if the address is not the client's, which can be told on a page only.
    pub fn of(self, client: Client) -> Result<ClientRequest, OAuthError> {
        let wrong = || OAuthError::request("redirect_uri is not one that this client registered");
        let own = client.redirect_uris();
        let redirect_uri = match (self.form.get("redirect_uri"), own) {
            (Some(text), own) => {
                let presented = RedirectUri::parse(text).ok_or_else(wrong)?;
                let known = own.iter().any(|uri| uri.admits(&presented));
                if known { Ok(presented) } else { Err(wrong()) }
            }
            (None, [only]) if only.is_web() => Ok(only.clone()),
            (None, _) => Err(OAuthError::request("redirect_uri is missing")),
        }?;
        Ok(ClientRequest { client, redirect_uri, form: self.form })
    }
}

fn prompts(form: &OAuthForm) -> impl Iterator<Item = &str> {
    form.get("prompt").unwrap_or_default().split(' ')
}

/// A request of a known client: its errors go to the address that it returns to.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    client: Client,
    redirect_uri: RedirectUri,
    form: OAuthForm,
}

impl ClientRequest {
    /// The client.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The address of the client that it returns to.
    #[must_use]
    pub const fn redirect_uri(&self) -> &RedirectUri {
        &self.redirect_uri
    }

    /// Target of an answer: the address with these parameters, the `state` of the request and the issuer
    /// (RFC 9207).
    #[must_use]
    pub fn answered(&self, parameters: &[(&str, &str)], issuer: &str) -> String {
        let mut all = parameters.to_vec();
        if let Some(state) = self.form.get("state").filter(|state| state.len() <= MAX_STATE) {
            all.push(("state", state));
        }
        all.push(("iss", issuer));
        self.redirect_uri.with(&all)
    }

    /// Target of an error.
    #[must_use]
    pub fn failed(&self, error: &OAuthError, issuer: &str) -> String {
        let code = ("error", error.code.as_str());
        self.answered(&[code, ("error_description", &error.description)], issuer)
    }

    /// True if the client wants an answer at once, without a page (`prompt=none`).
    #[must_use]
    pub fn is_silent(&self) -> bool {
        prompts(&self.form).any(|prompt| prompt == "none")
    }

    /// True if the client wants the person to be asked although it has consented before.
    #[must_use]
    pub fn asks_for_consent(&self) -> bool {
        prompts(&self.form).any(|prompt| prompt == "consent")
    }

    /// True if the client wants the person to log in although a session is there.
    #[must_use]
    pub fn asks_for_login(&self) -> bool {
        !self.is_silent() && prompts(&self.form).any(|prompt| LOGIN_PROMPTS.contains(&prompt))
    }

    /// The request, if it is well-formed: a code, bound to a challenge, for scopes of a face of the
    /// gateway at `public_url` or one of its `hosts`. Scopes that are not known here are ignored (RFC 6749 §3.3); if
    /// none is left, those of a client that asks for none are meant.
    ///
    /// # Errors
    /// `unsupported_response_type`, `invalid_request`, `invalid_scope` and `invalid_target`.
    pub fn terms(
        self,
        public_url: &str,
        hosts: &OwnHosts,
    ) -> Result<Terms, (Box<Self>, OAuthError)> {
        match self.parts(public_url, hosts) {
            Ok(RequestParts { challenge, key, face, scopes }) => {
                Ok(Terms { request: self, challenge, key, face, scopes })
            }
            Err(error) => Err((Box::new(self), error)),
        }
    }

    fn parts(&self, public_url: &str, hosts: &OwnHosts) -> Result<RequestParts, OAuthError> {
        let form = &self.form;
        if form.required("response_type")? != "code" {
            let told = "response_type has to be code";
            return Err(OAuthError::new(OAuthErrorCode::UnsupportedResponseType, told));
        }
        if form.get("request").is_some() || form.get("request_uri").is_some() {
            return Err(OAuthError::request("request objects are not supported"));
        }
        if form.get("state").is_some_and(|state| state.len() > MAX_STATE) {
            return Err(OAuthError::request("state is too long"));
        }
        let challenge =
            CodeChallenge::parse(form.get("code_challenge"), form.get("code_challenge_method"))?;
        let key = form.get("dpop_jkt").map(str::parse).transpose();
        let key = key.map_err(|_| OAuthError::request("dpop_jkt is no thumbprint of a key"))?;
        let face = Face::of_resource(form.get("resource"), public_url, hosts)?;
        if face == Face::Rest && !self.client.is_declared() {
            return Err(OAuthError::target());
        }
        let scopes = form.scopes().filter(|it| !it.is_empty()).unwrap_or(DEFAULT_SCOPES);
        let scopes = scopes.intersection(self.client.ceiling()).intersection(face.ceiling());
        if scopes.is_empty() {
            let told = "none of the scopes can be given to this client";
            return Err(OAuthError::new(OAuthErrorCode::InvalidScope, told));
        }
        Ok(RequestParts { challenge, key, face, scopes })
    }
}

/// Members of a request that are well-formed.
struct RequestParts {
    challenge: CodeChallenge,
    key: Option<Thumbprint>,
    face: Face,
    scopes: ScopeSet,
}

/// A well-formed request of a known client.
#[derive(Debug, Clone)]
pub struct Terms {
    request: ClientRequest,
    challenge: CodeChallenge,
    key: Option<Thumbprint>,
    face: Face,
    scopes: ScopeSet,
}

impl Terms {
    /// The request.
    #[must_use]
    pub const fn request(&self) -> &ClientRequest {
        &self.request
    }

    /// The face that is asked for.
    #[must_use]
    pub const fn face(&self) -> &Face {
        &self.face
    }

    /// The same, asked of a person who may do no more than `allowed`.
    ///
    /// # Errors
    /// `invalid_scope` if nothing is left of what is asked for.
    pub fn of_person<P>(
        self,
        person: P,
        allowed: ScopeSet,
    ) -> Result<PersonTerms<P>, (Box<ClientRequest>, OAuthError)> {
        let scopes = self.scopes.intersection(allowed);
        if scopes.is_empty() {
            let told = "the person may do none of what was asked for";
            let error = OAuthError::new(OAuthErrorCode::InvalidScope, told);
            return Err((Box::new(self.request), error));
        }
        Ok(PersonTerms { terms: Self { scopes, ..self }, person })
    }
}

/// Request of a client to a known person.
#[derive(Debug, Clone)]
pub struct PersonTerms<P> {
    terms: Terms,
    person: P,
}

impl<P> PersonTerms<P> {
    /// The request.
    #[must_use]
    pub const fn request(&self) -> &ClientRequest {
        &self.terms.request
    }

    /// The person.
    #[must_use]
    pub const fn person(&self) -> &P {
        &self.person
    }

    /// The face that is asked for.
    #[must_use]
    pub const fn face(&self) -> &Face {
        &self.terms.face
    }

    /// The scopes that are asked for and that the person has.
    #[must_use]
    pub const fn scopes(&self) -> ScopeSet {
        self.terms.scopes
    }

    /// Address to which the browser goes afterwards.
    #[must_use]
    pub const fn redirect_uri(&self) -> &RedirectUri {
        &self.terms.request.redirect_uri
    }

    /// Everything that the person is shown, as one text: consent is to this and nothing else.
    #[must_use]
    pub fn consent_text(&self) -> String {
        let Terms { request, face, scopes, .. } = &self.terms;
        let client = request.client.reference();
        let parts = [
            client.id.as_str(),
            client.kind.as_str(),
            &client.name,
            request.redirect_uri.as_str(),
            &face.path(),
            &scopes.to_string(),
        ];
        parts.join("\n")
    }

    /// The same after the person said yes, now or in an earlier consent that is remembered.
    #[must_use]
    pub const fn consented(self, consent: ConsentId) -> Consented<P> {
        Consented { asked: self, consent }
    }
}

/// Terms that a person consented to: a code may be given for it.
#[derive(Debug, Clone)]
pub struct Consented<P> {
    asked: PersonTerms<P>,
    consent: ConsentId,
}

impl<P> Consented<P> {
    /// Terms that were asked.
    #[must_use]
    pub const fn terms(&self) -> &PersonTerms<P> {
        &self.asked
    }

    /// The challenge that the code is bound to.
    #[must_use]
    pub const fn challenge(&self) -> CodeChallenge {
        self.asked.terms.challenge
    }

    /// The key that the code is bound to, if it is (RFC 9449 §10).
    #[must_use]
    pub const fn key(&self) -> Option<Thumbprint> {
        self.asked.terms.key
    }

    /// The consent.
    #[must_use]
    pub const fn consent(&self) -> ConsentId {
        self.consent
    }

    /// Grant of the client.
    #[must_use]
    pub fn grant(&self) -> ClientGrant {
        let request = &self.asked.terms.request;
        let client = request.client.reference();
        let presented = request.form.get("client_id").filter(|id| *id != client.id);
        ClientGrant {
            client: client.clone(),
            face: self.asked.terms.face.clone(),
            consent: Some(self.consent),
            by_key: *request.client.authentication() != ClientAuthentication::None,
            client_id: presented.map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorization::ClientKind;

    const OWN: &str = "https://gw.example";
    const PKCE: &str =
        "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256";

    fn client() -> Client {
        let uris = vec![RedirectUri::parse("https://app.example/cb").unwrap()];
        Client::new("reg_1".to_owned(), ClientKind::Registered, Some("App"), uris).unwrap()
    }

    fn request(more: &str) -> ClientRequest {
        let query =
            format!("client_id=x&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&state=s%26t&{more}");
        AuthorizationRequest::parse(&query).unwrap().of(client()).unwrap()
    }

    fn error(more: &str) -> &'static str {
        request(more).terms(OWN, &OwnHosts::default()).unwrap_err().1.code.as_str()
    }

    #[test]
    fn what_is_not_well_formed_goes_back_to_the_client() {
        for (more, code) in [
            ("", "invalid_request"),
            ("response_type=token", "unsupported_response_type"),
            ("response_type=code", "invalid_request"),
            (
                "response_type=code&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
                "invalid_request",
            ),
        ] {
            assert_eq!(error(more), code, "{more}");
        }
        let with = |more: &str| error(&format!("response_type=code&{PKCE}&{more}"));
        assert_eq!(with("resource=https%3A%2F%2Fevil.example%2Fmcp"), "invalid_target");
        assert_eq!(with("scope=admin"), "invalid_scope");
        assert_eq!(with("request_uri=urn:x"), "invalid_request");
        assert_eq!(with("dpop_jkt=x"), "invalid_request");
        let failed = request("").failed(&OAuthError::request("why"), OWN);
        assert_eq!(
            failed,
            "https://app.example/cb?error=invalid_request&error_description=why&state=s%26t&iss=https%3A%2F%2Fgw.example"
        );
    }

    #[test]
    fn scopes_are_those_asked_for_that_client_and_person_may_have() {
        let terms = |scope: &str| {
            let request = request(&format!("response_type=code&{PKCE}{scope}"));
            request.terms(OWN, &OwnHosts::default()).unwrap()
        };
        let may = "mcps:read mcps:invoke providers:read".parse().unwrap();
        let scopes =
            |scope: &str| terms(scope).of_person((), may).map(|it| it.scopes().to_string()).ok();

        assert_eq!(scopes("").as_deref(), Some("mcps:invoke mcps:read"));
        assert_eq!(scopes("&scope=mcps:read+admin+offline_access").as_deref(), Some("mcps:read"));
        assert_eq!(
            scopes("&scope=openid+offline_access").as_deref(),
            Some("mcps:invoke mcps:read")
        );
        assert_eq!(scopes("&scope=policies:read"), None);
    }

    #[test]
    fn a_request_that_comes_back_from_a_login_asks_for_none() {
        for (prompt, asks, back) in [
            ("login", true, "prompt="),
            ("select_account", true, "prompt="),
            ("login+consent", true, "prompt=consent"),
            ("consent", false, "prompt=consent"),
            ("none+login", false, "prompt=none"),
        ] {
            let query = format!("client_id=x&prompt={prompt}");
            let request = AuthorizationRequest::parse(&query).unwrap();
            assert_eq!(request.path(), format!("/oauth/authorize?client_id=x&{back}"));
            assert_eq!(request.of(client()).unwrap().asks_for_login(), asks, "{prompt}");
        }
        let plain = AuthorizationRequest::parse("client_id=x").unwrap();
        assert_eq!(plain.path(), "/oauth/authorize?client_id=x");
    }

    #[test]
    fn an_address_that_is_not_the_clients_is_no_request_of_it() {
        for uri in ["https%3A%2F%2Fevil.example%2Fcb", "https%3A%2F%2Fapp.example%2Fcb%2F", "x"] {
            let query = format!("client_id=x&redirect_uri={uri}");
            assert!(AuthorizationRequest::parse(&query).unwrap().of(client()).is_err(), "{uri}");
        }
        assert!(AuthorizationRequest::parse("client_id=x").unwrap().of(client()).is_ok());
        for bad in ["", "client_id=", "client_id=a&client_id=b"] {
            assert!(AuthorizationRequest::parse(bad).is_err(), "{bad}");
        }
    }
}
