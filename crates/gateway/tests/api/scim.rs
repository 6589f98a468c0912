//! `/scim/v2`: identity providers keep the people and groups of an org.

mod ending;
mod entra;
mod joining;
mod law;
mod okta;

use portcullis_testkit::tool;

use crate::prelude::*;

const AUDIENCE: &str = "mcp-gateway";
const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";
const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
/// Lets only people of the group `finance` call, and asks them for an approval of one tool.
const FOR_FINANCE: &str = "@id(\"finance\") permit (principal in Mcp::Group::\"finance\", action, resource);\n\
    @id(\"books\") @require_approval(\"approvers=finance-leads\")\n\
    forbid (principal, action == Mcp::Action::\"up:close\", resource);";

/// The part of a trust rule that admits people who are joined by this attribute.
fn people(attribute: &str) -> String {
    format!(
        "match = {{ email_verified = true }}\nuser_from = \"sub\"\nscim = \"{attribute}\"\n\
         roles = {{ \"mcp-admins\" = \"admin\", \"*\" = \"member\" }}"
    )
}

/// A gateway, a provider that keeps people over SCIM, and an org whose people log in at that provider.
struct Site {
    gateway: Gateway,
    oidc: Oidc,
    org: String,
    /// The provider, with the scope `scim`.
    provider: Principal,
    admin: Principal,
    _upstream: McpServer,
}

impl Site {
    async fn start() -> Self {
        Self::joined_by("external_id").await
    }

    /// With the attribute that people are joined by.
    async fn joined_by(attribute: &str) -> Self {
        Self::trusting(|_, org, oidc, _| oidc.trust("people", org, AUDIENCE, &people(attribute)))
            .await
    }

    /// With these trust rules, made for the org, its first provider and this service account.
    async fn trusting(rules: impl Fn(&Gateway, &str, &Oidc, &Principal) -> String) -> Self {
        let upstream = McpServer::start(vec![tool("read"), tool("close")]).await;
        let builder: Builder = gateway().policies(FOR_FINANCE).config("[login]\nlinks = true");
        let mut gateway = builder.http("up", &upstream.url(), "").prepare();
        let oidc = Oidc::start();
        let org = gateway.org("acme", &ENOUGH);
        let provider = gateway.service(&org, "scim");
        gateway.configure(&rules(&gateway, &org, &oidc, &provider));
        gateway.start();
        let admin = gateway.user(&org, "admin", ALL_SCOPES);
        Self { gateway, oidc, org, provider, admin, _upstream: upstream }
    }

    /// A request of the provider; no body for `null`.
    async fn scim(&self, method: Method, path: &str, body: Value) -> Answer {
        self.scim_as(&self.provider, method, path, body).await
    }

    async fn scim_as(&self, who: &Principal, method: Method, path: &str, body: Value) -> Answer {
        let mut request = self.gateway.request_of(who, method, &format!("/scim/v2/{path}"));
        if !body.is_null() {
            let kind = "application/scim+json; charset=utf-8";
            request = request.header("content-type", kind).body(body.to_string());
        }
        self.gateway.send(request).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.scim(Method::GET, path, Value::Null).await
    }

    async fn patch(&self, path: &str, operations: Value) -> Answer {
        let body = json!({"schemas": [PATCH], "Operations": operations});
        self.scim(Method::PATCH, path, body).await
    }

    /// Makes a person; gives its id.
    async fn person(&self, name: &str) -> String {
        let body = json!({
            "schemas": [USER], "userName": format!("{name}@acme.example"), "externalId": name,
            "displayName": name, "active": true,
        });
        id(&self.scim(Method::POST, "Users", body).await)
    }

    /// Makes a group of these people; gives its id.
    async fn group(&self, name: &str, members: &[&str]) -> String {
        let members: Vec<Value> = members.iter().map(|id| json!({"value": id})).collect();
        let body = json!({"schemas": [GROUP], "displayName": name, "members": members});
        id(&self.scim(Method::POST, "Groups", body).await)
    }

    /// Logs a subject of the provider in, in these groups of the login.
    async fn logged_in(&self, subject: &str, groups: &[&str]) -> Answer {
        self.logged_in_for("", subject, groups).await
    }

    /// The same, with a token of these scopes.
    async fn logged_in_for(&self, scope: &str, subject: &str, groups: &[&str]) -> Answer {
        self.logged_in_at(&self.oidc, scope, subject, groups).await
    }

    /// The same, at this provider.
    async fn logged_in_at(
        &self,
        oidc: &Oidc,
        scope: &str,
        subject: &str,
        groups: &[&str],
    ) -> Answer {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let wanted = Wanted::new(AUDIENCE).claim("email_verified", true).claim("groups", groups);
        let jwt = oidc.user_token(subject, &wanted);
        let mut request = self.gateway.request(Method::POST, "/v1/auth/token").bearer_auth(jwt);
        if !scope.is_empty() {
            let body = json!({ "scope": scope }).to_string();
            request = request.header("content-type", "application/json").body(body);
        }
        self.gateway.send(request).await
    }

    /// The same: the person with the token.
    async fn login(&self, subject: &str) -> Principal {
        let answer = self.logged_in(subject, &[]).await.ok();
        let text = |pointer: &str| answer.at(pointer).as_str().unwrap_or_default().to_owned();
        Principal {
            org: self.org.clone(),
            id: text("/data/principal/id"),
            token_id: text("/data/token_id"),
            token: text("/data/access_token"),
        }
    }

    /// The events of logins that left an admin its role, once there are so many.
    async fn kept_roles(&self, count: usize) -> Vec<Value> {
        let events = "/v1/audit/events";
        eventually("events of roles that were kept", async || {
            let path = format!("{events}?type=principal.changed&order=asc&limit=100");
            let mut kept = Vec::new();
            for event in items(&self.gateway.get(&self.admin, &path).await.ok()) {
                let path = format!("{events}/{}", event["id"].as_str().unwrap());
                let whole = self.gateway.get(&self.admin, &path).await.ok();
                if whole.at("/data/detached/change/action") == "role_kept" {
                    kept.push(whole.at("/data").clone());
                }
            }
            (kept.len() >= count).then_some(kept)
        })
        .await
    }

    /// The events of these types, the oldest first, once there are so many.
    async fn events(&self, types: &str, count: usize) -> Vec<Value> {
        let path = format!("/v1/audit/events?type={types}&order=asc");
        let found = until(
            || self.gateway.get(&self.admin, &path),
            |answer| answer.at("/data/items").as_array().is_some_and(|all| all.len() >= count),
        );
        items(&found.await).clone()
    }
}

/// The id of what was made.
fn id(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.at("/id").as_str().unwrap().to_owned()
}

/// Status and `scimType` of an error, which is whole.
#[track_caller]
fn error(answer: &Answer) -> (u16, &str) {
    let status = answer.status.as_u16();
    has!(answer, "/schemas/0": "urn:ietf:params:scim:api:messages:2.0:Error",
        "/status": status.to_string());
    assert!(answer.at("/detail").as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(answer.header("content-type"), "application/scim+json");
    (status, answer.at("/scimType").as_str().unwrap_or_default())
}

/// The ids of the resources of a list, and `totalResults`.
#[track_caller]
fn listed(answer: &Answer) -> (Vec<&str>, u64) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let resources = answer.at("/Resources").as_array().unwrap();
    assert_eq!(answer.at("/itemsPerPage"), resources.len());
    let ids = resources.iter().map(|it| it["id"].as_str().unwrap()).collect();
    (ids, answer.at("/totalResults").as_u64().unwrap())
}
