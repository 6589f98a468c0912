//! The tools, prompts, resources and skills a server lists, bounded and made harmless to look at.

mod members;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use portcullis_core::{
    capability::{CapabilityKind, CapabilityName, Definition},
    mcp::{
        apps::{self, MEDIA_TYPE, SCHEME, UI},
        meta::META,
        skills,
    },
    refusal::Executed,
};
use serde_json::{Map, Value, json};

use self::members::{prompt, resource, short};
use crate::{
    error::CallError,
    mcp::message::Reply,
    params::{self, ParamHeader},
    text,
};

/// Tools and prompts of a server.
#[derive(Debug, Clone, Default)]
pub struct DefinitionList {
    /// Those that can be used, of each kind in the server's order.
    pub definitions: Vec<Definition>,
    /// Those that cannot be used; at most 100 of them are named.
    pub skipped: Vec<Skipped>,
    /// Kinds of which the list does not end within the 20 pages, 1,000 entries or 2 MiB that are read (of resources and
    /// templates 200, 10,000 and 4 MiB), or leads back to a page of its own.
    pub truncated: Vec<CapabilityKind>,
    /// The URIs of all skills that are told, whether or not they can be used.
    pub skills: Vec<String>,
    /// There are more skills than are read.
    pub(crate) has_more_skills: bool,
    /// Kinds that the server says it does not have.
    pub not_offered: Vec<CapabilityKind>,
    /// For how long the server says this stays true.
    pub fresh_for: Option<Duration>,
    /// Number of the process or session that listed them: calls go to this one ([`crate::Trace::peer`]).
    pub peer: u64,
}

/// A tool or prompt that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub kind: CapabilityKind,
    /// Its name on one line, without hidden characters, at most 128 characters.
    pub name: String,
    pub why: SkipReason,
}

/// Reason to skip a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// Its name is outside the grammar of names.
    Name,
    /// Its URI, the template of its URIs, or its entry as a skill cannot be used.
    Entry(&'static str),
    /// Another one of that name came before it.
    Duplicate,
    /// Not an object, or a tool without an object for an input schema, or a prompt whose arguments are no list of
    /// different names.
    Malformed,
    /// JSON that is not accepted: it names a member twice, is nested too deep, or has a number
    /// beyond the range of a double.
    Unreadable,
    /// A name in its schemas has characters that cannot be seen.
    HiddenCharacters,
    /// An `x-mcp-header` of it is against the specification.
    HeaderAnnotation,
    /// The server answers the request for the list with an error.
    Unlisted,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => {
                "the name is empty or longer than 256 bytes, or has characters other than A-Z, a-z, 0-9, `_`, `.`, \
                 `-`, `:`, `/` and single spaces"
            },
            Self::Entry(why) => why,
            Self::Duplicate => "another one of this name came before it",
            Self::Malformed => "it has no object for an input schema, or no list of different arguments",
            Self::Unreadable => {
                "its definition names a member twice, is nested too deep, or has a number beyond the \
                 range of a double"
            }
            Self::HiddenCharacters => "a name in its schema has characters that cannot be seen",
            Self::HeaderAnnotation => "an `x-mcp-header` in its schema is not allowed",
            Self::Unlisted => "the server answers the request for the list with an error",
        })
    }
}

/// Bounds of a list.
struct ListBounds {
    pages: usize,
    entries: usize,
    bytes: usize,
}

impl ListBounds {
    /// Resources are many and small.
    const fn of(kind: CapabilityKind) -> Self {
        match kind {
            CapabilityKind::Tool | CapabilityKind::Prompt | CapabilityKind::Skill => {
                Self { pages: 20, entries: 1_000, bytes: 2 << 20 }
            }
            CapabilityKind::Resource | CapabilityKind::Template => {
                Self { pages: 200, entries: 10_000, bytes: 4 << 20 }
            }
        }
    }
}

const MAX_SKIPPED: usize = 100;
const MAX_TITLE_CHARS: usize = 256;
const MAX_DESCRIPTION_CHARS: usize = 8192;
/// Arguments of a prompt.
const MAX_ARGUMENTS: usize = 100;
const MAX_CURSOR_BYTES: usize = 4096;

/// The arguments to mirror into headers, by tool.
pub(crate) type ParamHeaders = HashMap<CapabilityName, Arc<[ParamHeader]>>;

/// Presence of headers in the transport, in which `x-mcp-header` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Headers {
    Mirrored,
    None,
}

impl DefinitionList {
    /// Adds what the same server lists of another kind.
    pub(crate) fn add(&mut self, other: Self) {
        self.definitions.extend(other.definitions);
        self.skipped.extend(other.skipped);
        self.skills.extend(other.skills);
        self.has_more_skills |= other.has_more_skills;
        self.truncated.extend(other.truncated);
        self.not_offered.extend(other.not_offered);
        self.fresh_for = self.fresh_for.into_iter().chain(other.fresh_for).min();
    }

    /// The kinds that could not be listed.
    pub fn unlisted(&self) -> impl Iterator<Item = CapabilityKind> {
        self.skipped.iter().filter(|it| it.why == SkipReason::Unlisted).map(|it| it.kind)
    }

    /// The kinds of which this list says nothing.
    pub fn untold(&self) -> impl Iterator<Item = CapabilityKind> {
        self.unlisted().chain(self.not_offered.iter().copied())
    }

    /// Adds the pages that its tools name and no list has, unless a list says that they cannot be used or could not be
    /// read. Of a server without such a list they are all that there is.
    pub(crate) fn add_pages(&mut self) {
        if self.unlisted().any(|kind| kind == CapabilityKind::Resource) {
            return;
        }
        self.not_offered.retain(|kind| *kind != CapabilityKind::Resource);
        let page = |it: &Definition| it.ui()?.get("resourceUri")?.as_str().map(str::to_owned);
        let pages: BTreeSet<String> = self.definitions.iter().filter_map(page).collect();
        for uri in pages {
            let is_listed =
                |it: &Definition| it.kind == CapabilityKind::Resource && it.name.as_str() == uri;
            let is_skipped = |it: &Skipped| it.kind == CapabilityKind::Resource && it.name == uri;
            if self.definitions.iter().any(is_listed) || self.skipped.iter().any(is_skipped) {
                continue;
            }
            if let Ok(name) = CapabilityName::of_kind(CapabilityKind::Resource, &uri) {
                let more = json!({ "name": uri, "mimeType": MEDIA_TYPE });
                self.definitions.push(Definition::resource(CapabilityKind::Resource, name, more));
            }
        }
    }

    /// True if it is not known of a kind what is of another one that could not be listed: whether a resource is the file of
    /// a skill, or a template makes a resource that is listed.
    pub(crate) fn hides(&self, kind: CapabilityKind) -> bool {
        let is_resource = kind.governed() == CapabilityKind::Resource;
        is_resource && self.has_more_skills
            || self.unlisted().any(|unlisted| match unlisted {
                CapabilityKind::Tool | CapabilityKind::Prompt | CapabilityKind::Template => false,
                CapabilityKind::Resource => kind == CapabilityKind::Template,
                CapabilityKind::Skill => is_resource,
            })
    }

    /// Adds that a kind cannot be listed.
    pub(crate) fn add_unlisted(&mut self, kind: CapabilityKind) {
        self.skipped.push(Skipped { kind, name: String::new(), why: SkipReason::Unlisted });
    }
}

/// Apps of a server that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apps {
    /// Beside its resources.
    Exposed,
    /// Of its resources their pages pass and nothing else.
    Alone,
}

/// Puts pages of one kind together.
#[derive(Debug)]
pub(crate) struct Collector {
    kind: CapabilityKind,
    headers: Headers,
    apps: Option<Apps>,
    /// Skills whose files have no digests pass.
    dynamic_skills: bool,
    list: DefinitionList,
    params: ParamHeaders,
    names: HashSet<CapabilityName>,
    cursors: HashSet<String>,
    /// The server answered the request for the list.
    is_offered: bool,
    seen: usize,
    bytes: usize,
}

impl Collector {
    pub(crate) fn new(kind: CapabilityKind, headers: Headers, apps: Option<Apps>) -> Self {
        Self {
            kind,
            headers,
            apps,
            dynamic_skills: false,
            list: DefinitionList::default(),
            params: ParamHeaders::new(),
            names: HashSet::new(),
            cursors: HashSet::new(),
            is_offered: false,
            seen: 0,
            bytes: 0,
        }
    }

    /// The same where skills whose files have no digests pass.
    pub(crate) const fn with_dynamic_skills(mut self, pass: bool) -> Self {
        self.dynamic_skills = pass;
        self
    }

    /// Takes one page and gives the cursor of the next one, if there is one that may be read.
    pub(crate) fn add_page(&mut self, reply: &Reply) -> Result<Option<String>, CallError> {
        let garbage = CallError::protocol(Executed::No);
        let mut page = reply.members();
        let member = match self.kind {
            CapabilityKind::Tool => "tools",
            CapabilityKind::Prompt => "prompts",
            CapabilityKind::Resource => "resources",
            CapabilityKind::Template => "resourceTemplates",
            CapabilityKind::Skill => "skills",
        };
        let Some(Value::Array(tools)) = page.remove(member) else { return Err(garbage) };
        self.is_offered = true;
        let bounds = ListBounds::of(self.kind);
        let ttl = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis);
        self.list.fresh_for = match (self.list.fresh_for, ttl) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.list.peer = reply.peer;
        self.seen = self.seen.saturating_add(reply.unreadable.len());
        reply.unreadable.iter().for_each(|name| self.unreadable(name));
        for tool in tools {
            self.bytes = self.bytes.saturating_add(weight(&tool));
            self.seen += 1;
            if self.seen > bounds.entries || self.bytes > bounds.bytes {
                self.list.truncated.push(self.kind);
                return Ok(None);
            }
            self.add(tool);
        }
        match page.remove("nextCursor") {
            None | Some(Value::Null) => Ok(None),
            // So servers say that there is no more.
            Some(Value::String(cursor)) if cursor.is_empty() => Ok(None),
            Some(Value::String(cursor)) if cursor.len() <= MAX_CURSOR_BYTES => {
                // One that leads back to a page that was read leads nowhere.
                let is_new = self.cursors.insert(cursor.clone());
                let goes_on = is_new && self.cursors.len() < bounds.pages;
                if !goes_on {
                    self.list.truncated.push(self.kind);
                }
                Ok(goes_on.then_some(cursor))
            }
            Some(_) => Err(garbage),
        }
    }

    pub(crate) fn finish(mut self) -> (DefinitionList, ParamHeaders) {
        if !self.is_offered {
            self.list.not_offered.push(self.kind);
        }
        self.list.has_more_skills =
            self.kind == CapabilityKind::Skill && !self.list.truncated.is_empty();
        let pages_alone = self.apps == Some(Apps::Alone);
        if self.kind == CapabilityKind::Resource && self.is_offered && !pages_alone {
            self.list.definitions.push(Definition::unlisted());
        }
        (self.list, self.params)
    }

    fn add(&mut self, tool: Value) {
        let member = match self.kind {
            CapabilityKind::Tool | CapabilityKind::Prompt => "name",
            CapabilityKind::Resource | CapabilityKind::Skill => "uri",
            CapabilityKind::Template => "uriTemplate",
        };
        let name = tool.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let pages_alone = self.apps == Some(Apps::Alone);
        if self.kind == CapabilityKind::Resource && pages_alone && !name.starts_with(SCHEME) {
            return;
        }
        if self.kind == CapabilityKind::Skill {
            self.list.skills.push(name.clone());
        }
        if let Err(why) = self.try_add(&name, tool) {
            self.skip(&name, why);
        }
    }

    /// Also of the same name no other definition counts: it could be the one that is meant, or not.
    fn unreadable(&mut self, name: &str) {
        if let Ok(name) = CapabilityName::of_kind(self.kind, name) {
            self.names.insert(name);
        }
        if self.kind == CapabilityKind::Skill {
            self.list.skills.push(name.to_owned());
        }
        self.skip(name, SkipReason::Unreadable);
    }

    fn skip(&mut self, name: &str, why: SkipReason) {
        if self.list.skipped.len() < MAX_SKIPPED {
            self.list.skipped.push(Skipped {
                kind: self.kind,
                name: text::one_line(name, 128),
                why,
            });
        }
    }

    fn try_add(&mut self, name: &str, tool: Value) -> Result<(), SkipReason> {
        let name = CapabilityName::of_kind(self.kind, name);
        let name = name.map_err(|error| match self.kind {
            CapabilityKind::Tool | CapabilityKind::Prompt => SkipReason::Name,
            CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => {
                SkipReason::Entry(error.sentence())
            }
        })?;
        if name.as_str() == Definition::unlisted().name.as_str() {
            return Err(SkipReason::Name);
        }
        let Value::Object(mut members) = tool else { return Err(SkipReason::Malformed) };
        if self.names.contains(&name) {
            return Err(SkipReason::Duplicate);
        }
        let definition = match self.kind {
            CapabilityKind::Tool => self.tool(&name, &mut members)?,
            CapabilityKind::Prompt => prompt(&name, &mut members)?,
            CapabilityKind::Resource | CapabilityKind::Template => {
                let mut definition = resource(self.kind, &name, &members);
                let ui = members.get(META).and_then(|meta| meta.get(UI));
                let ui = ui.filter(|ui| ui.is_object() && self.apps.is_some());
                if let (Some(ui), Value::Object(more)) = (ui, &mut definition.more) {
                    more.insert(UI.to_owned(), ui.clone());
                }
                definition
            }
            CapabilityKind::Skill => {
                let more = skills::of_entry(name.as_str(), &members, self.dynamic_skills);
                let skill = Definition::skill(name.clone(), more.map_err(SkipReason::Entry)?);
                self.names.insert(name);
                self.list.definitions.push(skill);
                return Ok(());
            }
        };
        self.names.insert(name);
        self.list.definitions.push(Definition {
            title: short(members.get("title"), MAX_TITLE_CHARS),
            description: short(members.get("description"), MAX_DESCRIPTION_CHARS),
            ..definition
        });
        Ok(())
    }

    fn tool(
        &mut self,
        name: &CapabilityName,
        members: &mut Map<String, Value>,
    ) -> Result<Definition, SkipReason> {
        let input = members.remove("inputSchema").filter(Value::is_object);
        let input = input.ok_or(SkipReason::Malformed)?;
        if self.headers == Headers::Mirrored {
            let params = params::find(&input).map_err(|_| SkipReason::HeaderAnnotation)?;
            if !params.is_empty() {
                self.params.insert(name.clone(), params.into());
            }
        }
        let seen = |schema| text::visible_schema(schema).ok_or(SkipReason::HiddenCharacters);
        let output = members.remove("outputSchema").filter(|schema| !schema.is_null());
        let annotations = members.remove("annotations").filter(Value::is_object);
        let meta = members.get(META).filter(|_| self.apps.is_some());
        let ui = meta.and_then(apps::of_tool);
        Ok(Definition {
            output_schema: output.map(seen).transpose()?,
            annotations: annotations.map(seen).transpose()?.unwrap_or(Value::Null),
            more: ui.unwrap_or_default(),
            ..Definition::new(name.clone(), seen(input)?)
        })
    }
}

/// About the bytes that a value takes as text.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.as_str().len() + 1,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(weight).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(name, member)| name.len() + 4 + weight(member)).sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_core::json::Document;

    fn page(value: &Value) -> Reply {
        Reply { result: Document::of(value), unreadable: Vec::new(), is_mended: false, peer: 0 }
    }

    fn one_page(tools: &Value) -> DefinitionList {
        let mut collector = Collector::new(CapabilityKind::Tool, Headers::Mirrored, None);
        collector.add_page(&page(&json!({ "tools": tools }))).unwrap();
        collector.finish().0
    }

    #[test]
    fn unusable_tools_are_skipped_by_name_and_the_others_stay() {
        let list = one_page(&json!([
            {"name": "good", "inputSchema": {"type": "object"}},
            {"name": "good", "inputSchema": {"type": "object"}},
            {"name": "bad\u{200b}name\n", "inputSchema": {"type": "object"}},
            {"name": "no_schema"},
            {"name": "hidden", "inputSchema": {"properties": {"a\u{200b}": {}}}},
            {"name": "header", "inputSchema": {"x-mcp-header": "A"}},
            7,
        ]));

        let skipped: Vec<_> =
            list.skipped.iter().map(|skipped| (skipped.name.as_str(), skipped.why)).collect();
        assert_eq!(list.definitions.len(), 1);
        assert_eq!(
            skipped,
            [
                ("good", SkipReason::Duplicate),
                ("badname ", SkipReason::Name),
                ("no_schema", SkipReason::Malformed),
                ("hidden", SkipReason::HiddenCharacters),
                ("header", SkipReason::HeaderAnnotation),
                ("", SkipReason::Name),
            ]
        );
    }

    #[test]
    fn unreadable_definitions_are_skipped_by_name_and_have_no_stand_in() {
        let mut collector = Collector::new(CapabilityKind::Tool, Headers::None, None);
        let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
        let tools = json!({"tools": [tool("a"), tool("b")]});
        let unreadable = ["b", ""].map(str::to_owned).into();
        collector.add_page(&Reply { unreadable, ..page(&tools) }).unwrap();

        let (list, _) = collector.finish();

        let skipped: Vec<_> = list.skipped.iter().map(|it| (it.name.as_str(), it.why)).collect();
        assert_eq!(list.definitions.len(), 1);
        assert_eq!(
            skipped,
            [
                ("b", SkipReason::Unreadable),
                ("", SkipReason::Unreadable),
                ("b", SkipReason::Duplicate),
            ]
        );
    }

    #[test]
    fn titles_and_descriptions_are_cleaned_and_cut() {
        let long = "x".repeat(9000);
        let list = one_page(&json!([{
            "name": "a", "title": "T\u{202e}", "description": long,
            "inputSchema": {"type": "object"}, "annotations": {"title": "\u{e0041}x"},
        }]));

        let tool = &list.definitions[0];
        assert_eq!(tool.title.as_deref(), Some("T"));
        assert_eq!(tool.description.as_ref().map(String::len), Some(MAX_DESCRIPTION_CHARS));
        assert_eq!(tool.annotations, json!({"title": "x"}));
    }

    #[test]
    fn too_many_tools_pages_or_bytes_end_the_list() {
        let tool = |name: String, text: &str| json!({"name": name, "inputSchema": {"type": "object"}, "x": text});
        let many: Vec<_> = (0..=1_000).map(|n| tool(format!("t{n}"), "")).collect();
        let large: Vec<_> = (0..3).map(|n| tool(format!("t{n}"), &"x".repeat(1 << 20))).collect();

        let many = one_page(&json!(many));
        let large = one_page(&json!(large));

        let tools = vec![CapabilityKind::Tool];
        assert_eq!((many.definitions.len(), &many.truncated), (1_000, &tools));
        assert_eq!((large.definitions.len(), &large.truncated), (1, &tools));
    }

    #[test]
    fn ten_times_as_many_resources_as_tools_are_read() {
        let resource = |n: usize| json!({"uri": format!("x://{n}"), "name": "a"});
        let many =
            |count: usize| json!({ "resources": (0..count).map(resource).collect::<Value>() });
        let resources = vec![CapabilityKind::Resource];
        for (count, truncated) in [(10_000, vec![]), (10_001, resources)] {
            let mut collector = Collector::new(CapabilityKind::Resource, Headers::None, None);
            collector.add_page(&page(&many(count))).unwrap();
            let list = collector.finish().0;
            let listed = list.definitions.iter().filter(|it| it.name.as_str() != "*").count();
            assert_eq!((listed, list.truncated), (10_000, truncated));
        }
    }

    #[test]
    fn pages_end_at_the_twentieth_or_where_a_cursor_repeats_or_says_nothing() {
        let mut collector = Collector::new(CapabilityKind::Tool, Headers::None, None);
        let next = |n: usize| page(&json!({"tools": [], "nextCursor": format!("c{n}")}));
        let pages = (1..100).take_while(|n| collector.add_page(&next(*n)).unwrap().is_some());

        assert_eq!(pages.count() + 1, 20);
        assert_eq!(collector.finish().0.truncated, [CapabilityKind::Tool]);

        let mut looping = Collector::new(CapabilityKind::Tool, Headers::None, None);
        let tool = json!({"name": "a", "inputSchema": {"type": "object"}});
        looping.add_page(&page(&json!({"tools": [tool], "nextCursor": "c1"}))).unwrap();
        assert_eq!(looping.add_page(&next(1)).unwrap(), None);
        let list = looping.finish().0;
        assert_eq!((list.definitions.len(), list.truncated), (1, vec![CapabilityKind::Tool]));

        let mut ended = Collector::new(CapabilityKind::Tool, Headers::None, None);
        assert_eq!(ended.add_page(&page(&json!({"tools": [], "nextCursor": ""}))).unwrap(), None);
        assert!(ended.finish().0.truncated.is_empty());
    }
}
