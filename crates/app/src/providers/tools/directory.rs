//! Folders of skills, as the accepted manifests tell them.

use std::collections::BTreeMap;

use portcullis_core::{capability::CapabilityKind, mcp::skills, refusal::Refusal};

use super::{Tools, parse_id};
use crate::request::Ctx;

/// A file or folder directly in a folder of skills.
#[derive(Debug)]
pub struct DirectoryEntry {
    /// The URI that the provider gave.
    pub uri: String,
    /// Bytes of a file; `None` of a folder.
    pub size: Option<u64>,
}

impl Tools {
    /// The entries of a folder of skills that the caller may use, by URI: files that it may read, and folders in which a
    /// manifest names a file. Empty if there is no such folder.
    pub async fn directory(
        &self,
        ctx: &Ctx,
        provider: &str,
        uri: &str,
    ) -> Result<Vec<DirectoryEntry>, Refusal> {
        let skills = self.offered_tools(ctx, Some(provider), CapabilityKind::Skill, false).await?;
        let folder = format!("{}/", uri.strip_suffix('/').unwrap_or(uri));
        let may_read = |file: &str| {
            let asked = parse_id(CapabilityKind::Resource, &format!("{provider}:{file}"));
            asked.is_ok_and(|asked| self.find_used(ctx, &asked, Some(file)).is_ok())
        };
        let mut found = BTreeMap::new();
        for skill in skills.iter() {
            for (file, size) in skills::files(&skill.tool.definition.more) {
                let Some(rest) = file.strip_prefix(&folder) else { continue };
                let (name, size) = match rest.split_once('/') {
                    Some((name, _)) => (name, None),
                    None => (rest, Some(size)),
                };
                if name.is_empty() {
                    continue;
                }
                let entry = (name, size.is_some());
                if !found.contains_key(&entry) && (size.is_none() || may_read(file)) {
                    found.insert(entry, size);
                }
            }
        }
        let entry = |((name, _), size)| DirectoryEntry { uri: format!("{folder}{name}"), size };
        Ok(found.into_iter().map(entry).collect())
    }
}
