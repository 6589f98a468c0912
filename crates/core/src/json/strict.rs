//! The strict parser: what two readers could read differently is refused.

mod items;

pub use self::items::{parse_around, text_member};

use std::fmt::Display;

use jiter::{Jiter, JiterError, JiterErrorType, JsonErrorType, Peek};
use serde_json::{Map, Number, Value};

use self::items::Open;
use super::{Bounds, JsonError, NumberRange, number::is_in_range};

/// Prefix of the names by which `serde_json` passes values on internally. An object that begins
/// with one would be read as something else by whoever reads it again with that library.
const RESERVED: &str = "$serde_json::private::";
/// Room is made for as many items as the last array or object of that depth had, and no more than
/// this: rows of a table are alike, but nobody may reserve memory by pretending so.
const MOST_EXPECTED: usize = 8;

/// Parses one JSON value strictly. Says no to duplicate members and whatever exceeds `bounds`.
pub fn parse(bytes: &[u8], bounds: Bounds) -> Result<Value, JsonError> {
    finished(&mut Reader::new(bytes, bounds))
}

/// The one value that there is.
fn finished(reader: &mut Reader<'_>) -> Result<Value, JsonError> {
    let first = reader.text.peek().map_err(No::from);
    let value = first.and_then(|first| reader.value(first, 0));
    let whole = value.and_then(|value| Ok(reader.text.finish().map(|()| value)?));
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
    text: Jiter<'a>,
    bounds: Bounds,
    nodes: usize,
    /// Number of items of the last array or object of each depth.
    lengths: Vec<usize>,
    /// The array whose items may be left out.
    open: Option<Open<'a>>,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], bounds: Bounds) -> Self {
        let text = Jiter::new(bytes);
        Self { text, bounds, nodes: 0, lengths: Vec::new(), open: None }
    }

    /// The value that begins here, below `depth` arrays and objects.
    fn value(&mut self, first: Peek, depth: usize) -> Result<Value, No> {
        self.nodes += 1;
        if self.nodes > self.bounds.nodes {
            return Err(No::Rule(format!("more than {} values", self.bounds.nodes)));
        }
        Ok(match first {
            Peek::Object => Value::Object(self.object(self.deeper(depth)?)?),
            Peek::Array => Value::Array(self.array(self.deeper(depth)?)?),
            Peek::String => Value::String(sized(self.text.known_str()?, self.bounds)?.to_owned()),
            Peek::Null => {
                self.text.known_null()?;
                Value::Null
            }
            Peek::True | Peek::False => Value::Bool(self.text.known_bool(first)?),
            _ => Value::Number(number(self.text.known_number_bytes(first)?, self.bounds)?),
        })
    }

    fn deeper(&self, depth: usize) -> Result<usize, No> {
        if depth < self.bounds.depth {
            return Ok(depth + 1);
        }
        Err(No::Rule(format!("nested deeper than {} levels", self.bounds.depth)))
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Value>, No> {
        let mut next = self.text.known_array()?;
        let mut items =
            if next.is_some() { Vec::with_capacity(self.expected(depth)) } else { Vec::new() };
        while let Some(first) = next {
            items.extend(self.item(first, depth)?);
            next = self.text.array_step()?;
        }
        self.learn(depth, items.len());
        Ok(items)
    }

    fn object(&mut self, depth: usize) -> Result<Map<String, Value>, No> {
        let expected = self.expected(depth);
        let mut name =
            self.text.known_object()?.map(|name| first_named(name, self.bounds)).transpose()?;
        let mut members = if name.is_some() { Map::with_capacity(expected) } else { Map::new() };
        while let Some(known) = name {
            let first = self.text.peek()?;
            let leads = self.enter(&known, depth);
            let value = self.value(first, depth)?;
            if leads {
                self.leave();
            }
            if members.insert(known, value).is_some() {
                return Err(No::Rule("duplicate member in an object".to_owned()));
            }
            name = self.text.next_key()?.map(|name| named(name, self.bounds)).transpose()?;
        }
        self.learn(depth, members.len());
        Ok(members)
    }

    fn expected(&self, depth: usize) -> usize {
        self.lengths.get(depth).copied().unwrap_or(0).min(MOST_EXPECTED)
    }

    fn learn(&mut self, depth: usize, length: usize) {
        if self.lengths.len() <= depth {
            self.lengths.resize(depth + 1, 0);
        }
        if let Some(known) = self.lengths.get_mut(depth) {
            *known = length;
        }
    }
}

fn sized(text: &str, bounds: Bounds) -> Result<&str, No> {
    if text.len() > bounds.string_bytes {
        return Err(No::longer(bounds.string_bytes, "bytes in one string"));
    }
    Ok(text)
}

fn first_named(name: &str, bounds: Bounds) -> Result<String, No> {
    if name.starts_with(RESERVED) && !bounds.reserved {
        return Err(No::Rule("a reserved name of a member".to_owned()));
    }
    named(name, bounds)
}

fn named(name: &str, bounds: Bounds) -> Result<String, No> {
    sized(name, bounds).map(str::to_owned)
}

/// A number with its text, so that nothing is rounded.
fn number(text: &[u8], bounds: Bounds) -> Result<Number, No> {
    let too_long = |length| length > bounds.number_chars;
    let no = || No::longer(bounds.number_chars, "characters in one number");
    if too_long(text.len()) {
        return Err(no());
    }
    if let Some(short) = short_integer(text) {
        return Ok(short.into());
    }
    let text = str::from_utf8(text).map_err(|_| No::Rule("not a number".to_owned()))?;
    let number: Number = text.parse().map_err(|_| No::Rule("not a number".to_owned()))?;
    // An exponent is given its sign.
    if too_long(number.as_str().len()) {
        return Err(no());
    }
    if bounds.numbers == NumberRange::Double && !is_in_range(number.as_str()) {
        return Err(No::Rule("a number beyond the range of a double".to_owned()));
    }
    Ok(number)
}

/// An integer that is written as it would be written again.
fn short_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let value = || digits.iter().fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    plain.then(|| if digits.len() == text.len() { value() } else { -value() })
}

#[cfg(test)]
mod tests;
