//! Forms that a server of the older era presents while a call runs: refused by default, answered with
//! their own defaults where the operator says so.

use crate::prelude::*;

struct Presented {
    upstream: McpServer,
    gateway: Gateway,
    who: Principal,
}

impl Presented {
    /// A gateway whose provider is declared with `more`.
    async fn with(more: &str) -> Self {
        let upstream = McpServer::start(vec![portcullis_testkit::tool("work")]).await;
        let builder = gateway().http("up", &upstream.url(), more);
        let (gateway, who) = serve_as("mcps:read mcps:invoke", builder);
        Self { upstream, gateway, who }
    }

    async fn call(&self, input: Value) -> Answer {
        self.gateway.invoke(&self.who, "up:work", input).await
    }

    async fn check(&self, answer: &Answer, ending: Ending) -> Value {
        check(&self.gateway, &self.who, answer, ending).await
    }

    /// Capabilities that the server was told.
    fn declared(&self) -> Value {
        let seen = self.upstream.requests();
        let initialize = seen.iter().find(|(_, it)| it["method"] == "initialize");
        initialize.expect("a handshake").1["params"]["capabilities"].clone()
    }

    /// Replies to requests of the server so far.
    fn replies(&self) -> Vec<Value> {
        let seen = self.upstream.requests().into_iter().map(|(_, message)| message);
        seen.filter(|it| it.get("id").is_some() && it.get("method").is_none()).collect()
    }
}

fn form(properties: &Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"message": "Please tell.", "requestedSchema": schema})
}

fn good() -> Value {
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "score": {"type": "number", "default": 95.50},
        "note": {"type": "string"},
    });
    form(&properties, &["name"])
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_no_form_is_answered_and_who_insists_fails() {
    let scene = Presented::with("").await;

    let told = scene.call(json!({"forms": [good()]})).await;
    let insists = scene.call(json!({"forms": [good()], "insist": true})).await;

    assert_eq!(scene.declared(), json!({}), "a server that keeps to MCP presents none");
    let event = scene.check(&told, SUCCESS).await;
    assert_eq!(told.at("/result/replies/0/error/code"), -32601, "{}", told.text);
    assert!(event["detached"].get("forms").is_none(), "{event}");
    let event = scene.check(&insists, FAILED).await;
    assert_eq!(insists.at("/error/details/reason"), "interaction_required");
    assert!(event["detached"].get("forms").is_none(), "{event}");
    assert!(scene.replies().iter().all(|reply| reply["error"]["code"] == -32601));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_answered_with_its_own_defaults_so_many_times_where_the_operator_says_so() {
    // A form is answered with its own defaults where the operator says so.
    let scene = Presented::with("forms = \"defaults\"").await;

    let input = json!({"forms": [good(), good()], "name": "of the caller"});
    let answer = scene.call(input).await;

    let event = scene.check(&answer, SUCCESS).await;
    assert_eq!(scene.declared(), json!({"elicitation": {"form": {}}}));
    let expected = json!({"action": "accept", "content": {"name": "John Doe", "score": 95.50}});
    for reply in scene.replies() {
        assert_eq!(reply["result"], expected);
    }
    assert_eq!(answer.at("/result/replies/1/result"), &expected, "{}", answer.text);
    assert_eq!(event["detached"]["forms"], json!({"accepted": 2, "refused": 0}));
    assert!(event["commitments"]["forms"].is_string(), "{event}");

    // A call has so many forms answered and no more.
    let few = scene.call(json!({"forms": vec![good(); 8]})).await;
    let many = scene.call(json!({"forms": vec![good(); 9]})).await;

    has!(scene.check(&few, SUCCESS).await, "/detached/forms": {"accepted": 8, "refused": 0});
    has!(scene.check(&many, FAILED).await, "/detached/forms": {"accepted": 8, "refused": 1});
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_needs_a_person_ends_its_call() {
    let scene = Presented::with("forms = \"defaults\"").await;
    let url =
        json!({"mode": "url", "url": "https://a.example", "message": "?", "elicitationId": "1"});
    let hostile = [
        form(&json!({"name": {"type": "string"}}), &["name"]),
        form(&json!({"name": {"type": "string", "default": 7}}), &[]),
        json!({"many": 10_000}),
        url,
    ];

    for (number, form) in hostile.into_iter().enumerate() {
        let action = if form["mode"] == "url" { Value::Null } else { json!("cancel") };
        // What was accepted before counts in the same event.
        let answer = scene.call(json!({"forms": [good(), form]})).await;

        let event = scene.check(&answer, FAILED).await;
        assert_eq!(answer.at("/error/details/reason"), "interaction_required", "{number}");
        assert_eq!(event["detached"]["forms"], json!({"accepted": 1, "refused": 1}), "{number}");
        eventually("the server is told", async || {
            let cancelled = scene.upstream.count("notifications/cancelled") > number;
            (cancelled && scene.replies().len() >= 2 * (number + 1)).then_some(())
        })
        .await;
        let reply = scene.replies().into_iter().rfind(|reply| reply["id"] == 1).expect("a reply");
        assert_eq!(reply.pointer("/result/action").cloned().unwrap_or_default(), action, "{reply}");
    }
}
