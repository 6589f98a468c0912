//! The evidence format of exports, `jsonl`: how its lines are written, read and verified.
//!
//! The first line is a [`Manifest`], the last a [`Trailer`] with the signed checkpoint, and
//! between them stands one event a line. A *complete* file holds every event of a range of the
//! log; with the hashes left and right of the range the reader computes the signed root
//! again, so nothing inside the range can be missing. In a file that was filtered each event may
//! carry its own inclusion path.

mod lines;
mod single;
mod verifier;

pub use self::{
    lines::{
        Consistency, EventLine, FORMAT, Fault, LeafOfEvent, Line, MAX_LINE_BYTES, Manifest,
        Neighbour, Range, Trailer, event_line, leaf_of_event,
    },
    single::{ProvenEvent, verify_checkpoint, verify_event},
    verifier::{Report, Since, Verifier},
};
