//! Skills of MCP (`io.modelcontextprotocol/skills`, SEP-2640): folders of files that instruct a model. A manifest tells the
//! digest of each file, and a file that is not as it says is none of the skill.

mod folders;

pub use self::folders::{above, folder_of, folders_above, path_of};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Number, Value, json};

use self::folders::name_of;
use super::uris::ResourceUri;
use crate::{
    hidden::is_hidden,
    json::{self, JsonValue as _, Node},
};

/// The extension, as servers declare it.
pub const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The media type of a folder.
pub const DIRECTORY: &str = "inode/directory";
/// End of the URI of each skill, behind its folder.
const FILE: &str = "/SKILL.md";
/// The manifest of a skill whose files have no digests.
const DYNAMIC: &str = "dynamic";
/// Members of a definition.
const FRONTMATTER: &str = "frontmatter";
const FILES: &str = "files";
/// Most files of a skill, and most bytes of all.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;
const MAX_DESCRIPTION_CHARS: usize = 8_192;
/// Most bytes of the frontmatter of a file.
const MAX_FRONTMATTER_BYTES: usize = 64 << 10;
/// Most levels of values in it.
const MAX_DEPTH: usize = 24;

/// A file of a skill, as its manifest tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestEntry<'a> {
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: &'a str,
    /// Bytes.
    pub size: u64,
}

/// Reason that what was read is no file of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch;

/// The members of a definition from the entry of a skill in a list, whose URI [`path_of`] accepts. Rejects what does not
/// conform to the specification, as its limits do.
pub fn of_entry(
    uri: &str,
    entry: &Map<String, Value>,
    dynamic: bool,
) -> Result<Value, &'static str> {
    let path = path_of(uri)?;
    let frontmatter = entry.get(FRONTMATTER).filter(|it| it.is_object());
    let frontmatter = frontmatter.ok_or("it has no `frontmatter`")?;
    let text = |name| frontmatter.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("name") != name_of(path) {
        return Err("the name in its `frontmatter` is not that of its folder");
    }
    if !(1..=MAX_DESCRIPTION_CHARS).contains(&text("description").chars().count()) {
        return Err("its `frontmatter` has no `description`, or one of more than 8,192 characters");
    }
    if has_hidden(frontmatter) {
        return Err("its `frontmatter` has characters that cannot be seen");
    }
    let files = match entry.get("resources") {
        Some(Value::String(word)) if word == DYNAMIC && dynamic => json!(DYNAMIC),
        Some(Value::String(word)) if word == DYNAMIC => {
            return Err(
                "its files have no digests, and the provider is not set to `allow_dynamic_skills`",
            );
        }
        Some(Value::Array(files)) => Value::Object(manifest(uri, files)?),
        Some(_) | None => return Err("its `resources` are neither a list nor `dynamic`"),
    };
    Ok(json!({ (FRONTMATTER): frontmatter, (FILES): files }))
}

/// The files of a skill by URI, each with its digest and size.
fn manifest(uri: &str, files: &[Value]) -> Result<Map<String, Value>, &'static str> {
    if files.len() > MAX_FILES {
        return Err("it has more than 512 files");
    }
    let mut manifest = Map::new();
    let mut bytes: u64 = 0;
    for file in files {
        let text = |name| file.get(name).and_then(Value::as_str).unwrap_or_default();
        let (own, digest) = (text("uri"), text("digest"));
        if !is_file(uri, own) {
            return Err(
                "a file of it lies outside its folder, or readers understand its URI differently",
            );
        }
        let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        let digits = digest.strip_prefix("sha256:").unwrap_or_default();
        if digits.len() != 64 || !digits.bytes().all(is_digit) {
            return Err("a digest of it is not `sha256:` and 64 lower-case hexadecimal digits");
        }
        let size = file.get("size").and_then(Value::as_u64).ok_or("a file of it has no `size`")?;
        bytes = bytes.saturating_add(size);
        if manifest.insert(own.to_owned(), json!({ "digest": digest, "size": size })).is_some() {
            return Err("a file of it is listed twice");
        }
    }
    if bytes > MAX_BYTES {
        return Err("its files have more than 16 MiB");
    }
    if manifest.contains_key(uri) {
        Ok(manifest)
    } else {
        Err("its `resources` lack its `SKILL.md`")
    }
}

/// Returns true for a URI in the folder of a skill that every reader takes for the same file of it.
fn is_file(skill: &str, uri: &str) -> bool {
    let inside = skill.strip_suffix(FILE).and_then(|folder| uri.strip_prefix(folder));
    let is_inside = inside
        .is_some_and(|rest| rest.starts_with('/') && !rest.contains('?') && !rest.ends_with('/'));
    is_inside && ResourceUri::parse(uri).is_ok_and(|it| it.is_plain() && it.is_normal())
}

fn has_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(is_hidden),
        Value::Array(items) => items.iter().any(has_hidden),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name.contains(is_hidden) || has_hidden(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The description in the members of a definition.
#[must_use]
pub fn description(members: &Value) -> Option<&str> {
    members.get(FRONTMATTER)?.get("description")?.as_str()
}

/// The members of an entry in a list, but its URI; `named` gives the URIs of its files as clients know them.
pub fn entry(members: &Value, named: impl Fn(&str) -> String) -> [(&'static str, Value); 2] {
    let files = members.get(FILES).unwrap_or(&Value::Null);
    let resources = match files.as_object() {
        None => files.clone(),
        Some(files) => {
            let all = files.iter().map(|(uri, it)| {
                let [digest, size] = ["digest", "size"].map(|name| it.get(name));
                json!({ "uri": named(uri), "digest": digest, "size": size })
            });
            all.collect()
        }
    };
    [(FRONTMATTER, members.get(FRONTMATTER).cloned().unwrap_or_default()), ("resources", resources)]
}

/// URIs and sizes of the files that the members of a definition name; none of a skill whose files have no digests.
pub fn files(members: &Value) -> impl Iterator<Item = (&str, u64)> {
    let files = members.get(FILES).and_then(Value::as_object).into_iter().flatten();
    files.filter_map(|(uri, it)| Some((uri.as_str(), it.get("size")?.as_u64()?)))
}

/// The entry of a file in the members of a definition of the skill of this URI: `None` if the skill has no such file, and no
/// digest if its files have none. Then each URI in its folder is a file of which every reader understands the same.
#[must_use]
pub fn file<'a>(skill: &str, members: &'a Value, uri: &str) -> Option<Option<ManifestEntry<'a>>> {
    let Some(files) = members.get(FILES)?.as_object() else {
        let name = is_file(skill, uri).then_some(uri.rsplit('/').next()?)?;
        let is_manual = name.eq_ignore_ascii_case("SKILL.md") && uri != skill;
        return (!is_manual || name == "SKILL.md").then_some(None);
    };
    let file = files.get(uri)?;
    let digest = file.get("digest")?.as_str()?;
    Some(Some(ManifestEntry { digest, size: file.get("size")?.as_u64()? }))
}

/// Checks the answer to the read of a file of the skill of this URI: it is one content of that URI, of the size and digest
/// of the manifest; of the `SKILL.md` the frontmatter is that of the definition.
pub fn check_file(
    skill: &str,
    members: &Value,
    uri: &str,
    contents: Node<'_>,
) -> Result<(), Mismatch> {
    let mut all = contents.items().ok_or(Mismatch)?;
    let (Some(content), None) = (all.next(), all.next()) else { return Err(Mismatch) };
    if content.get("uri").and_then(Node::text) != Some(uri) {
        return Err(Mismatch);
    }
    let text = |name| content.get(name).and_then(Node::text);
    let bytes = match (text("text"), text("blob")) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(blob)) => BASE64_STANDARD.decode(blob).map_err(|_| Mismatch)?,
        (Some(_), Some(_)) | (None, None) => return Err(Mismatch),
    };
    if let Some(entry) = file(skill, members, uri).ok_or(Mismatch)? {
        let is_same = u64::try_from(bytes.len()).is_ok_and(|size| size == entry.size)
            && entry.digest == json::sha256(&[&bytes]);
        if !is_same {
            return Err(Mismatch);
        }
    }
    if uri != skill {
        return Ok(());
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| Mismatch)?;
    let known = members.get(FRONTMATTER).unwrap_or(&Value::Null);
    // Writers of YAML 1.1 mean `yes` for true, those of YAML 1.2 do not.
    let mut readings = [true, false].into_iter().filter_map(|strict| frontmatter(text, strict));
    if readings.any(|told| is_alike(&told, known)) { Ok(()) } else { Err(Mismatch) }
}

/// The frontmatter of a file: YAML between two lines of `---`, without anchors, merge keys and tags of its own.
fn frontmatter(text: &str, strict_booleans: bool) -> Option<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest =
        text.strip_prefix("---")?.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n')?;
    let rest = rest.get(..rest.floor_char_boundary(MAX_FRONTMATTER_BYTES))?;
    let mut end = 0;
    let is_end = |line: &&str| {
        let is_end = line.trim_end_matches([' ', '\t', '\r', '\n']) == "---";
        end += if is_end { 0 } else { line.len() };
        is_end
    };
    rest.split_inclusive('\n').find(is_end)?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_merge_keys: 0,
            max_documents: 1,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
        },
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        strict_booleans: strict_booleans,
    };
    serde_saphyr::from_str_with_options(rest.get(..end)?, options).ok()
}

/// Returns true for the same values, whatever the notation of their numbers.
fn is_alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let is_whole = |it: &Number| it.is_i64() || it.is_u64();
            let is_near = || one.as_f64().is_some_and(|it| other.as_f64() == Some(it));
            one == other || !(is_whole(one) && is_whole(other)) && is_near()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut members = one.iter();
            one.len() == other.len()
                && members.all(|(name, value)| {
                    other.get(name).is_some_and(|other| is_alike(value, other))
                })
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    const URI: &str = "skill://acme/refunds/SKILL.md";
    const TEXT: &str = "---\nname: refunds\ndescription: Refunds an order.\nversion: 1.0\nmetadata:\n  a: [1, \"1\"]\n---\n\n# How\n";

    fn digest(text: &str) -> String {
        json::sha256(&[text.as_bytes()])
    }

    fn frontmatter_of(name: &str) -> Value {
        let metadata = json!({"a": [1, "1"]});
        json!({"name": name, "description": "Refunds an order.", "version": 1.0, "metadata": metadata})
    }

    fn listed(files: &Value) -> Map<String, Value> {
        let entry =
            json!({"frontmatter": frontmatter_of("refunds"), "resources": files, "more": 1});
        entry.as_object().cloned().unwrap()
    }

    fn merged(count: usize) -> String {
        let one = |at| format!("a{at}: &a{at} {{<<: *a{}}}\n", at - 1);
        ["a0: &a0 {z: 1}\n".to_owned()].into_iter().chain((1..count).map(one)).collect()
    }

    fn nested(count: usize) -> String {
        (0..count).map(|at| " ".repeat(at) + "b:\n").collect()
    }

    fn a_file(uri: &str, text: &str) -> Value {
        json!({"uri": uri, "digest": digest(text), "size": text.len()})
    }

    #[test]
    fn entries_conform_or_are_left_out_with_a_reason() {
        let own = || a_file(URI, TEXT);
        let other = |uri: &str| json!([own(), a_file(uri, "a")]);
        let many = |count: usize| {
            let more = (1..count).map(|at| a_file(&format!("skill://acme/refunds/{at}"), "a"));
            [own()].into_iter().chain(more).collect::<Value>()
        };
        let sized = |size: &Value| json!([{"uri": URI, "digest": digest(TEXT), "size": size}]);
        let digested = |digest: &str| json!([{"uri": URI, "digest": digest, "size": 1}]);
        for (files, is_good) in [
            (json!([own()]), true),
            (json!("dynamic"), true),
            (json!("Dynamic"), false),
            (json!(null), false),
            (json!([]), false),
            (json!([a_file("skill://acme/refunds/a", "a")]), false),
            (other("skill://acme/refunds/a b"), false),
            (other("skill://acme/refunds/a%20b/c.md"), true),
            (other("skill://acme/refunds/nested/SKILL.md"), true),
            (other("skill://acme/refunds2/a"), false),
            (other("skill://acme/refunds"), false),
            (other("skill://acme/refunds/"), false),
            (other("skill://acme/refunds/../a"), false),
            (other("skill://acme/refunds/a?b"), false),
            (other("skill://acme/refunds/a#b"), false),
            (other("skill://acme/refunds/a%2Fb"), false),
            (other("skill://acme/refunds/a;b"), false),
            (other("other://acme/refunds/a"), false),
            (json!([own(), own()]), false),
            (json!([own(), 7]), false),
            (many(512), true),
            (many(513), false),
            (sized(&json!(MAX_BYTES)), true),
            (sized(&json!(MAX_BYTES + 1)), false),
            (sized(&json!(u64::MAX)), false),
            (sized(&json!("7")), false),
            (sized(&json!(-1)), false),
            (digested(&digest(TEXT).to_uppercase()), false),
            (digested(&format!("sha256:{}", "A".repeat(64))), false),
            (digested(&format!("sha256:{}", "a".repeat(63))), false),
            (digested(&"a".repeat(64)), false),
        ] {
            assert_eq!(of_entry(URI, &listed(&files), true).is_ok(), is_good, "{files}");
        }
        assert!(of_entry(URI, &listed(&json!("dynamic")), false).is_err());
        for frontmatter in [
            json!(null),
            json!("name: refunds"),
            frontmatter_of("refund"),
            json!({"name": "refunds"}),
            json!({"name": "refunds", "description": ""}),
            json!({"name": "refunds", "description": "a".repeat(8_193)}),
            json!({"name": "refunds", "description": "a", "b": [{"c": "d\u{200b}"}]}),
            json!({"name": "refunds", "description": "a", "b\u{202e}": 1}),
        ] {
            let mut entry = listed(&json!([own()]));
            entry.insert(FRONTMATTER.to_owned(), frontmatter.clone());
            assert!(of_entry(URI, &entry, true).is_err(), "{frontmatter}");
        }
    }

    #[test]
    fn an_entry_is_told_as_it_was_listed() {
        let files = json!([a_file("skill://acme/refunds/a", "a"), a_file(URI, TEXT)]);
        let members = of_entry(URI, &listed(&files), false).unwrap();

        let [(_, frontmatter), (_, resources)] = entry(&members, |uri| format!("crm+{uri}"));

        assert_eq!(frontmatter, frontmatter_of("refunds"));
        assert_eq!(resources.as_array().unwrap().len(), 2);
        assert!(resources.as_array().unwrap().contains(&json!({
            "uri": format!("crm+{URI}"), "digest": digest(TEXT), "size": TEXT.len(),
        })));
        let dynamic = of_entry(URI, &listed(&json!(DYNAMIC)), true).unwrap();
        assert_eq!(entry(&dynamic, str::to_owned)[1].1, json!("dynamic"));
        assert_eq!(file(URI, &members, "skill://acme/refunds/b"), None);
        for (uri, is_file) in [
            (URI, true),
            ("skill://acme/refunds/run.sh", true),
            ("skill://acme/refunds/a/SKILL.md", true),
            ("skill://acme/refunds/a%20b", true),
            ("skill://acme/refunds/run.s%68", false),
            ("skill://acme/refunds/run.sh?", false),
            ("skill://acme/refunds/run.sh?x", false),
            ("skill://acme/refunds/run.sh#", false),
            ("skill://acme/refunds/run.sh;", false),
            ("skill://acme/refunds/run.sh/", false),
            ("skill://acme/refunds//run.sh", false),
            ("skill://acme:80/refunds/run.sh", false),
            ("skill://ACME/refunds/run.sh", false),
            ("skill:acme/refunds/run.sh", false),
            ("skill://acme/refunds/skill.md", false),
            ("skill://acme/refunds/SKILL%2Emd", false),
            ("skill://acme/refunds", false),
            ("skill://acme/other/run.sh", false),
        ] {
            assert_eq!(file(URI, &dynamic, uri), is_file.then_some(None), "{uri}");
        }
    }

    #[test]
    fn a_file_is_as_its_manifest_says_or_none() {
        let aside = "skill://acme/refunds/a.bin";
        let files = json!([a_file(URI, TEXT), a_file(aside, "a\u{0}b")]);
        let members = of_entry(URI, &listed(&files), false).unwrap();
        let read = |members: &Value, uri: &str, contents: &Value| {
            check_file(URI, members, uri, Document::of(contents).root()).is_ok()
        };
        let text = |uri: &str, text: &str| json!([{"uri": uri, "text": text, "mimeType": "x"}]);
        let blob = |bytes: &[u8]| json!([{"uri": aside, "blob": BASE64_STANDARD.encode(bytes)}]);

        for (uri, contents, is_good) in [
            (URI, text(URI, TEXT), true),
            (URI, json!([{"uri": URI, "blob": BASE64_STANDARD.encode(TEXT)}]), true),
            (aside, blob(b"a\0b"), true),
            (aside, text(aside, "a\u{0}b"), true),
            (aside, blob(b"a\0c"), false),
            (aside, blob(b"a\0b\n"), false),
            (aside, json!([{"uri": aside, "blob": "YQBi!"}]), false),
            (aside, json!([{"uri": aside}]), false),
            (aside, json!([{"uri": aside, "text": "a\u{0}b", "blob": "YQBi"}]), false),
            (aside, text(URI, "a\u{0}b"), false),
            (aside, json!([blob(b"a\0b")[0], blob(b"a\0b")[0]]), false),
            (aside, json!([]), false),
            (aside, json!({}), false),
            (URI, text(URI, &TEXT.replace("an order", "all orders")), false),
            (URI, text(aside, TEXT), false),
            ("skill://acme/refunds/b", text("skill://acme/refunds/b", "b"), false),
        ] {
            assert_eq!(read(&members, uri, &contents), is_good, "{uri} {contents}");
        }
    }

    #[test]
    fn a_manual_has_the_frontmatter_of_its_entry_and_nothing_that_readers_expand() {
        let dynamic = of_entry(URI, &listed(&json!(DYNAMIC)), true).unwrap();
        let read = |members: &Value, uri: &str, text: &str| {
            let contents = json!([{"uri": uri, "text": text}]);
            check_file(URI, members, uri, Document::of(&contents).root()).is_ok()
        };
        for (file, is_good) in [
            (TEXT.to_owned(), true),
            (TEXT.replace('\n', "\r\n"), true),
            (format!("\u{feff}{TEXT}more"), true),
            (TEXT.replace("1.0", "1"), true),
            (TEXT.replace("---\n\n", "--- \n"), true),
            (TEXT.replace("1.0", "\"1.0\""), false),
            (TEXT.replace("[1, \"1\"]", "[1, 1]"), false),
            (TEXT.replace("metadata", "allowed-tools: Bash\nmetadata"), false),
            (TEXT.replace("version: 1.0\n", ""), false),
            (
                TEXT.replace(
                    "version: 1.0",
                    &format!("version: 1.0\nlong: {}", "ä".repeat(40_000)),
                ),
                false,
            ),
            (TEXT.replace("---\n\n", "\n"), false),
            (TEXT.replace("---\nname", "name"), false),
            (format!("\n{TEXT}"), false),
            (TEXT.replace("name: refunds", "name: refunds\nname: refunds"), false),
            (TEXT.replace("version: 1.0", &format!("version: {}", "9".repeat(70_000))), false),
            ("---\n".to_owned(), false),
            (String::new(), false),
            (TEXT.replace("1.0", "&a 1.0"), false),
            (TEXT.replace("metadata", "<<: {}\nmetadata"), false),
            (TEXT.replace("refunds\n", "!own refunds\n"), false),
            (TEXT.replace("---\n\n", "---\u{a0}\na: 1\n---\n"), false),
            (TEXT.replace("---\n\n", &format!("b: {}\n---\n", "[".repeat(5_000))), false),
            (TEXT.replace("---\n\n", &format!("{}\n---\n", merged(5_000))), false),
            (TEXT.replace("---\n\n", &format!("{}\n---\n", nested(300))), false),
        ] {
            assert_eq!(read(&dynamic, URI, &file), is_good, "{file:.200}");
        }
        // `yes` is a truth to writers of YAML 1.1, and a word to others.
        for (told, is_good) in [(json!(true), true), (json!("yes"), true), (json!(false), false)] {
            let mut members = dynamic.clone();
            members[FRONTMATTER]["version"] = told;
            let file = TEXT.replace("1.0", "yes");
            assert_eq!(read(&members, URI, &file), is_good, "{members}");
        }
        assert!(read(&dynamic, "skill://acme/refunds/any", "b"));
    }
}
