//! The strict parser: what two readers could read differently is refused.

mod items;

pub use self::items::{parse_around, text_member};

use std::fmt::Display;

use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};
use serde_json::{Number, Value};

use self::items::Open;
use super::{
    Bounds, Document, JsonError, NumberRange,
    number::is_in_range,
    table::{EntryKind, Table},
};

/// Prefix of the names by which `serde_json` passes values on internally. An object that begins
/// with one would be read as something else by whoever reads it again with that library.
const RESERVED: &str = "$serde_json::private::";
/// Parses one JSON value strictly. Says no to duplicate members and whatever exceeds `bounds`.
pub fn parse(bytes: &[u8], bounds: Bounds) -> Result<Value, JsonError> {
    Document::parse(bytes, bounds).map(|document| document.root().to_value())
}

/// The table of the one value that there is.
pub(super) fn read(bytes: &[u8], bounds: Bounds) -> Result<Table, JsonError> {
    let mut reader = Reader::new(text_of(bytes)?, bounds);
    finished(&mut reader)?;
    Ok(reader.table)
}

/// JSON is text in UTF-8, and its offsets have 32 bits.
fn text_of(bytes: &[u8]) -> Result<&str, JsonError> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(JsonError { message: "longer than 4 GiB".to_owned() });
    }
    str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        let column = before.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len) + 1;
        JsonError { message: format!("not valid JSON at line {line} column {column}") }
    })
}

/// Reads the one value that there is.
fn finished(reader: &mut Reader<'_>) -> Result<(), JsonError> {
    let first = reader.text.peek().map_err(No::from);
    let value = first.and_then(|first| reader.value(first, 0));
    let whole = value.and_then(|_| Ok(reader.text.finish()?));
    reader.table.has_breaks = memchr::memchr2(b'\n', b'\r', reader.source.as_bytes()).is_some();
    whole.map_err(|no| JsonError { message: no.said_at(&reader.text) })
}

/// Why it is refused.
enum No {
    /// It is not JSON.
    Json(JiterError),
    /// It is too much, or ambiguous.
    Rule(String),
}

impl From<JiterError> for No {
    fn from(error: JiterError) -> Self {
        Self::Json(error)
    }
}

impl No {
    fn longer(than: usize, what: impl Display) -> Self {
        Self::Rule(format!("longer than {than} {what}"))
    }

    /// Says why and where, without anything taken from the text itself.
    fn said_at(self, text: &Jiter<'_>) -> String {
        let (what, at) = match self {
            Self::Rule(what) => (what, text.current_position()),
            Self::Json(error) => {
                let what =
                    if ends_early(&error) { "the JSON ends too early" } else { "not valid JSON" };
                (what.to_owned(), text.error_position(error.index))
            }
        };
        format!("{what} at line {} column {}", at.line, at.column)
    }
}

fn ends_early(error: &JiterError) -> bool {
    use JsonErrorType::{
        EofWhileParsingList, EofWhileParsingObject, EofWhileParsingString, EofWhileParsingValue,
    };
    let ends =
        [EofWhileParsingList, EofWhileParsingObject, EofWhileParsingString, EofWhileParsingValue];
    matches!(&error.error_type, JiterErrorType::JsonError(kind) if ends.contains(kind))
}

struct Reader<'a> {
    source: &'a str,
    text: Jiter<'a>,
    /// Offset in the source of the text that is being read.
    begin: usize,
    bounds: Bounds,
    nodes: usize,
    table: Table,
    /// The array whose items may be left out.
    open: Option<Open<'a>>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str, bounds: Bounds) -> Self {
        let (text, table) = (Jiter::new(source.as_bytes()), Table::for_text(source));
        Self { source, text, begin: 0, bounds, nodes: 0, table, open: None }
    }

    /// Offset of what is read next.
    fn here(&self) -> usize {
        self.begin + self.text.current_index()
    }

    /// Reads the value that begins here, below `depth` arrays and objects. Returns true if it stands in
    /// canonical form.
    fn value(&mut self, first: Peek, depth: usize) -> Result<bool, No> {
        self.nodes += 1;
        if self.nodes > self.bounds.nodes {
            return Err(No::Rule(format!("more than {} values", self.bounds.nodes)));
        }
        let start = self.here();
        match first {
            Peek::Object => return self.object(start, self.deeper(depth)?),
            Peek::Array => return self.array(start, self.deeper(depth)?),
            Peek::String => return self.string(start),
            Peek::Null => {
                self.text.known_null()?;
                self.table.push(EntryKind::Null, (start, self.here()), true);
            }
            Peek::True | Peek::False => {
                let flag = self.text.known_bool(first)?;
                let kind = if flag { EntryKind::True } else { EntryKind::False };
                self.table.push(kind, (start, self.here()), true);
            }
            _ => {
                let canonical = number(self.text.known_number_bytes(first)?, self.bounds)?;
                self.table.push(EntryKind::Number, (start, self.here()), canonical);
                return Ok(canonical);
            }
        }
        Ok(true)
    }

    fn string(&mut self, start: usize) -> Result<bool, No> {
        let text = sized(self.text.known_str()?, self.bounds)?;
        if let Some(at) = offset_in(self.source, text) {
            self.table.push(EntryKind::Text, (at, at + text.len()), true);
            return Ok(true);
        }
        self.table.push_escaped(EntryKind::Text, (start + 1, 0), (text, false));
        let end = self.here() - 1;
        self.table.end_last(end);
        Ok(false)
    }

    fn deeper(&self, depth: usize) -> Result<usize, No> {
        if depth < self.bounds.depth {
            return Ok(depth + 1);
        }
        Err(No::Rule(format!("nested deeper than {} levels", self.bounds.depth)))
    }

    fn array(&mut self, start: usize, depth: usize) -> Result<bool, No> {
        let at = self.table.len();
        self.table.push(EntryKind::Array, (start, start), false);
        let (mut count, mut canonical, mut behind) = (0, true, start + 1);
        let mut next = self.text.known_array()?;
        while let Some(first) = next {
            canonical &= self.here() == behind;
            let item = self.item(first, depth)?;
            count += u32::from(item.is_some());
            canonical &= item.unwrap_or(false);
            behind = self.here() + 1;
            next = self.text.array_step()?;
        }
        let end = self.here();
        canonical &= end == if count == 0 { behind + 1 } else { behind };
        self.table.close(at, end, count, canonical);
        Ok(canonical)
    }

    fn object(&mut self, start: usize, depth: usize) -> Result<bool, No> {
        let at = self.table.len();
        self.table.push(EntryKind::Object, (start, start), false);
        let (mut count, mut canonical, mut behind) = (0, true, start + 1);
        let mut last = None;
        let mut name = self.text.known_object()?;
        while let Some(known) = name {
            if count == 0 && known.starts_with(RESERVED) && !self.bounds.reserved {
                return Err(No::Rule("a reserved name of a member".to_owned()));
            }
            let known = sized(known, self.bounds)?;
            let own = self.table.len();
            let place = offset_in(self.source, known).map(|at| (at, at + known.len()));
            match place {
                Some(place) => self.table.push(EntryKind::Name, place, true),
                None => self.table.push_escaped(EntryKind::Name, (0, 0), (known, false)),
            }
            if self.table.repeats(at, count) {
                return Err(repeated());
            }
            let first = self.text.peek()?;
            canonical &= place == Some((behind + 1, self.here().saturating_sub(2)));
            canonical = canonical && last.is_none_or(|last| self.table.are_in_order(last, own));
            let leads = self.enters(depth);
            canonical &= self.value(first, depth)?;
            if leads {
                self.leave();
            }
            (count, last, behind) = (count + 1, Some(own), self.here() + 1);
            name = self.text.next_key()?;
        }
        let end = self.here();
        canonical &= end == if count == 0 { behind + 1 } else { behind };
        self.table.close(at, end, count, canonical);
        if self.table.order(at, count) {
            return Err(repeated());
        }
        Ok(canonical)
    }
}

fn repeated() -> No {
    No::Rule("duplicate member in an object".to_owned())
}

/// Offset of a text in the source; `None` for a text made from one with escapes, which stands elsewhere.
fn offset_in(source: &str, text: &str) -> Option<usize> {
    let offset = text.as_ptr().addr().checked_sub(source.as_ptr().addr())?;
    (offset < source.len()).then_some(offset)
}

fn sized(text: &str, bounds: Bounds) -> Result<&str, No> {
    if text.len() > bounds.string_bytes {
        return Err(No::longer(bounds.string_bytes, "bytes in one string"));
    }
    Ok(text)
}

/// Says no to a literal out of bounds; returns true if it stands in canonical form.
fn number(text: &[u8], bounds: Bounds) -> Result<bool, No> {
    let no = || No::longer(bounds.number_chars, "characters in one number");
    if text.len() > bounds.number_chars {
        return Err(no());
    }
    if is_short_integer(text) {
        return Ok(true);
    }
    let text = str::from_utf8(text).map_err(|_| No::Rule("not a number".to_owned()))?;
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

/// Returns true for an integer of few digits that is written as it would be written again.
fn is_short_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
