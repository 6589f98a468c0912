//! The OpenAPI document: the operations of the table with what their routes need, so that
//! credentials, scopes, limits of bodies and the refusals that come before a handler are said once.

use portcullis_core::principal::Scope;
use serde_json::{Value, json};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        OpenApi as Document,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::router::OpenApiRouter;

use super::row::{Row, operations};
use crate::exchange::{Access, RouteSpec, Words};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Portcullis",
        description = "A governed MCP gateway: MCP tools over REST, under policy, DLP, limits and \
                       a durable audit log.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    modifiers(&BearerToken),
    security(("token" = [])),
)]
struct Api;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("mcp_live_… or svc_live_…")
            .build();
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// The document of the operations of `rows`.
pub(crate) fn document(rows: Vec<Row>) -> Value {
    let mut router = OpenApiRouter::with_openapi(Api::openapi());
    let mut specs = Vec::new();
    for row in rows {
        let made = (row.routes)();
        specs.extend(operations(&made).map(|(path, method)| {
            let path = path.replace('/', "~1");
            let method = method.as_str().to_ascii_lowercase();
            (format!("/paths/{path}/{method}"), row.spec)
        }));
        router = router.routes(made);
    }
    let mut document = serde_json::to_value(router.into_openapi()).unwrap_or_default();
    let mut bodies = Vec::new();
    for (place, spec) in specs {
        if let Some(operation) = document.pointer_mut(&place) {
            bodies.extend(complete(operation, &place, &spec));
        }
    }
    open_objects(&mut document);
    for name in bodies {
        // Members that are not known are refused.
        if let Some(schema) = document.pointer_mut(&name).and_then(Value::as_object_mut) {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
    }
    document
}

/// Says of objects without known members that they may have any.
fn open_objects(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_object = members.get("type").is_some_and(|named| {
                named == "object"
                    || named.as_array().is_some_and(|all| all.contains(&json!("object")))
            });
            if is_object && !members.contains_key("properties") {
                members.remove("propertyNames");
                members.entry("additionalProperties").or_insert(json!(true));
            }
            members.values_mut().for_each(open_objects);
        }
        Value::Array(items) => items.iter_mut().for_each(open_objects),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds to the operation at `place` what its route needs. Returns the place of the schema of its body.
fn complete(operation: &mut Value, place: &str, spec: &RouteSpec) -> Option<String> {
    if let Some(members) = operation.as_object_mut() {
        members.insert("security".to_owned(), security(spec.access));
    }
    if !spec.access.is_open() {
        refuse(operation, spec.words, &COMMON);
        if place.contains('{') {
            refuse(operation, spec.words, &[NOT_FOUND]);
        }
    }
    if let Some(scope) = spec.access.scope() {
        let other = if spec.is_invocation() {
            ", or a policy denies the call"
        } else if scope == Scope::Admin && !place.ends_with("/get") {
            ", or the API is read-only here"
        } else {
            ""
        };
        let lacking = format!("the token lacks `{scope}`{other}");
        refuse(operation, spec.words, &[("403", &lacking)]);
    }
    if operation.pointer("/responses").is_none_or(|it| *it == json!({})) {
        complete_page(operation, place);
    }
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    parameters.into_iter().flatten().for_each(bound);
    let place = operation.get_mut("requestBody").and_then(plain_body);
    if spec.body > 0 {
        let limit = match spec.body >> 10 {
            kib if kib < 1 << 10 => format!("{kib} KiB"),
            kib => format!("{} MiB", kib >> 10),
        };
        let too_large = format!("the body is over {limit}");
        refuse(operation, spec.words, &[("413", &too_large), NOT_JSON]);
    }
    place
}

/// Says of a page of the console, which its row only names, what is known of all of them.
fn complete_page(operation: &mut Value, place: &str) {
    let page = |text: &str| json!({ "description": text, "content": { "text/html": {} } });
    let lacking = page("a page: the person lacks the scope");
    let missing =
        page("a page: there is no such thing for this person, or the console is switched off");
    let names = place.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let parameters = names.map(|(name, _)| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let parameters: Vec<Value> = parameters.collect();
    let mut known = json!({ "parameters": parameters, "responses": {
        "200": page("a page"),
        "303": { "description": "to the login, if nobody is signed in" },
        "403": lacking,
        "404": missing,
    } });
    if place.ends_with("/post") {
        let schema = json!({ "$ref": "#/components/schemas/ErrorAnswer" });
        known = json!({ "parameters": parameters, "requestBody": {
            "description": "the fields of the form, with its `form_token`",
            "content": { "application/x-www-form-urlencoded": { "schema": { "type": "object" } } },
            "required": true,
        }, "responses": {
            "200": page("a page: what came of the form"),
            "303": { "description": "done: on to a page; or to the login" },
            "400": {
                "description": "no page of this session sent the form, or a page: the API refuses it",
                "content": { "application/json": { "schema": schema } },
            },
            "403": lacking,
            "404": missing,
            "409": page("a page: it is not as the form says any more"),
        } });
    }
    if let (Some(operation), Value::Object(known)) = (operation.as_object_mut(), known) {
        operation.extend(known);
    }
}

/// The credential that `access` asks for. The names after it are the scopes.
fn security(access: Access) -> Value {
    match access {
        Access::Open | Access::Public | Access::Probe => json!([{}]),
        Access::Credential => json!([{}, {"token": []}]),
        Access::AnyToken | Access::Token | Access::Message => json!([{"token": []}]),
        Access::Scoped(scope) | Access::Call(scope) => json!([{"token": [scope.as_str()]}]),
    }
}

/// Refusals of every operation that asks for a credential.
const COMMON: [(&str, &str); 5] = [
    ("400", "not understood: a parameter that is not known here, or a wrong one"),
    ("401", "no live token"),
    ("429", "a limit is exceeded"),
    ("500", "a failure, logged under the request id"),
    (
        "503",
        "the node is overloaded or stops, its store does not answer, or nothing can be recorded",
    ),
];

/// Refusal of an operation on something that its path names.
const NOT_FOUND: (&str, &str) = ("404", "the path names nothing that this caller may see");

const NOT_JSON: (&str, &str) = ("415", "the body is not JSON");

/// Adds the refusals that are not there yet, in the order of their statuses.
fn refuse(operation: &mut Value, words: Words, refusals: &[(&str, &str)]) {
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else {
        return;
    };
    for (status, description) in refusals {
        if !responses.contains_key(*status) {
            let schema = match words {
                Words::Envelope => json!({"$ref": "#/components/schemas/ErrorAnswer"}),
                Words::OAuth | Words::Scim => json!({"type": "object"}),
            };
            let kind = match words {
                Words::Envelope | Words::OAuth => "application/json",
                Words::Scim => "application/scim+json",
            };
            let content = json!({kind: {"schema": schema}});
            let refusal = json!({"description": description, "content": content});
            responses.insert((*status).to_owned(), refusal);
        }
    }
    let mut all: Vec<_> = std::mem::take(responses).into_iter().collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    responses.extend(all);
}

/// A body that may be left out is no `null`. Gives the place of its schema.
fn plain_body(body: &mut Value) -> Option<String> {
    let schema = body.pointer_mut("/content/application~1json/schema")?;
    let choices = schema.get("oneOf").and_then(Value::as_array);
    if let Some(choice) = choices.and_then(|all| all.iter().find(|it| it.get("$ref").is_some())) {
        *schema = choice.clone();
    }
    let place = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    Some(place.to_owned())
}

/// Parameters hold no `null`, are not empty, and pages have a size.
fn bound(parameter: &mut Value) {
    let is_limit = parameter.get("name").is_some_and(|name| name == "limit");
    let Some(schema) = parameter.get_mut("schema").and_then(Value::as_object_mut) else { return };
    let types = schema.get("type").and_then(Value::as_array);
    let named = types.and_then(|types| types.iter().find(|it| *it != "null")).cloned();
    if let Some(named) = named {
        schema.insert("type".to_owned(), named);
    }
    if schema.get("type").is_some_and(|named| named == "string") {
        schema.entry("minLength").or_insert_with(|| json!(1));
    }
    if is_limit {
        schema.insert("minimum".to_owned(), json!(1));
        schema.insert("maximum".to_owned(), json!(200));
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::limits::Resource;

    use super::{super::table, *};
    use crate::exchange::Thread;

    #[test]
    fn an_operation_says_what_its_route_needs() {
        let body = json!({"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Body"}]});
        let mut operation = json!({
            "parameters": [
                {"name": "q", "in": "query", "schema": {"type": ["string", "null"]}},
                {"name": "limit", "in": "query", "schema": {"type": ["integer", "null"]}},
            ],
            "requestBody": {"content": {"application/json": {"schema": body}}},
            "responses": {"200": {}, "429": {"description": "its own"}},
        });
        let spec = RouteSpec {
            access: Access::Scoped(Scope::McpsRead),
            limit: Resource::Requests,
            thread: Thread::Shared,
            body: 64 << 10,
            words: Words::Envelope,
        };

        let place = complete(&mut operation, "/paths/~1v1~1things/get", &spec);

        assert_eq!(place.unwrap(), "/components/schemas/Body");
        let responses = operation["responses"].as_object().unwrap();
        let statuses: Vec<&String> = responses.keys().collect();
        assert_eq!(statuses, ["200", "400", "401", "403", "413", "415", "429", "500", "503"]);
        assert_eq!(responses["403"]["description"], "the token lacks `mcps:read`");
        assert_eq!(responses["413"]["description"], "the body is over 64 KiB");
        assert_eq!(responses["429"]["description"], "its own");
        assert_eq!(operation["security"], json!([{"token": ["mcps:read"]}]));
        let schema = |index: usize| &operation["parameters"][index]["schema"];
        assert_eq!(*schema(0), json!({"type": "string", "minLength": 1}));
        assert_eq!(*schema(1), json!({"type": "integer", "minimum": 1, "maximum": 200}));
        assert_eq!(
            operation["requestBody"]["content"]["application/json"]["schema"],
            json!({"$ref": "#/components/schemas/Body"})
        );
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let document = document(table());
        let operations = document["paths"].as_object().unwrap().values();
        let operations = operations.flat_map(|methods| methods.as_object().unwrap().values());
        let mut names: Vec<_> = operations.map(|it| it["operationId"].as_str().unwrap()).collect();
        let count = names.len();

        names.sort_unstable();
        names.dedup();

        assert_eq!(names.len(), count);
    }

    /// The defaults and examples in a part of the document, each with its schema.
    fn collect_examples(part: &Value, found: &mut Vec<(Value, Value)>) {
        for (name, below) in part.as_object().into_iter().flatten() {
            let schema = part.get("schema").unwrap_or(part);
            match (name.as_str(), below) {
                // Members of these names are not keywords.
                ("properties", members) => {
                    members
                        .as_object()
                        .unwrap()
                        .values()
                        .for_each(|it| collect_examples(it, found));
                    continue;
                }
                ("default" | "example", value) => found.push((schema.clone(), value.clone())),
                ("examples", Value::Array(values)) => {
                    found.extend(values.iter().map(|value| (schema.clone(), value.clone())));
                }
                _ => {}
            }
            collect_examples(below, found);
        }
        part.as_array().into_iter().flatten().for_each(|it| collect_examples(it, found));
    }

    #[test]
    fn every_default_and_example_is_what_its_schema_takes() {
        let document = document(table());
        let mut found = Vec::new();

        collect_examples(&document, &mut found);

        assert!(found.len() > 40, "{}", found.len());
        for (mut schema, value) in found {
            schema["components"] = document["components"].clone();
            let options = jsonschema::options().should_validate_formats(true);
            let validator = options.build(&schema).unwrap();
            schema["components"].take();
            assert!(validator.is_valid(&value), "{value} in {schema}");
        }
    }

    #[test]
    fn a_default_that_is_no_time_would_be_found() {
        let schema = json!({"type": "string", "format": "date-time", "default": ""});
        let mut found = Vec::new();

        collect_examples(&json!({"properties": {"default": schema}}), &mut found);

        assert_eq!(found, [(schema.clone(), json!(""))]);
        let options = jsonschema::options().should_validate_formats(true);
        assert!(!options.build(&schema).unwrap().is_valid(&found[0].1));
    }

    #[test]
    fn an_open_operation_needs_nothing() {
        let mut operation = json!({"responses": {"200": {}}});
        let spec = RouteSpec { access: Access::Probe, ..RouteSpec::UNKNOWN };

        complete(&mut operation, "/paths/~1healthz/get", &spec);

        assert_eq!(operation, json!({"responses": {"200": {}}, "security": [{}]}));
    }
}
