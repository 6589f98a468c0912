//! The files of MCP clients: where their servers stand in them.

use portcullis_core::json::{self, Bounds};
use serde_json::{Map, Value};

use super::secrets::quote_name;
use crate::cli::output::Failure;

/// More than any client can use.
const MAX_ENTRIES: usize = 1_000;

/// Places of servers in the files, from the outside in.
const PLACES: [&[&str]; 5] =
    [&["mcpServers"], &["servers"], &["mcp", "servers"], &["mcp", "mcpServers"], &["mcp_servers"]];

/// A server in the settings of a client.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) members: Map<String, Value>,
    /// The path of the project that it belongs to.
    pub(super) project: Option<String>,
}

/// The lists of servers in a file.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The servers, each once.
    pub(super) servers: Vec<Entry>,
    /// Names of members that are no servers, such as comments.
    pub(super) others: Vec<String>,
}

/// The servers in a file. Rejects what is neither JSON nor TOML, duplicate members and a file without
/// servers, and quotes nothing of the file but names.
pub(super) fn entries(bytes: &[u8]) -> Result<Entries, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text")?;
    let text = text.trim_start_matches('\u{feff}');
    let value = if text.trim_start().starts_with(['{', '/']) { json(text)? } else { toml(text)? };
    let lists = lists(&value);
    if lists.is_empty() {
        return Err("there are no servers in this file: it has none of `mcpServers`, `servers`, \
                    `mcp.servers`, `[mcp_servers]` and `projects` with `mcpServers`"
            .into());
    }
    let mut entries = Entries::default();
    for (project, list) in lists {
        for (name, entry) in list {
            entries.add(project, name, entry);
            if entries.servers.len() + entries.others.len() > MAX_ENTRIES {
                return Err(format!("the file lists more than {MAX_ENTRIES} servers").into());
            }
        }
    }
    match (entries.servers.is_empty(), entries.others.first()) {
        (true, Some(other)) => {
            let other = quote_name(other);
            Err(format!("the server {other} is not described by an object, and there is no other")
                .into())
        }
        (true, None) => Err("the list of servers in this file is empty".into()),
        (false, _) => Ok(entries),
    }
}

/// Lists of servers in a file, each with the project that it belongs to, if that is one.
fn lists(value: &Value) -> Vec<(Option<&str>, &Map<String, Value>)> {
    let places = PLACES.iter().filter_map(|place| {
        let list = place.iter().try_fold(value, |value, name| value.get(name))?;
        Some((None, list.as_object()?))
    });
    let projects = value.get("projects").and_then(Value::as_object).into_iter().flatten();
    let of_projects = projects.filter_map(|(path, project)| {
        Some((Some(path.as_str()), project.get("mcpServers")?.as_object()?))
    });
    places.chain(of_projects).collect()
}

impl Entries {
    fn add(&mut self, project: Option<&str>, name: &str, entry: &Value) {
        let Value::Object(members) = entry else { return self.others.push(name.to_owned()) };
        let is_same = |it: &Entry| it.name == name && it.members == *members;
        if !self.servers.iter().any(is_same) {
            let project = project.map(str::to_owned);
            let entry = Entry { name: name.to_owned(), members: members.clone(), project };
            self.servers.push(entry);
        }
    }
}

fn json(text: &str) -> Result<Value, Failure> {
    json::parse(&plain(text), Bounds::REQUEST)
        .map_err(|error| format!("the file cannot be read as JSON: {error}").into())
}

/// Errors of the TOML parser quote the line, which may hold a secret.
fn toml(text: &str) -> Result<Value, Failure> {
    let table: Result<toml::Table, _> = text.parse();
    let table = table.map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!(
            "the file is not JSON, and cannot be read as TOML: line {} is not valid, or says \
             something for the second time",
            before.matches('\n').count() + 1
        )
    })?;
    Ok(serde_json::to_value(table)?)
}

/// The text with blanks in the place of comments and of commas before a closing bracket, so that
/// lines and columns stay.
fn plain(text: &str) -> Vec<u8> {
    let mut out = text.as_bytes().to_vec();
    let mut comma = None;
    let mut at = 0;
    while let Some(&byte) = out.get(at) {
        let end = match (byte, out.get(at + 1)) {
            (b'"', _) => end_of_string(&out, at),
            (b'/', Some(b'/')) => blank(&mut out, at, b"\n"),
            (b'/', Some(b'*')) => blank(&mut out, at, b"*/"),
            (_, _) => at + 1,
        };
        match byte {
            b',' => comma = Some(at),
            b']' | b'}' => {
                if let Some(comma) = comma.take().and_then(|comma| out.get_mut(comma)) {
                    *comma = b' ';
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' | b'/' => {}
            _ => comma = None,
        }
        at = end;
    }
    out
}

/// Index after the string that begins at `start`.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Blanks a comment, which ends with `end`; gives the index after it.
fn blank(text: &mut [u8], start: usize, end: &[u8]) -> usize {
    let body = text.get(start + 2..).unwrap_or_default();
    let length = body.windows(end.len()).position(|part| part == end);
    let stop = length.map_or(text.len(), |length| start + 2 + length + end.len());
    for byte in text.get_mut(start..stop).unwrap_or_default() {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
    stop
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        entries(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn comments_and_trailing_commas_are_no_json_and_are_read_nevertheless() {
        let text = "// settings\n{\"mcpServers\": { /* one, } */ \"a\": {\"url\": \
                    \"https://x/*y*/,]\", }, // \"b\": {}\n },}";

        let found = entries(text.as_bytes()).unwrap();

        assert_eq!(found.servers.len(), 1);
        assert_eq!(found.servers[0].members["url"], "https://x/*y*/,]");
    }

    #[test]
    fn a_server_that_stands_in_two_places_is_found_once() {
        let server = r#"{"a": {"url": "https://x.example/mcp"}}"#;
        let other = r#"{"a": {"url": "https://y.example/mcp"}}"#;

        let twice = format!("{{\"mcpServers\": {server}, \"servers\": {server}}}");
        let two = format!("{{\"mcpServers\": {server}, \"servers\": {other}}}");
        let projects = format!(
            "{{\"projects\": {{\"/p\": {{\"mcpServers\": {server}}}, \"/q\": {{\"mcpServers\": {server}}}}}}}"
        );

        for (text, servers) in [(twice, 1), (two, 2), (projects, 1)] {
            assert_eq!(entries(text.as_bytes()).unwrap().servers.len(), servers, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_by_its_line_and_never_quoted() {
        for (text, wanted) in [
            ("{\"mcpServers\": {\"a\": {\"x\": 1, \"x\": \"sk-secret\"}}}", "line 1"),
            ("{\"mcpServers\": {\n\"a\": {\"x\": sk-secret}}}", "line 2"),
            ("{\"mcpServers\": {\"a\": \"sk-secret\"}}", "\"a\""),
            ("{\"mcpServers\": {\"a\": /* sk-secret", "too early"),
            ("{\"mcpServers\": {}}", "empty"),
            ("{\"other\": {\"a\": \"sk-secret\"}}", "`mcpServers`"),
            ("{, \"mcpServers\": {}}", "not valid JSON"),
            ("[mcp_servers.a]\nurl = \"x\"\nurl = \"sk-secret\"\n", "line 3"),
            ("[mcp_servers.a]\nurl = sk-secret\n", "line 2"),
            ("sk-secret", "line 1"),
            ("", "`mcpServers`"),
        ] {
            let told = error_of(text);
            assert!(told.contains(wanted) && !told.contains("sk-secret"), "{text}: {told}");
        }
        assert!(entries(&[0xFF]).is_err());
    }
}
