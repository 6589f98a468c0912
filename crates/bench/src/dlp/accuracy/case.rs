//! Labelled cases.

use std::ops::Range;

use portcullis_core::{
    dlp::{Action, Category, Direction, Engine, Finding, Findings},
    json::{Bounds, JsonError, parse},
};
use serde::Deserialize;
use serde_json::Value;

/// One labelled text.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Case {
    id: String,
    pub(super) entity: String,
    pub(super) tier: Tier,
    pub(super) kind: Option<Kind>,
    /// The decoder that an evasion needs.
    #[serde(default)]
    decoder: String,
    pub(super) text: String,
    /// The text of an evasion as it is without its spelling.
    plain: Option<String>,
    /// True if the text is read as JSON.
    #[serde(default)]
    json: bool,
    #[serde(default)]
    expected: Vec<Expected>,
    /// Other kinds that a look-alike of one kind is.
    #[serde(default)]
    pub(super) other_rule_fires: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tier {
    Strong,
    Weak,
    Negative,
}

/// Surroundings of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// As its source has it.
    Given,
    /// All of the text, and telling by itself.
    Bare,
    /// All of the text, and only a number or a short code.
    BareNumber,
    /// Below a key or behind a word on one line.
    Named,
    /// In a table, a list of names and values, a file in a text.
    Structure,
    /// In a sentence.
    Sentence,
    /// Nothing to be found.
    Negative,
    /// Spelled so that a decoder has to read it first.
    Evasion,
}

/// Place of the value: bytes of a text, or a pointer into JSON.
#[derive(Debug, Clone, Deserialize)]
struct Expected {
    #[serde(default)]
    bstart: usize,
    #[serde(default)]
    bend: usize,
    pointer: Option<String>,
}

/// Outcome of scanning a case.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) found: bool,
    pub(super) acted_on: bool,
    detectors: String,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Given,
        Self::Bare,
        Self::BareNumber,
        Self::Named,
        Self::Structure,
        Self::Sentence,
        Self::Negative,
        Self::Evasion,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Bare => "bare",
            Self::BareNumber => "bare number",
            Self::Named => "named",
            Self::Structure => "structure",
            Self::Sentence => "sentence",
            Self::Negative => "negative",
            Self::Evasion => "evasion",
        }
    }
}

impl Case {
    /// The value that is scanned.
    pub(super) fn value(&self) -> Result<Value, JsonError> {
        if self.json {
            return parse(self.text.as_bytes(), Bounds::UPSTREAM);
        }
        Ok(Value::String(self.text.clone()))
    }

    /// The surroundings it says, or those its text shows.
    pub(super) fn kind(&self) -> Kind {
        match (self.kind, self.tier) {
            (Some(kind), _) => kind,
            (None, Tier::Negative) => Kind::Negative,
            (None, Tier::Strong | Tier::Weak) if self.is_bare() => Kind::BareNumber,
            (None, Tier::Strong | Tier::Weak) => Kind::Given,
        }
    }

    /// The name of its row among those of its kind.
    pub(super) fn group(&self) -> &str {
        if self.decoder.is_empty() { &self.entity } else { &self.decoder }
    }

    /// The same case for the value below a key that is called like its kind.
    pub(super) fn below_its_key(&self) -> Self {
        let expected = vec![Expected { bstart: 0, bend: self.text.len(), pointer: None }];
        Self { kind: Some(Kind::Named), expected, ..self.clone() }
    }

    /// The same case without its spelling, if it is an evasion that says so.
    pub(super) fn unspelled(&self) -> Option<Self> {
        let text = self.plain.clone()?;
        let expected = vec![Expected { bstart: 0, bend: text.len(), pointer: None }];
        Some(Self { text, json: false, expected, ..self.clone() })
    }

    /// The key a program would give it.
    pub(super) fn key(&self) -> String {
        self.entity.to_ascii_lowercase()
    }

    /// Returns true if it was not found, or wrongly acted on.
    pub(super) fn is_missed(&self, outcome: &Outcome) -> bool {
        match (self.tier, self.kind()) {
            (Tier::Weak, _) => false,
            (Tier::Negative, _) => outcome.acted_on,
            (Tier::Strong, Kind::Evasion) => !outcome.acted_on,
            (Tier::Strong, _) => !outcome.found,
        }
    }

    pub(super) fn outcome(&self, engine: &Engine, findings: &Findings) -> Outcome {
        let mut outcome =
            Outcome { detectors: findings.detectors().join(" "), ..Outcome::default() };
        for finding in findings.iter().filter(|finding| self.concerns(finding)) {
            outcome.found = true;
            let does_act = |way| engine.default_action(finding, way) > Action::Flag;
            outcome.acted_on |= [Direction::Input, Direction::Output].into_iter().any(does_act);
        }
        outcome
    }

    pub(super) fn line(&self, outcome: &Outcome) -> String {
        format!(
            "{} | {} | {} | {:?} | [{}]\n",
            self.kind().name(),
            self.group(),
            self.id,
            self.text,
            outcome.detectors
        )
    }

    /// Returns true for findings of what is expected, and in a text without anything for all of
    /// its sort.
    fn concerns(&self, finding: &Finding) -> bool {
        let is_secret = self.entity.starts_with("secret/");
        let is_any = self.entity == "none";
        (is_any || (finding.category() == Category::Secret) == is_secret)
            && (self.tier == Tier::Negative
                || self.expected.iter().any(|expected| expected.is_at(finding)))
    }

    /// Returns true if it is only a number or a short code.
    fn is_bare(&self) -> bool {
        let is_code = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-' | b'.');
        !self.entity.starts_with("secret/")
            && self.text.len() < 24
            && self.text.bytes().all(is_code)
    }
}

impl Expected {
    fn is_at(&self, finding: &Finding) -> bool {
        let overlaps = |range: Range<usize>| range.start < self.bend && self.bstart < range.end;
        match &self.pointer {
            Some(pointer) => finding.pointer().starts_with(pointer.as_str()),
            None => finding.ranges().any(overlaps),
        }
    }
}
