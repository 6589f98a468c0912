//! Policies that are not in force, as a request writes them.

use portcullis_core::policy::Status;
use serde_json::Value;

use super::super::members::{Members, Read, violation};

/// The most policies of a draft, and the largest of them in bytes.
const MAX_DRAFTS: usize = 200;
const MAX_DRAFT_BYTES: usize = 64 * 1024;
const STATUSES: [(&str, Status); 3] =
    [("active", Status::Active), ("shadow", Status::Shadow), ("disabled", Status::Disabled)];

/// A policy set that is not in force.
#[derive(Debug, Clone)]
pub struct Draft {
    pub base: Base,
    /// Cedar texts whose policies are added or replace those of their name.
    pub upsert: Vec<String>,
    /// Names of policies that are left out.
    pub remove: Vec<String>,
    pub set_status: Vec<(String, Status)>,
}

/// Set that a draft starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// The set in force.
    Live,
    Empty,
    /// The set of this digest, once in force.
    Kept(String),
}

impl Draft {
    /// The set in force as it is.
    #[must_use]
    pub const fn live() -> Self {
        Self { base: Base::Live, upsert: Vec::new(), remove: Vec::new(), set_status: Vec::new() }
    }

    /// Returns true if the draft changes nothing.
    #[must_use]
    pub const fn is_base(&self) -> bool {
        self.upsert.is_empty() && self.remove.is_empty() && self.set_status.is_empty()
    }

    pub(super) fn read(mut members: Members<'_>) -> Read<Self> {
        let at = members.at("base");
        let base = match members.text("base")? {
            None | Some("live") => Base::Live,
            Some("empty") => Base::Empty,
            Some(digest) if digest.starts_with("sha256:") => Base::Kept(digest.to_owned()),
            Some(_) => return Err(violation(&at, "has to be `live`, `empty` or `sha256:…`")),
        };
        let mut upsert = Vec::new();
        for (path, item) in members.items("upsert", MAX_DRAFTS)? {
            upsert.push(source(item, &path)?);
        }
        let mut set_status = Vec::new();
        if let Some(statuses) = members.object("set_status")? {
            for (path, id, value) in statuses.entries() {
                let status = STATUSES.iter().find(|(name, _)| value.as_str() == Some(*name));
                let wrong = || violation(&path, "has to be one of active, shadow, disabled");
                set_status.push((id.to_owned(), status.ok_or_else(wrong)?.1));
            }
        }
        let remove = members.texts("remove", 10_000)?.unwrap_or_default();
        members.end()?;
        Ok(Self { base, upsert, remove, set_status })
    }
}

fn source(item: &Value, path: &str) -> Read<String> {
    let mut members = Members::of(item, path)?;
    let at = members.at("source");
    let text = match members.any("source") {
        Some(Value::String(text)) if text.len() <= MAX_DRAFT_BYTES => text.clone(),
        _ => return Err(violation(&at, "has to be a Cedar text of at most 65536 bytes")),
    };
    members.end()?;
    Ok(text)
}
