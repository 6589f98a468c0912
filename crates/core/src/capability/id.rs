//! Kinds, names and ids of capabilities.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::mcp::{
    skills,
    uris::{ResourceUri, Template},
};

/// Words that are no short name of a provider: ids of its capabilities would look like those of another kind, like
/// groups of policies, or like a page beside it.
pub const RESERVED_SLUGS: [&str; 8] =
    ["event", "hint", "kind", "prompt", "provider", "resource", "server-card", "skill"];

/// A provider's short name: `[a-z0-9][a-z0-9-]{0,62}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderSlug(Arc<str>);

crate::words! { listed
    /// Kind of a capability.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CapabilityKind {
        #[default]
        Tool = "tool",
        Prompt = "prompt",
        /// Listed ahead of resources, some of which are its files.
        Skill = "skill",
        Resource = "resource",
        /// Resources whose URIs a template makes.
        #[serde(rename = "resource_template")]
        Template = "resource_template",
    }
}

impl CapabilityKind {
    /// Begin of the ids of this kind, in front of the provider.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Tool => "",
            Self::Prompt => "prompt:",
            Self::Resource | Self::Template => "resource:",
            Self::Skill => "skill:",
        }
    }

    /// The kinds whose ids begin differently.
    pub const GOVERNED: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::Skill];

    /// The kind that policies and events name: a template is a way to name resources.
    #[must_use]
    pub const fn governed(self) -> Self {
        match self {
            Self::Template => Self::Resource,
            Self::Tool | Self::Prompt | Self::Resource | Self::Skill => self,
        }
    }
}

/// The name of a tool or prompt at its server: 1 to 256 of `[A-Za-z0-9_.:/-]`, and single spaces between them. MCP
/// advises fewer, but servers have them. The name of a resource is its URI, that of a template its text, that of a skill
/// the URI of its `SKILL.md`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapabilityName(Arc<str>);

/// The one name that policy, audit and upstream all see: `<provider>:<name>` of a tool,
/// `prompt:<provider>:<name>` of a prompt, `resource:<provider>:<uri>` of a resource or of a template, and
/// `skill:<provider>:<uri>` of a skill. No provider has the name of a kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapabilityId {
    text: Arc<str>,
    kind: CapabilityKind,
    /// Begin of the provider, and of the name.
    provider: usize,
    name: usize,
    /// Its action, if it is not the beginning of the text.
    action: Option<Arc<str>>,
}

/// The text is no name of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(&'static str);

impl NameError {
    /// Description of what a name has to be.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        self.0
    }
}

impl FromStr for ProviderSlug {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=63).contains(&text.len())
            && text.bytes().all(|byte| letter(byte) || byte == b'-')
            && !text.starts_with('-');
        if RESERVED_SLUGS.contains(&text) {
            Err(NameError(
                "`event`, `hint`, `kind`, `prompt`, `provider`, `resource`, `server-card` and `skill` are reserved; \
                 choose another slug",
            ))
        } else if fits {
            Ok(Self(text.into()))
        } else {
            Err(NameError("a provider slug is 1 to 63 of a-z, 0-9 and `-`, not beginning with `-`"))
        }
    }
}

impl FromStr for CapabilityName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:/-".contains(&byte);
        let fits = text.len() <= 256
            && text.split(' ').all(|word| !word.is_empty() && word.bytes().all(letter));
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(NameError(
                "a tool name is 1 to 256 of A-Z, a-z, 0-9, `_`, `.`, `-`, `:` and `/`, and single spaces \
                 between them",
            ))
        }
    }
}

/// Name that stands for all resources of a provider that it does not list.
const UNLISTED: &str = "*";

impl CapabilityName {
    /// The name of all resources that a provider does not list.
    pub(super) fn unlisted() -> Self {
        Self(UNLISTED.into())
    }

    /// The name of something of this kind.
    pub fn of_kind(kind: CapabilityKind, text: &str) -> Result<Self, NameError> {
        match kind {
            CapabilityKind::Tool | CapabilityKind::Prompt => return text.parse(),
            CapabilityKind::Resource if text == UNLISTED => {}
            CapabilityKind::Resource => {
                ResourceUri::parse(text).map_err(|error| NameError(error.sentence()))?;
            }
            CapabilityKind::Template => {
                Template::parse(text).map_err(|error| NameError(error.sentence()))?;
            }
            CapabilityKind::Skill => {
                skills::path_of(text).map_err(NameError)?;
            }
        }
        Ok(Self(text.into()))
    }
}

impl CapabilityId {
    /// The id of the capability of this kind and `name` at `provider`.
    #[must_use]
    pub fn new(kind: CapabilityKind, provider: &ProviderSlug, name: &CapabilityName) -> Self {
        let text = format!("{}{provider}:{name}", kind.prefix());
        let name = text.len() - name.as_str().len();
        let begin = name - 1 - provider.as_str().len();
        let path = text.get(name..).filter(|_| kind == CapabilityKind::Skill);
        let path = path.and_then(|uri| skills::path_of(uri).ok());
        let action = path.map(|path| format!("{}{provider}:{path}", kind.prefix()).into());
        Self { text: text.into(), kind, provider: begin, name, action }
    }

    /// The whole id, which no capability of another kind has.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The id without its kind, as people see it beside the kind.
    #[must_use]
    pub fn short(&self) -> &str {
        self.text.get(self.provider..).unwrap_or_default()
    }

    /// The kind that it names.
    #[must_use]
    pub const fn kind(&self) -> CapabilityKind {
        self.kind
    }

    /// The part in front of the name.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.text.get(self.provider..self.name - 1).unwrap_or_default()
    }

    /// The name at the provider.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.get(self.name..).unwrap_or_default()
    }

    /// The id of a capability of one kind from its [short form](Self::short).
    pub fn of_kind(kind: CapabilityKind, short: &str) -> Result<Self, NameError> {
        let (provider, name) =
            short.split_once(':').ok_or(NameError("a tool id is `<provider>:<tool_name>`"))?;
        Ok(Self::new(kind, &provider.parse()?, &CapabilityName::of_kind(kind, name)?))
    }

    /// The id of what `provider` has of resources and does not list.
    #[must_use]
    pub fn unlisted(provider: &ProviderSlug) -> Self {
        Self::new(CapabilityKind::Resource, provider, &CapabilityName::unlisted())
    }

    /// True for the id of all resources that a provider does not list.
    #[must_use]
    pub fn is_unlisted(&self) -> bool {
        self.kind == CapabilityKind::Resource && self.name() == UNLISTED
    }

    /// The action in policies: all resources of a provider have the same, and that of a skill names its folder.
    #[must_use]
    pub fn action(&self) -> &str {
        if let Some(action) = &self.action {
            return action;
        }
        let is_resource = self.kind.governed() == CapabilityKind::Resource;
        let end = if is_resource { self.name - 1 } else { self.text.len() };
        self.text.get(..end).unwrap_or_default()
    }

    /// Key of what policies are bound to for it: its action, and for resources that are not listed their own.
    #[must_use]
    pub fn slot(&self) -> &str {
        if self.is_unlisted() { &self.text } else { self.action() }
    }
}

impl FromStr for CapabilityId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if let Some(short) = text.strip_prefix(CapabilityKind::Prompt.prefix()) {
            return Self::of_kind(CapabilityKind::Prompt, short);
        }
        if let Some(short) = text.strip_prefix(CapabilityKind::Skill.prefix()) {
            return Self::of_kind(CapabilityKind::Skill, short);
        }
        match text.strip_prefix(CapabilityKind::Resource.prefix()) {
            Some(short) if short.contains('{') => Self::of_kind(CapabilityKind::Template, short),
            Some(short) => Self::of_kind(CapabilityKind::Resource, short),
            None => Self::of_kind(CapabilityKind::Tool, text),
        }
    }
}

macro_rules! text {
    ($($name:ident),+) => { $(
        impl $name {
            /// The name itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        text!(@show $name);
    )+ };
    (@show $name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

text!(ProviderSlug, CapabilityName);
text!(@show CapabilityId);
