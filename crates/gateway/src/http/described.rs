//! Parts of the OpenAPI document that all operations share: refusals that come before a handler,
//! and the reading of parameters and bodies.

use serde_json::{Map, Value, json};

/// Refusals that every operation below `/v1` can answer.
const COMMON: [(&str, &str); 5] = [
    ("400", "not understood: a parameter that is not known here, or a wrong one"),
    ("401", "no live token"),
    ("429", "a limit is exceeded"),
    ("500", "a failure, logged under the request id"),
    ("503", "the node is overloaded or stops, or its store does not answer"),
];

/// Refusals of operations that read a body.
const OF_BODIES: [(&str, &str); 2] =
    [("413", "the body is over 64 KiB"), ("415", "the body is not JSON")];

/// Adds what the operations themselves do not say.
pub(super) fn complete(document: &mut Value) {
    let mut bodies = Vec::new();
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, operations) in paths.into_iter().flatten() {
        for operation in operations.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if path.starts_with("/v1/") {
                refuse(operation, &COMMON);
            }
            if let Some(body) = operation.get_mut("requestBody") {
                bodies.extend(plain_body(body));
                refuse(operation, &OF_BODIES);
            }
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            parameters.into_iter().flatten().for_each(bound);
        }
    }
    for name in bodies {
        // Members that are not known are refused.
        if let Some(schema) = document.pointer_mut(&name).and_then(Value::as_object_mut) {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
    }
}

/// Adds the refusals that are not there yet, in the order of their statuses.
fn refuse(operation: &mut Value, refusals: &[(&str, &str)]) {
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else {
        return;
    };
    for (status, description) in refusals {
        if !responses.contains_key(*status) {
            let schema = json!({"$ref": "#/components/schemas/ErrorAnswer"});
            let content = json!({"application/json": {"schema": schema}});
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
    use super::*;

    #[test]
    fn operations_say_what_comes_before_them() {
        let optional = json!({"type": ["string", "null"]});
        let body = json!({"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Body"}]});
        let mut document = json!({
            "paths": {
                "/v1/things": {"post": {
                    "parameters": [
                        {"name": "q", "in": "query", "schema": optional},
                        {"name": "limit", "in": "query", "schema": {"type": ["integer", "null"]}},
                    ],
                    "requestBody": {"content": {"application/json": {"schema": body}}},
                    "responses": {"200": {}, "429": {"description": "its own"}},
                }},
                "/healthz": {"get": {"responses": {"200": {}}}},
            },
            "components": {"schemas": {"Body": {"type": "object"}}},
        });

        complete(&mut document);

        let post = &document["paths"]["/v1/things"]["post"];
        let statuses: Vec<&String> = post["responses"].as_object().unwrap().keys().collect();
        assert_eq!(statuses, ["200", "400", "401", "413", "415", "429", "500", "503"]);
        assert_eq!(post["responses"]["429"]["description"], "its own");
        assert_eq!(post["parameters"][0]["schema"], json!({"type": "string", "minLength": 1}));
        assert_eq!(
            post["parameters"][1]["schema"],
            json!({"type": "integer", "minimum": 1, "maximum": 200})
        );
        assert_eq!(
            post["requestBody"]["content"]["application/json"]["schema"],
            json!({"$ref": "#/components/schemas/Body"})
        );
        assert_eq!(document["components"]["schemas"]["Body"]["additionalProperties"], false);
        assert_eq!(document["paths"]["/healthz"]["get"]["responses"], json!({"200": {}}));
    }
}
