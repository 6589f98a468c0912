//! The words the engine speaks: directions, actions, categories, likelihoods.

use serde::{Deserialize, Serialize};

/// Direction in which a value travels: to a tool, or back from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Arguments on their way to a tool.
    Input,
    /// A tool's answer on its way to the caller.
    Output,
}

/// Action that is taken on a finding, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Report it and let the value through.
    Flag,
    /// Replace the matched text with a placeholder and let the rest through.
    Redact,
    /// Refuse the call or withhold the answer.
    Block,
}

/// Kind of harm that a finding stands for. Default actions are set per category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Something that opens a door: keys, tokens, passwords.
    Secret,
    /// Payment cards and bank accounts.
    Financial,
    /// Numbers a state gave to a person.
    NationalId,
    /// Ways to reach a person.
    Contact,
    /// Addresses of machines.
    Network,
    /// Numbers of patients and of those who treat them.
    Health,
    /// Characters that a reader cannot see although a model reads them.
    Hidden,
    /// Orders to a model that stand in data.
    Injection,
}

impl Action {
    /// Its name in settings, answers and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::Flag => "flag",
            Action::Redact => "redact",
            Action::Block => "block",
        }
    }
}

impl Category {
    /// Returns true if a match that neighbours share counts: they make words by chance, and few
    /// kinds prove themselves.
    pub(crate) const fn may_be_cut(self) -> bool {
        match self {
            Category::Secret | Category::Financial => true,
            Category::NationalId
            | Category::Contact
            | Category::Network
            | Category::Health
            | Category::Hidden
            | Category::Injection => false,
        }
    }

    /// Every category, in the order of the documentation.
    pub const ALL: [Category; 8] = [
        Category::Secret,
        Category::Financial,
        Category::NationalId,
        Category::Contact,
        Category::Network,
        Category::Health,
        Category::Hidden,
        Category::Injection,
    ];

    /// Its name in settings and policies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Category::Secret => "secret",
            Category::Financial => "financial",
            Category::NationalId => "national_id",
            Category::Contact => "contact",
            Category::Network => "network",
            Category::Health => "health",
            Category::Hidden => "hidden",
            Category::Injection => "injection",
        }
    }

    /// Severity of a finding of this category: 1 for contact, network, hidden characters and injections, 2 for
    /// national ids and health, 3 for financial, 4 for secrets. Policies read it as `max_severity`.
    #[must_use]
    pub fn severity(self) -> i64 {
        match self {
            Category::Contact | Category::Network | Category::Hidden | Category::Injection => 1,
            Category::NationalId | Category::Health => 2,
            Category::Financial => 3,
            Category::Secret => 4,
        }
    }

    /// Action for this category when neither a policy nor the settings say otherwise.
    pub(crate) fn usual_action(self, direction: Direction) -> Action {
        match (self, direction) {
            (Category::Secret, Direction::Input) => Action::Block,
            (
                Category::Secret | Category::Financial | Category::NationalId | Category::Hidden,
                Direction::Output,
            ) => Action::Redact,
            (Category::Financial | Category::NationalId | Category::Hidden, Direction::Input)
            | (Category::Contact | Category::Network | Category::Health | Category::Injection, _) => {
                Action::Flag
            }
        }
    }
}

/// Strength of the evidence for a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likelihood {
    /// More likely than not.
    Possible,
    /// Hardly anything else looks like this.
    Likely,
    /// A check value or a vendor's own prefix confirms it.
    VeryLikely,
}

impl Likelihood {
    /// Turns bits of evidence into a likelihood; too few bits are no finding at all.
    pub(crate) fn from_bits(bits: i32) -> Option<Likelihood> {
        match bits {
            // The bounds are those of `least_bits`.
            ..16 => None,
            16..24 => Some(Likelihood::Possible),
            24..32 => Some(Likelihood::Likely),
            32.. => Some(Likelihood::VeryLikely),
        }
    }

    /// The least evidence that makes it.
    pub(crate) fn least_bits(self) -> i32 {
        match self {
            Likelihood::Possible => 16,
            Likelihood::Likely => 24,
            Likelihood::VeryLikely => 32,
        }
    }

    /// Its name in settings and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Likelihood::Possible => "possible",
            Likelihood::Likely => "likely",
            Likelihood::VeryLikely => "very_likely",
        }
    }
}
