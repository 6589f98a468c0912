//! Lists of which single items are refused, so that one does not take the others along.

use super::{Bounds, JsonError, No, Reader, finished, scanner::Scanner, text_of};
use crate::Document;

/// An array whose items may be left out.
pub(super) struct Open<'a> {
    /// The names of the members that lead to it.
    path: &'a [&'a str],
    /// Number of members of the path that the reader is inside of.
    entered: usize,
    refused: Vec<&'a [u8]>,
}

/// Parses a value as [`parse`](super::parse) does, but for the items of the array to which `path`
/// leads: those that would be refused are left out, and their texts are the second part.
pub fn parse_around<'a>(
    bytes: &'a [u8],
    bounds: Bounds,
    path: &'a [&'a str],
) -> Result<(Document, Vec<&'a [u8]>), JsonError> {
    let mut reader = Reader::new(text_of(bytes)?, bounds);
    reader.open = Some(Open { path, entered: 0, refused: Vec::new() });
    finished(&mut reader)?;
    let refused = reader.open.map(|open| open.refused).unwrap_or_default();
    let document = Document::new(reader.table);
    // The text of a document holds nothing that is not in its table.
    let whole = if refused.is_empty() { document } else { Document::of(document.root()) };
    Ok((whole, refused))
}

/// The text that a member of an object holds, also if the object breaks a rule further on.
#[must_use]
pub fn text_member(object: &[u8], wanted: &str) -> Option<String> {
    let source = String::from_utf8_lossy(object);
    let mut scan = Scanner::new(&source);
    scan.expect(b'{').ok()?;
    loop {
        let name = text(&mut scan, &source)?;
        scan.expect(b':').ok()?;
        if name == wanted {
            return text(&mut scan, &source);
        }
        scan.at += value_length(source.as_bytes().get(scan.at..)?)?;
        scan.expect(b',').ok()?;
    }
}

/// Reads a text.
fn text(scan: &mut Scanner<'_>, source: &str) -> Option<String> {
    if scan.peek().ok()? != b'"' {
        return None;
    }
    let mut unescaped = String::new();
    let quoted = scan.string(&mut unescaped).ok()?;
    if quoted.is_escaped {
        return Some(unescaped);
    }
    source.get(quoted.start..quoted.end).map(str::to_owned)
}

impl Reader<'_> {
    /// Notes that the member whose name was read last is being read; says whether it leads to the open
    /// array.
    pub(super) fn enters(&mut self, depth: usize) -> bool {
        let Some(open) = &mut self.open else { return false };
        let name = self.table.last_text();
        let leads = open.entered + 1 == depth && open.path.get(open.entered).copied() == name;
        open.entered += usize::from(leads);
        leads
    }

    /// Notes that the member has been read.
    pub(super) fn leave(&mut self) {
        if let Some(open) = &mut self.open {
            open.entered -= 1;
        }
    }

    /// Reads the item that begins here; nothing of it is kept if it is refused and may be left out.
    pub(super) fn item(&mut self, depth: usize) -> Result<Option<bool>, No> {
        let is_open =
            |open: &Open<'_>| open.entered == open.path.len() && depth == open.path.len() + 1;
        if !self.open.as_ref().is_some_and(is_open) {
            return self.value(depth).map(Some);
        }
        // White space before an item is no part of it.
        let _ = self.scan.peek();
        let start = self.scan.at;
        let nodes = self.nodes;
        let mark = self.table.mark();
        match self.value(depth) {
            Ok(canonical) => Ok(Some(canonical)),
            Err(no) => {
                self.nodes = nodes;
                self.table.cut(mark);
                self.go_past(start).map(|()| None).ok_or(no)
            }
        }
    }

    /// Goes on behind the item that began there.
    fn go_past(&mut self, start: usize) -> Option<()> {
        let open = self.open.as_mut()?;
        let source = self.source.as_bytes();
        let end = start + value_length(source.get(start..)?)?;
        open.refused.push(source.get(start..end)?);
        self.scan.at = end;
        Some(())
    }
}

/// Length in bytes of the value that a text begins with, by its brackets and quotation marks alone.
/// Before a comma or the end of what holds it; `None` if neither comes.
#[must_use]
pub fn value_length(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return Some(index + depth),
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return Some(index),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PATH: [&str; 2] = ["result", "tools"];

    fn around(tools: &str) -> (Value, Vec<String>) {
        let text = format!("{{\"id\":1,\"result\":{{\"a\":[1],\"tools\": [{tools}] ,\"b\":2}}}}");
        let (value, refused) = parse_around(text.as_bytes(), Bounds::UPSTREAM, &PATH).unwrap();
        let refused = refused.iter().map(|it| String::from_utf8_lossy(it).into_owned());
        (value.root().to_value(), refused.collect())
    }

    #[test]
    fn only_the_items_that_are_refused_are_left_out() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        for broken in [
            r#"{"name":"x","name":"y"}"#,
            r#"{"name":"x","s":{"maximum":1e400}}"#,
            r#"{"name":"x","d":"a \"}] \\ b","d":1}"#,
            "{'name': 1}",
            "nul",
            "1e400",
            "\"\\ud800\"",
            &format!("{{\"name\":{deep}}}"),
        ] {
            for tools in [
                format!("{broken}, {{\"n\":[1,{{}}]}} ,7"),
                format!("{{\"n\":[1,{{}}]}},{broken} ,7"),
                format!("{{\"n\":[1,{{}}]}} , 7,{broken}"),
            ] {
                let (value, refused) = around(&tools);

                let whole =
                    json!({"id": 1, "result": {"a": [1], "tools": [{"n": [1, {}]}, 7], "b": 2}});
                assert_eq!(value, whole, "{tools}");
                assert_eq!(refused.len(), 1);
                assert_eq!(refused[0].trim(), broken);
            }
        }
    }

    #[test]
    fn what_is_broken_elsewhere_is_refused_as_before() {
        for text in [
            r#"{"result":{"tools":[{}]},"result":{}}"#,
            r#"{"result":{"tools":[{}],"a":1e400}}"#,
            r#"{"result":{"other":[{"a":1,"a":2}]}}"#,
            r#"{"result":{"tools":[{}"#,
            r#"{"result":{"tools":[{"a":1]}}"#,
            r#"{"other":{"tools":[{"a":1,"a":2}]}}"#,
        ] {
            assert!(parse_around(text.as_bytes(), Bounds::UPSTREAM, &PATH).is_err(), "{text}");
        }
    }

    #[test]
    fn a_member_is_read_before_what_is_broken() {
        let name = |text: &str| text_member(text.as_bytes(), "name");

        assert_eq!(name(r#"{"a":{"name":"no"},"name":"x","name":"y"}"#).as_deref(), Some("x"));
        assert_eq!(name(r#"{"name":"x","deep":"#).as_deref(), Some("x"));
        assert_eq!(name(r#"{"name":7}"#), None);
        assert_eq!(name("[]"), None);
        assert_eq!(name("{}"), None);
    }
}
