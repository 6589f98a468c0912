//! `GET /v1/approvals`, `GET /v1/approvals/{id}`, `POST /v1/approvals/{id}/decision`,
//! `GET /approvals/{id}` and `portcullis approval`: calls that wait for people.

mod asking;
mod deciding;
mod digest;
mod hidden;
mod listing;
mod operator;
mod page;

use crate::prelude::*;

const AUDIENCE: &str = "https://gateway.acme.example";

const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("payouts") @reason("A second person looks at payments")
@require_approval("approvers=finance,treasury ttl=15m")
forbid (principal, action == Mcp::Action::"up:pay", resource);
@id("letters") @require_approval("approvers=finance hidden=true")
forbid (principal, action == Mcp::Action::"up:write", resource);
@id("wires") @require_approval("approvers=finance approvals=2 uses=2 mfa=true")
forbid (principal, action == Mcp::Action::"up:wire", resource);
"#;

/// A gateway whose policies ask for approvals, the tools, and where people log in.
struct Waiting {
    gateway: Gateway,
    upstream: Hostile,
    oidc: Oidc,
    org: String,
    /// A service account that may act for people.
    agent: Principal,
}

impl Waiting {
    async fn start() -> Self {
        let tools = ["pay", "wire", "write", "free"].map(|name| tool(name, Script::Echo));
        let upstream = Hostile::start(tools.to_vec()).await;
        let oidc = Oidc::start();
        let mut gateway = gateway().policies(POLICIES).http("up", &upstream.url(), "").prepare();
        let org = gateway.org("acme", &ENOUGH);
        let agent = gateway.service(&org, "mcps:invoke approvals:read approvals:decide");
        let people = format!(
            "match = {{ email_verified = true }}\nuser_from = \"sub\"\nmax_ttl = \"12h\"\n\
             groups_from = \"teams\"\nroles = {{ \"admins\" = \"admin\", \"auditors\" = \"auditor\", \
             \"*\" = \"member\" }}\ndelegation = [\"{}\"]",
            agent.id
        );
        gateway.configure(&oidc.trust("people", &org, AUDIENCE, &people));
        gateway.start();
        Self { gateway, upstream, oidc, org, agent }
    }

    /// A requester, and a person who may decide.
    async fn with_two() -> (Self, Principal, Principal) {
        let it = Self::start().await;
        let ana = it.person("ana", &[]).await;
        let ben = it.person("ben", &["finance"]).await;
        (it, ana, ben)
    }

    /// Logs in with one factor.
    async fn person(&self, name: &str, groups: &[&str]) -> Principal {
        self.login(name, groups, &["pwd"], "").await
    }

    /// Logs in; `scopes` are those of a member or an admin that decides, if empty.
    async fn login(
        &self,
        name: &str,
        groups: &[&str],
        factors: &[&str],
        scopes: &str,
    ) -> Principal {
        let wanted = Wanted::new(AUDIENCE)
            .claim("email_verified", true)
            .claim("teams", json!(groups))
            .claim("groups", json!(groups))
            .claim("amr", json!(factors));
        let usual = "mcps:read mcps:invoke approvals:read approvals:decide";
        let scope = if scopes.is_empty() { usual } else { scopes };
        self.exchange(&self.oidc.user_token(name, &wanted), &json!({ "scope": scope })).await
    }

    /// The token that is given for this one.
    async fn exchange(&self, bearer: &str, body: &Value) -> Principal {
        let request = self.gateway.request(Method::POST, "/v1/auth/token").bearer_auth(bearer);
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = self.gateway.send(request).await;
        let text = |pointer: &str| answer.at(pointer).as_str().expect(&answer.text).to_owned();
        Principal {
            org: text("/data/org_id"),
            id: text("/data/principal/id"),
            token_id: text("/data/token_id"),
            token: text("/data/access_token"),
        }
    }

    async fn invoke(&self, who: &Principal, tool: &str, input: Value) -> Answer {
        self.gateway.invoke(who, &format!("up:{tool}"), input).await
    }

    /// Makes a call that needs an approval: the approval's id.
    async fn ask(&self, who: &Principal, tool: &str, input: Value) -> String {
        let answer = self.invoke(who, tool, input).await;
        assert_eq!(answer.code(), "policy_denied", "{}", answer.text);
        approval_of(&answer)
    }

    async fn get(&self, who: &Principal, id: &str) -> Answer {
        self.gateway.get(who, &format!("/v1/approvals/{id}")).await
    }

    async fn decide(&self, who: &Principal, id: &str, body: Value) -> Answer {
        self.gateway.post(who, &format!("/v1/approvals/{id}/decision"), &body.to_string()).await
    }

    async fn approve(&self, who: &Principal, id: &str) {
        self.decide(who, id, json!({"decision": "approve"})).await.ok();
    }

    /// Events about an approval in the order of the log, whole, once there are so many.
    async fn events(&self, id: &str, count: usize) -> Vec<Value> {
        let scopes = ["--scopes", "audit:read"];
        let name = format!("auditor of {id}");
        let who = self.gateway.principal(&self.org, &name, &["--role", "auditor"], &scopes);
        let path = format!("/v1/audit/events?target={id}&order=asc");
        let listed = until(|| self.gateway.get(&who, &path), |it| items(it).len() >= count).await;
        whole(&self.gateway, &who, &listed).await
    }
}

/// The approval that a call waits for.
fn approval_of(answer: &Answer) -> String {
    let id = answer.at("/error/details/approval/id").as_str();
    id.unwrap_or_else(|| panic!("no approval in {}", answer.text)).to_owned()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}
