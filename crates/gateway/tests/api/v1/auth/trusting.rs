//! A gateway that trusts a real OpenID provider.

use crate::prelude::*;

/// Audience that JWTs have to be for.
pub(super) const AUDIENCE: &str = "https://gateway.acme.example";

/// The gateway, its provider, and who is there.
pub(super) struct Trusting {
    pub(super) gateway: Gateway,
    pub(super) oidc: Oidc,
    pub(super) org: String,
    /// The service account of CI jobs, with `mcps:read mcps:invoke`.
    pub(super) ci: String,
    /// A service account that may act for the provider's users.
    pub(super) agent: String,
}

impl Trusting {
    /// With `more` in the configuration.
    pub(super) fn start(more: &str) -> Self {
        Self::of(gateway().config(more))
    }

    /// With these policies.
    pub(super) fn governed_by(policies: &str) -> Self {
        Self::of(gateway().policies(policies))
    }

    fn of(gateway: Builder) -> Self {
        let oidc = Oidc::start();
        let proxies = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]";
        let mut gateway = gateway.config(proxies).sample().prepare();
        let org = gateway.org("acme", &ENOUGH);
        let ci = service(&gateway, &org, "ci", "mcps:read mcps:invoke");
        let agent = service(&gateway, &org, "agent", "mcps:read mcps:invoke policies:read");
        let ci_rule = format!(
            "match = {{ repository_id = \"821093847\", ref = \"refs/heads/main\" }}\n\
             principal = \"{ci}\"\nscopes = [\"mcps:read\", \"mcps:invoke\", \"policies:read\"]\n\
             max_ttl = \"30m\"\nsingle_use = true"
        );
        let people = format!(
            "match = {{ email_verified = true }}\nuser_from = \"sub\"\nmax_ttl = \"12h\"\n\
             roles = {{ \"mcp-admins\" = \"admin\", \"mcp-auditors\" = \"auditor\", \
             \"*\" = \"member\" }}\ndelegation = [\"{agent}\"]"
        );
        gateway.configure(&oidc.trust("ci", &org, AUDIENCE, &ci_rule));
        gateway.configure(&oidc.trust("people", &org, AUDIENCE, &people));
        gateway.start();
        Self { gateway, oidc, org, ci, agent }
    }

    /// The JWT of a CI job; each has a `jti` of its own.
    pub(super) fn job(&self) -> String {
        self.oidc.service_token(&job_claims())
    }

    /// The ID token of a person in these groups.
    pub(super) fn person(&self, subject: &str, groups: &[&str]) -> String {
        let wanted = Wanted::new(AUDIENCE)
            .claim("email_verified", true)
            .claim("groups", groups.iter().map(ToString::to_string).collect::<Vec<_>>());
        self.oidc.user_token(subject, &wanted)
    }

    /// `POST /v1/auth/token` with a Bearer and a body.
    pub(super) async fn exchange(&self, bearer: &str, body: &Value) -> Answer {
        exchange(&self.gateway, bearer, body).await
    }

    /// Logs in as a person.
    pub(super) async fn logged_in(&self, subject: &str, groups: &[&str]) -> Answer {
        self.exchange(&self.person(subject, groups), &Value::Null).await
    }

    /// Logs in as a person: the answer's tokens.
    pub(super) async fn login(&self, subject: &str, groups: &[&str]) -> (String, String) {
        let answer = self.logged_in(subject, groups).await.ok();
        (text(&answer, "/data/access_token"), text(&answer, "/data/refresh_token"))
    }

    /// `POST /v1/auth/refresh` with the token as the Bearer.
    pub(super) async fn refresh(&self, token: &str) -> Answer {
        post(&self.gateway, "/v1/auth/refresh", token, &Value::Null).await
    }

    /// The status of a request with this token.
    pub(super) async fn status(&self, token: &str) -> u16 {
        get(&self.gateway, token, "/v1/audit/events").await.status.as_u16()
    }
}

pub(super) fn job_claims() -> Wanted {
    Wanted::new(AUDIENCE).claim("repository_id", "821093847").claim("ref", "refs/heads/main")
}

/// A JSON body with a Bearer; no body at all for `null`.
pub(super) async fn post(gateway: &Gateway, path: &str, bearer: &str, body: &Value) -> Answer {
    let mut request = gateway.request(Method::POST, path);
    if !bearer.is_empty() {
        request = request.bearer_auth(bearer);
    }
    if !body.is_null() {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    gateway.send(request).await
}

pub(super) async fn get(gateway: &Gateway, bearer: &str, path: &str) -> Answer {
    gateway.send(gateway.request(Method::GET, path).bearer_auth(bearer)).await
}

/// Ends a token of this id; the Bearer itself without one.
pub(super) async fn revoke(gateway: &Gateway, bearer: &str, token_id: Option<&str>) -> Answer {
    let query = token_id.map(|token_id| format!("?token_id={token_id}")).unwrap_or_default();
    let path = format!("/v1/auth/token{query}");
    gateway.send(gateway.request(Method::DELETE, &path).bearer_auth(bearer)).await
}

/// `POST /v1/auth/token` with a Bearer and a body.
pub(super) async fn exchange(gateway: &Gateway, bearer: &str, body: &Value) -> Answer {
    post(gateway, "/v1/auth/token", bearer, body).await
}

/// A token that the operator makes for a principal.
pub(super) fn operators(gateway: &Gateway, principal: &str) -> String {
    let made = gateway.admin(&["token", "create", "--principal", principal]);
    made["token"].as_str().unwrap().to_owned()
}

/// Calls a tool of the sample server.
pub(super) async fn list_items(gateway: &Gateway, token: &str) -> Answer {
    let input = json!({"input": {}});
    post(gateway, "/v1/mcps/sample:list_items/invoke", token, &input).await
}

pub(super) fn text(answer: &Answer, pointer: &str) -> String {
    answer.at(pointer).as_str().unwrap_or_else(|| panic!("{pointer} in {}", answer.text)).to_owned()
}

fn service(gateway: &Gateway, org: &str, name: &str, scopes: &str) -> String {
    let create = format!("principal create {name} --org {org} --type service --scopes");
    let made = gateway.admin(&[&words(&create)[..], &[scopes]].concat());
    made["id"].as_str().unwrap().to_owned()
}
