//! Settings of a provider that are one of a few words.

use portcullis_app::{Misfits, Pinning};
use portcullis_core::capability::CapabilityKind;
use portcullis_upstream as upstream;
use serde::Deserialize;

/// `pin`: treatment of tools that change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Pin {
    On,
    #[default]
    #[serde(rename = "review-additions")]
    ReviewAdditions,
    Review,
    Off,
}

impl From<Pin> for Pinning {
    fn from(pin: Pin) -> Self {
        match pin {
            Pin::On => Self::On,
            Pin::ReviewAdditions => Self::ReviewAdditions,
            Pin::Review => Self::Review,
            Pin::Off => Self::Off,
        }
    }
}

/// A word of `expose`: a kind of what a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Exposed {
    Tools,
    Prompts,
    Resources,
    /// Tools name pages, and these are read.
    Apps,
    Skills,
    /// Calls of tools may become tasks.
    Tasks,
}

impl Exposed {
    /// The kinds of what is listed and used then.
    pub(super) const fn kinds(self) -> &'static [CapabilityKind] {
        match self {
            Self::Tools => &[CapabilityKind::Tool],
            Self::Prompts => &[CapabilityKind::Prompt],
            Self::Resources => &[CapabilityKind::Resource, CapabilityKind::Template],
            Self::Apps => &[CapabilityKind::Resource],
            Self::Skills => &[CapabilityKind::Skill],
            Self::Tasks => &[],
        }
    }
}

/// `protocol`: the era of MCP, or one version of the older one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Protocol {
    #[default]
    Auto,
    Modern,
    Legacy,
    #[serde(rename = "2025-11-25")]
    V20251125,
    #[serde(rename = "2025-06-18")]
    V20250618,
    #[serde(rename = "2025-03-26")]
    V20250326,
    #[serde(rename = "2024-11-05")]
    V20241105,
}

/// `forms`: answer to forms of a server of the older era.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Forms {
    #[default]
    Refuse,
    Defaults,
}

/// `patterns`: treatment of patterns that cannot be enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Patterns {
    #[default]
    Note,
    Refuse,
}

/// `output_schema`: treatment of results that do not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputSchema {
    #[default]
    Note,
    Deny,
    Off,
}

impl From<OutputSchema> for Misfits {
    fn from(setting: OutputSchema) -> Self {
        match setting {
            OutputSchema::Note => Self::Note,
            OutputSchema::Deny => Self::Deny,
            OutputSchema::Off => Self::Ignore,
        }
    }
}

impl From<Forms> for upstream::Forms {
    fn from(forms: Forms) -> Self {
        match forms {
            Forms::Refuse => Self::Refuse,
            Forms::Defaults => Self::Defaults,
        }
    }
}

impl From<Protocol> for upstream::Protocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Auto => Self::Auto,
            Protocol::Modern => Self::Modern,
            Protocol::Legacy => Self::Legacy,
            Protocol::V20251125 => Self::Version("2025-11-25"),
            Protocol::V20250618 => Self::Version("2025-06-18"),
            Protocol::V20250326 => Self::Version("2025-03-26"),
            Protocol::V20241105 => Self::Version("2024-11-05"),
        }
    }
}
