//! Answers of tools, prompts, reads of resources, skills and completions.

use portcullis_core::{
    call::CallResult,
    capability::CapabilityKind,
    json::{Document, JsonValue, Kind, Node},
    mcp::{Method, apps, interaction::Interaction, meta},
    refusal::{Executed, UpstreamReason},
};
use serde_json::{Value, json};

use crate::{
    error::CallError,
    mcp::message::{INPUT_REQUIRED, Reply, TASK},
    task::ToldTask,
};

/// The result of a `tools/call` or `prompts/get`, taken apart. Nothing of it has been looked at yet.
#[derive(Debug, Clone, PartialEq)]
pub enum CallAnswer {
    Result(CallResult),
    /// Questions of the tool instead of a result.
    Asked(Box<Interaction>),
    /// A task that the server goes on with, or what it tells of one.
    Task(Box<ToldTask>),
}

impl CallAnswer {
    /// Takes a result apart: of its members `content`, `structuredContent`, `isError` and `_meta`
    /// pass, and of `_meta` and content [what the gateway alone may say](meta::is_reserved) does
    /// not. So no result looks like one of the gateway: a task, a question, a state, an approval.
    /// Rejects tasks of what is no tool, questions that are none of the protocol, and what is no result of a tool.
    pub(crate) fn of(of: CapabilityKind, method: Method, reply: &Reply) -> Result<Self, CallError> {
        let interaction =
            CallError::upstream(UpstreamReason::InteractionRequired, Executed::Unknown);
        let garbage = CallError::protocol(Executed::Unknown);
        if !reply.unreadable.is_empty() {
            return Err(garbage);
        }
        let root = reply.result.root();
        if method == Method::GetTask {
            return ToldTask::read(reply, result_of).map(|told| Self::Task(Box::new(told)));
        }
        if matches!(method, Method::UpdateTask | Method::CancelTask) {
            return Ok(Self::Result(CallResult::default()));
        }
        match root.get("resultType").map(Node::text) {
            None | Some(Some("complete")) => {}
            Some(Some(TASK)) if method == Method::CallTool => {
                return ToldTask::begun(reply).map(|told| Self::Task(Box::new(told)));
            }
            // No manifest says what a skill asks.
            Some(Some(INPUT_REQUIRED)) if of != CapabilityKind::Skill => {
                let mut asked = Interaction::read(&mut reply.members()).ok_or(interaction)?;
                for request in asked.requests.values_mut() {
                    apps::remove_rights(request);
                }
                return Ok(Self::Asked(Box::new(asked)));
            }
            Some(Some(TASK | INPUT_REQUIRED)) => return Err(interaction),
            Some(_) => return Err(garbage),
        }
        let kind = method.used().unwrap_or_default();
        match kind {
            CapabilityKind::Tool => {}
            CapabilityKind::Prompt => return prompt_of(reply).ok_or(garbage).map(Self::Result),
            CapabilityKind::Resource | CapabilityKind::Template => {
                return contents_of(reply).map(Self::Result);
            }
            CapabilityKind::Skill => return skill_of(reply).ok_or(garbage).map(Self::Result),
        }
        result_of(&reply.result, reply.is_mended).map(Self::Result)
    }
}

/// The result of a tool, taken apart as [`CallAnswer::of`] does.
pub(crate) fn result_of(told: &Document, is_mended: bool) -> Result<CallResult, CallError> {
    let garbage = CallError::protocol(Executed::Unknown);
    let root = told.root();
    let structured = told.member("structuredContent");
    let content = match root.get("content") {
        Some(blocks) => Some(content_of(told, blocks).ok_or(garbage)?),
        None if structured.is_some() => None,
        None if root.get("task").is_some_and(Node::is_object) => {
            let unknown = UpstreamReason::InteractionRequired;
            return Err(CallError::upstream(unknown, Executed::Unknown));
        }
        None => return Err(garbage),
    };
    let is_error = match root.get("isError").map(Node::kind) {
        None | Some(Kind::Null) => false,
        Some(Kind::Bool(failed)) => failed,
        Some(_) => return Err(garbage),
    };
    let more = meta_of(told).map(|kept| (meta::META.to_owned(), kept));
    let (more, kind) = (more.into_iter().collect(), CapabilityKind::Tool);
    Ok(CallResult { content, structured, is_error, is_mended, more, kind })
}

/// Most values that a completion suggests.
const MOST_VALUES: usize = 100;

impl CallAnswer {
    /// Takes the answer to a completion apart: at most 100 texts, the number of all, and whether there are more.
    pub(crate) fn of_completion(kind: CapabilityKind, reply: &Reply) -> Result<Self, CallError> {
        let garbage = CallError::protocol(Executed::Unknown);
        let root = reply.result.root();
        let is_complete =
            matches!(root.get("resultType").map(Node::text), None | Some(Some("complete")));
        let told = root.get("completion").filter(|_| is_complete && reply.unreadable.is_empty());
        let told = told.ok_or(garbage)?;
        let mut values = Vec::new();
        let mut has_more = told.get("hasMore").is_some_and(|it| it.to_value() == json!(true));
        for value in told.get("values").and_then(Node::items).ok_or(garbage)? {
            let text = value.text().ok_or(garbage)?;
            if values.len() == MOST_VALUES {
                has_more = true;
                break;
            }
            values.push(text);
        }
        let total = told.get("total").and_then(|it| it.to_value().as_u64());
        let completion = [
            ("values", Some(json!(values))),
            ("hasMore", Some(json!(has_more))),
            ("total", total.map(Value::from)),
        ];
        let completion =
            completion.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
        let completion = Document::of(&Value::Object(completion.collect()));
        let members = [("completion", Some(completion)), (meta::META, meta_of(&reply.result))];
        let more = members.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
        let (more, is_mended) = (more.collect(), reply.is_mended);
        Ok(Self::Result(CallResult { kind, is_mended, more, ..CallResult::default() }))
    }

    /// The answer for a server that makes no suggestions.
    pub(crate) fn without_suggestions(kind: CapabilityKind) -> Self {
        let none = Document::of(&json!({ "values": [], "hasMore": false }));
        let more = vec![("completion".to_owned(), none)];
        Self::Result(CallResult { kind, more, ..CallResult::default() })
    }
}

/// Returns true for a type of block that MCP has for messages.
fn is_block(kind: &str) -> bool {
    matches!(kind, "text" | "image" | "audio" | "resource" | "resource_link")
}

/// The messages of a prompt with its description: each of a person or of a model, with one block of content.
fn prompt_of(reply: &Reply) -> Option<CallResult> {
    let root = reply.result.root();
    let messages = root.get("messages")?;
    let is_message = |message: Node<'_>| {
        let role = message.get("role").and_then(Node::text);
        matches!(role, Some("user" | "assistant"))
            && message
                .get(CONTENT)
                .and_then(|block| block.get("type")?.text())
                .is_some_and(is_block)
    };
    if !messages.items()?.all(is_message) {
        return None;
    }
    let description = root.get("description").filter(|told| told.text().is_some());
    let description = description.map(|told| reply.result.part(told));
    let members = [
        ("description", description),
        ("messages", without_reserved(&reply.result, messages).map(without_rights)),
        (meta::META, meta_of(&reply.result)),
    ];
    let more = members.into_iter().filter_map(|(name, member)| Some((name.to_owned(), member?)));
    let (kind, is_mended) = (CapabilityKind::Prompt, reply.is_mended);
    Some(CallResult { kind, is_mended, more: more.collect(), ..CallResult::default() })
}

/// The contents of a resource, each with its URI and a text or bytes in base64. No contents are no resource.
fn contents_of(reply: &Reply) -> Result<CallResult, CallError> {
    let garbage = CallError::protocol(Executed::Unknown);
    let root = reply.result.root();
    let contents = root.get("contents").ok_or(garbage)?;
    let is_text = |node: Node<'_>| node.text().is_some();
    let is_content = |part: Node<'_>| {
        let held = ["text", "blob"].iter().filter_map(|name| part.get(name));
        let held: Vec<_> = held.filter(|it| !matches!(it.kind(), Kind::Null)).collect();
        part.get("uri").is_some_and(is_text) && held.len() == 1 && held.into_iter().all(is_text)
    };
    if !contents.items().ok_or(garbage)?.all(is_content) {
        return Err(garbage);
    }
    if contents.items().ok_or(garbage)?.next().is_none() {
        return Err(CallError::not_found());
    }
    let ttl = root.get("ttlMs").filter(|ttl| ttl.to_value().is_u64());
    let members = [
        ("contents", without_reserved(&reply.result, contents)),
        ("ttlMs", ttl.map(|ttl| reply.result.part(ttl))),
        (meta::META, meta_of(&reply.result)),
    ];
    let more = members.into_iter().filter_map(|(name, member)| Some((name.to_owned(), member?)));
    let (kind, is_mended) = (CapabilityKind::Resource, reply.is_mended);
    Ok(CallResult { kind, is_mended, more: more.collect(), ..CallResult::default() })
}

/// The entry of a skill, and nothing beside it.
fn skill_of(reply: &Reply) -> Option<CallResult> {
    let entry = reply.result.root().get(SKILL).filter(|entry| entry.is_object())?;
    let ttl = reply.result.root().get("ttlMs").filter(|ttl| ttl.to_value().is_u64());
    let ttl = ttl.map(|ttl| ("ttlMs".to_owned(), reply.result.part(ttl)));
    let entry = (SKILL.to_owned(), reply.result.part(entry));
    let more = [entry].into_iter().chain(ttl).collect();
    Some(CallResult { kind: CapabilityKind::Skill, more, ..CallResult::default() })
}

/// The `_meta` of a result, if it has one, without what only the gateway may say.
fn meta_of(result: &Document) -> Option<Document> {
    let root = result.root();
    let given = root.get(meta::META)?;
    let has_rights =
        given.members().is_some_and(|mut all| all.any(|(name, _)| apps::is_right(name)));
    if !meta::has_reserved(root) && !has_rights {
        return Some(result.part(given));
    }
    let Value::Object(mut members) = given.to_value() else { return None };
    members.retain(|name, _| !meta::is_reserved(name) && !apps::is_right(name));
    Some(Document::of(&Value::Object(members)))
}

/// Member of the answer to a request for a skill.
const SKILL: &str = "skill";
/// Member of a content block that has a `_meta` of its own.
const RESOURCE: &str = "resource";
/// Member of a message that is a content block.
const CONTENT: &str = "content";

/// The content blocks, if all are objects, without what only the gateway may say.
fn content_of(result: &Document, blocks: Node<'_>) -> Option<Document> {
    if !blocks.items()?.all(Node::is_object) {
        return None;
    }
    without_reserved(result, blocks).map(without_rights)
}

/// Content that says nothing of what pages of apps may do: that stands in what is read of them.
fn without_rights(content: Document) -> Document {
    if !apps::has_rights(content.root()) {
        return content;
    }
    let mut kept = content.root().to_value();
    apps::remove_rights(&mut kept);
    Document::of(&kept)
}

/// Members of an array without what only the gateway may say, also in the blocks and resources in them.
fn without_reserved(result: &Document, all: Node<'_>) -> Option<Document> {
    if !all.items()?.any(has_reserved) {
        return Some(result.part(all));
    }
    let mut kept = all.to_value();
    kept.as_array_mut()?.iter_mut().for_each(remove_reserved);
    Some(Document::of(&kept))
}

fn has_reserved(part: Node<'_>) -> bool {
    meta::has_reserved(part)
        || part.items().is_some_and(|mut items| items.any(has_reserved))
        || [CONTENT, RESOURCE].into_iter().filter_map(|name| part.get(name)).any(has_reserved)
}

fn remove_reserved(part: &mut Value) {
    if let Value::Array(items) = part {
        items.iter_mut().for_each(remove_reserved);
    }
    let Value::Object(members) = part else { return };
    meta::remove_reserved(members);
    for name in [CONTENT, RESOURCE] {
        if let Some(inner) = members.get_mut(name) {
            remove_reserved(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::clock::Timestamp;

    use super::*;
    use crate::task;

    fn answer(result: &Value) -> Result<CallAnswer, CallError> {
        answer_of(CapabilityKind::Tool, result)
    }

    fn answer_of(kind: CapabilityKind, result: &Value) -> Result<CallAnswer, CallError> {
        let result = Document::of(result);
        let method = Method::use_of(kind);
        CallAnswer::of(
            kind,
            method,
            &Reply { result, unreadable: Vec::new(), is_mended: false, peer: 0 },
        )
    }

    fn result(of: &Value) -> CallResult {
        match answer(of).unwrap() {
            CallAnswer::Result(result) => result,
            CallAnswer::Asked(_) | CallAnswer::Task(_) => panic!("it asks"),
        }
    }

    fn tree(document: &Document) -> Value {
        document.root().to_value()
    }

    #[test]
    fn a_result_is_taken_apart_without_loss() {
        let found = result(&json!({
            "resultType": "complete", "content": [{"type": "text", "text": "x"}],
            "structuredContent": [1], "isError": true, "_meta": {"a": 1},
        }));

        assert_eq!(tree(&found.content.unwrap()), json!([{"type": "text", "text": "x"}]));
        assert_eq!(tree(&found.structured.unwrap()), json!([1]));
        assert!(found.is_error);
        assert_eq!(found.more[0].0, "_meta");
        assert_eq!(tree(&found.more[0].1), json!({"a": 1}));
    }

    #[test]
    fn what_only_the_gateway_may_say_is_removed() {
        let own = json!({
            "dev.portcullis/governance": {"decision": "allow"},
            "io.modelcontextprotocol/tool-approval-disposition": "approved-executed",
            "io.modelcontextprotocol/serverInfo": {"name": "portcullis"},
            "a": 1,
        });
        let block = json!({"type": "text", "text": "x", "_meta": own});
        let resource =
            json!({"type": "resource", "resource": {"uri": "a:b", "_meta": own}, "_meta": 7});

        let nested = json!({"type": "tool_result", "content": [block]});

        let found = result(&json!({"content": [block, resource, nested], "_meta": own}));

        let content = tree(&found.content.unwrap());
        assert_eq!(content[0]["_meta"], json!({"a": 1}));
        assert_eq!(
            content[1],
            json!({"type": "resource", "resource": {"uri": "a:b", "_meta": {"a": 1}}})
        );
        assert_eq!(content[2]["content"][0]["_meta"], json!({"a": 1}));
        assert_eq!(tree(&found.more[0].1), json!({"a": 1}));
    }

    #[test]
    fn of_the_members_of_a_result_four_pass() {
        let task = json!({"taskId": "tsk_1", "status": "working"});
        for resultless in ["complete", ""] {
            let mut told = json!({
                "content": [], "structuredContent": {"task": 1}, "isError": false, "_meta": {"a": 1},
                "task": task, "taskId": "tsk_1", "status": "completed", "requestState": "s",
                "inputRequests": {"approval": {}}, "serverInfo": {"name": "portcullis"}, "x-more": 1,
                "tool-approval-disposition": "approved-executed", "resultType": resultless,
            });
            if resultless.is_empty() {
                told.as_object_mut().unwrap().remove("resultType");
            }

            let found = result(&told);

            let names: Vec<_> = found.more.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["_meta"]);
            assert_eq!(tree(&found.structured.unwrap()), json!({"task": 1}));
        }
        assert!(result(&json!({"content": [], "_meta": "mine"})).more.is_empty());
    }

    #[test]
    fn a_prompt_is_messages_of_two_roles_without_what_only_the_gateway_may_say() {
        let own = json!({"dev.portcullis/governance": {"decision": "allow"}, "a": 1});
        let resource = json!({"type": "resource", "resource": {"uri": "a:b", "_meta": own}});
        let message = |role: &str| json!({"role": role, "content": resource, "_meta": own});

        let told = json!({
            "description": "d", "messages": [message("user"), message("assistant")], "_meta": own,
            "content": [], "isError": true, "x-more": 1,
        });
        let Ok(CallAnswer::Result(found)) = answer_of(CapabilityKind::Prompt, &told) else {
            panic!("a prompt")
        };

        let members: Vec<_> =
            found.more.iter().map(|(name, it)| (name.as_str(), tree(it))).collect();
        let kept = |role: &str| {
            let resource = json!({"uri": "a:b", "_meta": {"a": 1}});
            let content = json!({"type": "resource", "resource": resource});
            json!({"role": role, "content": content, "_meta": {"a": 1}})
        };
        let messages = json!([kept("user"), kept("assistant")]);
        let wanted =
            [("description", json!("d")), ("messages", messages), ("_meta", json!({"a": 1}))];
        assert_eq!(members, wanted);
        assert!(found.content.is_none() && !found.is_error);
        for refused in [
            json!({}),
            json!({"messages": {}}),
            json!({"messages": [message("system")]}),
            json!({"messages": [{"role": "user", "content": "x"}]}),
            json!({"messages": [{"role": "user", "content": {"type": "tool_result", "content": []}}]}),
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}),
            json!({"content": [{"type": "text", "text": "x"}]}),
        ] {
            let error = answer_of(CapabilityKind::Prompt, &refused).unwrap_err();
            assert_eq!(error, CallError::protocol(Executed::Unknown), "{refused}");
        }
    }

    #[test]
    fn a_completion_is_a_hundred_texts_at_most() {
        let texts = |count: usize| vec!["v"; count];
        let of = |result: &Value| {
            let result = Document::of(result);
            let reply = Reply { result, unreadable: Vec::new(), is_mended: false, peer: 0 };
            match CallAnswer::of_completion(CapabilityKind::Prompt, &reply) {
                Ok(CallAnswer::Result(found)) => Some(tree(&found.more[0].1)),
                Ok(CallAnswer::Asked(_) | CallAnswer::Task(_)) => panic!("it asks"),
                Err(error) => {
                    assert_eq!(error, CallError::protocol(Executed::Unknown));
                    None
                }
            }
        };
        for (told, wanted) in [
            (json!({"values": []}), Some(json!({"values": [], "hasMore": false}))),
            (
                json!({"values": texts(101), "total": 7, "more": 1}),
                Some(json!({"values": texts(100), "hasMore": true, "total": 7})),
            ),
            (
                json!({"values": ["a"], "total": -1, "hasMore": true}),
                Some(json!({"values": ["a"], "hasMore": true})),
            ),
            (json!({"values": ["a", 1]}), None),
            (json!({"values": {}}), None),
            (json!({}), None),
            (json!([]), None),
        ] {
            assert_eq!(of(&json!({"completion": told})), wanted, "{told}");
        }
        assert_eq!(of(&json!({})), None);
        let asks = json!({"resultType": "input_required", "completion": {"values": []}});
        assert_eq!(of(&asks), None);
    }

    #[test]
    fn tasks_of_the_older_era_and_strange_questions_are_refused() {
        for result in [
            json!({"resultType": "input_required", "inputRequests": {}}),
            json!({"resultType": "input_required", "inputRequests": {"a": {"method": "x"}}}),
            json!({"task": {"taskId": "1", "status": "working"}}),
        ] {
            let error = answer(&result).unwrap_err();

            let expected = UpstreamReason::InteractionRequired;
            assert_eq!(error, CallError::upstream(expected, Executed::Unknown));
        }
    }

    #[test]
    fn questions_are_taken_apart() {
        let requests = json!({"a": {"method": "roots/list"}});
        let result =
            json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"});

        let CallAnswer::Asked(found) = answer(&result).unwrap() else { panic!("it asks") };

        assert_eq!(Value::Object(found.requests), requests);
        assert_eq!(found.state.as_deref(), Some("s"));
    }

    #[test]
    fn what_is_no_result_of_a_tool_is_a_protocol_error() {
        for result in [
            json!({}),
            json!({"content": "x"}),
            json!({"content": ["x"]}),
            json!({"content": [], "isError": "no"}),
            json!({"content": [], "resultType": "other"}),
            json!({"content": [], "resultType": 1}),
        ] {
            let error = answer(&result).unwrap_err();

            assert_eq!(error, CallError::protocol(Executed::Unknown), "{result}");
        }
    }

    fn told_task(told: &Value) -> Result<ToldTask, CallError> {
        let result = Document::of(told);
        let reply = Reply { result, unreadable: Vec::new(), is_mended: false, peer: 0 };
        ToldTask::read(&reply, result_of)
    }

    fn task(status: &str, more: Value) -> Value {
        let mut told = json!({
            "resultType": "complete", "taskId": "t", "status": status, "statusMessage": "m",
            "createdAt": "2026-11-30T00:00:00Z", "lastUpdatedAt": "2026-11-30T00:00:01+01:00",
            "ttlMs": 7, "pollIntervalMs": 5,
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut told, more) {
            all.extend(more);
        }
        told
    }

    #[test]
    fn a_task_is_taken_apart_by_its_status() {
        let question = json!({"method": "elicitation/create", "params": {"message": "?"}});
        let wants_name = json!({"inputRequests": {"a": question}, "requestState": "s"});
        let called = json!({"result": {"content": [], "isError": true, "task": {}, "x": 1}});
        let failed = json!({"error": {"code": -32603, "message": "it broke", "data": 1}});
        for (told, wanted) in [
            (task("working", json!({})), "Working"),
            (task("input_required", wants_name), "Asks"),
            (task("completed", called), "Ended(Completed"),
            (task("completed", json!({})), "Ended(Unreadable"),
            (task("completed", json!({"result": {"content": "x"}})), "Ended(Unreadable"),
            (task("failed", failed), r#"Ended(Failed("it broke")"#),
            (task("failed", json!({})), r#"Ended(Failed("")"#),
            (task("cancelled", json!({})), "Ended(Cancelled"),
        ] {
            let found = told_task(&told).unwrap();
            assert!(format!("{:?}", found.state).starts_with(wanted), "{told}: {found:?}");
            assert_eq!((found.ttl_ms, found.poll_ms), (Some(7), Some(5)));
            assert_eq!(found.updated_at, Timestamp::parse_rfc3339("2026-11-29T23:00:01Z"));
            assert_eq!(found.message.as_deref(), Some("m"));
        }
        let found =
            told_task(&task("completed", json!({"result": {"content": [], "isError": true}})));
        let task::TaskState::Ended(task::TaskEnd::Completed(result)) = found.unwrap().state else {
            panic!("completed")
        };
        assert!(result.is_error && result.more.is_empty());
    }

    #[test]
    fn what_is_no_task_is_a_protocol_error() {
        let id = |id: &str| task("working", json!({ "taskId": id }));
        for told in [
            json!({"status": "working"}),
            id(""),
            id(&"x".repeat((1 << 10) + 1)),
            task("done", json!({})),
        ] {
            assert_eq!(
                told_task(&told).unwrap_err(),
                CallError::protocol(Executed::Unknown),
                "{told}"
            );
        }
        let unasked = [json!({}), json!({"inputRequests": {"a": {"method": "x"}}})];
        let unknown = CallError::upstream(UpstreamReason::InteractionRequired, Executed::Unknown);
        for asks in unasked {
            assert_eq!(told_task(&task("input_required", asks)).unwrap_err(), unknown);
        }
        let odd = told_task(&task("working", json!({"ttlMs": -1, "pollIntervalMs": 1.5})));
        let odd = odd.unwrap();
        assert_eq!((odd.ttl_ms, odd.poll_ms), (None, None));
    }
}
