//! The texts of an event's row.

use std::ops::Range;

/// A column of an event's row with a text of any length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextColumn {
    /// To what: a tool id, a provider id, a policy name.
    Target,
    Policy,
    /// The part that is hashed, as JSON, without sequence and time of recording.
    Core,
    /// The erasable part, as JSON.
    Detached,
    /// The salts of the erasable part, as JSON.
    Salts,
}

/// Texts by their column, one behind the other in one piece of memory.
#[derive(Debug, Clone, Default)]
pub struct EventTexts {
    text: String,
    places: [Option<Range<usize>>; 5],
}

impl EventTexts {
    /// None yet, with room for so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ..Self::default() }
    }

    /// Sets the text of a column to what `write` appends.
    pub fn write(&mut self, column: TextColumn, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        let end = self.text.len();
        if let Some(place) = self.places.get_mut(column as usize) {
            *place = Some(start..end);
        }
    }

    /// The same with this text in a column.
    #[must_use]
    pub fn with(mut self, column: TextColumn, text: &str) -> Self {
        self.write(column, |texts| texts.push_str(text));
        self
    }

    /// The text of a column, if it has one.
    #[must_use]
    pub fn of(&self, column: TextColumn) -> Option<&str> {
        let place = self.places.get(column as usize).cloned().flatten()?;
        self.text.get(place)
    }

    /// The part that is hashed.
    #[must_use]
    pub fn core(&self) -> &str {
        self.of(TextColumn::Core).unwrap_or_default()
    }
}
