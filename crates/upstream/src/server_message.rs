//! The words of a server that answered a call with an error.

use std::{fmt, sync::OnceLock};

/// Longest text that is kept, in characters.
const LONGEST: usize = 1_000;

/// The words of a server beside its error. They are its own and unchecked.
#[derive(Default)]
pub struct ServerWords(OnceLock<String>);

impl ServerWords {
    /// The text, if there is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.0.get().map(String::as_str).filter(|text| !text.trim().is_empty())
    }

    /// Keeps a text, unless one is kept already.
    pub fn hear(&self, text: &str) {
        let _ = self.0.set(cut(text));
    }
}

/// A text of a server, cut.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Without the words.
impl fmt::Debug for ServerWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerWords").finish_non_exhaustive()
    }
}
