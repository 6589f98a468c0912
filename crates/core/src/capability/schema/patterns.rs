//! Patterns of schemas: bounded in size, matched in time linear in the text.
//!
//! A pattern becomes a table of states if a small one will do: then each byte of a text is one look-up.
//! Otherwise its states are simulated, which takes time for each byte and state, and is counted so
//! ([`Pattern::cost`]). Neither grows memory while it matches.

use std::{collections::BTreeMap, sync::Arc};

use regex_automata::{
    Input, MatchError,
    dfa::{Automaton, StartKind, dense},
    meta,
    nfa::thompson::{self, NFA, WhichCaptures},
    util::syntax,
};
use serde_json::Value;

use super::{SchemaError, length};

/// The longest pattern, in bytes of its text.
pub(super) const MAX_TEXT: usize = 8 << 10;
/// The most bytes that the states of one pattern take.
pub(super) const MAX_STATES: usize = 256 << 10;
/// The most bytes of a table of states, and of what is needed while it is built.
const MAX_TABLE: usize = 128 << 10;
/// The most bytes that all patterns of a tool count for.
pub(super) const MAX_TOOL: usize = 1 << 20;

/// A pattern that is ready to match.
pub(super) struct Pattern {
    matcher: Matcher,
    /// Steps for four bytes of a text.
    steps: u64,
    /// Bytes that it counts for.
    bytes: usize,
}

enum Matcher {
    Table(Box<dense::DFA<Vec<u32>>>),
    States(Box<meta::Regex>),
}

/// All patterns of a schema, by their text.
#[derive(Default)]
pub(super) struct Patterns {
    texts: BTreeMap<String, Arc<Pattern>>,
    /// Steps for four bytes of a member's name.
    names: u64,
    bytes: usize,
}

impl Pattern {
    /// Returns true if a pattern has lookaround or back references, which take more than linear time.
    pub(super) fn is_beyond_us(text: &str) -> bool {
        // The translation leaves such patterns as they are.
        text.len() <= MAX_TEXT
            && jsonschema_regex::to_rust_regex(text)
                .is_ok_and(|translated| syntax::parse(&translated).is_err())
    }

    /// Compiles a pattern of ECMA-262. `None` if it is none, or has features that cannot be matched in
    /// linear time; an error if it is too large.
    fn compile(text: &str) -> Result<Option<Self>, SchemaError> {
        if text.len() > MAX_TEXT {
            return Err(SchemaError::PatternTooLarge);
        }
        let Ok(translated) = jsonschema_regex::to_rust_regex(text) else { return Ok(None) };
        let config = thompson::Config::new()
            .nfa_size_limit(Some(MAX_STATES))
            .which_captures(WhichCaptures::None);
        let states = match NFA::compiler().configure(config).build(&translated) {
            Ok(states) => states,
            Err(error) if error.size_limit().is_some() => return Err(SchemaError::PatternTooLarge),
            Err(_) => return Ok(None),
        };
        if let Some(table) = table(&states) {
            let bytes = states.memory_usage() + table.memory_usage();
            return Ok(Some(Self { matcher: Matcher::Table(Box::new(table)), steps: 1, bytes }));
        }
        let config = meta::Config::new()
            .nfa_size_limit(Some(MAX_STATES))
            .which_captures(WhichCaptures::None)
            .onepass(false)
            .hybrid(false)
            .dfa(false);
        let Ok(regex) = meta::Builder::new().configure(config).build(&translated) else {
            return Ok(None);
        };
        // The attempt at a table takes time, so it counts as well.
        let bytes = states.memory_usage() + MAX_TABLE;
        let steps = 1 + states.states().len() as u64;
        Ok(Some(Self { matcher: Matcher::States(Box::new(regex)), steps, bytes }))
    }

    /// Steps for matching a text.
    pub(super) fn cost(&self, text: &str) -> u64 {
        self.steps.saturating_mul(1 + length(text) / 4)
    }

    /// Returns true if a part of the text matches.
    pub(super) fn is_match(&self, text: &str) -> bool {
        match &self.matcher {
            Matcher::Table(table) => {
                let found: Result<_, MatchError> =
                    table.try_search_fwd(&Input::new(text).earliest(true));
                found.is_ok_and(|found| found.is_some())
            }
            Matcher::States(regex) => regex.is_match(text),
        }
    }
}

/// All states and what follows them, if they are few.
fn table(states: &NFA) -> Option<dense::DFA<Vec<u32>>> {
    let config = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .accelerate(false)
        .dfa_size_limit(Some(MAX_TABLE))
        .determinize_size_limit(Some(MAX_TABLE));
    dense::Builder::new().configure(config).build_from_nfa(states).ok()
}

impl Patterns {
    /// Compiles whatever may be a pattern of a schema.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let mut patterns = Self::default();
        patterns.collect(schema)?;
        Ok(patterns)
    }

    pub(super) fn get(&self, text: &str) -> Option<Arc<Pattern>> {
        self.texts.get(text).cloned()
    }

    /// Steps for four bytes of a member's name.
    pub(super) const fn name_steps(&self) -> u64 {
        self.names
    }

    /// Bytes that they count for together.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn collect(&mut self, schema: &Value) -> Result<(), SchemaError> {
        match schema {
            Value::Object(members) => {
                if let Some(text) = members.get("pattern").and_then(Value::as_str) {
                    self.add(text)?;
                }
                if let Some(named) = members.get("patternProperties").and_then(Value::as_object) {
                    named.keys().try_for_each(|text| self.add_for_names(text))?;
                }
                members.values().try_for_each(|member| self.collect(member))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.collect(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn add(&mut self, text: &str) -> Result<(), SchemaError> {
        if self.texts.contains_key(text) {
            return Ok(());
        }
        let Some(pattern) = Pattern::compile(text)? else { return Ok(()) };
        self.count(pattern.bytes)?;
        self.texts.insert(text.to_owned(), Arc::new(pattern));
        Ok(())
    }

    /// The validator matches names with an engine of its own, which may keep a table of states for
    /// each thread.
    fn add_for_names(&mut self, text: &str) -> Result<(), SchemaError> {
        let Some(pattern) = Pattern::compile(text)? else { return Ok(()) };
        self.count(pattern.bytes + 4 * MAX_TABLE / 8)?;
        self.names = self.names.saturating_add(pattern.steps);
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), SchemaError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_TOOL { Err(SchemaError::PatternsTooLarge) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn compiled(text: &str) -> Pattern {
        Pattern::compile(text).unwrap().unwrap()
    }

    #[test]
    fn patterns_that_are_large_once_compiled_are_refused() {
        let long = "a".repeat(MAX_TEXT + 1);
        for text in
            ["[ab]{100000}", "a[ab]{20000}c", "((a{100}){100}){100}", "(x{1,900}){900}", &long]
        {
            assert_eq!(Pattern::compile(text).err(), Some(SchemaError::PatternTooLarge));
        }
    }

    #[test]
    fn all_patterns_of_a_schema_count_together() {
        let heavy =
            |number: usize| json!({"type": "string", "pattern": format!("{number}[ab]{{900}}c")});
        let few: Vec<Value> = (0..3).map(heavy).collect();
        let many: Vec<Value> = (0..60).map(heavy).collect();
        let same: Vec<Value> = (0..60).map(|_| heavy(0)).collect();

        assert!(Patterns::of(&json!({ "anyOf": few })).is_ok());
        assert_eq!(
            Patterns::of(&json!({ "anyOf": many })).err(),
            Some(SchemaError::PatternsTooLarge)
        );
        assert!(Patterns::of(&json!({ "anyOf": same })).is_ok());
    }

    #[test]
    fn usual_patterns_take_one_step_for_each_look_and_others_one_for_each_state() {
        for text in [
            "^[A-Za-z0-9_-]{1,255}$",
            "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?Z$",
            "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
            "^(https?|ftp)://[^\\s/$.?#].[^\\s]*$",
            "^[\\w.+-]+@[\\w-]+\\.[\\w.]+$",
            "\\S",
            "^.{1,100}$",
        ] {
            assert_eq!(compiled(text).steps, 1, "{text}");
        }
        let url = "https?:\\/\\/(www\\.)?[-a-zA-Z0-9@:%._\\+~#=]{1,256}\\.[a-z]{1,6}\\b([-a-z0-9()@:%_\\+.~#?&//=]*)";
        assert!(compiled(url).steps > 256, "{}", compiled(url).steps);
        assert!(compiled(url).is_match("see https://www.example.com/a?b=c for more"));
        assert!(compiled("a[ab]{900}c").cost(&"ab".repeat(15_000)) > 6_000_000);
    }

    #[test]
    fn a_schema_says_in_which_members_patterns_are() {
        let schema = json!({
            "properties": {"pattern": {"pattern": "^a$"}, "b": {"items": {"pattern": "^b$"}}},
            "patternProperties": {"^x-": {}, "^y-": {"pattern": "^(?=c)"}},
        });

        let patterns = Patterns::of(&schema).unwrap();

        assert!(patterns.get("^a$").is_some() && patterns.get("^b$").is_some());
        assert!(patterns.get("^(?=c)").is_none(), "no engine matches it in linear time");
        assert_eq!(patterns.name_steps(), 2);
    }

    proptest! {
        #[test]
        fn both_ways_to_match_agree_with_the_usual_engine(
            pattern in "\\^?[abc]{1,3}(\\{1,3\\}|\\+|\\?|)(\\[ab\\]|\\.|\\\\d|\\\\S|é|)[abc]?\\$?",
            text in "[abcé1 \n]{0,12}",
        ) {
            let translated = jsonschema_regex::to_rust_regex(&pattern).unwrap();
            let usual = regex::Regex::new(&translated).unwrap().is_match(&text);

            prop_assert_eq!(compiled(&pattern).is_match(&text), usual);
        }
    }
}
