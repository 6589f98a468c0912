//! A real OpenID provider as a child process: npm's `oidc-provider`, driven by
//! `tests/servers/oidc.mjs`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::driven::{Driven, text};

/// A provider on a loopback port. It ends when it is dropped.
#[derive(Debug)]
pub struct Oidc {
    issuer: String,
    running: Driven,
}

/// Fate of old keys in a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldKeys {
    /// Keys stay published beside the new ones.
    Kept,
    Withdrawn,
}

/// Number of fetches of a provider's documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetches {
    pub discovery: u64,
    pub jwks: u64,
}

/// A token to be issued. Without anything it is signed RS256 and lives for five minutes.
#[derive(Debug, Clone)]
pub struct Wanted {
    audience: String,
    claims: BTreeMap<String, Value>,
    ttl: u32,
    alg: &'static str,
}

impl Wanted {
    /// A token for `audience`.
    pub fn new(audience: &str) -> Self {
        Self { audience: audience.to_owned(), claims: BTreeMap::new(), ttl: 300, alg: "RS256" }
    }

    /// With this claim besides.
    #[must_use]
    pub fn claim(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.claims.insert(name.to_owned(), value.into());
        self
    }

    /// Signed by this algorithm: RS256, PS256, ES256 or `EdDSA`.
    #[must_use]
    pub fn alg(mut self, alg: &'static str) -> Self {
        self.alg = alg;
        self
    }

    /// Living so many seconds.
    #[must_use]
    pub fn ttl(mut self, seconds: u32) -> Self {
        self.ttl = seconds;
        self
    }

    fn command(&self, what: &str, subject: &str) -> Value {
        json!({
            "do": what,
            "subject": subject,
            "audience": self.audience,
            "claims": self.claims,
            "ttl": self.ttl,
            "alg": self.alg,
        })
    }
}

impl Oidc {
    /// Starts a provider with new keys. Needs the services of `./test`.
    pub fn start() -> Self {
        let running = Driven::start("node", "oidc.mjs", &[]);
        Self { issuer: text(&running.description(), "issuer"), running }
    }

    /// Its `iss`: an `http` URL on a loopback address.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// URL of its keys.
    #[must_use]
    pub fn jwks_url(&self) -> String {
        format!("{}/jwks", self.issuer)
    }

    /// A `[[trust]]` entry for it; `more` is what it matches and whom it makes, in TOML.
    #[must_use]
    pub fn trust(&self, name: &str, org: &str, audience: &str, more: &str) -> String {
        let issuer = &self.issuer;
        format!(
            "[[trust]]\nname = \"{name}\"\norg = \"{org}\"\nissuer = \"{issuer}\"\n\
             audience = \"{audience}\"\nallow_private = true\n{more}\n"
        )
    }

    /// An access token in JWT form (`at+jwt`) by the client credentials grant, as a CI system
    /// would issue it: its claims may replace any but `iss` and `aud`.
    pub fn service_token(&self, wanted: &Wanted) -> String {
        text(&self.running.command(&wanted.command("service_token", "")), "token")
    }

    /// An ID token for `subject` by the authorization code flow with PKCE.
    pub fn user_token(&self, subject: &str, wanted: &Wanted) -> String {
        text(&self.running.command(&wanted.command("user_token", subject)), "token")
    }

    /// A new private key of clients that log people in, in PEM.
    pub fn client_key(&self) -> String {
        text(&self.running.command(&json!({"do": "client_key"})), "pem")
    }

    /// Registers a client at which people log in and that lives at `url`; without a secret it proves itself with the
    /// client key.
    pub fn client(&self, id: &str, secret: Option<&str>, url: &str) {
        self.running.command(&json!({
            "do": "client",
            "id": id,
            "secret": secret,
            "redirect": format!("{url}/login/callback"),
            "logout": format!("{url}/login"),
        }));
    }

    /// Plays the browser of `subject`, of whom the provider says `claims`, from an address on, until it is sent to one
    /// that begins with `until`; gives that.
    pub fn browse(&self, url: &str, subject: &str, claims: &Value, until: &str) -> String {
        let command = json!({
            "do": "browse", "url": url, "subject": subject, "claims": claims, "until": until,
        });
        text(&self.running.command(&command), "url")
    }

    /// Shows browsers its own pages for login and consent from now on, at which any name and password will do; of each
    /// person it says `claims`.
    pub fn show_pages(&self, claims: &Value) {
        self.running.command(&json!({"do": "pages", "claims": claims}));
    }

    /// Gives ID tokens with these members of the header and these claims in place of its own from now on, signed
    /// with its key unless the algorithm is `none`.
    pub fn forge(&self, header: &Value, claims: &Value) {
        self.running.command(&json!({"do": "forge", "header": header, "claims": claims}));
    }

    /// Gives ID tokens as it makes them.
    pub fn forge_nothing(&self) {
        self.running.command(&json!({"do": "forge"}));
    }

    /// Logout token of `subject` for a client: signed with the same keys, and no
    /// proof of who anybody is.
    pub fn logout_token(&self, subject: &str, audience: &str) -> String {
        let wanted = Wanted::new(audience);
        text(&self.running.command(&wanted.command("logout_token", subject)), "token")
    }

    /// Signs with new keys from now on.
    pub fn rotate(&self, old: OldKeys) {
        self.running.command(&json!({"do": "rotate", "keep": old == OldKeys::Kept}));
    }

    /// Stops listening until [`Oidc::resume`].
    pub fn stop(&self) {
        self.running.command(&json!({"do": "stop"}));
    }

    /// Listens again on the same port.
    pub fn resume(&self) {
        self.running.command(&json!({"do": "resume"}));
    }

    /// Sets its clock so many seconds before (negative) or after the machine's.
    pub fn set_clock(&self, seconds: i64) {
        self.running.command(&json!({"do": "clock", "seconds": seconds}));
    }

    /// The keys it publishes, as a JWK Set; works during an outage as well.
    pub fn jwks(&self) -> Value {
        self.running.command(&json!({"do": "jwks"})).get("jwks").expect("keys").clone()
    }

    /// Number of fetches of its documents so far.
    pub fn fetches(&self) -> Fetches {
        let answer = self.running.command(&json!({"do": "fetches"}));
        let count = |name: &str| answer.get(name).and_then(Value::as_u64).expect("a count");
        Fetches { discovery: count("discovery"), jwks: count("jwks") }
    }
}
