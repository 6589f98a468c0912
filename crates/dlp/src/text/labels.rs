//! Labels: members and cells that name what stands beside them, and keys that say nothing more than
//! that a value follows. `{"name": "DB_PASSWORD", "value": …}` is `{"DB_PASSWORD": …}`.

/// Members that hold the name of the value beside them, the most telling first.
const LABELS: Names<25> = Names::new([
    "name", "key", "variable", "env", "label", "field", "fieldname", "property", "setting",
    "option", "parameter", "param", "parametername", "parameterkey", "header", "attribute",
    "column", "question", "title", "displayname", "fieldlabel", "term", "code", "caption", "id",
]);

/// Members that hold the type of the value beside them, which may be `password`. Blocks of text
/// have one, too.
const KINDS: Names<3> = Names::new(["type", "kind", "system"]);

/// Members that name the object they are in: `{"type": {"text": "Passport"}, "value": …}`.
const OF_OBJECT: Names<6> = Names::new(["text", "display", "name", "label", "title", "code"]);

/// Keys that say only that a value follows.
const VALUES: Names<18> = Names::new([
    "value", "val", "answer", "default", "defaultvalue", "current", "currentvalue",
    "current_value", "plaintext", "stringvalue", "parametervalue", "fieldvalue", "rawvalue",
    "newvalue", "valuestring", "textvalue", "cell", "values",
]);

/// Keys that say only that a text follows.
const TEXTS: Names<6> =
    Names::new(["text", "content", "contents", "data", "rich_text", "plain_text"]);

/// Names of types, which say nothing about what a value is.
const TYPES: Names<24> = Names::new([
    "text", "string", "str", "number", "integer", "int", "float", "boolean", "bool", "object",
    "array", "list", "map", "any", "json", "html", "markdown", "plain", "input", "select",
    "resource", "value", "default", "plaintext",
]);

/// A longer text is no label.
const LONGEST: usize = 64;

/// The place of a key among those that name the object they are in.
pub(crate) fn rank_inside(key: &[u8]) -> Option<usize> {
    OF_OBJECT.place(key)
}

/// The place of a key among those of labels.
pub(crate) fn rank(key: &[u8]) -> Option<usize> {
    LABELS.place(key).or_else(|| KINDS.place(key).map(|place| LABELS.list.len() + place))
}

/// Lengths of the keys whose values a label may name.
const NAMED: Lengths = VALUES.lengths.or(TEXTS.lengths).or(SECRETS.lengths);

/// Keys of a value that is secret, whatever the label beside it says.
const SECRETS: Names<3> = Names::new(["secret", "secretvalue", "secret_value"]);

/// Returns false if no label can name the value of a key, which the key's length and first letter tell
/// of most.
#[inline]
pub(crate) fn may_be_named(key: &[u8]) -> bool {
    NAMED.fit(key)
}

/// The rank from which on a label cannot name the value of a key; `None` if none can.
pub(crate) fn last_rank(key: &[u8]) -> Option<usize> {
    if !may_be_named(key) {
        return None;
    }
    if VALUES.hold(key) {
        return Some(usize::MAX);
    }
    (TEXTS.hold(key) || SECRETS.hold(key)).then_some(LABELS.list.len())
}

/// Members that the type beside them names: `{"type": "SSN", "number": …}`, `{"ID": …, "ID_Type": "CPR"}`.
const NUMBERS: Names<8> = Names::new([
    "number", "id", "identifier", "documentnumber", "document_number", "document", "idnumber",
    "id_number",
]);

/// Returns true if a type beside a member may name it.
#[inline]
pub(crate) fn may_be_typed(key: &[u8]) -> bool {
    NUMBERS.hold(key)
}

/// What stands before the word `type` at the end of a key: `ID` in `ID_Type`.
#[inline]
pub(crate) fn typed(key: &[u8]) -> Option<&[u8]> {
    let (stem, end) = key.split_last_chunk::<4>()?;
    end.eq_ignore_ascii_case(b"type").then(|| stem.strip_suffix(b"_").unwrap_or(stem))
}

/// Returns true if a key says only that a value or a text follows.
pub(crate) fn is_value(key: &[u8]) -> bool {
    VALUES.hold(key) || TEXTS.hold(key)
}

/// Returns true if a text may name a value: words of letters, digits and joints, the first of which
/// begins with a letter or, as a path, with a slash, and no type.
pub(crate) fn may_label(text: &[u8]) -> bool {
    let is_initial = |first: &u8| {
        !first.is_ascii() || first.is_ascii_alphabetic() || matches!(first, b'_' | b'/')
    };
    text.len() <= LONGEST
        && text.first().is_some_and(is_initial)
        && text.iter().all(|byte| is_part(*byte))
        && !TYPES.hold(text)
}

/// Returns true if a byte may be part of a label.
pub(crate) fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || !byte.is_ascii()
        || matches!(
            byte,
            b' ' | b'_' | b'-' | b'.' | b':' | b'/' | b'#' | b'(' | b')' | b'?' | b'*'
        )
}

/// Returns true if a text is a plain word, as names and other items of a list are.
pub(crate) fn is_word(text: &[u8]) -> bool {
    may_label(text) && !text.starts_with(b"/") && !text.iter().any(u8::is_ascii_digit)
}

/// Some words in lower case, told from most others by their length and first letter.
pub(crate) struct Names<const N: usize> {
    list: [&'static str; N],
    lengths: Lengths,
}

/// The lengths of words that begin with a letter, as bits.
#[derive(Clone, Copy)]
struct Lengths([u32; 32]);

impl Lengths {
    #[expect(clippy::indexing_slicing, reason = "checked when compiled")]
    const fn or(mut self, other: Self) -> Self {
        let mut letter = 0;
        while letter < 32 {
            self.0[letter] |= other.0[letter];
            letter += 1;
        }
        self
    }

    /// Returns true if one of the words may be a text.
    #[inline]
    fn fit(&self, text: &[u8]) -> bool {
        let first = text.first().and_then(|first| self.0.get(usize::from(first & 31)));
        text.len() < 32 && first.is_some_and(|lengths| lengths >> text.len() & 1 == 1)
    }
}

impl<const N: usize> Names<N> {
    #[expect(clippy::indexing_slicing, reason = "checked when compiled")]
    pub(crate) const fn new(list: [&'static str; N]) -> Self {
        let mut lengths = [0; 32];
        let mut at = 0;
        while at < N {
            let text = list[at].as_bytes();
            lengths[(text[0] & 31) as usize] |= 1 << text.len();
            at += 1;
        }
        Self { list, lengths: Lengths(lengths) }
    }

    /// Returns true if a text is one of them, in any case.
    pub(crate) fn hold(&self, text: &[u8]) -> bool {
        self.place(text).is_some()
    }

    fn place(&self, text: &[u8]) -> Option<usize> {
        let position = || self.list.iter().position(|it| it.as_bytes().eq_ignore_ascii_case(text));
        self.lengths.fit(text).then(position)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_values_and_types_are_told_apart() {
        assert!(rank(b"Name") < rank(b"key") && rank(b"id") < rank(b"type"));
        assert_eq!(rank(b"color"), None);
        assert!(is_value(b"value") && is_value(b"Text") && !is_value(b"password"));
        assert!(last_rank(b"content") > rank(b"id") && last_rank(b"value") > rank(b"type"));
        assert!(last_rank(b"text") <= rank(b"type") && last_rank(b"color").is_none());
        for label in ["DB_PASSWORD", "spring.datasource.password", "Пароль", "Tax id"] {
            assert!(may_label(label.as_bytes()), "{label}");
        }
        for other in ["string", "7", "", "a=b", "x\ny"] {
            assert!(!may_label(other.as_bytes()), "{other}");
        }
        assert!(is_word(b"user_name") && !is_word(b"hunter2"));
    }
}
