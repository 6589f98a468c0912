//! JSON Pointers of the places of a value.

use std::borrow::Cow;

use crate::body::buffer::{Body, PathNode, PathStep};

impl Body {
    /// RFC 6901 pointer of a place.
    pub(crate) fn pointer(&self, node: u32) -> String {
        Pointers::new(self, |_, key| key).of(node)
    }
}

/// RFC 6901 pointers of places, with keys as `name` gives them. Those that stand side by side share
/// most of theirs, which is made once.
pub(crate) struct Pointers<'a, N> {
    body: &'a Body,
    name: N,
    /// The pointer of the place above the last one, and that place.
    above: String,
    parent: Option<u32>,
    path: Vec<(u32, PathStep)>,
}

impl<'a, N: Fn(u32, Cow<'a, [u8]>) -> Cow<'a, [u8]>> Pointers<'a, N> {
    pub(crate) fn new(body: &'a Body, name: N) -> Self {
        Self { body, name, above: String::new(), parent: None, path: Vec::new() }
    }

    pub(crate) fn of(&mut self, node: u32) -> String {
        let Some(PathNode { parent, step, .. }) = self.body.nodes.get(node as usize).copied()
        else {
            return String::new();
        };
        if self.parent != Some(parent) {
            let mut above = std::mem::take(&mut self.above);
            above.clear();
            self.path.clear();
            self.path.extend(self.body.steps(parent));
            for (node, step) in self.path.iter().rev() {
                self.push(*node, *step, &mut above);
            }
            (self.above, self.parent) = (above, Some(parent));
        }
        let mut pointer = String::with_capacity(self.above.len() + 12);
        pointer.push_str(&self.above);
        self.push(node, step, &mut pointer);
        pointer
    }

    fn push(&self, node: u32, step: PathStep, pointer: &mut String) {
        pointer.push('/');
        match step {
            PathStep::Element { index } => push_number(index, pointer),
            PathStep::Member { key } => {
                let text = self.body.segment(key).map(|key| self.body.written(key.range()));
                escape(&(self.name)(node, text.unwrap_or_default()), pointer);
            }
        }
    }
}

/// Writes a number in decimal digits.
fn push_number(number: u32, into: &mut String) {
    let mut place = 1;
    while number / place >= 10 {
        place *= 10;
    }
    while place > 0 {
        into.extend(char::from_digit(number / place % 10, 10));
        place /= 10;
    }
}

/// RFC 6901 §3: `~` becomes `~0` and `/` becomes `~1`.
fn escape(key: &[u8], into: &mut String) {
    for char in String::from_utf8_lossy(key).chars() {
        match char {
            '~' => into.push_str("~0"),
            '/' => into.push_str("~1"),
            _ => into.push(char),
        }
    }
}
