//! Where work is done: the threads that serve connections, and what each has of its own.
//!
//! A call that goes from one thread to another leaves behind what the processor knew of it, and each
//! time a thread has to be woken, which is a system call. So a connection stays with its thread, and
//! what it needs on its way is there more than once: [`Own`].

mod fair;
mod own;
mod places;
mod threads;
mod workers;

pub use fair::{FairLimits, FairSlot, FairSlots};
pub use own::Own;
pub use places::{Place, Places};
pub use threads::{Lanes, Seat};
pub use workers::{LARGE, Polling, Workers, is_offloaded, offload};
