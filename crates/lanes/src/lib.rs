//! Threads that serve connections, workers for large bodies, and fair shares of both.
//!
//! A call that moves between threads loses the processor's caches, and waking the other thread is a
//! system call. So a connection stays with its thread, and its dependencies exist once for each
//! thread: [`Own`].

mod fair;
mod own;
mod permits;
mod shares;
mod threads;
mod turns;
mod workers;

pub use fair::{FairLimits, FairSlot, FairSlots};
pub use own::Own;
pub use permits::{Permit, PermitQueue};
pub use shares::{SharePlace, Shares};
pub use threads::{LaneSlot, Lanes};
pub use turns::{FairTurn, Turns};
pub use workers::{LARGE, Polling, Workers, goes_on, is_offloaded, offload};
