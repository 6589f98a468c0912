//! Output of commands: tables and sentences for people, JSON with `--json`.

use std::{
    error::Error,
    fmt::Write as _,
    io::{self, Write},
    process::ExitCode,
};

use portcullis_core::hidden::{is_hidden, spell};
use serde_json::Value;

/// Error that ends a command early; printed with all its causes.
pub(super) type Failure = Box<dyn Error + Send + Sync>;

/// Destination and form of a command's output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// One line of text, or as many as it has. A reader that is gone, such as `head`, has what it wanted.
    pub(super) fn line(self, text: &str) -> Result<(), Failure> {
        self.is_read(text).map(drop)
    }

    /// Prints a line; `false` when the reader is gone.
    #[expect(clippy::unused_self, reason = "whoever prints was told how, also for plain lines")]
    pub(super) fn is_read(self, text: &str) -> Result<bool, Failure> {
        let mut out = io::stdout().lock();
        match writeln!(out, "{text}").and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Something to know, for people only: it stands on stderr, beside whatever is printed.
    #[expect(clippy::unused_self, reason = "whoever prints was told how")]
    pub(super) fn note(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// The same about something doubtful.
    pub(super) fn warn(self, text: &str) {
        self.note(&format!("warning: {text}"));
    }

    /// One record: `value` as JSON, or `text` for people.
    pub(super) fn record(self, value: &Value, text: &str) -> Result<(), Failure> {
        if self.json { self.line(&json_text(&value.to_string())) } else { self.line(text) }
    }

    /// One record in full: as JSON, or a line for each member that has a value.
    pub(super) fn members(self, value: &Value) -> Result<(), Failure> {
        let Some(members) = value.as_object().filter(|_| !self.json) else {
            return self.line(&json_text(&value.to_string()));
        };
        let width = members.keys().map(String::len).max().unwrap_or_default();
        for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            self.line(&format!("{name:width$}  {}", cell(value)))?;
        }
        Ok(())
    }

    /// Many records: a JSON array, or a table with the members named in `columns`.
    pub(super) fn table(self, records: &[Value], columns: &[&str]) -> Result<(), Failure> {
        if self.json {
            return self.line(&json_text(&Value::from(records.to_vec()).to_string()));
        }
        let mut rows = vec![columns.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>()];
        rows.extend(records.iter().map(|record| {
            columns.iter().map(|name| record.get(*name).map(cell).unwrap_or_default()).collect()
        }));
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns.len()).map(|n| width(n).unwrap_or(0)).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}"));
            self.line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => visible(text),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            visible(&other.to_string())
        }
    }
}

/// JSON with everything escaped, as `\u202e`, that a terminal would obey or not show: it is the same value. Line
/// feeds between its members stay.
pub(super) fn json_text(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter != '\n' && (is_hidden(letter) || letter.is_control()) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // A string takes everything.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// A line with everything written out, as `[U+202E]`, that a terminal would obey or not show.
pub(super) fn visible(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for letter in line.chars() {
        if is_hidden(letter) || letter.is_control() {
            spell(letter, &mut shown);
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Prints an error with its causes on stderr.
pub(super) fn fail(error: &(dyn Error + 'static)) -> ExitCode {
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "error: {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        let _ = writeln!(err, "  because: {inner}");
        cause = inner.source();
    }
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_terminal_is_told_nothing_by_what_callers_sent() {
        let input = json!({"to": "DE\u{9b}2J\u{202e}\n"});

        assert_eq!(cell(&input), r#"{"to":"DE[U+009B]2J[U+202E]\n"}"#);
        assert_eq!(cell(&json!("Zoë")), "Zoë");
    }

    #[test]
    fn json_that_is_printed_hides_nothing_and_is_the_same_value() {
        let value = json!({"a\u{202e}": "\u{9b}2J\u{7f}\u{e0041}\u{1b}\n\"\\", "b": ["Zoë", "\u{2066}x\u{feff}"]});

        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = json_text(&text);

            assert!(
                !shown.replace('\n', "").contains(|it| is_hidden(it) || it.is_control()),
                "{shown}"
            );
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
            assert!(shown.contains("Zoë") && shown.contains(r"\udb40\udc41"), "{shown}");
        }
    }
}
