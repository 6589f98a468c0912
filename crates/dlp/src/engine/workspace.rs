//! Room to scan in, kept by each thread for the next value.
//!
//! Most values are small and many. Asking for memory, and having it zeroed page by page, would cost
//! as much as a good part of looking at them.

use std::cell::Cell;

use crate::{
    body::buffer::Body, engine::gather::Groups, scan::scanner::Scratch, views::view::Views,
};

/// Memory that one scan writes into.
#[derive(Default)]
pub(crate) struct Workspace {
    pub(crate) body: Body,
    pub(crate) views: Views,
    pub(crate) scratch: Scratch,
    pub(crate) groups: Groups,
}

/// A thread keeps no more than about this many bytes, a little more than what a megabyte of JSON takes
/// that is all short values; what a larger value took is given back.
const KEPT: usize = 8 << 20;

thread_local! {
    static WORKSPACE: Cell<Option<Box<Workspace>>> = const { Cell::new(None) };
}

/// Does something with an empty space, and empties it again.
pub(crate) fn with<T>(act: impl FnOnce(&mut Workspace) -> T) -> T {
    let mut workspace = WORKSPACE.take().unwrap_or_default();
    let done = act(&mut workspace);
    workspace.clear();
    if workspace.body.room() + workspace.groups.room() <= KEPT {
        WORKSPACE.set(Some(workspace));
    }
    done
}

impl Workspace {
    fn clear(&mut self) {
        self.body.clear();
        self.views.clear();
        self.scratch.clear();
        self.groups.clear();
    }
}
