//! Folders of skills, by which policies know them, and the folders that a resource lies in for whichever reader.

use percent_encoding::percent_decode_str;

use super::FILE;
use crate::mcp::uris::{ResourceUri, UriError};

/// Most segments of the folder of a skill.
const MAX_SEGMENTS: usize = 32;

/// The folder of a skill of this URI, which names it in policies, without a scheme `skill`. Rejects URIs that readers
/// understand differently, and folders that do not end in a name by the rules of Agent Skills.
pub fn path_of(uri: &str) -> Result<&str, &'static str> {
    const FORM: &str = "the URI of a skill is `<scheme>://<path>/<name>/SKILL.md` in lower-case letters that need no \
         encoding, with at most 32 segments, and the name is 1 to 64 of a-z, 0-9 and single `-`";
    let parsed = ResourceUri::parse(uri).map_err(UriError::sentence)?;
    let folder = uri.strip_suffix(FILE).filter(|_| parsed.is_plain() && parsed.is_normal());
    let folder = folder.ok_or(FORM)?;
    let (_, path) = folder.split_once("://").ok_or(FORM)?;
    let segments = place_of(uri).1;
    let inner = segments.len().saturating_sub(1);
    let read = segments.get(..inner).unwrap_or_default().join("/");
    let is_read_so = path.strip_prefix('/').unwrap_or(path) == read;
    let is_folder = is_read_so && inner <= MAX_SEGMENTS && is_name(name_of(path));
    let path = folder.strip_prefix("skill://").unwrap_or(folder);
    if is_folder { Ok(path) } else { Err(FORM) }
}

pub(super) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn is_name(name: &str) -> bool {
    let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_letter);
    (1..=64).contains(&name.len()) && name.split('-').all(is_word)
}

/// Scheme and segments of a resource for the most tolerant of readers, also of what is no URI: they pass over case, user,
/// port, query and fragment, decode twice, take backslashes for slashes, and leave parameters and what stands at the end
/// of a name.
fn place_of(text: &str) -> (String, Vec<String>) {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (scheme, rest) = text.split_once(':').unwrap_or_default();
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let rest = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            let port = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
            let host = host.rsplit_once(':').filter(|it| port(it.1)).map_or(host, |it| it.0);
            format!("{host}{path}")
        }
        None => rest.to_owned(),
    };
    let mut segments = Vec::new();
    for segment in decoded(&decoded(&rest)).to_lowercase().split(['/', '\\']) {
        let name = segment.split([';', '?', '#']).next().unwrap_or_default();
        if name == ".." {
            segments.pop();
        }
        let name = name.trim_end_matches(['.', ' ', ':']);
        if !name.is_empty() {
            segments.push(name.to_owned());
        }
    }
    (scheme.to_lowercase(), segments)
}

/// The URIs of the skills whose folder a resource could lie in or be, the innermost first.
pub fn above(uri: &ResourceUri) -> impl Iterator<Item = String> {
    let (scheme, segments) = place_of(uri.as_str());
    let depths = (1..=segments.len().min(MAX_SEGMENTS)).rev();
    depths.flat_map(move |depth| {
        let path = segments.get(..depth).unwrap_or_default().join("/");
        ["", "/"].map(|slash| format!("{scheme}://{slash}{path}{FILE}"))
    })
}

/// The folder of a skill of this URI, of whatever form that is, as readers may take it; of what names no `SKILL.md` the
/// place itself. `None` if there is none.
#[must_use]
pub fn folder_of(uri: &str) -> Option<String> {
    let (scheme, mut segments) = place_of(uri);
    if segments.last().is_some_and(|last| last == "skill.md") {
        segments.pop();
    }
    segments.truncate(MAX_SEGMENTS);
    (!segments.is_empty()).then(|| format!("{scheme}:{}", segments.join("/")))
}

/// The folders that a resource lies in or is, as [`folder_of`] writes them.
pub fn folders_above(uri: &str) -> impl Iterator<Item = String> {
    let (scheme, segments) = place_of(uri);
    let depths = 1..=segments.len().min(MAX_SEGMENTS);
    depths.map(move |depth| {
        format!("{scheme}:{}", segments.get(..depth).unwrap_or_default().join("/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const URI: &str = "skill://acme/refunds/SKILL.md";

    #[test]
    fn a_skill_is_named_by_its_folder() {
        for (uri, path) in [
            (URI, Some("acme/refunds")),
            ("skill://refunds/SKILL.md", Some("refunds")),
            ("file:///skills/a-1/SKILL.md", Some("file:///skills/a-1")),
            ("skill:///skills/a-1/SKILL.md", Some("/skills/a-1")),
            ("github://owner/repo/refunds/SKILL.md", Some("github://owner/repo/refunds")),
            ("skill://acme/refunds/skill.md", None),
            ("skill://acme/Refunds/SKILL.md", None),
            ("skill://acme/Billing/refunds/SKILL.md", None),
            ("skill://Acme/refunds/SKILL.md", None),
            ("SKILL://acme/refunds/SKILL.md", None),
            ("skill://acme/re--funds/SKILL.md", None),
            ("skill://acme/-refunds/SKILL.md", None),
            ("skill://acme/re%66unds/SKILL.md", None),
            ("skill://a%20b/refunds/SKILL.md", None),
            ("skill://acme:80/refunds/SKILL.md", None),
            ("skill://acme//refunds/SKILL.md", None),
            ("skill:acme/refunds/SKILL.md", None),
            ("skill:///acme/refunds/SKILL.md?", None),
            ("skill://acme/refunds/SKILL.md#a", None),
            ("skill://acme/../refunds/SKILL.md", None),
            ("skill:///SKILL.md", None),
            ("refunds/SKILL.md", None),
        ] {
            assert_eq!(path_of(uri).ok(), path, "{uri}");
        }
        let deep = |count: usize| format!("skill://{}refunds/SKILL.md", "a/".repeat(count));
        assert!(path_of(&deep(31)).is_ok() && path_of(&deep(32)).is_err());
    }

    #[test]
    fn a_resource_lies_in_the_folders_of_whichever_reading() {
        let all = |uri: &str| above(&ResourceUri::parse(uri).unwrap()).collect::<Vec<_>>();
        for uri in [
            "skill://acme/refunds/a/b.md",
            "Skill://ACME/refunds//a/b.md?x#y",
            "skill:acme/refunds/a%2Fb.md",
            "skill://acme/REFUNDS/a/b.md",
            "skill://%61cme/refunds/a",
            "skill://acme./refunds./a",
            "skill://acme/refunds%20/a",
            "skill://acme/re%2566unds;v=1/a",
            "skill:///acme%5Crefunds/a",
        ] {
            let found = all(uri);
            let place = found.iter().position(|it| it == URI);
            let outer = found.iter().position(|it| it == "skill://acme/SKILL.md");
            assert!(place.is_some_and(|it| Some(it) < outer), "{uri}");
            let folders: Vec<_> = folders_above(uri).collect();
            assert!(folders.contains(&folder_of(URI).unwrap()), "{uri}");
        }
        let deep = format!("x:{}", "a/".repeat(1_000));
        assert!(all(&deep).len() <= 64);
        let folders: Vec<_> = folders_above(&deep).collect();
        assert!(folders.contains(&folder_of(&deep).unwrap()) && folders.len() <= 32);
        assert_eq!(folder_of("skill://SKILL.md"), None);
        let known = folder_of(URI).unwrap();
        for (told, is_its) in [
            ("skill://u@acme:80/refunds/SKILL.md", true),
            ("skill://acme/./refunds/x/../Skill.md", true),
            ("skill://acme/refunds", true),
            ("skill://acme/refunds/README.md", false),
            ("acme/refunds/SKILL.md", false),
        ] {
            assert_eq!(folder_of(told).as_ref() == Some(&known), is_its, "{told}");
        }
        assert_eq!(
            folder_of("skill://acme/my skill/SKILL.md"),
            folder_of("skill://acme/my%20skill/SKILL.md")
        );
    }
}
