//! Parts of the context that a policy reads: only those are built for a decision.

use std::collections::BTreeMap;

use cedar_policy::pst::{BinaryOp, Expr, Literal, PatternElem, Var};
use cedar_policy_core::ast;

/// The member under which the tags of the principal stand that are read. No context has a member
/// of this name.
pub(in crate::policy) const TAGS: &str = "principal";

/// A tree of context members, and of the principal's tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::policy) struct Paths {
    /// The value itself is read, with all it holds.
    whole: bool,
    members: BTreeMap<String, Paths>,
}

static WHOLE: Paths = Paths { whole: true, members: BTreeMap::new() };

impl Paths {
    /// Everything.
    pub(in crate::policy) fn whole() -> &'static Self {
        &WHOLE
    }

    /// Returns true if everything below is read.
    pub(in crate::policy) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Paths that are read below the member `name`; `None` when nothing is.
    pub(in crate::policy) fn member(&self, name: &str) -> Option<&Self> {
        if self.whole { Some(&WHOLE) } else { self.members.get(name) }
    }

    /// Returns true if nothing beside these members is read.
    pub(in crate::policy) fn is_within(&self, members: &[&str]) -> bool {
        !self.whole && self.members.keys().all(|name| members.contains(&name.as_str()))
    }

    /// The members that are read one by one.
    pub(in crate::policy) fn members(&self) -> impl Iterator<Item = (&String, &Self)> {
        self.members.iter()
    }

    /// Adds what `other` reads.
    pub(in crate::policy) fn merge(&mut self, other: &Self) {
        self.whole |= other.whole;
        for (name, paths) in &other.members {
            self.members.entry(name.clone()).or_default().merge(paths);
        }
    }

    /// The paths that are read here and are not within `known`, as policies write them.
    pub(in crate::policy) fn beyond(&self, known: &Self) -> Vec<String> {
        let mut found = Vec::new();
        self.list_beyond(known, "context", &mut found);
        found
    }

    fn list_beyond(&self, known: &Self, prefix: &str, found: &mut Vec<String>) {
        if known.whole {
            return;
        }
        if self.whole {
            found.push(prefix.to_owned());
            return;
        }
        for (name, paths) in &self.members {
            let path = step(prefix, name);
            match known.members.get(name) {
                Some(known) => paths.list_beyond(known, &path, found),
                None if paths.whole || paths.members.is_empty() => found.push(path),
                None => paths.list(&path, found),
            }
        }
    }

    /// The paths of the principal's tags, and those alone.
    pub(in crate::policy) fn tag_paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(tags) = self.member(TAGS) {
            let path = step("context", TAGS);
            if tags.whole || tags.members.is_empty() {
                found.push(path);
            } else {
                tags.list(&path, &mut found);
            }
        }
        found
    }

    /// Adds what is read below a member.
    pub(in crate::policy) fn add(&mut self, member: &str, read: &Self) {
        self.members.entry(member.to_owned()).or_default().merge(read);
    }

    /// Makes the path known with everything below it.
    pub(in crate::policy) fn add_whole<'a>(&mut self, path: impl IntoIterator<Item = &'a str>) {
        self.insert(path, true);
    }

    fn insert<'a>(&mut self, path: impl IntoIterator<Item = &'a str>, whole: bool) {
        let mut at = self;
        for name in path {
            at = at.members.entry(name.to_owned()).or_default();
        }
        at.whole |= whole;
    }

    /// Each path as policies write it, such as `context.input.amount`.
    pub(in crate::policy) fn listing(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.list("context", &mut found);
        found
    }

    fn list(&self, prefix: &str, found: &mut Vec<String>) {
        for (name, paths) in &self.members {
            let path = step(prefix, name);
            if paths.whole || paths.members.is_empty() {
                found.push(path);
            } else {
                paths.list(&path, found);
            }
        }
        if self.whole && prefix == "context" {
            found.push(prefix.to_owned());
        }
    }
}

/// As [`join`]; tags are written below `principal.tags`.
fn step(prefix: &str, name: &str) -> String {
    if prefix == "context" && name == TAGS {
        "principal.tags".to_owned()
    } else {
        join(prefix, name)
    }
}

/// `prefix.name`, or `prefix["na me"]` when the name is no identifier.
pub(in crate::policy) fn join(prefix: &str, name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if plain {
        format!("{prefix}.{name}")
    } else {
        format!("{prefix}[{}]", serde_json::Value::from(name))
    }
}

/// Paths that the conditions of a policy read.
#[derive(Debug, Default)]
pub(in crate::policy) struct Reads {
    pub(in crate::policy) paths: Paths,
    /// A tag is matched with `like "*…*"`, which also matches inside other words.
    pub(in crate::policy) loose_tag: bool,
}

/// Paths that a condition reads; everything, if the library cannot tell its parts.
pub(in crate::policy) fn of(condition: &ast::Expr) -> Reads {
    let mut reads = Reads::default();
    let Ok(condition) = Expr::try_from(condition.clone()) else {
        reads.paths.whole = true;
        return reads;
    };
    // An explicit stack, because expressions nest as deep as a file is long.
    let mut open = vec![&condition];
    while let Some(expr) = open.pop() {
        if let Some(path) = context_path(expr) {
            reads.paths.insert(path, true);
        } else {
            visit(expr, &mut open, &mut reads);
        }
    }
    reads
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the library may add kinds of expressions")]
fn visit<'a>(expr: &'a Expr, open: &mut Vec<&'a Expr>, reads: &mut Reads) {
    match expr {
        Expr::GetAttr { expr, attr } if is_of_login(expr, attr.as_str()) => {
            reads.paths.insert([TAGS, attr.as_str()], false);
        }
        Expr::UnaryOp { expr, .. } | Expr::GetAttr { expr, .. } => open.push(expr),
        Expr::BinaryOp { op: BinaryOp::GetTag | BinaryOp::HasTag, left, right } => {
            let tag = tag_name(right);
            let whole = tag.is_none();
            reads.paths.insert(std::iter::once(TAGS).chain(tag), whole);
            open.extend([&**left, &**right]);
        }
        Expr::BinaryOp { left, right, .. } => open.extend([&**left, &**right]),
        Expr::HasAttr { expr, attrs } => {
            let mut names = attrs.iter().map(smol);
            if let Some(mut path) = context_path(expr) {
                path.extend(names);
                reads.paths.insert(path, false);
            } else if let Some(attr) = names.find(|attr| is_of_login(expr, attr)) {
                reads.paths.insert([TAGS, attr], false);
            } else {
                open.push(expr);
            }
        }
        Expr::Like { expr, pattern } => {
            let open_ended = |end: Option<&PatternElem>| end == Some(&PatternElem::Wildcard);
            let loose = open_ended(pattern.first()) && open_ended(pattern.last());
            reads.loose_tag |= loose && is_tag(expr);
            open.push(expr);
        }
        Expr::Is { expr, in_expr, .. } => {
            open.push(expr);
            open.extend(in_expr.as_deref());
        }
        Expr::IfThenElse { cond, then_expr, else_expr } => {
            open.extend([&**cond, &**then_expr, &**else_expr]);
        }
        Expr::Set(items) => open.extend(items.iter().map(|item| &**item)),
        Expr::Record(members) => open.extend(members.values().map(|member| &**member)),
        // `Unknown` and slots do not parse in a static policy; a new kind of expression may read
        // anything.
        Expr::Literal(_) | Expr::Var(_) => {}
        _ => reads.paths.whole = true,
    }
}

/// True for `principal.acr` and `principal.amr`, which say the same as the tags of these names.
fn is_of_login(expr: &Expr, attribute: &str) -> bool {
    matches!(expr, Expr::Var(Var::Principal)) && matches!(attribute, "acr" | "amr")
}

fn smol(text: &impl AsRef<str>) -> &str {
    text.as_ref()
}

fn is_tag(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOp::GetTag, .. })
}

/// The tag that is read, if that does not depend on the call.
fn tag_name(expr: &Expr) -> Option<&str> {
    if let Expr::Literal(Literal::String(name)) = expr { Some(name.as_str()) } else { None }
}

/// `context.a.b` as `["a", "b"]`.
fn context_path(mut expr: &Expr) -> Option<Vec<&str>> {
    let mut path = Vec::new();
    loop {
        if let Expr::GetAttr { expr: inner, attr } = expr {
            path.push(attr.as_str());
            expr = inner;
        } else {
            path.reverse();
            return matches!(expr, Expr::Var(Var::Context)).then_some(path);
        }
    }
}
