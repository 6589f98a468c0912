//! URIs at `/mcp`, where each carries its provider: `ui://x` as `ui://{slug}/x`, others behind `{slug}+`.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::{JsonValue, Kind, Node};

const APP: &str = "ui://";
/// Precedes a slug that begins with a digit, as no scheme does. Slugs hold no dot.
const DIGIT: &str = "s.";

/// A URI or the text of a template of the provider `slug`, as clients of `/mcp` see it.
#[must_use]
pub fn outer(slug: &str, uri: &str) -> String {
    if let Some(rest) = uri.strip_prefix(APP) {
        return format!("{APP}{slug}/{rest}");
    }
    let letter = if slug.starts_with(|first: char| first.is_ascii_digit()) { DIGIT } else { "" };
    format!("{letter}{slug}+{uri}")
}

/// The slug and the URI that [`outer`] gives this text for, if there are any.
#[must_use]
pub fn inner(text: &str) -> Option<(&str, Cow<'_, str>)> {
    let (slug, uri) = if let Some(rest) = text.strip_prefix(APP) {
        let (slug, rest) = rest.split_once('/')?;
        (slug, Cow::Owned(format!("{APP}{rest}")))
    } else {
        let (scheme, uri) = text.split_once('+')?;
        (scheme.strip_prefix(DIGIT).unwrap_or(scheme), Cow::Borrowed(uri))
    };
    (is_slug(slug) && outer(slug, &uri) == text).then_some((slug, uri))
}

fn is_slug(text: &str) -> bool {
    (1..=63).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// A result, an entry of a list, the params of a notification or an error with each URI in its [`outer`]
/// form; `None` if no URI stands in it. Texts and members that the protocol does not define stay.
#[must_use]
pub fn renamed(part: Node<'_>, slug: &str) -> Option<Value> {
    Place::Part.renamed(part, slug)
}

/// Kind of a value, by the way that leads to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Part,
    Message,
    Block,
    Skill,
    /// An object with a URI.
    Entry,
    Uri,
}

impl Place {
    /// The kind of a member that may hold a URI.
    fn of_member(self, object: Node<'_>, name: &str) -> Option<Self> {
        let has_type = |kind| object.get("type").and_then(Node::text) == Some(kind);
        match (self, name) {
            (Self::Part, "result" | "error") => Some(Self::Part),
            (Self::Part, "messages") => Some(Self::Message),
            (Self::Part | Self::Message, "content") => Some(Self::Block),
            (Self::Block, "content") => has_type("tool_result").then_some(Self::Block),
            (Self::Part, "skills" | "skill") => Some(Self::Skill),
            (Self::Part | Self::Skill, "resources")
            | (Self::Part, "resourceTemplates" | "contents") => Some(Self::Entry),
            (Self::Part, "data") => object.get("code").map(|_| Self::Entry),
            (Self::Block, "resource") => has_type("resource").then_some(Self::Entry),
            (Self::Block, "uri") => has_type("resource_link").then_some(Self::Uri),
            (Self::Part | Self::Skill | Self::Entry, "uri" | "uriTemplate") => Some(Self::Uri),
            _ => None,
        }
    }

    fn renamed(self, node: Node<'_>, slug: &str) -> Option<Value> {
        match node.kind() {
            Kind::Text(uri) if self == Self::Uri => Some(outer(slug, uri).into()),
            Kind::Array(items) if self != Self::Uri => {
                let object = |item: Node<'_>| item.is_object().then(|| self.renamed(item, slug))?;
                let new: Vec<_> = items.clone().map(object).collect();
                let is_new = new.iter().any(Option::is_some);
                is_new.then(|| {
                    new.into_iter().zip(items).map(|(new, old)| or_copy(new, old)).collect()
                })
            }
            Kind::Object(members) => {
                let member = |(name, it)| self.of_member(node, name)?.renamed(it, slug);
                let new: Vec<_> = members.clone().map(member).collect();
                let is_new = new.iter().any(Option::is_some);
                let all = new.into_iter().zip(members);
                let whole = |(new, (name, old))| (String::from(name), or_copy(new, old));
                is_new.then(|| Value::Object(all.map(whole).collect()))
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Array(_) => None,
        }
    }
}

fn or_copy(new: Option<Value>, old: Node<'_>) -> Value {
    new.unwrap_or_else(|| old.to_value())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Bounds, Document};

    #[test]
    fn a_uri_carries_its_provider() {
        for (slug, uri, expected) in [
            ("crm", "file:///a+b", "crm+file:///a+b"),
            ("crm", "git+ssh://h/r", "crm+git+ssh://h/r"),
            ("1pw", "op://vault", "s.1pw+op://vault"),
            ("crm", "ui://x/y", "ui://crm/x/y"),
            ("1pw", "ui://{id}", "ui://1pw/{id}"),
            ("ui", "x:y", "ui+x:y"),
            ("a-b", "{+uri}", "a-b+{+uri}"),
        ] {
            assert_eq!(outer(slug, uri), expected);
            assert_eq!(inner(expected), Some((slug, Cow::Borrowed(uri))));
        }
        let others = ["file:///a", "ui://x", "ui:///x", "ui://A/x", "+x:y", "CRM+x:y", "a.b+x:y"];
        for text in others.iter().chain(&["s.crm+x:y", "1pw+x:y", "-a+x:y", "crm+ui://x", ""]) {
            assert_eq!(inner(text), None, "{text}");
        }
    }

    /// In each row, `!` stands in front of the texts that are renamed.
    #[test]
    fn uris_are_renamed_in_every_place_and_nowhere_else() {
        for row in [
            r#"{"resources":[{"uri":"!x:1","name":"x:1","icons":[{"src":"x:1"}]},{"uri":"!x:2"}],"nextCursor":"x:1"}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"resource_link","uri":"!x:1"}]}]}]}"#,
            r#"{"content":[{"type":"text","content":[{"type":"resource_link","uri":"x:1"}]}]}"#,
            r#"{"resourceTemplates":[{"uriTemplate":"!x:{a}","_meta":{"uri":"x:1"}}],"ttlMs":1.50}"#,
            r#"{"contents":[{"uri":"!x:1","text":"x:1"},{"uri":7},{"text":"a"},"x:1",[{"uri":"x:1"}]]}"#,
            r#"{"content":[{"type":"resource_link","uri":"!x:1"},{"type":"text","uri":"x:1"}],"isError":false}"#,
            r#"{"content":[{"type":"resource","resource":{"uri":"!x:1","blob":""}}],"structuredContent":{"uri":""}}"#,
            r#"{"messages":[{"role":"","content":{"type":"resource","resource":{"uri":"!x:1"}}}]}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"resource_link","uri":"!x:1"}]}]}"#,
            r#"{"skills":[{"uri":"!x:1","frontmatter":{"uri":"x:1"},"resources":[{"uri":"!y:"}]},{"resources":""}]}"#,
            r#"{"skill":{"uri":"!x:1","resources":[{"uri":"!x:2","digest":"x:1"}]}}"#,
            r#"{"uri":"!x:1","mimeType":"inode/directory","annotations":{"uri":"x:1"}}"#,
            r#"{"code":-32602,"message":"x:1","data":{"uri":"!x:1","cause":{"uri":"x:1"}}}"#,
            r#"{"taskId":"x:1","error":{"code":-32002,"message":"","data":{"uri":"!x:1"}}}"#,
            r#"{"taskId":"x:1","result":{"content":[{"type":"resource_link","uri":"!x:1"}]}}"#,
            r#"{"tools":[{"name":"a","_meta":{"ui":{"resourceUri":"ui://x"}}}],"data":{"uri":"x:1"}}"#,
            r#"{"content":[{"type":"text","text":"x:1"}],"structuredContent":{"resources":[{"uri":"x:1"}]}}"#,
            r#"["x:1",{"more":{"uri":"x:1"}},{"uri":["x:1"]},null]"#,
        ] {
            let read = |text: String| Document::parse(text.as_bytes(), Bounds::UPSTREAM).unwrap();
            let expected = read(row.replace('!', "crm+")).root().to_value();

            let renamed = renamed(read(row.replace('!', "")).root(), "crm");

            assert_eq!(renamed, row.contains('!').then_some(expected), "{row}");
        }
    }

    proptest! {
        #[test]
        fn a_name_leads_back_to_one_provider_and_one_uri(
            slug in "[a-z0-9][a-z0-9-]{0,62}",
            uri in "(ui://|UI://|git\\+ssh://|s\\.1\\+|[a-z+]{0,4}:)?\\PC{0,20}",
            other in "(ui://[a1-]/?|s\\.[a1]\\+|[a1.-]{0,3}\\+)(ui://)?[a1+/.:]{0,6}",
        ) {
            let text = outer(&slug, &uri);
            prop_assert_eq!(inner(&text), Some((&*slug, Cow::Borrowed(&*uri))));
            if let Some((slug, uri)) = inner(&other) {
                prop_assert_eq!(outer(slug, &uri), other.as_str());
            }
        }
    }
}
