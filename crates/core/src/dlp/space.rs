//! Room to scan in, kept by each thread for the next value.
//!
//! Most values are small and many. Asking for memory, and having it zeroed page by page, would cost
//! as much as a good part of looking at them.

use std::cell::Cell;

use super::{body::Body, scan::Desk, views::Views};

/// What one scan writes into.
#[derive(Default)]
pub(super) struct Space {
    pub(super) body: Body,
    pub(super) views: Views,
    pub(super) desk: Desk,
}

/// A thread keeps no more than about this many bytes, a little more than what a megabyte of JSON takes;
/// what a larger value took is given back.
const KEPT: usize = 4 << 20;

thread_local! {
    static SPACE: Cell<Option<Box<Space>>> = const { Cell::new(None) };
}

/// Does something with an empty space, and empties it again.
pub(super) fn with<T>(act: impl FnOnce(&mut Space) -> T) -> T {
    let mut space = SPACE.take().unwrap_or_default();
    let done = act(&mut space);
    space.clear();
    if space.body.room() <= KEPT {
        SPACE.set(Some(space));
    }
    done
}

impl Space {
    fn clear(&mut self) {
        self.body.clear();
        self.views.clear();
        self.desk.clear();
    }
}
