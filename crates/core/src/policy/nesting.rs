//! How deep a policy text nests, found before it is parsed: parsing, validating and evaluating
//! recurse, and a text that is all brackets or operators would exhaust the stack.

/// Brackets within brackets.
const MAX_BRACKETS: usize = 64;
/// Operators in one policy; a chain of them is a tree as deep as it is long.
const MAX_OPERATORS: usize = 500;

/// Where the text first nests deeper than is parsed.
pub(super) fn too_deep(text: &str) -> Option<usize> {
    let mut scan = Scan::default();
    let mut previous = ' ';
    for (offset, letter) in text.char_indices() {
        scan.step(previous, letter);
        if scan.brackets > MAX_BRACKETS || scan.operators > MAX_OPERATORS {
            return Some(offset);
        }
        previous = letter;
    }
    None
}

#[derive(Default)]
enum Within {
    #[default]
    Code,
    Text,
    /// After a backslash in a text.
    Escape,
    Comment,
}

#[derive(Default)]
struct Scan {
    within: Within,
    brackets: usize,
    operators: usize,
}

impl Scan {
    fn step(&mut self, previous: char, letter: char) {
        self.within = match (&self.within, letter) {
            (Within::Code, '"') | (Within::Escape, _) => Within::Text,
            (Within::Code, '/') if previous == '/' => Within::Comment,
            (Within::Text, '\\') => Within::Escape,
            (Within::Text, '"') | (Within::Comment, '\n') => Within::Code,
            (Within::Code, _) => {
                self.code(previous, letter);
                Within::Code
            }
            (Within::Text, _) => Within::Text,
            (Within::Comment, _) => Within::Comment,
        };
    }

    fn code(&mut self, previous: char, letter: char) {
        match letter {
            '(' | '[' | '{' => self.brackets += 1,
            ')' | ']' | '}' => self.brackets = self.brackets.saturating_sub(1),
            ';' => *self = Self::default(),
            '!' | '+' | '-' | '*' => self.operators += 1,
            // `&&`, `||`, `if`.
            '&' | '|' if previous == letter => self.operators += 1,
            'f' if previous == 'i' => self.operators += 1,
            _ => {}
        }
    }
}
