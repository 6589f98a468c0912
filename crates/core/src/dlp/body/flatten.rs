//! A JSON value laid flat into the scan buffer.

use crate::{
    dlp::{
        body::{
            buffer::{Body, Neighbours, PathNode, PathStep, ROOT, UNLABELLED},
            joins, media,
            segment::{SegmentKind, small},
            table_rows::ObjectTables,
            tables::FirstRows,
        },
        limits::{Limits, Unscannable},
        text::{labels, number::plain_number},
    },
    json::{JsonValue, Kind},
};

impl Body {
    /// Lays a value flat in place of what was here, or says which limit it exceeds.
    pub(in crate::dlp) fn flatten<'a>(
        &mut self,
        value: impl JsonValue<'a>,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        self.clear();
        self.walk(value, ROOT, 0, limits)
    }

    fn walk<'a, T: JsonValue<'a>>(
        &mut self,
        value: T,
        node: u32,
        depth: usize,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        if depth > limits.max_depth {
            return Err(Unscannable::TooDeep { limit: limits.max_depth });
        }
        match value.kind() {
            Kind::Null | Kind::Bool(_) => {}
            Kind::Text(text) => self.push(text.as_bytes(), node, SegmentKind::Text, limits)?,
            Kind::Number(literal) => {
                let text = plain_number(literal);
                self.push(text.as_bytes(), node, SegmentKind::Number, limits)?;
            }
            Kind::Array(elements) => {
                let mut neighbours = Neighbours::new();
                let start = self.segments.len();
                let mut rows = FirstRows::default();
                let mut ahead = elements.clone();
                let pair = (ahead.next(), ahead.next(), ahead.next());
                for (index, element) in (0..).zip(elements) {
                    let child = self.node(node, PathStep::Element { index }, limits)?;
                    let first = self.segments.len();
                    self.walk(element, child, depth + 1, limits)?;
                    neighbours.extend(joins::joining(self, element, first));
                    rows.look(index, element);
                }
                if neighbours.len() > 1 {
                    self.neighbours.push((node, neighbours));
                }
                rows.note(&mut self.tables, node, start);
                if let (Some(name), Some(value), None) = pair {
                    self.label_pair(name, value, start);
                }
            }
            Kind::Object(members) => {
                let mut parts = ObjectTables::default();
                let mut numbered = joins::Numbered::default();
                for (key, member) in members {
                    let step = PathStep::Member { key: small(self.segments.len()) };
                    let child = self.node(node, step, limits)?;
                    self.push(key.as_bytes(), child, SegmentKind::Key, limits)?;
                    self.media += u32::from(media::is_one(key, member, value));
                    let first = self.segments.len();
                    self.walk(member, child, depth + 1, limits)?;
                    parts.look(self, key, member, child, first);
                    numbered.look(key, member, first);
                }
                self.neighbours.extend(numbered.rows().into_iter().map(|row| (node, row)));
                parts.note(self);
            }
        }
        Ok(())
    }

    /// Names the second of two texts, or of a text and a number, by the first. Both may as well be
    /// items of one kind, so the first must look like a name and the second like none.
    fn label_pair<'a, T: JsonValue<'a>>(&mut self, name: T, value: T, first: usize) {
        let is_name = || name.text().is_some_and(|it| labels::may_label(it.as_bytes()));
        let is_named = match value.kind() {
            Kind::Text(text) => !labels::is_word(text.as_bytes()),
            Kind::Number(_) => true,
            Kind::Null | Kind::Bool(_) | Kind::Array(_) | Kind::Object(_) => false,
        };
        if is_named && is_name() {
            let node = self.segments.get(first + 1).map(|value| value.node);
            self.label(node, small(first));
        }
    }

    /// Names a place by a text beside it.
    pub(super) fn label(&mut self, node: Option<u32>, label: u32) {
        let place = node.and_then(|node| self.nodes.get_mut(node as usize));
        if let Some(place) = place {
            place.label = label;
            self.tables.add_name(label);
        }
    }

    fn node(&mut self, parent: u32, step: PathStep, limits: &Limits) -> Result<u32, Unscannable> {
        if self.nodes.len() >= limits.max_nodes {
            return Err(Unscannable::TooManyNodes { limit: limits.max_nodes });
        }
        self.nodes.push(PathNode { parent, step, label: UNLABELLED });
        Ok(small(self.nodes.len() - 1))
    }

    fn push(
        &mut self,
        text: &[u8],
        node: u32,
        kind: SegmentKind,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        if self.text.len() + text.len() > limits.max_bytes {
            return Err(Unscannable::TooLarge { limit: limits.max_bytes });
        }
        self.append(text, node, kind);
        Ok(())
    }
}
