//! Inputs of a decision, as events keep them: enough to decide the same call again under other
//! policies, without keeping the call.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::decision_inputs::DecisionInputs;
use crate::{
    dlp::{Engine, Findings, FingerprintKey},
    json::{pointer_head, write_canonical, write_string},
    policy::{DlpFacts, Identity, Phase, PolicySet, Projection, Question},
};

/// Prefix of the paths of the principal's tags.
const TAGS: &str = "principal.tags";
/// A member whose value is larger than this many bytes of JSON is left out.
const MAX_MEMBER: usize = 4096;

/// Inputs of the decision about `question` besides those that every event holds: of the arguments
/// and the result only the parts that a policy for this tool reads.
///
/// `found` are JSON Pointers to what DLP found in the value of this phase. A member in which
/// something was found is not kept and its paths are not listed; neither is one that is too large.
pub(super) fn inputs(
    set: &PolicySet,
    engine: &Engine,
    question: &Question<'_>,
    found: &[&str],
) -> DecisionInputs {
    let Projection { paths, tags, input, facts, output } = set.project(question);
    match question.phase {
        Phase::Request => {
            let mut kept = DecisionInputs::with_room();
            kept.add("principal", |out| write_principal(question, &tags, out));
            let identity = question.principal.identity();
            if !identity.claims.is_empty() {
                kept.add("claims_paths", |out| write_texts(&known_tags(&tags, identity), out));
            }
            kept.add("request", |out| {
                let bytes = question.bytes;
                let mfa = question.mfa;
                // Writing to a string never fails.
                let _ = write!(out, "{{\"bytes\":{bytes},\"mfa\":{mfa}}}");
            });
            keep_dlp(&mut kept, "dlp", &question.dlp);
            keep("input", "input_paths", &paths, input, found, &mut kept);
            let found = if found.is_empty() { Vec::new() } else { looked_through(engine, &facts) };
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            keep("facts", "facts_paths", &paths, facts, &found, &mut kept);
            kept
        }
        Phase::Response => {
            let mut kept = DecisionInputs::default();
            if let Some(facts) = &question.dlp_output {
                keep_dlp(&mut kept, "dlp_output", facts);
            }
            if let Some(output) = output {
                keep("output", "output_paths", &paths, output, found, &mut kept);
            }
            kept
        }
    }
}

/// Findings of DLP in facts. Facts are made of the input, so they may hold what was found there.
/// Facts that cannot be scanned are dropped like those with findings.
fn looked_through(engine: &Engine, facts: &Value) -> Vec<String> {
    // The fingerprints are not used, so neither is the key.
    match engine.scan(facts, &FingerprintKey::new([0; 32])) {
        Ok(findings) => pointers(&findings).into_iter().map(str::to_owned).collect(),
        Err(_) => vec![String::new()],
    }
}

/// Paths of the findings.
pub(super) fn pointers(findings: &Findings) -> Vec<&str> {
    findings.iter().map(crate::dlp::Finding::pointer).collect()
}

/// Writes the principal. Of its claims only those that a policy reads, and none with findings.
fn write_principal(question: &Question<'_>, tags: &[String], out: &mut String) {
    let identity = question.principal.identity();
    let mut before = '{';
    if !identity.claims.is_empty() {
        out.push_str("{\"claims\":");
        write_canonical(&claims(identity, tags), out);
        before = ',';
    }
    if let Some(client) = &identity.client {
        out.push(std::mem::replace(&mut before, ','));
        out.push_str("\"client\":");
        write_canonical(&json!(client), out);
    }
    let lists =
        [("groups", &identity.groups), ("roles", &identity.roles), ("scopes", &identity.scopes)];
    for (name, values) in lists.into_iter().filter(|(_, values)| !values.is_empty()) {
        out.push(std::mem::replace(&mut before, ','));
        write_string(name, out);
        out.push(':');
        write_texts(values, out);
    }
    out.push_str(if before == '{' { "{}" } else { "}" });
}

fn claims(identity: &Identity, tags: &[String]) -> Value {
    let read = |name: &str| tags.iter().any(|path| is_within(&path_of(TAGS, name), path));
    let withheld = |name: &String| identity.withheld.contains(name);
    let claims = identity.claims.iter();
    let claims: Map<String, Value> = claims
        .filter(|(name, _)| read(name) && !withheld(name))
        .map(|(name, values)| (name.clone(), json!(values)))
        .collect();
    Value::Object(claims)
}

/// Writes a list of texts.
fn write_texts(texts: &[impl AsRef<str>], out: &mut String) {
    out.push('[');
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(text.as_ref(), out);
    }
    out.push(']');
}

/// The tags of which an event tells whether they are there. Where a policy may read any tag, those
/// that are kept are named one by one.
fn known_tags(tags: &[String], identity: &Identity) -> Vec<String> {
    let withheld: Vec<String> = identity.withheld.iter().map(|name| path_of(TAGS, name)).collect();
    let all = tags.iter().any(|path| path == TAGS);
    if all && withheld.is_empty() {
        return vec![TAGS.to_owned()];
    }
    let named: Vec<String> = if all {
        identity.claims.keys().map(|name| path_of(TAGS, name)).collect()
    } else {
        tags.to_vec()
    };
    named.into_iter().filter(|path| !withheld.contains(path)).collect()
}

fn keep_dlp(kept: &mut DecisionInputs, name: &'static str, facts: &DlpFacts<'_>) {
    if facts.count > 0 || facts.media > 0 {
        let facts = json!({
            "findings": facts.detectors, "count": facts.count, "max_severity": facts.max_severity,
            "media": facts.media,
        });
        kept.add(name, |out| write_canonical(&facts, out));
    }
}

/// Keeps the arguments or the result as far as they are read and may be kept.
fn keep(
    name: &'static str,
    names_of_paths: &'static str,
    paths: &[String],
    value: Value,
    found: &[&str],
    kept: &mut DecisionInputs,
) {
    let prefix = format!("context.{name}");
    // What policies see of a resource or a skill follows from the URI, which is the input of a read.
    let of_resource = |path: &str| {
        let kinds = ["context.resource", "context.skill"];
        name == "input" && kinds.iter().any(|kind| is_within(path, kind))
    };
    let is_read = |path: &&String| is_within(path, &prefix) || of_resource(path);
    let read: Vec<&String> = paths.iter().filter(is_read).collect();
    let (false, Value::Object(mut members)) = (read.is_empty(), value) else { return };
    let touched: Vec<String> = found.iter().filter_map(|pointer| pointer_head(pointer)).collect();
    let whole = found.contains(&"");
    let mut withheld = Vec::new();
    members.retain(|member, value| {
        let keep = !whole && !touched.contains(member) && is_small(value);
        if !keep {
            withheld.push(path_of(&prefix, member));
        }
        keep
    });
    // A member that is withheld is unknown, and so is the whole of which it is a part.
    let known = |path: &&&String| {
        let depends = |other: &String| is_within(path, other) || is_within(other, path);
        !withheld.iter().any(|other| of_resource(path) || depends(other))
    };
    let known: Vec<&String> = read.iter().filter(known).copied().collect();
    kept.add(names_of_paths, |out| write_texts(&known, out));
    kept.add(name, |out| write_canonical(&Value::Object(members), out));
}

/// Returns true if `path` is `outer` or lies below it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['))
}

/// The path of a member, as policies write it.
fn path_of(prefix: &str, name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if plain { format!("{prefix}.{name}") } else { format!("{prefix}[{}]", Value::from(name)) }
}

fn is_small(value: &Value) -> bool {
    fits(value, MAX_MEMBER).is_some()
}

/// Bytes left of `room` after a value written as JSON; `None` if it does not fit. Escapes are not
/// counted.
fn fits(value: &Value, room: usize) -> Option<usize> {
    match value {
        Value::Null | Value::Bool(_) => room.checked_sub(5),
        Value::Number(number) => room.checked_sub(number.as_str().len()),
        Value::String(text) => room.checked_sub(text.len() + 2),
        Value::Array(items) => items
            .iter()
            .try_fold(room.checked_sub(2)?, |room, item| fits(item, room)?.checked_sub(1)),
        Value::Object(members) => {
            members.iter().try_fold(room.checked_sub(2)?, |room, (name, member)| {
                fits(member, room)?.checked_sub(name.len() + 4)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        capability::{Capability, Definition, ProviderSlug},
        clock::Timestamp,
        id::PrincipalKind,
        json::canonical,
        policy::{Catalogue, Identity, PolicyFile, Principal},
        testing::node,
    };

    const READING: &str = r#"
        @id("base") permit (principal, action, resource);
        @id("much") @reason("x") forbid (principal, action, resource)
        when { context.input has amount && context.input.amount > 100 };
        @id("note") @mode("shadow") @reason("x") forbid (principal, action, resource)
        when { context.input has note && context.input.note like "*x*" };
        @id("to") @reason("x") forbid (principal, action, resource)
        when { context.input has to && context.input.to has name && context.input.to.name == "eve" };
        @id("out") @phase("response") @reason("x") forbid (principal, action, resource)
        when { context has output && context.output has state && context.output.state == "odd" };"#;

    fn bank() -> Arc<Capability> {
        let text = json!({ "type": "string" });
        let to = json!({ "type": "object", "properties": { "name": text, "iban": text } });
        let input =
            json!({ "amount": { "type": "integer" }, "note": text, "secret": text, "to": to });
        let definition = Definition {
            output_schema: Some(json!({ "type": "object", "properties": { "state": text } })),
            annotations: json!({}),
            ..Definition::new(
                "pay".parse().unwrap(),
                json!({ "type": "object", "properties": input }),
            )
        };
        let bank: ProviderSlug = "bank".parse().unwrap();
        Arc::new(Capability::new(&bank, definition, Timestamp::default()).unwrap())
    }

    fn stored_inputs(policies: &str, phase: Phase, value: &Value, found: &[&str]) -> Value {
        stored_inputs_of(policies, member(), phase, value, found)
    }

    fn member() -> Identity {
        Identity {
            roles: vec!["member".to_owned()],
            ..Identity::new(PrincipalKind::User, "ana".to_owned(), "org".to_owned())
        }
    }

    /// The inputs, which are in canonical form.
    fn stored_inputs_of(
        policies: &str,
        identity: Identity,
        phase: Phase,
        value: &Value,
        found: &[&str],
    ) -> Value {
        let tool = bank();
        let catalogue = Catalogue::new([("bank".parse().unwrap(), Some(vec![Arc::clone(&tool)]))]);
        let file = PolicyFile { path: "test.cedar".to_owned(), text: policies.to_owned() };
        let set = PolicySet::load(vec![file], &catalogue, &[], Timestamp::default()).unwrap();
        let nothing = DlpFacts { detectors: &[], count: 0, max_severity: 0, media: 0 };
        let question = Question {
            principal: &Principal::new(identity),
            tool: &tool,
            input: node(value),
            facts: None,
            phase,
            dlp: nothing,
            output: (phase == Phase::Response).then_some(node(value)),
            dlp_output: None,
            time: Timestamp::default(),
            source_ip: None,
            bytes: 10,
            mfa: false,
        };
        let engine = Engine::new(&crate::dlp::Settings::default()).unwrap();
        let mut text = String::new();
        inputs(&set, &engine, &question, found).write(&mut text);
        let value = serde_json::from_str(&text).unwrap();
        assert_eq!(canonical(&value), text);
        value
    }

    #[test]
    fn only_what_a_policy_reads_is_kept() {
        let input = json!({"amount": 7, "secret": "s3cr3t", "to": {"name": "bob", "iban": "DE00"}});

        let kept = stored_inputs(READING, Phase::Request, &input, &[]);

        assert_eq!(kept["input"], json!({"amount": 7, "to": {"name": "bob"}}));
        let paths = ["context.input.amount", "context.input.note", "context.input.to.name"];
        assert_eq!(kept["input_paths"], json!(paths));
        assert_eq!(kept["principal"], json!({"roles": ["member"]}));
        assert!(!kept.to_string().contains("s3cr3t"));
    }

    #[test]
    fn what_dlp_found_something_in_is_neither_kept_nor_known() {
        let input = json!({"amount": 7, "note": "me@example.com", "to": {"name": "bob"}});

        let kept = stored_inputs(READING, Phase::Request, &input, &["/note", "/to/iban"]);

        assert_eq!(kept["input"], json!({"amount": 7}));
        assert_eq!(kept["input_paths"], json!(["context.input.amount"]));
    }

    #[test]
    fn a_member_that_is_too_large_is_neither_kept_nor_known() {
        let input = json!({"amount": 7, "note": "n".repeat(5000)});

        let kept = stored_inputs(READING, Phase::Request, &input, &[]);

        assert_eq!(kept["input_paths"], json!(["context.input.amount", "context.input.to.name"]));
    }

    #[test]
    fn nothing_of_the_input_is_kept_when_no_policy_reads_it() {
        let permit = "@id(\"base\") permit (principal, action, resource);";

        let kept = stored_inputs(permit, Phase::Request, &json!({"amount": 7}), &[]);

        assert_eq!(kept.get("input"), None);
    }

    #[test]
    fn of_the_claims_those_are_kept_that_a_policy_reads_and_dlp_has_nothing_against() {
        let reading = r#"@id("eu") permit (principal, action, resource)
            when { principal.hasTag("region") && principal.hasTag("mail") };"#;
        let any = r#"@id("any") permit (principal, action, resource)
            when { principal.hasTag(resource.name) };"#;
        let values = |text: &str| std::iter::once(text.to_owned()).collect();
        let claims = [("region", "eu"), ("mail", "ana@acme.com"), ("dept", "sales")];
        let who = Identity {
            claims: claims.map(|(name, value)| (name.to_owned(), values(value))).into(),
            withheld: values("mail"),
            ..member()
        };
        let kept =
            |policies| stored_inputs_of(policies, who.clone(), Phase::Request, &json!({}), &[]);

        let some = kept(reading);
        let all = kept(any);

        assert_eq!(some["principal"]["claims"], json!({"region": ["eu"]}));
        assert_eq!(some["claims_paths"], json!(["principal.tags.region"]));
        assert_eq!(all["principal"]["claims"], json!({"region": ["eu"], "dept": ["sales"]}));
        assert_eq!(all["claims_paths"], json!(["principal.tags.dept", "principal.tags.region"]));
        assert!(!some.to_string().contains("ana@") && !all.to_string().contains("ana@"));
    }

    #[test]
    fn the_level_and_the_methods_of_a_login_are_kept_where_a_policy_reads_them() {
        let reading = r#"@id("gold") permit (principal, action, resource)
            when { principal has acr && principal.amr.contains("hwk") };"#;
        let claims = [("acr", "gold"), ("amr", "hwk"), ("dept", "sales")];
        let values = |text: &str| std::iter::once(text.to_owned()).collect();
        let claims = claims.map(|(name, value)| (name.to_owned(), values(value))).into();
        let who = Identity { claims, ..member() };

        let kept = stored_inputs_of(reading, who, Phase::Request, &json!({}), &[]);

        assert_eq!(kept["principal"]["claims"], json!({"acr": ["gold"], "amr": ["hwk"]}));
        let paths = json!(["principal.tags.acr", "principal.tags.amr"]);
        assert_eq!(kept["claims_paths"], paths);
    }

    #[test]
    fn of_the_result_is_kept_what_response_policies_read() {
        let kept =
            stored_inputs(READING, Phase::Response, &json!({"state": "even", "rows": [1]}), &[]);

        assert_eq!(kept["output"], json!({"state": "even"}));
        assert_eq!(kept["output_paths"], json!(["context.output.state"]));
    }

    #[test]
    fn a_member_fits_up_to_its_length_as_json() {
        for (value, fits) in [
            (json!("a".repeat(4094)), true),
            (json!("a".repeat(4095)), false),
            (json!(vec![1; 2046]), true),
            (json!(vec![1; 2048]), false),
            (json!({ "a": { "b": "c".repeat(4000) } }), true),
            (json!({ "a": [{ "b": "c".repeat(4090) }] }), false),
        ] {
            assert_eq!(is_small(&value), fits, "{}", value.to_string().len());
        }
    }
}
