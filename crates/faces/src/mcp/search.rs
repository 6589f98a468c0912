//! The tools by which models find others: `find_tools`, `describe_tool` and `call_tool`.

use portcullis_app::{Ctx, Offered, OfferedTools};
use portcullis_core::{
    capability::CapabilityKind,
    json::{Document, JsonValue as _, Node},
    mcp::{Era, listed::described, meta},
};
use serde_json::{Value, json};

use super::reply;
use crate::{exchange::Outcome, gateway::Gateway};

pub(super) const FIND: &str = "find_tools";
pub(super) const DESCRIBE: &str = "describe_tool";
pub(super) const CALL: &str = "call_tool";

const DEFAULT_LIMIT: u64 = 10;
const MAX_LIMIT: u64 = 50;
/// Longest question in bytes.
const LONGEST_QUESTION: usize = 1024;
/// Characters of a description that are shown of a tool that was found.
const EXCERPT: usize = 300;
/// Providers that are named to models.
const NAMED: usize = 50;

/// The three tools as text of a list.
pub(super) fn tools(offered: &OfferedTools) -> String {
    let providers = providers(offered);
    let text = |name: &str| json!({"type": "string", "description": name});
    let schema = |properties: Value, required: &[&str]| {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    };
    let id = || text("Id of the tool as find_tools gives it, such as provider:tool_name");
    let find = format!(
        "Finds tools by words and returns their ids with a short description, the best first. There \
         are {} tools of these providers: {providers}. Look for what the tool does or works on.",
        offered.count()
    );
    let limit =
        json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT});
    let all = [
        json!({
            "name": FIND,
            "title": "Find tools",
            "description": find,
            "inputSchema": schema(
                json!({"query": text("A few words, such as `create issue`"), "limit": limit}),
                &["query"],
            ),
            "annotations": {"readOnlyHint": true},
        }),
        json!({
            "name": DESCRIBE,
            "title": "Describe a tool",
            "description": "Returns description and input schema of a tool that find_tools found. \
                            Read them before the tool is called.",
            "inputSchema": schema(json!({"id": id()}), &["id"]),
            "annotations": {"readOnlyHint": true},
        }),
        json!({
            "name": CALL,
            "title": "Call a tool",
            "description": format!("Calls a tool of one of these providers: {providers}. The call \
                            is governed like any other: a denial says which policy denied it, and \
                            why."),
            "inputSchema": schema(
                json!({
                    "id": id(),
                    "input": {"type": "object", "description": "Arguments that fit its input schema"},
                }),
                &["id", "input"],
            ),
        }),
    ];
    let texts: Vec<String> = all.iter().map(Value::to_string).collect();
    texts.join(",")
}

fn providers(offered: &OfferedTools) -> String {
    let slugs = offered.providers();
    let shown: Vec<&str> = slugs.iter().take(NAMED).copied().collect();
    match slugs.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{} and {more} more", shown.join(", ")),
        Some(_) | None => shown.join(", "),
    }
}

/// Answers `find_tools`.
pub(super) async fn find(
    gateway: &Gateway,
    ctx: &Ctx,
    arguments: &Document,
    era: Era,
) -> Result<Outcome, Outcome> {
    let question = arguments.root().get("query").and_then(Node::text);
    let Some(question) = question.filter(|text| text.len() <= LONGEST_QUESTION) else {
        return Ok(wrong("`query` has to be a text of at most 1024 bytes.", era));
    };
    let whole = |limit: Node<'_>| limit.number()?.parse().ok();
    let limit = arguments.root().get("limit").map_or(Some(DEFAULT_LIMIT), whole);
    let Some(limit) = limit.filter(|limit| (1..=MAX_LIMIT).contains(limit)) else {
        return Ok(wrong("`limit` has to be an integer from 1 to 50.", era));
    };
    let offered = gateway.app.tools.offered_tools(ctx, None, CapabilityKind::Tool, false).await?;
    let found = offered.search(question, usize::try_from(limit).unwrap_or(1));
    let found: Vec<Value> = found.into_iter().map(excerpt).collect();
    Ok(structured(&json!({ "tools": found }), era))
}

/// Answers `describe_tool`.
pub(super) async fn describe(
    gateway: &Gateway,
    ctx: &Ctx,
    arguments: &Document,
    era: Era,
) -> Result<Outcome, Outcome> {
    let Some(id) = arguments.root().get("id").and_then(Node::text) else {
        return Ok(wrong("`id` has to be a text.", era));
    };
    let offered = gateway.app.tools.offered_tools(ctx, None, CapabilityKind::Tool, false).await?;
    let Some(found) = offered.find(id) else {
        return Ok(wrong(
            "There is no such tool here; find_tools gives the ids that there are.",
            era,
        ));
    };
    let mut members = described(found.tool.listed_definition());
    members.insert("id".to_owned(), json!(found.tool.id));
    Ok(structured(&Value::Object(members), era))
}

/// Id and input of a call, taken out of the arguments of `call_tool`.
pub(super) fn called(arguments: &Document) -> Option<(String, Document)> {
    let id = arguments.root().get("id")?.text()?.to_owned();
    let input = arguments.member("input");
    let others = arguments.root().len() - 1 - usize::from(input.is_some());
    let input = input.unwrap_or_else(|| Document::of(&json!({})));
    (input.root().is_object() && others == 0).then_some((id, input))
}

fn excerpt(offered: &Offered) -> Value {
    let definition = &offered.tool.definition;
    let description = definition.description.as_deref().unwrap_or_default();
    let description: String = description.chars().take(EXCERPT).collect();
    json!({
        "id": offered.tool.id,
        "title": definition.title,
        "description": description,
    })
}

fn structured(value: &Value, era: Era) -> Outcome {
    let content = json!([{"type": "text", "text": value.to_string()}]);
    let result = json!({"content": content, "structuredContent": value});
    reply::result(result, era)
}

/// Error result that says what is wrong with the arguments, for a model to read.
pub(super) fn wrong(problem: &str, era: Era) -> Outcome {
    let error = json!({"code": "invalid_input", "message": problem, "details": {"executed": "no"}});
    let content = json!([{"type": "text", "text": problem}]);
    let result = json!({"content": content, "isError": true, "_meta": {(meta::ERROR): error}});
    reply::result(result, era)
}
