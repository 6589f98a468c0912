//! Ranking of tools for a question: BM25 over their words.
//!
//! An index is built once for a list of tools. Several lists are ranked together as if they were
//! one, so a caller's catalogue needs no index of its own.

use std::collections::HashMap;

use serde_json::Value;

use crate::capability::Capability;

/// The usual parameters: how soon more of the same word counts less, and how much length matters.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// Longest question in words that is looked at.
const MAX_TERMS: usize = 64;
/// Words of one tool that are indexed.
const MAX_WORDS: usize = 4096;

const NAME: f32 = 3.0;
const TITLE: f32 = 2.0;
const TEXT: f32 = 1.0;

/// The words of a list of tools.
#[derive(Debug, Default)]
pub struct Index {
    /// The tools that hold a word, with its weight in each.
    postings: HashMap<Box<str>, Vec<(u32, f32)>>,
    /// The weight of all words of each tool.
    lengths: Vec<f32>,
}

/// A tool that answers a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The place of its list among those that were ranked.
    pub list: usize,
    /// Its place in the list.
    pub tool: usize,
    /// Its score; higher is better.
    pub score: f32,
}

impl Index {
    /// The index of these tools: names, titles, descriptions and names of parameters.
    pub fn build<'a>(tools: impl IntoIterator<Item = &'a Capability>) -> Self {
        let mut index = Self::default();
        for (place, tool) in (0..).zip(tools) {
            let mut words = HashMap::new();
            let mut left = MAX_WORDS;
            let mut add = |text: &str, weight: f32| {
                for word in words_of(text) {
                    if left == 0 {
                        return;
                    }
                    left -= 1;
                    *words.entry(word).or_insert(0.0) += weight;
                }
            };
            let definition = tool.listed_definition();
            add(tool.id.provider(), TEXT);
            add(tool.id.name(), NAME);
            add(definition.title.as_deref().unwrap_or_default(), TITLE);
            add(definition.description.as_deref().unwrap_or_default(), TEXT);
            parameters(&definition.input_schema, &mut |name| add(name, TEXT));
            index.lengths.push(words.values().sum());
            for (word, weight) in words {
                index.postings.entry(word.into()).or_default().push((place, weight));
            }
        }
        index
    }

    /// About the bytes that it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let entries: usize = self.postings.values().map(Vec::len).sum();
        entries * 8 + self.postings.len() * 64 + self.lengths.len() * 4
    }
}

/// The names of the properties of a schema, also of nested ones.
fn parameters(schema: &Value, add: &mut impl FnMut(&str)) {
    for (name, property) in
        schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        add(name);
        parameters(property, add);
    }
}

/// At most `limit` tools of these lists that hold a word of `question`, the best first. Those are
/// left out for whose list and place `wanted` returns `false`.
#[must_use]
pub fn rank(
    lists: &[&Index],
    question: &str,
    limit: usize,
    wanted: impl Fn(usize, usize) -> bool,
) -> Vec<Hit> {
    let mut terms: Vec<String> = words_of(question).take(MAX_TERMS).collect();
    terms.sort_unstable();
    terms.dedup();
    let all = number(lists.iter().map(|index| index.lengths.len()).sum());
    let mean = lists.iter().flat_map(|it| &it.lengths).sum::<f32>() / all.max(1.0);
    // The score of each tool, in lists of which one holds a word.
    let mut scores: Vec<Vec<f32>> = vec![Vec::new(); lists.len()];
    for term in &terms {
        let found = || lists.iter().map(|index| index.postings.get(term.as_str()));
        let holding = number(found().flatten().map(Vec::len).sum());
        let rarity = (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln();
        for ((index, scores), postings) in lists.iter().zip(&mut scores).zip(found()) {
            let Some(postings) = postings else { continue };
            scores.resize(index.lengths.len(), 0.0);
            for (tool, weight) in postings {
                let Ok(tool) = usize::try_from(*tool) else { continue };
                let length = index.lengths.get(tool).copied().unwrap_or(mean);
                let length = length / mean.max(f32::MIN_POSITIVE);
                let much = weight * (K1 + 1.0) / (weight + K1 * (1.0 - B + B * length));
                scores.get_mut(tool).into_iter().for_each(|score| *score += rarity * much);
            }
        }
    }
    let hits = scores.iter().enumerate().flat_map(|(list, scores)| {
        let held = scores.iter().enumerate().filter(|(_, score)| **score > 0.0);
        held.map(move |(tool, score)| Hit { list, tool, score: *score })
    });
    best(hits.filter(|hit| wanted(hit.list, hit.tool)).collect(), limit)
}

/// The best hits in order.
fn best(mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
    let order = |one: &Hit, other: &Hit| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then(one.list.cmp(&other.list)).then(one.tool.cmp(&other.tool))
    };
    if hits.len() > limit {
        hits.select_nth_unstable_by(limit, order);
        hits.truncate(limit);
    }
    hits.sort_unstable_by(order);
    hits
}

#[expect(clippy::cast_precision_loss, reason = "numbers of tools are small")]
fn number(count: usize) -> f32 {
    count as f32
}

/// The words of a text in lower case. What is written in `snake_case` or `camelCase` is several
/// words; a plural is its singular.
fn words_of(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|letter: char| !letter.is_alphanumeric()).flat_map(parts).map(|part| {
        let lower = part.to_lowercase();
        match lower.strip_suffix('s') {
            Some(one) if one.len() > 2 && !one.ends_with(['s', 'u', 'i']) => one.to_owned(),
            Some(_) | None => lower,
        }
    })
}

/// The parts of a word at its changes from lower to upper case.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut before = false;
        let cut = rest.char_indices().find(|(_, letter)| {
            let changes = before && letter.is_uppercase();
            before = letter.is_lowercase() || letter.is_numeric();
            changes
        });
        let (part, more) = rest.split_at(cut.map_or(rest.len(), |(at, _)| at));
        rest = more;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{capability::Definition, clock::Timestamp};

    fn tool(id: &str, description: &str, schema: Value) -> Capability {
        let (slug, name) = id.split_once(':').unwrap();
        let definition = Definition {
            description: Some(description.to_owned()),
            ..Definition::new(name.parse().unwrap(), schema)
        };
        Capability::new(&slug.parse().unwrap(), definition, Timestamp::default()).unwrap()
    }

    fn catalogue() -> [Vec<Capability>; 2] {
        let plain = || json!({"type": "object"});
        let repository =
            json!({"type": "object", "properties": {"repository": {"type": "string"}}});
        [
            vec![
                tool("github:createIssue", "Opens an issue.", repository),
                tool("github:list_repos", "Lists all repositories of an owner.", plain()),
            ],
            vec![
                tool("mail:send", "Sends a message to some people.", plain()),
                tool("mail:search", "Finds messages, for instance about an issue.", plain()),
            ],
        ]
    }

    fn best_ids(question: &str) -> Vec<String> {
        let catalogue = catalogue();
        let lists: Vec<Index> = catalogue.iter().map(Index::build).collect();
        let hits = rank(&lists.iter().collect::<Vec<_>>(), question, 10, |_, _| true);
        hits.iter().map(|hit| catalogue[hit.list][hit.tool].id.to_string()).collect()
    }

    #[test]
    fn the_tool_that_is_named_comes_first_and_others_only_with_a_word_in_common() {
        assert_eq!(
            best_ids("create an issue"),
            ["github:createIssue", "mail:search", "github:list_repos"]
        );
        assert_eq!(best_ids("send messages"), ["mail:send", "mail:search"]);
        assert_eq!(best_ids("repository")[0], "github:createIssue");
        assert_eq!(best_ids("mail").len(), 2);
        assert!(
            best_ids("weather").is_empty() && best_ids("").is_empty() && best_ids("?!").is_empty()
        );
    }

    #[test]
    fn words_are_split_and_made_singular() {
        let words: Vec<String> = words_of("listAllRepos get_HTTP-status2 issues class").collect();

        let expected = ["list", "all", "repo", "get", "http", "status2", "issue", "class"];
        assert_eq!(words, expected);
    }

    #[test]
    fn several_lists_are_ranked_as_if_they_were_one() {
        let [mut one, other] = catalogue();
        let apart = [Index::build(&one), Index::build(&other)];
        let apart = rank(&apart.iter().collect::<Vec<_>>(), "issue repository", 10, |_, _| true);
        one.extend(other);
        let together = rank(&[&Index::build(&one)], "issue repository", 10, |_, _| true);

        let scores = |hits: &[Hit]| hits.iter().map(|hit| hit.score).collect::<Vec<_>>();
        assert_eq!(scores(&apart), scores(&together));
    }

    #[test]
    fn the_best_of_the_wanted_are_given() {
        let index = Index::build(catalogue().iter().flatten());
        let places = |limit: usize, unwanted: usize| {
            let hits = rank(&[&index], "create an issue", limit, |_, tool| tool != unwanted);
            hits.iter().map(|hit| hit.tool).collect::<Vec<_>>()
        };

        assert_eq!(places(9, 9), [0, 3, 1]);
        assert_eq!(places(2, 9), [0, 3]);
        assert_eq!(places(2, 0), [3, 1]);
        assert!(places(0, 9).is_empty());
    }
}
