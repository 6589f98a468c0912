//! Regular expressions of Go, written so that the `regex` crate reads the same in them.

use std::str::Chars;

/// A regular expression of Go in the syntax of the `regex` crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GoRegex {
    pub(super) source: String,
    /// True if it looks at what stands around a match, as `^` and `\b` do.
    pub(super) looks_around: bool,
}

impl GoRegex {
    /// Translates a regular expression, or says what in it Go does not read either.
    pub(super) fn read(go: &str) -> Result<Self, String> {
        let mut translator = Translator {
            chars: go.chars(),
            written: String::with_capacity(go.len()),
            is_unicode: false,
            looks_around: false,
        };
        translator.expression()?;
        let Translator { written, is_unicode, looks_around, .. } = translator;
        // Of characters beyond ASCII bytes know nothing.
        let source = if is_unicode { format!("(?u){written}") } else { written };
        Ok(Self { source, looks_around })
    }
}

/// Names of character classes between `[:` and `:]`.
const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

struct Translator<'a> {
    chars: Chars<'a>,
    written: String,
    /// True if it speaks of characters beyond ASCII.
    is_unicode: bool,
    looks_around: bool,
}

impl Translator<'_> {
    fn expression(&mut self) -> Result<(), String> {
        while let Some(char) = self.chars.next() {
            match char {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '{' if !opens_repetition(self.chars.as_str()) => self.literal('{'),
                '(' => {
                    self.check_flags()?;
                    self.written.push('(');
                }
                '^' | '$' => {
                    self.looks_around = true;
                    self.written.push(char);
                }
                char => {
                    self.is_unicode |= char == '.' || !char.is_ascii();
                    self.written.push(char);
                }
            }
        }
        Ok(())
    }

    fn eat(&mut self, start: &str) -> bool {
        let rest = self.chars.as_str().strip_prefix(start);
        self.chars = rest.map_or_else(|| self.chars.clone(), str::chars);
        rest.is_some()
    }

    fn literal(&mut self, char: char) {
        self.is_unicode |= !char.is_ascii();
        self.written.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
    }

    /// Refuses a group with flags that Go does not have.
    fn check_flags(&self) -> Result<(), String> {
        let flags = self.chars.as_str().strip_prefix('?').unwrap_or_default();
        let mut flags = flags.chars().take_while(|it| it.is_ascii_alphabetic() || *it == '-');
        match flags.find(|flag| !"imsUP-".contains(*flag)) {
            Some(flag) => Err(format!("`{flag}` is no flag of a group in Go")),
            None => Ok(()),
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(char) = self.chars.next() else { return Err("it ends with `\\`".to_owned()) };
        match char {
            'Q' => {
                let rest = self.chars.as_str();
                let (quoted, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
                self.chars = rest.chars();
                quoted.chars().for_each(|char| self.literal(char));
            }
            'b' | 'B' | 'A' | 'z' => {
                self.looks_around = true;
                self.written.extend(["(?-u:\\", char.encode_utf8(&mut [0; 4]), ")"]);
            }
            _ if self.set(char)? => {}
            _ => {
                let char = self.character(char)?;
                self.literal(char);
            }
        }
        Ok(())
    }

    /// Writes the set of characters that an escape stands for, which ASCII alone is in unless it names a property.
    fn set(&mut self, escape: char) -> Result<bool, String> {
        let set = match escape {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            's' => "[\\t\\n\\x0C\\r ]",
            'S' => "[^\\t\\n\\x0C\\r ]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            'p' | 'P' => return self.property(escape).map(|()| true),
            _ => return Ok(false),
        };
        self.is_unicode |= escape.is_ascii_uppercase();
        self.written.push_str(set);
        Ok(true)
    }

    fn property(&mut self, escape: char) -> Result<(), String> {
        let rest = self.chars.as_str();
        let (name, rest) = match rest.strip_prefix('{') {
            Some(braced) => braced.split_once('}').ok_or("a `{` is not closed")?,
            None => rest.split_at(rest.chars().next().map_or(0, char::len_utf8)),
        };
        let plain = name.strip_prefix('^');
        let is_negated = (escape == 'P') != plain.is_some();
        let escape = if is_negated { "\\P{" } else { "\\p{" };
        self.written.extend([escape, plain.unwrap_or(name), "}"]);
        self.is_unicode = true;
        self.chars = rest.chars();
        Ok(())
    }

    /// The character that an escape stands for.
    fn character(&mut self, escape: char) -> Result<char, String> {
        let digits =
            |text: &str, radix: u32| u32::from_str_radix(text, radix).ok().and_then(char::from_u32);
        let wrong = || format!("`\\{escape}` is no escape that Go has, or stands for no character");
        let rest = self.chars.as_str();
        let (char, rest) = match escape {
            'a' => (Some('\x07'), rest),
            'f' => (Some('\x0C'), rest),
            'n' => (Some('\n'), rest),
            'r' => (Some('\r'), rest),
            't' => (Some('\t'), rest),
            'v' => (Some('\x0B'), rest),
            'x' => {
                let (code, rest) = match rest.strip_prefix('{') {
                    Some(braced) => braced.split_once('}').ok_or_else(wrong)?,
                    None => rest.split_at_checked(2).ok_or_else(wrong)?,
                };
                (digits(code, 16), rest)
            }
            '0'..='7' => {
                let octal = rest.bytes().take(2).take_while(|it| matches!(it, b'0'..=b'7')).count();
                if escape != '0' && octal == 0 {
                    return Err("Go has no references back".to_owned());
                }
                let (more, rest) = rest.split_at(octal);
                (digits(&format!("{escape}{more}"), 8), rest)
            }
            sign if sign.is_ascii() && !sign.is_ascii_alphanumeric() => (Some(sign), rest),
            _ => (None, rest),
        };
        self.chars = rest.chars();
        char.ok_or_else(wrong)
    }

    /// A class, in which `&&`, `--`, `~~` and `[` mean nothing to Go.
    fn class(&mut self) -> Result<(), String> {
        const OPEN: &str = "a `[` is not closed";
        self.written.push('[');
        if self.eat("^") {
            self.is_unicode = true;
            self.written.push('^');
        }
        let mut is_first = true;
        while let Some(char) = self.chars.next() {
            match char {
                ']' if !is_first => {
                    self.written.push(']');
                    return Ok(());
                }
                '[' if self.named()? => {}
                _ => self.member(char)?,
            }
            is_first = false;
        }
        Err(OPEN.to_owned())
    }

    /// Writes `[:alpha:]` and the like, of which the first `[` is read.
    fn named(&mut self) -> Result<bool, String> {
        let named = self.chars.as_str().strip_prefix(':').and_then(|name| name.split_once(":]"));
        let Some((name, rest)) = named else { return Ok(false) };
        let plain = name.strip_prefix('^');
        if !NAMED.contains(&plain.unwrap_or(name)) {
            return Err(format!("`[:{name}:]` is no class that Go has"));
        }
        self.is_unicode |= plain.is_some();
        self.written.extend(["[:", name, ":]"]);
        self.chars = rest.chars();
        Ok(true)
    }

    /// Writes a set, a character or a range in a class.
    fn member(&mut self, char: char) -> Result<(), String> {
        let mut after = self.chars.clone();
        if char == '\\'
            && let Some(escape) = after.next()
            && matches!(escape, 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'p' | 'P')
        {
            self.chars = after;
            return self.set(escape).map(|_| ());
        }
        let first = self.single(char)?;
        self.literal(first);
        let mut after = self.chars.clone();
        if after.next() == Some('-')
            && let Some(last) = after.next().filter(|last| *last != ']')
        {
            self.chars = after;
            let last = self.single(last)?;
            self.written.push('-');
            self.literal(last);
        }
        Ok(())
    }

    fn single(&mut self, char: char) -> Result<char, String> {
        match (char, self.chars.as_str().chars().next()) {
            ('\\', Some(escape)) => {
                self.chars.next();
                self.character(escape)
            }
            (char, _) => Ok(char),
        }
    }
}

/// True behind the brace of `{2}`, `{2,}` and `{2,5}`: Go reads any other as a character.
fn opens_repetition(bounds: &str) -> bool {
    fn after_digits(text: &str) -> &str {
        text.trim_start_matches(|it: char| it.is_ascii_digit())
    }
    let rest = after_digits(bounds);
    let closes = |text: &str| text.starts_with('}');
    rest.len() < bounds.len()
        && (closes(rest) || rest.strip_prefix(',').is_some_and(|most| closes(after_digits(most))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::pattern::compile;

    #[test]
    fn braces_that_repeat_nothing_are_characters() {
        for (go, rust) in [
            (r"x\$(?:a+|{a+})", r"x\$(?:a+|\{a+\})"),
            (r"{{ *[a-z]{2,} }}", r"\{\{ *[a-z]{2,} \}\}"),
            (r"a{2}b{2,5}c{,5}d{e", r"a{2}b{2,5}c\{,5\}d\{e"),
            (r"\p{Lu}\x{1F}\{2}é{", "(?u)\\p{Lu}\u{1F}\\{2}é\\{"),
        ] {
            let read = GoRegex::read(go).unwrap().source;
            assert_eq!(read.replace("\\}", "}"), rust.replace("\\}", "}"));
            compile(&read).unwrap();
        }
    }

    #[test]
    fn what_go_reads_otherwise_is_found_as_go_does() {
        for (go, found, passed) in [
            (r"^q[a&&b]q$", &["q&q", "qaq", "qbq"][..], &["qcq"][..]),
            (r"^q[%--/]q$", &["q-q", "q%q", "q/q"], &["q.q"]),
            (r"^q[a[b]q$", &["q[q", "qbq"], &["q]q"]),
            (r"^q[a[b]c]q$", &["q[c]q", "qac]q"], &["qcq"]),
            (r"^q[^[]q$", &["q.q", "qéq"], &["q[q"]),
            (r"^q[\[\]~~]q$", &["q~q", "q]q"], &["qaq"]),
            (r"^q\Q.*\Eq$", &["q.*q"], &["qaaq"]),
            (r"^q\xe9q$", &["qéq"], &["qeq"]),
            (r"^q\x{e9}[é-ü]q$", &["qéêq"], &["qéÿq"]),
            (r"^q.q$", &["qéq", "qaq"], &["q\nq", "qq"]),
            (r"^(?i)qÉK$", &["qék", "QÉK", "qéK"], &["qek"]),
            (r"^q\pLq$", &["qéq"], &["q1q"]),
            (r"^q\p{^L}\PLq$", &["q1-q"], &["qa1q"]),
            (r"^q[^a-z]q$", &["qéq", "q\nq"], &["qaq"]),
            (r"^q[]a]q$", &["q]q", "qaq"], &["qbq"]),
            (r"^q[{]q{,3}\_\<\>\/q$", &["q{q{,3}_<>/q"], &["q{q_<>/q"]),
            (r"^q\-\@\#\!\%\&\,\:\;\=\~\`q$", &["q-@#!%&,:;=~`q"], &["qq"]),
            (r"^q[\d-x]q$", &["q-q", "q1q", "qxq"], &["qaq"]),
            (r"^q[[:word:]][[:^digit:]]q$", &["q_éq"], &["q_1q"]),
            (r"^q\d\D\w\W\s\Sq$", &["q1éaé éq"], &["q1éaé q"]),
            (r"^q\D\W\S\w\d\sq$", &["qééé_1 q"], &["qéééé1 q", "qééé_1\u{b}q"]),
            (r"^q\bé\bq$", &["qéq"], &["qxq"]),
            (r"^q\b-\101\0q$", &["q-A\0q"], &["qa"]),
            (r"^q\b{2}-$", &["q-"], &["q{2}-"]),
        ] {
            let read = GoRegex::read(go).unwrap();
            assert!(read.looks_around, "{go}");
            let regex = compile(&read.source).unwrap_or_else(|error| panic!("{go}: {error}"));
            for text in found {
                assert!(regex.is_match(text.as_bytes()), "{go} {text:?}: {read:?}");
            }
            for text in passed {
                assert!(!regex.is_match(text.as_bytes()), "{go} {text:?}: {read:?}");
            }
        }
    }

    #[test]
    fn what_go_does_not_read_is_refused() {
        for (go, wanted) in [
            (r"a\hb", "`\\h`"),
            (r"a\Cb", "`\\C`"),
            (r"(a)\1", "references back"),
            ("(?x)a b", "`x` is no flag"),
            ("(?i-u:a)", "`u` is no flag"),
            ("[[:letter:]]", "`[:letter:]`"),
            ("[a", "not closed"),
            (r"[a\", "not closed"),
            (r"a\", "ends with"),
            (r"\x{110000}", "`\\x`"),
            (r"\p{L", "not closed"),
            (r"[a-\d]", "`\\d`"),
        ] {
            let told = GoRegex::read(go).unwrap_err();
            assert!(told.contains(wanted), "{go}: {told}");
        }
    }
}
