//! Faults of a log that does not prove its events.

use portcullis_core::audit::export::Fault;
use portcullis_store::StoreError;

/// A difference between what a log is proven by and its events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IndexFault {
    #[error("event {id} has two places in the log, one of them {sequence}: it was copied")]
    Twin {
        /// The id that the record has.
        id: String,
        sequence: i64,
    },
    /// A position is not that of the order of the log: listing passes over the event.
    #[error("the event at place {0} has a position that is out of order; lists pass over it")]
    Position(i64),
    /// An event is neither in the log nor waits to come into it: it was added from outside.
    #[error(
        "the event {0} stands among those that have a place in the log and has none: it was added or \
         changed from outside, and an `audit.rows_refused` event tells if the gateway refused it"
    )]
    Stray(String),
    /// A row that the sealer does not look at.
    #[error(
        "the event {0} stands at a position that the gateway has not given out: it was added from outside, \
         and gets no place"
    )]
    Beyond(String),
    /// Filters and retention find it by others than its record says.
    #[error(
        "event {id} at place {sequence} is not found by its record: `{columns}` differ; see `audit reindex`"
    )]
    Columns {
        /// The id that the record has.
        id: String,
        sequence: i64,
        columns: String,
    },
    #[error("the event at place {0} is missing")]
    Empty(i64),
    #[error("event {id} at place {sequence}: {wrong}")]
    Value {
        /// The id that the record has.
        id: String,
        sequence: i64,
        /// The value, and the fault of it.
        wrong: String,
    },
    #[error("more events have lost values of `{0}` than the `audit.erased` events of it tell")]
    Erasures(String),
    #[error("the tree has another leaf at place {0} than the event there")]
    Leaf(i64),
    #[error("the tile {index} at level {level} of the tree is not that of its leaves")]
    Tile { level: u8, index: u64 },
    /// Events are passed over as removed, and nothing says that they were.
    #[error(
        "the first {0} events are passed over as if they had been removed, and no event of the log \
         tells that they were"
    )]
    Hidden(u64),
    /// A hold was taken away from outside.
    #[error("the hold {0} is in force, as the log tells, and `audit_holds` does not have it")]
    Hold(String),
}

impl From<IndexFault> for Fault {
    fn from(fault: IndexFault) -> Self {
        match fault {
            IndexFault::Stray(_) | IndexFault::Beyond(_) | IndexFault::Twin { .. } => {
                Self::Root(fault.to_string())
            }
            IndexFault::Empty(_) => Self::Incomplete(fault.to_string()),
            IndexFault::Position(_)
            | IndexFault::Leaf(_)
            | IndexFault::Columns { .. }
            | IndexFault::Hidden(_)
            | IndexFault::Hold(_)
            | IndexFault::Value { .. }
            | IndexFault::Erasures(_)
            | IndexFault::Tile { .. } => Self::Index(fault.to_string()),
        }
    }
}

/// Reason that nothing is proven.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unproven {
    /// The log is not as it was written.
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for Unproven {
    /// A record that is stored in another form than it was written in is not that of the log.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt(_) => Self::Fault(Fault::Index(error.to_string())),
            StoreError::Unavailable(_)
            | StoreError::Crowded
            | StoreError::OutcomeUnknown(_)
            | StoreError::Conflict(_)
            | StoreError::NewerSchema { .. }
            | StoreError::OlderSchema { .. }
            | StoreError::OlderBuild => Self::Store(error),
        }
    }
}

impl From<IndexFault> for Unproven {
    fn from(fault: IndexFault) -> Self {
        Self::Fault(fault.into())
    }
}
