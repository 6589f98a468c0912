//! Finds the id in a message that is too large or too broken to parse, so that its call can fail.

/// Reads a JSON text byte by byte, keeps nothing, and finds the number that the member `id` of the
/// outermost object holds.
#[derive(Debug, Default)]
pub(crate) struct IdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The current string of the outermost object, as far as it could be `id`.
    name: Name,
    /// True while the member being read is `id`.
    at_id: bool,
    digits: Option<u64>,
    found: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Name {
    #[default]
    Empty,
    I,
    Id,
    Other,
}

impl Name {
    const fn push(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Empty, b'i') => Self::I,
            (Self::I, b'd') => Self::Id,
            (Self::Empty | Self::I | Self::Id | Self::Other, _) => Self::Other,
        }
    }
}

impl IdScanner {
    /// The id in a whole text.
    pub(crate) fn find(text: &[u8]) -> Option<u64> {
        let mut scanner = Self::default();
        scanner.push(text);
        scanner.id()
    }

    /// Reads on.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_string { self.string_byte(*byte) } else { self.byte(*byte) }
        }
    }

    /// The id, when there was one so far.
    pub(crate) const fn id(&self) -> Option<u64> {
        self.found
    }

    fn string_byte(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => {
                self.escaped = true;
                self.name = Name::Other;
            }
            b'"' => self.in_string = false,
            _ => self.name = self.name.push(byte),
        }
    }

    fn byte(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_string = true;
                self.name = Name::Empty;
                self.digits = None;
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.at_id = false;
            }
            b'}' | b']' => {
                self.end_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_member(),
            b':' => {
                self.at_id = self.depth == 1 && self.name == Name::Id;
                self.digits = None;
            }
            b'0'..=b'9' if self.at_id => {
                let digit = u64::from(byte - b'0');
                let so_far = self.digits.unwrap_or(0);
                self.digits = so_far.checked_mul(10).and_then(|ten| ten.checked_add(digit));
                self.at_id = self.digits.is_some();
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.at_id = false,
        }
    }

    fn end_member(&mut self) {
        if self.depth == 1 && self.at_id {
            self.found = self.digits;
        }
        self.at_id = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_id_is_found_wherever_it_stands() {
        for text in [
            r#"{"jsonrpc":"2.0","id":42,"result":{"id":7}}"#,
            r#"{"result":{"id":7,"a":[{"id":8}]},"jsonrpc":"2.0", "id" : 42 }"#,
            r#"{"result":{"t":"\"id\":9,{"},"id":42}"#,
            r#"{"x":"id","y":[1,2],"id":42,"broken"#,
            r#"{"id":42,"a":1,"a":2}"#,
        ] {
            assert_eq!(IdScanner::find(text.as_bytes()), Some(42), "{text}");
        }
    }

    #[test]
    fn without_a_number_for_an_id_nothing_is_found() {
        for text in [
            "",
            "plain text, \"id\":42",
            r#"{"id":"42"}"#,
            r#"{"id":null}"#,
            r#"{"id":-42}"#,
            r#"{"id":4.2}"#,
            r#"{"id":42"#,
            r#"{"\u0069d":42}"#,
            r#"{"result":{"id":42}}"#,
            r#"[{"id":42}]"#,
            r#"{"id":99999999999999999999999}"#,
        ] {
            assert_eq!(IdScanner::find(text.as_bytes()), None, "{text}");
        }
    }
}
