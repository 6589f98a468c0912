//! A JSON text and the flat table of its values.

use std::{cmp::Ordering, collections::BTreeMap};

use super::canonical::{by_utf16, first_special, is_canonical_number, write_string};

/// An object of more members has them in order as well, to be found by halving.
const FEW: u32 = 16;

/// A text and its values. A container stands before what it holds, a name before its member.
#[derive(Clone, Default)]
pub(super) struct Table {
    pub(super) text: String,
    pub(super) entries: Vec<Entry>,
    /// The texts that have escapes, without them.
    pub(super) unescaped: String,
    /// The ends of these texts. Each begins at the end of the one before.
    ends: Vec<u32>,
    /// By the entries of large objects, those of their names in the order of the names.
    orders: BTreeMap<u32, Box<[u32]>>,
    /// There are line breaks between the values.
    pub(super) has_breaks: bool,
}

/// A value or a name of a member.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) kind: EntryKind,
    pub(super) is_escaped: bool,
    pub(super) is_canonical: bool,
    /// Offset in the text, without the quotation marks of a text or a name.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The entry behind everything in it.
    pub(super) next: u32,
    /// The number of items or members, or which of the texts with escapes it is.
    pub(super) extra: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Null,
    False,
    True,
    Number,
    Text,
    Array,
    Object,
    Name,
}

/// Lengths stay below 2³²: the maker of a table bounds its text.
pub(super) fn small(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Position to which a table can be cut back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    entries: usize,
    unescaped: usize,
    ends: usize,
}

impl Table {
    /// Room for the values of a text of this length, as far as they are usual.
    pub(super) fn for_text(text: &str) -> Self {
        let entries = Vec::with_capacity((text.len() / 8).clamp(4, 1 << 16));
        Self { text: text.to_owned(), entries, ..Self::default() }
    }

    #[inline]
    pub(super) fn entry(&self, at: u32) -> Option<&Entry> {
        self.entries.get(at as usize)
    }

    pub(super) fn len(&self) -> u32 {
        small(self.entries.len())
    }

    pub(super) fn push(&mut self, kind: EntryKind, start: usize, end: usize, canonical: bool) {
        let next = self.len().saturating_add(1);
        let start = small(start);
        let end = small(end);
        self.entries.push(Entry {
            kind,
            is_escaped: false,
            is_canonical: canonical,
            start,
            end,
            next,
            extra: 0,
        });
    }

    /// Adds a text or a name that has escapes, without them.
    pub(super) fn push_escaped(
        &mut self,
        kind: EntryKind,
        start: usize,
        end: usize,
        text: &str,
        canonical: bool,
    ) {
        self.unescaped.push_str(text);
        self.push_unescaped(kind, start, end, canonical);
    }

    /// Adds a text or a name that has escapes and was added to `unescaped` without them.
    pub(super) fn push_unescaped(
        &mut self,
        kind: EntryKind,
        start: usize,
        end: usize,
        canonical: bool,
    ) {
        self.push(kind, start, end, canonical);
        let which = small(self.ends.len());
        self.ends.push(small(self.unescaped.len()));
        if let Some(entry) = self.entries.last_mut() {
            (entry.is_escaped, entry.extra) = (true, which);
        }
    }

    /// Returns true if the names at these entries are in canonical order.
    pub(super) fn are_in_order(&self, one: u32, other: u32) -> bool {
        by_utf16(self.name_at(one), self.name_at(other)).is_lt()
    }

    /// Ends the container that began at this entry.
    pub(super) fn close(&mut self, at: u32, end: usize, count: u32, canonical: bool) {
        let next = self.len();
        if let Some(entry) = self.entries.get_mut(at as usize) {
            entry.end = small(end);
            entry.next = next;
            entry.extra = count;
            entry.is_canonical = canonical;
        }
    }

    /// The text of a text or a name, without escapes; of another value its literal.
    #[inline]
    pub(super) fn text_of(&self, entry: &Entry) -> &str {
        let (text, range) = if entry.is_escaped {
            let which = entry.extra as usize;
            let before = which.checked_sub(1).and_then(|which| self.ends.get(which));
            let end = self.ends.get(which).copied().unwrap_or(0);
            (&self.unescaped, before.copied().unwrap_or(0)..end)
        } else {
            (&self.text, entry.start..entry.end)
        };
        text.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// A value as it stands in the text.
    pub(super) fn raw(&self, entry: &Entry) -> &str {
        let quote = u32::from(matches!(entry.kind, EntryKind::Text | EntryKind::Name));
        let start = entry.start.saturating_sub(quote);
        let end = entry.end.saturating_add(quote);
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The text of the member whose value is at this entry, if name and value stand in canonical form with
    /// nothing but a colon between them.
    pub(super) fn canonical_member(&self, at: u32) -> Option<&str> {
        let [name, value] = self.entries.get(at.checked_sub(1)? as usize..)?.first_chunk()?;
        let is_whole = name.kind == EntryKind::Name && name.is_canonical && value.is_canonical;
        let quote = u32::from(value.kind == EntryKind::Text);
        let joined = name.end.saturating_add(2) == value.start.saturating_sub(quote);
        let range = name.start.saturating_sub(1) as usize..value.end.saturating_add(quote) as usize;
        self.text.get(range).filter(|_| is_whole && joined)
    }

    #[inline]
    fn name_at(&self, at: u32) -> &str {
        self.entry(at).map(|entry| self.text_of(entry)).unwrap_or_default()
    }

    /// The entries of the names in the object at this entry.
    fn names(&self, object: u32) -> impl Iterator<Item = u32> {
        let end = self.entry(object).map_or(0, |entry| entry.next);
        let first = object.saturating_add(1);
        let after = move |name: &u32| {
            self.entry(name.saturating_add(1)).map(|value| value.next).filter(|next| *next < end)
        };
        std::iter::successors((first < end).then_some(first), after)
    }

    /// The entry of the member of this name in the object at this entry.
    pub(super) fn find(&self, object: u32, name: &str) -> Option<u32> {
        let found = match self.orders.get(&object) {
            Some(order) => {
                let at = order.binary_search_by(|at| self.name_at(*at).cmp(name)).ok()?;
                order.get(at).copied()
            }
            None => self.names(object).find(|at| self.name_at(*at) == name),
        };
        found.map(|name| name.saturating_add(1))
    }

    /// The text or the name that was added last.
    #[inline]
    pub(super) fn last_text(&self) -> Option<&str> {
        self.entries.last().map(|entry| self.text_of(entry))
    }

    /// Returns true if the object that is being read, of which the last entry is a name, has that
    /// name already. Objects of many members are looked through when they end.
    pub(super) fn repeats(&self, object: u32, count: u32) -> bool {
        if count > FEW {
            return false;
        }
        let Some(name) = self.last_text() else { return false };
        let length = small(name.len());
        let mut at = object.saturating_add(1);
        for _ in 0..count {
            let Some([known, value]) = self.entries.get(at as usize..).and_then(<[_]>::first_chunk)
            else {
                return false;
            };
            let may_be = known.is_escaped || known.end - known.start == length;
            if may_be && self.text_of(known) == name {
                return true;
            }
            at = value.next;
        }
        false
    }

    /// Puts the members of a large object in order once it has ended; returns true if two of them
    /// have one name.
    pub(super) fn order(&mut self, object: u32, count: u32) -> bool {
        if count <= FEW {
            return false;
        }
        let mut names: Vec<u32> = self.names(object).collect();
        names.sort_unstable_by(|a, b| self.name_at(*a).cmp(self.name_at(*b)));
        let equal = |pair: &[u32]| match pair {
            [one, other] => self.name_at(*one).cmp(self.name_at(*other)) == Ordering::Equal,
            _ => false,
        };
        if names.windows(2).any(equal) {
            return true;
        }
        self.orders.insert(object, names.into_boxed_slice());
        false
    }

    pub(super) fn mark(&self) -> Mark {
        let entries = self.entries.len();
        let unescaped = self.unescaped.len();
        let ends = self.ends.len();
        Mark { entries, unescaped, ends }
    }

    /// Forgets everything behind a mark.
    pub(super) fn cut(&mut self, mark: Mark) {
        self.entries.truncate(mark.entries);
        self.unescaped.truncate(mark.unescaped);
        self.ends.truncate(mark.ends);
        drop(self.orders.split_off(&small(mark.entries)));
    }

    /// Writes a text or a name at the end.
    pub(super) fn write_text(&mut self, kind: EntryKind, text: &str) {
        let start = self.text.len() + 1;
        write_string(text, &mut self.text);
        let end = self.text.len() - 1;
        if first_special(text.as_bytes()).is_none() {
            self.push(kind, start, end, true);
        } else {
            self.push_escaped(kind, start, end, text, true);
        }
    }

    /// Writes a value without parts at the end.
    pub(super) fn write_literal(&mut self, kind: EntryKind, literal: &str) {
        let start = self.text.len();
        self.text.push_str(literal);
        let canonical = kind != EntryKind::Number || is_canonical_number(literal);
        self.push(kind, start, self.text.len(), canonical);
    }

    /// Copies the value at an entry of another table to the end.
    pub(super) fn copy(&mut self, from: &Self, at: u32) {
        let Some(root) = from.entry(at) else { return };
        let here = self.len();
        let text = self.text.len();
        let raw = from.raw(root);
        let begin = root.start - u32::from(matches!(root.kind, EntryKind::Text | EntryKind::Name));
        self.text.push_str(raw);
        self.has_breaks |= from.has_breaks;
        let range = at as usize..root.next as usize;
        for entry in from.entries.get(range).unwrap_or_default() {
            let place = |old: u32| small(text + (old - begin) as usize);
            let mut copied = *entry;
            (copied.start, copied.end) = (place(entry.start), place(entry.end));
            copied.next = entry.next - at + here;
            if entry.is_escaped {
                self.unescaped.push_str(from.text_of(entry));
                copied.extra = small(self.ends.len());
                self.ends.push(small(self.unescaped.len()));
            }
            self.entries.push(copied);
        }
        for (object, order) in from.orders.range(at..root.next) {
            let order = order.iter().map(|name| name - at + here).collect();
            self.orders.insert(object - at + here, order);
        }
    }
}
