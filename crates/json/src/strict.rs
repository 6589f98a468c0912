//! The strict parser: what two readers could read differently is refused.

mod items;
mod scanner;

pub use self::items::{parse_around, text_member, value_length};

use std::fmt::Display;

use serde_json::{Number, Value};

use self::{
    items::Open,
    scanner::{Flaw, Scanner},
};
use super::{
    Bounds, Document, JsonError, NumberRange,
    number::is_in_range,
    table::{EntryKind, Table},
};

/// Prefix of the names by which `serde_json` passes values on internally. An object that begins
/// with one would be read as something else by a program that reads it again with that library.
pub(super) const RESERVED: &str = "$serde_json::private::";

/// Parses one JSON value strictly. Rejects duplicate members and whatever exceeds `bounds`.
pub fn parse(bytes: &[u8], bounds: Bounds) -> Result<Value, JsonError> {
    Document::parse(bytes, bounds).map(|document| document.root().to_value())
}

impl Document {
    /// Parses one JSON value strictly. Rejects duplicate members and whatever exceeds `bounds`.
    pub fn parse(bytes: &[u8], bounds: Bounds) -> Result<Self, JsonError> {
        let mut reader = Reader::new(text_of(bytes)?, bounds);
        finished(&mut reader)?;
        Ok(Self::new(reader.table))
    }
}

/// JSON is text in UTF-8, and its offsets have 32 bits.
fn text_of(bytes: &[u8]) -> Result<&str, JsonError> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(JsonError { message: "longer than 4 GiB".to_owned() });
    }
    str::from_utf8(bytes).map_err(|error| {
        let message = format!("not valid JSON at {}", place(bytes, error.valid_up_to()));
        JsonError { message }
    })
}

/// Line and column of an offset, which are told instead of the text.
fn place(text: &[u8], at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |it| it + 1) + 1;
    format!("line {line} column {column}")
}

/// Reads the one value that there is.
fn finished(reader: &mut Reader<'_>) -> Result<(), JsonError> {
    let whole = reader.value(0).and_then(|_| Ok(reader.scan.finish()?));
    let source = reader.source.as_bytes();
    reader.table.has_breaks = memchr::memchr2(b'\n', b'\r', source).is_some();
    whole.map_err(|no| {
        let what = match no {
            No::Json(Flaw::Early) => "the JSON ends too early".to_owned(),
            No::Json(Flaw::Unexpected) => "not valid JSON".to_owned(),
            No::Rule(what) => what,
        };
        JsonError { message: format!("{what} at {}", place(source, reader.scan.at)) }
    })
}

/// Reason for the refusal.
enum No {
    /// Not JSON.
    Json(Flaw),
    /// Too large, or ambiguous.
    Rule(String),
}

impl From<Flaw> for No {
    fn from(flaw: Flaw) -> Self {
        Self::Json(flaw)
    }
}

impl No {
    fn longer(than: usize, what: impl Display) -> Self {
        Self::Rule(format!("longer than {than} {what}"))
    }
}

struct Reader<'a> {
    source: &'a str,
    scan: Scanner<'a>,
    bounds: Bounds,
    nodes: usize,
    table: Table,
    /// The array whose items may be left out.
    open: Option<Open<'a>>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str, bounds: Bounds) -> Self {
        let scan = Scanner::new(source);
        let table = Table::for_text(source);
        Self { source, scan, bounds, nodes: 0, table, open: None }
    }

    /// Reads the value that comes next, below `depth` arrays and objects. Returns true if it stands in
    /// canonical form.
    fn value(&mut self, depth: usize) -> Result<bool, No> {
        let first = self.scan.peek()?;
        self.nodes += 1;
        if self.nodes > self.bounds.nodes {
            return Err(No::Rule(format!("more than {} values", self.bounds.nodes)));
        }
        match first {
            b'{' => self.object(self.deeper(depth)?),
            b'[' => self.array(self.deeper(depth)?),
            b'"' => self.string(EntryKind::Text),
            b't' => self.word("true", EntryKind::True),
            b'f' => self.word("false", EntryKind::False),
            b'n' => self.word("null", EntryKind::Null),
            b'-' | b'0'..=b'9' => {
                let start = self.scan.at;
                let canonical = number(self.scan.number()?, self.bounds)?;
                self.table.push(EntryKind::Number, start, self.scan.at, canonical);
                Ok(canonical)
            }
            _ => Err(No::Json(Flaw::Unexpected)),
        }
    }

    fn word(&mut self, word: &str, kind: EntryKind) -> Result<bool, No> {
        let start = self.scan.at;
        self.scan.word(word)?;
        self.table.push(kind, start, self.scan.at, true);
        Ok(true)
    }

    /// Reads a text or a name. Returns true if it has no escapes.
    #[inline]
    fn string(&mut self, kind: EntryKind) -> Result<bool, No> {
        let before = self.table.unescaped.len();
        let quoted = self.scan.string(&mut self.table.unescaped)?;
        let length = if quoted.is_escaped {
            self.table.unescaped.len() - before
        } else {
            quoted.end - quoted.start
        };
        if length > self.bounds.string_bytes {
            return Err(No::longer(self.bounds.string_bytes, "bytes in one string"));
        }
        if quoted.is_escaped {
            self.table.push_unescaped(kind, quoted.start, quoted.end, false);
        } else {
            self.table.push(kind, quoted.start, quoted.end, true);
        }
        Ok(!quoted.is_escaped)
    }

    fn deeper(&self, depth: usize) -> Result<usize, No> {
        if depth < self.bounds.depth {
            return Ok(depth + 1);
        }
        Err(No::Rule(format!("nested deeper than {} levels", self.bounds.depth)))
    }

    fn array(&mut self, depth: usize) -> Result<bool, No> {
        let at = self.table.len();
        let start = self.scan.at;
        self.table.push(EntryKind::Array, start, start, false);
        self.scan.at += 1;
        let spaces = self.scan.spaces;
        let mut count = 0;
        let mut canonical = true;
        if self.scan.peek()? != b']' {
            loop {
                let item = self.item(depth)?;
                count += u32::from(item.is_some());
                canonical &= item.unwrap_or(false);
                if !self.goes_on(b']')? {
                    break;
                }
            }
        }
        self.scan.expect(b']')?;
        canonical &= self.scan.spaces == spaces;
        self.table.close(at, self.scan.at, count, canonical);
        Ok(canonical)
    }

    /// Reads the comma between items and members; `false` if the end of all comes next.
    #[inline]
    fn goes_on(&mut self, end: u8) -> Result<bool, No> {
        let next = self.scan.peek()?;
        if next != end && next != b',' {
            return Err(No::Json(Flaw::Unexpected));
        }
        Ok(self.scan.take(b','))
    }

    fn object(&mut self, depth: usize) -> Result<bool, No> {
        let at = self.table.len();
        let start = self.scan.at;
        self.table.push(EntryKind::Object, start, start, false);
        self.scan.at += 1;
        let spaces = self.scan.spaces;
        let mut count = 0;
        let mut canonical = true;
        let mut last = None;
        if self.scan.peek()? != b'}' {
            loop {
                let own = self.table.len();
                canonical &= self.name(at, count)?;
                canonical = canonical && last.is_none_or(|last| self.table.are_in_order(last, own));
                self.scan.expect(b':')?;
                let leads = self.enters(depth);
                canonical &= self.value(depth)?;
                if leads {
                    self.leave();
                }
                (count, last) = (count + 1, Some(own));
                if !self.goes_on(b'}')? {
                    break;
                }
            }
        }
        self.scan.expect(b'}')?;
        canonical &= self.scan.spaces == spaces;
        self.table.close(at, self.scan.at, count, canonical);
        if self.table.order(at, count) {
            return Err(repeated());
        }
        Ok(canonical)
    }

    /// Reads the name of a member, before which its object has `count`. Returns true if it has no
    /// escapes.
    #[inline]
    fn name(&mut self, object: u32, count: u32) -> Result<bool, No> {
        if self.scan.peek()? != b'"' {
            return Err(No::Json(Flaw::Unexpected));
        }
        let is_plain = self.string(EntryKind::Name)?;
        let is_reserved = count == 0
            && !self.bounds.reserved
            && self.table.last_text().is_some_and(|name| name.starts_with(RESERVED));
        if is_reserved {
            return Err(No::Rule("a reserved name of a member".to_owned()));
        }
        if self.table.repeats(object, count) {
            return Err(repeated());
        }
        Ok(is_plain)
    }
}

fn repeated() -> No {
    No::Rule("duplicate member in an object".to_owned())
}

/// Rejects a literal out of bounds; returns true if it stands in canonical form.
fn number(text: &str, bounds: Bounds) -> Result<bool, No> {
    let no = || No::longer(bounds.number_chars, "characters in one number");
    if text.len() > bounds.number_chars {
        return Err(no());
    }
    if is_short_integer(text) {
        return Ok(true);
    }
    let number: Number = text.parse().map_err(|_| No::Rule("not a number".to_owned()))?;
    // An exponent is given its sign.
    if number.as_str().len() > bounds.number_chars {
        return Err(no());
    }
    if bounds.numbers == NumberRange::Double && !is_in_range(text) {
        return Err(No::Rule("a number beyond the range of a double".to_owned()));
    }
    Ok(number.as_str() == text)
}

/// Returns true for an integer of few digits, which is written again as it is written.
fn is_short_integer(text: &str) -> bool {
    text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests;
