//! The laws of `cases.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Laws {
    law: Vec<Law>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Law {
    says: String,
    #[serde(default)]
    gone: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    left_alone: Vec<String>,
    #[serde(default)]
    places: BTreeMap<String, Vec<String>>,
}

fn all(cases: &BTreeMap<String, Vec<String>>) -> impl Iterator<Item = (&String, &String)> {
    cases.iter().flat_map(|(wanted, texts)| texts.iter().map(move |text| (wanted, text)))
}

fn is_gone(secret: &str, text: &str) -> bool {
    let block = || json!({ "content": [{ "type": "text", "text": text }] });
    let value = serde_json::from_str(text).unwrap_or_else(|_| block());
    let masked = engine().redact_value(&value, &scan(&value), |_| Some(Mask::Placeholder));
    !masked.to_string().contains(secret)
}

/// All that is found in a value, as `detector pointer`.
fn found(text: &str) -> String {
    let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    places(&value).join(", ").trim_end().to_owned()
}

fn is_left_alone(text: &str) -> bool {
    let acts = |it| engine().default_action(it, Direction::Output) > Action::Flag;
    !scan(&json!(text)).iter().any(acts)
}

#[test]
fn values_hold_what_the_laws_say() {
    let Laws { law: laws } = toml::from_str(include_str!("cases.toml")).unwrap();
    let mut tried = 0;
    let mut wrong = Vec::new();
    for law in &laws {
        let gone = all(&law.gone).map(|(secret, text)| (is_gone(secret, text), text));
        let places = all(&law.places).map(|(places, text)| (found(text) == *places, text));
        let left = law.left_alone.iter().map(|text| (is_left_alone(text), text));
        for (holds, text) in gone.chain(places).chain(left) {
            tried += 1;
            if !holds {
                wrong.push(format!("{}: {text}: {}", law.says, found(text)));
            }
        }
    }
    assert_none(&wrong, "cases do not hold");
    assert_eq!(tried, 157, "a case is lost, or the number here is old");
}
