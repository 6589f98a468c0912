//! Place in the input at which a fact begins: `$.messages[*]["reply-to"]`.

use crate::json::{JsonValue, Kind, Node};

use crate::policy::tool::facts::item::Failed;

/// Steps into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path(Vec<PathSegment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathSegment {
    Member(String),
    Every,
}

/// The most values one path may lead to.
const MAX_ITEMS: usize = 10_000;

impl Path {
    /// Reads `.name`, `["any name"]` and `[*]`, in any order and number.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (segment, after) = segment(rest).ok_or_else(|| {
                format!("`{rest}` is none of `.name`, `[\"any name\"]` and `[*]`")
            })?;
            segments.push(segment);
            rest = after;
        }
        Ok(Self(segments))
    }

    /// Every value it leads to. What is absent or null leads nowhere; what is of another type than
    /// the path expects is a failure.
    pub(super) fn select<'a>(&self, value: Node<'a>) -> Result<Vec<Node<'a>>, Failed> {
        let mut found = vec![value];
        for segment in &self.0 {
            let mut next = Vec::new();
            for value in found {
                match (segment, value.kind()) {
                    (_, Kind::Null) => {}
                    (PathSegment::Member(name), Kind::Object(_)) => {
                        next.extend(value.get(name).filter(|member| !member.is_null()));
                    }
                    (PathSegment::Every, Kind::Array(items)) => {
                        next.extend(items.filter(|item| !item.is_null()));
                    }
                    (PathSegment::Member(_) | PathSegment::Every, _) => return Err(Failed),
                }
            }
            if next.len() > MAX_ITEMS {
                return Err(Failed);
            }
            found = next;
        }
        Ok(found)
    }
}

fn segment(text: &str) -> Option<(PathSegment, &str)> {
    if let Some(after) = text.strip_prefix("[*]") {
        return Some((PathSegment::Every, after));
    }
    if let Some(after) = text.strip_prefix('.') {
        let end = after.find(['.', '[']).unwrap_or(after.len());
        let (name, rest) = after.split_at(end);
        let plain = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        let fits = !name.is_empty() && name.chars().all(plain);
        return fits.then(|| (PathSegment::Member(name.to_owned()), rest));
    }
    let quoted = text.strip_prefix('[')?;
    let mut names = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
    let name = names.next()?.ok()?;
    let rest = quoted.get(names.byte_offset()..)?.strip_prefix(']')?;
    Some((PathSegment::Member(name), rest))
}
