//! A gateway, an upstream that does as it is told, and a caller; and what every answer of an
//! invocation has to be like.

use portcullis_testkit::{Answer, Builder, Gateway, Hostile, HostileTool, Principal, Script};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::{
    gateway,
    given::{fresh_org, items, members, serve_as, until},
};

/// Gateway, upstream and caller of a test.
pub(crate) struct Scene {
    pub(crate) gateway: Gateway,
    pub(crate) upstream: Hostile,
    pub(crate) who: Principal,
}

/// Expected end of an invocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub(crate) status: u16,
    /// `error.code`; empty for success.
    pub(crate) code: &'static str,
    /// Execution of the upstream effect: `yes`, `no` or `unknown`.
    pub(crate) executed: &'static str,
    /// `governance.decision`; empty when no decision was reached.
    pub(crate) decision: &'static str,
    /// `meta.outcome`.
    pub(crate) outcome: &'static str,
}

/// The ending of a call that went well.
pub(crate) const SUCCESS: Ending =
    Ending { status: 200, code: "", executed: "yes", decision: "allow", outcome: "success" };

pub(crate) const TOOL_ERROR: Ending = Ending { outcome: "tool_error", ..SUCCESS };

/// The ending of a call that is refused before there is a decision.
pub(crate) const INVALID: Ending = Ending {
    status: 400,
    code: "invalid_request",
    executed: "no",
    decision: "",
    outcome: "invalid",
};
pub(crate) const NOT_FOUND: Ending =
    Ending { status: 404, code: "not_found", outcome: "not_found", ..INVALID };

pub(crate) const DENIED: Ending = Ending {
    status: 403,
    code: "policy_denied",
    executed: "no",
    decision: "deny",
    outcome: "denied",
};
/// The ending of a call that waits for people.
pub(crate) const PENDING: Ending = Ending { outcome: "approval_pending", ..DENIED };

/// The ending of a call that the upstream did not answer as it should.
pub(crate) const FAILED: Ending = Ending {
    status: 502,
    code: "upstream_error",
    executed: "unknown",
    decision: "allow",
    outcome: "upstream_error",
};
pub(crate) const TIMED_OUT: Ending =
    Ending { status: 504, code: "upstream_timeout", outcome: "upstream_timeout", ..FAILED };
/// The ending of a call that there was no room for.
pub(crate) const OVERLOADED: Ending =
    Ending { status: 503, code: "unavailable", executed: "no", outcome: "unavailable", ..FAILED };

/// A tool of the scripted upstream.
pub(crate) fn tool(name: &str, script: Script) -> HostileTool {
    HostileTool::new(name, script)
}

/// A tool whose calls have this result.
pub(crate) fn giving(name: &str, result: &Value) -> HostileTool {
    tool(name, Script::Result(result.to_string()))
}

/// A scene in which everything is permitted.
pub(crate) async fn scene(tools: Vec<HostileTool>) -> Scene {
    scene_with(tools, "", |builder| builder).await
}

/// A scene under these policies.
pub(crate) async fn scene_under(policies: &str, tools: Vec<HostileTool>) -> Scene {
    scene_with(tools, "", |builder| builder.policies(policies)).await
}

/// A scene whose provider `up` is declared with `more` and whose gateway is what `change` makes
/// of it.
pub(crate) async fn scene_with(
    tools: Vec<HostileTool>,
    more: &str,
    change: impl FnOnce(Builder) -> Builder,
) -> Scene {
    let upstream = Hostile::start(tools).await;
    let (gateway, who) =
        serve_as("mcps:read mcps:invoke", change(gateway().http("up", &upstream.url(), more)));
    Scene { gateway, upstream, who }
}

impl Scene {
    /// The same for a caller of another org, as if nothing had been called.
    pub(crate) fn anew(self) -> Self {
        self.upstream.forget();
        let who = self.gateway.service(&fresh_org(&self.gateway), "mcps:read mcps:invoke");
        Self { who, ..self }
    }

    /// Invokes a tool of the scripted upstream.
    pub(crate) async fn invoke(&self, tool: &str, input: Value) -> Answer {
        self.gateway.invoke(&self.who, &format!("up:{tool}"), input).await
    }

    /// A request to invoke a tool of the scripted upstream, to be completed and sent.
    pub(crate) fn request(&self, tool: &str) -> RequestBuilder {
        self.gateway.request_of(&self.who, Method::POST, &format!("/v1/mcps/up:{tool}/invoke"))
    }

    /// Sends this body to a tool of the scripted upstream.
    pub(crate) async fn post(&self, tool: &str, body: &str) -> Answer {
        self.gateway.post(&self.who, &format!("/v1/mcps/up:{tool}/invoke"), body).await
    }

    /// Checks all that has to hold of an answer with this ending, and of its one event, which it
    /// gives.
    pub(crate) async fn check(&self, answer: &Answer, ending: Ending) -> Value {
        check(&self.gateway, &self.who, answer, ending).await
    }
}

/// Checks all that has to hold of an answer with this ending, and of its one event, which it gives.
pub(crate) async fn check(
    gateway: &Gateway,
    who: &Principal,
    answer: &Answer,
    ending: Ending,
) -> Value {
    let context = format!("{ending:?}\n{}", answer.text);
    let Ending { status, code, executed, decision, outcome } = ending;
    assert_eq!(answer.status.as_u16(), status, "{context}");
    assert_eq!(answer.code(), code, "{context}");
    assert_eq!(answer.at("/meta/outcome"), outcome, "{context}");
    assert_eq!(answer.header("x-request-id"), answer.at("/meta/request_id"), "{context}");
    assert_eq!(answer.at("/governance").is_object(), !decision.is_empty(), "{context}");
    let told = answer.at("/error/details/executed").as_str().unwrap_or_default();
    assert_eq!(told, if status == 200 { "" } else { executed }, "{context}");
    assert_eq!(answer.at("/result").is_object(), status == 200, "{context}");

    let mut events = events(gateway, who, &request_id(answer)).await;
    assert_eq!(events.len(), 1, "{context}\n{events:#?}");
    let event = events.remove(0);
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    assert_eq!(text("/outcome/status"), outcome, "{context}");
    assert_eq!(text("/outcome/executed"), executed, "{context}");
    assert_eq!(text("/outcome/error_code"), code, "{context}");
    assert_eq!(event["outcome"]["http_status"], status, "{context}");
    assert_eq!(text("/governance/decision"), decision, "{context}");
    if !decision.is_empty() {
        assert_eq!(answer.event_id(), text("/id"), "{context}");
        for member in ["decision", "policy", "dlp_result"] {
            let told = &answer.at("/governance")[member];
            assert_eq!(told, &event["governance"][member], "{member}: {context}");
        }
    }
    event
}

/// `meta.request_id`.
pub(crate) fn request_id(answer: &Answer) -> String {
    answer.at("/meta/request_id").as_str().expect("a request id").to_owned()
}

/// Every invocation event of a request.
pub(crate) async fn events(gateway: &Gateway, who: &Principal, request: &str) -> Vec<Value> {
    list(gateway, who, &format!("request_id={request}")).await
}

/// Every invocation event that this filter selects, whole, in the order of the log.
pub(crate) async fn list(gateway: &Gateway, who: &Principal, filter: &str) -> Vec<Value> {
    list_of(gateway, who, "mcp.invocation", filter).await
}

/// The same for events of these types.
pub(crate) async fn list_of(
    gateway: &Gateway,
    who: &Principal,
    types: &str,
    filter: &str,
) -> Vec<Value> {
    let path = format!("/v1/audit/events?type={types}&order=asc&limit=200&{filter}");
    let page = gateway.get(who, path.trim_end_matches('&')).await.ok();
    assert!(page.at("/meta/pagination/next_cursor").is_null(), "more than one page");
    whole(gateway, who, &page).await
}

/// The listed events, whole.
pub(crate) async fn whole(gateway: &Gateway, who: &Principal, listed: &Answer) -> Vec<Value> {
    let mut events = Vec::new();
    for id in members(listed, "id") {
        events.push(gateway.event(who, id).await.ok().at("/data").clone());
    }
    events
}

/// Every event of this type, whole, once there is one.
pub(crate) async fn wait_for_events(gateway: &Gateway, who: &Principal, kind: &str) -> Vec<Value> {
    let path = format!("/v1/audit/events?type={kind}");
    let there = |it: &Answer| it.status == 200 && !items(it).is_empty();
    let listed = until(|| gateway.get(who, &path), there).await;
    whole(gateway, who, &listed).await
}
