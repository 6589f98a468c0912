//! A JSON value laid flat into the scan buffer.

use portcullis_json::{JsonValue, Kind};

use crate::{
    body::{
        buffer::{Body, PathNode, PathStep, ROOT, UNLABELLED},
        folded::Folding,
        joins, media,
        segment::{Laid, Segment, SegmentKind, small},
        table_rows::ObjectTables,
        tables::FirstRows,
    },
    limits::{Limits, Unscannable},
    text::{labels, number::plain_number},
};

impl Body {
    /// Lays a value flat in place of what was here, or says which limit it exceeds.
    pub(crate) fn flatten<'a>(
        &mut self,
        value: impl JsonValue<'a>,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        self.clear();
        self.inner.begin(Folding::Unfolded);
        self.walk(value, ROOT, 0, limits)?;
        self.unfold(limits)
    }

    /// The same with JSON in texts left as text.
    pub(crate) fn flatten_outside<'a>(
        &mut self,
        value: impl JsonValue<'a>,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        self.clear();
        self.inner.begin(Folding::Left);
        self.walk(value, ROOT, 0, limits).map(drop)
    }

    /// Lays a value flat, and tells what it was.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "most values have no parts, and take less than a call"
    )]
    pub(super) fn walk<'a, T: JsonValue<'a>>(
        &mut self,
        value: T,
        node: u32,
        depth: usize,
        limits: &Limits,
    ) -> Result<Laid, Unscannable> {
        if depth > limits.max_depth {
            return Err(Unscannable::TooDeep { limit: limits.max_depth });
        }
        match value.kind() {
            Kind::Null | Kind::Bool(_) => Ok(Laid::Nothing),
            Kind::Text(text) => {
                let text = if self.may_fold(text) { self.fold(text, node, limits)? } else { text };
                self.push(text.as_bytes(), node, SegmentKind::Text, limits)?;
                Ok(Laid::Text)
            }
            Kind::Number(literal) => {
                let text = plain_number(literal);
                self.push(text.as_bytes(), node, SegmentKind::Number, limits)?;
                Ok(Laid::Number)
            }
            Kind::Array(elements) => self.walk_array(elements, node, depth + 1, limits),
            Kind::Object(members) => self.walk_object(value, members, node, depth + 1, limits),
        }
    }

    #[inline(never)]
    fn walk_array<'a, T: JsonValue<'a>>(
        &mut self,
        elements: impl Iterator<Item = T>,
        node: u32,
        depth: usize,
        limits: &Limits,
    ) -> Result<Laid, Unscannable> {
        let row = self.neighbours.begin();
        let start = self.segments.len();
        let mut rows = FirstRows::default();
        let mut pair = [Laid::Nothing; 2];
        let mut count = 0;
        for (index, element) in (0..).zip(elements) {
            let child = self.node(node, PathStep::Element { index }, limits)?;
            let first = self.segments.len();
            let laid = self.walk(element, child, depth, limits)?;
            if let Some(segment) = joins::joining(self, laid, first) {
                self.neighbours.add(segment);
            }
            if let Some(of_pair) = pair.get_mut(count) {
                *of_pair = laid;
                rows.look(index, laid, element);
            }
            count += 1;
        }
        self.neighbours.end(node, row);
        rows.note(&mut self.tables, node, start);
        if count == 2 {
            self.label_pair(pair, start);
        }
        Ok(Laid::Array)
    }

    #[inline(never)]
    fn walk_object<'a, T: JsonValue<'a>>(
        &mut self,
        value: T,
        members: impl Iterator<Item = (&'a str, T)>,
        node: u32,
        depth: usize,
        limits: &Limits,
    ) -> Result<Laid, Unscannable> {
        let start = self.segments.len();
        let mut parts = ObjectTables::default();
        let mut numbered = joins::Numbered::default();
        let mut has_text = false;
        for (key, member) in members {
            let step = PathStep::Member { key: small(self.segments.len()) };
            let child = self.node(node, step, limits)?;
            self.push(key.as_bytes(), child, SegmentKind::Key, limits)?;
            self.media += u32::from(media::is_one(key, member, value));
            let first = self.segments.len();
            let laid = self.walk(member, child, depth, limits)?;
            has_text |= laid == Laid::Text && key == "text";
            parts.look(self, key, laid, member, child, first);
            numbered.look(key, laid, first);
        }
        numbered.note(&mut self.neighbours, node);
        parts.note(self, node, start);
        Ok(Laid::Object { has_text })
    }

    /// Names the second of two texts, or of a text and a number, by the first. Both may as well be
    /// items of one kind, so the first must look like a name and the second like none.
    fn label_pair(&mut self, pair: [Laid; 2], first: usize) {
        let text = |at: usize| {
            let segment = self.segments.get(at).map(Segment::range);
            self.slice(segment.unwrap_or_default())
        };
        let is_named = match pair {
            [Laid::Text, Laid::Text] => !labels::is_word(text(first + 1)),
            [Laid::Text, Laid::Number] => true,
            _ => false,
        };
        if is_named && labels::may_label(text(first)) {
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

    #[inline]
    pub(super) fn node(
        &mut self,
        parent: u32,
        step: PathStep,
        limits: &Limits,
    ) -> Result<u32, Unscannable> {
        if self.nodes.len() >= limits.max_nodes {
            return Err(Unscannable::TooManyNodes { limit: limits.max_nodes });
        }
        self.nodes.push(PathNode { parent, step, label: UNLABELLED });
        Ok(small(self.nodes.len() - 1))
    }

    #[inline]
    pub(super) fn push(
        &mut self,
        text: &[u8],
        node: u32,
        kind: SegmentKind,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        if self.text.len() + self.inner.waiting() + text.len() > limits.max_bytes {
            return Err(Unscannable::TooLarge { limit: limits.max_bytes });
        }
        self.append(text, node, kind);
        Ok(())
    }
}
