//! Contents of requests: each route with a body or a query, what is wrong with one, and the member that its error
//! names. An unknown member, a wrong type, a missing one and a value out of range are refused alike everywhere.

use portcullis_testkit::{Gateway, Principal};
use reqwest::RequestBuilder;

use crate::{gateway, given::serve_admin};

/// A route, a body, and the JSON Pointer that its error names; `{sa}` is a service account.
const BODIES: [(&str, &str, &str); 84] = [
    ("POST /v1/approvals/apr_x/decision", "{}", "/decision"),
    ("POST /v1/approvals/apr_x/decision", r#"{"decision": "maybe"}"#, "/decision"),
    ("POST /v1/approvals/apr_x/decision", r#"{"decision": true}"#, "/decision"),
    ("POST /v1/approvals/apr_x/decision", r#"{"decision": "deny", "reason": "x"}"#, "/reason"),
    ("POST /v1/approvals/apr_x/decision", r#"{"decision": "deny", "comment": ""}"#, "/comment"),
    ("POST /v1/approvals/apr_x/decision", r#"{"decision": "deny", "comment": 7}"#, "/comment"),
    (
        "POST /v1/approvals/apr_x/decision",
        r#"{"decision": "deny", "comment": "\u001b[2J"}"#,
        "/comment",
    ),
    (
        "POST /v1/approvals/apr_x/decision",
        r#"{"decision": "deny", "digest": "sha256:00"}"#,
        "/digest",
    ),
    ("POST /v1/principals", "{}", "/name"),
    ("POST /v1/principals", r#"{"name": null}"#, "/name"),
    ("POST /v1/principals", r#"{"name": 7}"#, "/name"),
    ("POST /v1/principals", r#"{"name": "a", "kind": "robot"}"#, "/kind"),
    ("POST /v1/principals", r#"{"name": "a", "role": "owner"}"#, "/role"),
    ("POST /v1/principals", r#"{"name": "a", "role": "service"}"#, "/role"),
    ("POST /v1/principals", r#"{"name": "a", "kind": "service"}"#, "/scopes"),
    ("POST /v1/principals", r#"{"name": "a", "kind": "service", "scopes": ""}"#, "/scopes"),
    ("POST /v1/principals", r#"{"name": "a", "scopes": "admin"}"#, "/scopes"),
    ("POST /v1/principals", r#"{"name": "a", "groups": "ops"}"#, "/groups"),
    ("POST /v1/principals", r#"{"name": "a", "groups": [1]}"#, "/groups"),
    ("POST /v1/principals", r#"{"name": "a", "plan": "x"}"#, "/plan"),
    ("PATCH /v1/principals/{id}", r#"{"name": null}"#, "/name"),
    ("PATCH /v1/principals/{id}", r#"{"role": null}"#, "/role"),
    ("PATCH /v1/principals/{id}", r#"{"role": "service"}"#, "/role"),
    ("PATCH /v1/principals/{id}", r#"{"scopes": "admin"}"#, "/scopes"),
    ("PATCH /v1/principals/{id}", r#"{"disabled": "yes"}"#, "/disabled"),
    ("PATCH /v1/principals/{id}", r#"{"groups": "ops"}"#, "/groups"),
    ("PATCH /v1/principals/{id}", r#"{"role": "admin", "org_id": "x"}"#, "/org_id"),
    ("PATCH /v1/principals/{id}", r#"{"role": "admin", "disabled_at": null}"#, "/disabled_at"),
    ("POST /v1/principals/{id}/keys", r#"{"key": {}}"#, "/key"),
    ("POST /v1/principals/{id}/keys", r#"{"jwk": []}"#, "/jwk"),
    ("POST /v1/principals/{id}/keys", r#"{"pem": 7}"#, "/pem"),
    ("POST /v1/principals/{id}/keys", r#"{"pem": "ssh-ed25519 AAAA"}"#, "/pem"),
    ("POST /v1/tokens", "{}", "/principal_id"),
    ("POST /v1/tokens", r#"{"principal_id": "{sa}", "scopes": ["admin"]}"#, "/scopes"),
    ("POST /v1/tokens", r#"{"principal_id": "{sa}", "expires_in": "90d"}"#, "/expires_in"),
    ("POST /v1/tokens", r#"{"principal_id": "{sa}", "expires_in": 1.5}"#, "/expires_in"),
    ("POST /v1/tokens", r#"{"principal_id": "{sa}", "label": 7}"#, "/label"),
    ("POST /v1/tokens", r#"{"principal_id": "{sa}", "allowed_from": []}"#, "/allowed_from"),
    (
        "POST /v1/tokens",
        r#"{"principal_id": "{sa}", "allowed_from": ["10.0.0.0"]}"#,
        "/allowed_from",
    ),
    ("POST /v1/tokens", r#"{"principal_id": "{sa}", "exchange_only": "yes"}"#, "/exchange_only"),
    ("POST /v1/tokens", r#"{"principal_id": "{sa}", "dpop_jkt": "x"}"#, "/dpop_jkt"),
    ("POST /v1/tokens", r#"{"principal_id": "{sa}", "token": "x"}"#, "/token"),
    ("POST /v1/tokens/inspect", "{}", "/token"),
    ("POST /v1/tokens/inspect", r#"{"token": 7}"#, "/token"),
    ("POST /v1/tokens/inspect", r#"{"token": "x", "id": "x"}"#, "/id"),
    ("POST /v1/providers/sample/connect", r#"{"owner": "us"}"#, "/owner"),
    ("POST /v1/providers/sample/connect", r#"{"scopes": "a b"}"#, "/scopes"),
    ("POST /v1/providers/sample/connect", r#"{"scopes": [7]}"#, "/scopes"),
    ("POST /v1/providers/sample/connect", r#"{"return_to": {}}"#, "/return_to"),
    ("POST /v1/providers/sample/connect", r#"{"api_key": 7}"#, "/api_key"),
    ("POST /v1/providers/sample/connect", r#"{"confirm": false}"#, "/confirm"),
    ("POST /v1/providers/sample/connect", r#"{"api-key": "x"}"#, "/api-key"),
    ("POST /v1/providers/prv_x/refresh", r#"{"force": true}"#, "/force"),
    ("POST /v1/providers/prv_x/test", r#"{"force": true}"#, "/force"),
    ("PUT /v1/policies/none/override", r#"{"ttl": 60}"#, "/reason"),
    ("PUT /v1/policies/none/override", r#"{"reason": "x"}"#, "/ttl"),
    ("PUT /v1/policies/none/override", r#"{"ttl": "1h", "reason": "x"}"#, "/ttl"),
    ("PUT /v1/policies/none/override", r#"{"ttl": 60, "reason": "x", "mode": 1}"#, "/mode"),
    ("POST /v1/audit/holds", "{}", "/reason"),
    ("POST /v1/audit/holds", r#"{"reason": "x", "actor": 7}"#, "/actor"),
    ("POST /v1/audit/holds", r#"{"reason": "x", "from": "yesterday"}"#, "/from"),
    ("POST /v1/audit/holds", r#"{"reason": "x", "to": 7}"#, "/to"),
    ("POST /v1/audit/holds", r#"{"reason": "x", "org": "x"}"#, "/org"),
    ("POST /v1/tools/sample:x/accept", "{}", "/version"),
    ("POST /v1/tools/sample:x/accept", r#"{"version": 7}"#, "/version"),
    ("POST /v1/tools/sample:x/accept", r#"{"version": "x", "all": true}"#, "/all"),
    ("POST /v1/audit/export", r#"{"from": 7}"#, "/from"),
    ("POST /v1/audit/export", r#"{"to": "0000-01-01T00:00:00Z"}"#, "/to"),
    ("POST /v1/audit/export", r#"{"format": "parquet"}"#, "/format"),
    ("POST /v1/audit/export", r#"{"include": ["everything"]}"#, "/include"),
    ("POST /v1/audit/export", r#"{"include": [7]}"#, "/include"),
    ("POST /v1/audit/export", r#"{"since": -1}"#, "/since"),
    ("POST /v1/audit/export", r#"{"since": "3"}"#, "/since"),
    ("POST /v1/audit/export", r#"{"filters": []}"#, "/filters"),
    ("POST /v1/audit/export", r#"{"filters": {"typ": ["x"]}}"#, "/filters/typ"),
    ("POST /v1/audit/export", r#"{"filters": {"type": [7]}}"#, "/filters/type"),
    ("POST /v1/audit/export", r#"{"filter": {}}"#, "/filter"),
    ("POST /v1/dlp/scan", r#"{"text": 7}"#, "/text"),
    ("POST /v1/dlp/scan", r#"{"text": "x", "direction": "both"}"#, "/direction"),
    ("POST /v1/dlp/scan", r#"{"text": "x", "mask": true}"#, "/mask"),
    ("POST /v1/policies/check", r#"{"policy": {}}"#, "/policy"),
    ("POST /v1/mcps/sample:create_note/invoke", r#"{"input": []}"#, "/input"),
    ("POST /v1/mcps/sample:create_note/invoke", r#"{"input": {}, "view": "mcp"}"#, "/view"),
    (
        "POST /v1/mcps/sample:create_note/invoke",
        r#"{"input": {}, "interaction": 7}"#,
        "/interaction",
    ),
];

/// A route with a query, and the parameter that its error names.
const QUERIES: [(&str, &str); 76] = [
    ("GET /v1/mcps?provder=x", "provder"),
    ("GET /v1/mcps?q=a&q=b", "q"),
    ("GET /v1/mcps?q=", "q"),
    ("GET /v1/mcps?provider=,", "provider"),
    ("GET /v1/mcps?view=fully", "view"),
    ("GET /v1/mcps?view=basic,full", "view"),
    ("GET /v1/mcps?access=maybe", "access"),
    ("GET /v1/mcps?limit=201", "limit"),
    ("GET /v1/mcps?cursor=c1.AAAA", "cursor"),
    ("GET /v1/mcps/sample:create_note?view=full", "view"),
    ("GET /v1/tools/left-out?tool=x", "tool"),
    ("GET /v1/tools/left-out?limit=0", "limit"),
    ("GET /v1/tools/left-out?kind=event", "kind"),
    ("GET /v1/tools?q=x", "q"),
    ("GET /v1/tools?kind=tool,tools", "kind"),
    ("GET /v1/tools?cursor=x", "cursor"),
    ("GET /v1/tools/waiting?q=x", "q"),
    ("GET /v1/tools/waiting?kind=template", "kind"),
    ("GET /v1/tools/waiting?cursor=x", "cursor"),
    ("GET /v1/providers?status=fine", "status"),
    ("GET /v1/providers?owner=you", "owner"),
    ("GET /v1/providers?slugs=x", "slugs"),
    ("GET /v1/providers/waiting?slug=x", "slug"),
    ("GET /v1/providers/waiting?limit=x", "limit"),
    ("GET /v1/policies?effect=allow", "effect"),
    ("GET /v1/policies?status=on", "status"),
    ("GET /v1/policies?principal=ana", "principal"),
    ("GET /v1/policies?name=x", "name"),
    ("GET /v1/policies/permit-all?vrsion=1", "vrsion"),
    ("GET /v1/principals?role=owner", "role"),
    ("GET /v1/principals?disabled=maybe", "disabled"),
    ("GET /v1/principals?name=a", "name"),
    ("GET /v1/principals?q=", "q"),
    ("GET /v1/tokens?kind=api", "kind"),
    ("GET /v1/tokens?kind=user,service", "kind"),
    ("GET /v1/tokens?state=dead", "state"),
    ("GET /v1/tokens?principal=ana", "principal"),
    ("GET /v1/tokens?hash=x", "hash"),
    ("GET /v1/sessions?principal=ana", "principal"),
    ("GET /v1/sessions?user=x", "user"),
    ("GET /v1/consents?principal=ana", "principal"),
    ("GET /v1/consents?client=x", "client"),
    ("GET /v1/consents?q=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "q"),
    ("GET /v1/approvals?status=open", "status"),
    ("GET /v1/approvals?status=pending,denied", "status"),
    ("GET /v1/approvals?state=pending", "state"),
    ("GET /v1/approvals?limit=-1", "limit"),
    ("GET /v1/approvals?cursor=x", "cursor"),
    ("GET /v1/audit/holds?q=x", "q"),
    ("GET /v1/audit/holds?limit=1.5", "limit"),
    ("GET /v1/audit/counts?step=week", "step"),
    ("GET /v1/audit/counts?from=now", "from"),
    ("GET /v1/audit/counts?limit=1", "limit"),
    ("GET /v1/audit/tool-counts?tool=x", "tool"),
    ("GET /v1/audit/checkpoint?since=-1", "since"),
    ("GET /v1/audit/checkpoint?since=x", "since"),
    ("GET /v1/audit/checkpoint?size=x", "size"),
    ("GET /v1/audit/events?actr=x", "actr"),
    ("GET /v1/audit/events?actor=alice", "actor"),
    ("GET /v1/audit/events?actor=", "actor"),
    ("GET /v1/audit/events?from=yesterday", "from"),
    ("GET /v1/audit/events?from=2026-11-20T11:02:15", "from"),
    ("GET /v1/audit/events?from=2026-11-20T11:02:15Z&to=2026-11-20T11:02:15Z", "to"),
    ("GET /v1/audit/events?order=up", "order"),
    ("GET /v1/audit/events?order=asc,desc", "order"),
    ("GET /v1/audit/events?tail=true", "tail"),
    ("GET /v1/audit/events?tail=yes&order=asc", "tail"),
    ("GET /v1/audit/events?decision=maybe", "decision"),
    ("GET /v1/audit/events?decision=allow,maybe", "decision"),
    ("GET /v1/audit/events?outcome=bad", "outcome"),
    ("GET /v1/audit/events?dlp_result=none", "dlp_result"),
    ("GET /v1/audit/events?request_id=1", "request_id"),
    ("GET /v1/audit/events/evt_x?explain=yes", "explain"),
    ("DELETE /v1/principals/{id}/keys", "key_id"),
    ("DELETE /v1/principals/{id}/keys?key=x", "key"),
    ("DELETE /v1/auth/token?id=x", "id"),
];

/// A request for a route; `{id}` is the one who asks.
fn build_request(gateway: &Gateway, who: &Principal, route: &str) -> RequestBuilder {
    let (method, path) = route.split_once(' ').unwrap();
    gateway.request_of(who, method.parse().unwrap(), &path.replace("{id}", &who.id))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_unknown_missing_or_wrong_is_refused_and_named() {
    let (gateway, admin) = serve_admin(gateway().sample());
    let service = gateway.service(&admin.org, "mcps:read").id;
    let mut others = Vec::new();

    for (route, body, member) in BODIES {
        let body = body.replace("{sa}", &service);
        let answer = gateway.send(build_request(&gateway, &admin, route).body(body.clone())).await;

        let named = answer.at("/error/details/violations/0/path");
        if answer.refusal() != (400, "invalid_request") || named != member {
            others.push(format!("{route} {body} is not refused for {member}: {}", answer.text));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    for route in ["POST /v1/principals", "POST /v1/audit/export", "PATCH /v1/principals/{id}"] {
        for body in ["[]", "{", r#"{"name": "a", "name": "a"}"#] {
            let answer = gateway.send(build_request(&gateway, &admin, route).body(body)).await;

            assert_eq!(answer.refusal(), (400, "invalid_request"), "{route} {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_is_unknown_missing_or_wrong_is_refused_and_named() {
    let (gateway, admin) = serve_admin(gateway().sample());
    let mut others = Vec::new();

    for (route, parameter) in QUERIES {
        let answer = gateway.send(build_request(&gateway, &admin, route)).await;

        let named = answer.at("/error/details/parameter");
        if answer.refusal() != (400, "invalid_request") || named != parameter {
            others.push(format!("{route} is not refused for {parameter}: {}", answer.text));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}
