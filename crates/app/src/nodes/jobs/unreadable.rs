//! Tells of rows that cannot be read: each by name in the log of the node, once a while, and all
//! of them in a counter.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use portcullis_core::clock::Timestamp;
use portcullis_store::UnreadableRow;

use crate::{nodes::Nodes, telemetry::counters};

pub(super) const EVERY: Duration = Duration::from_secs(5);
/// Seconds after which a row is named again that still cannot be read.
const AGAIN_SECONDS: i64 = 600;

/// The rows that were named, and when.
#[derive(Debug, Default)]
pub(crate) struct NamedRows(Mutex<BTreeMap<UnreadableRow, Timestamp>>);

impl NamedRows {
    /// True when it is time to name this row.
    fn is_due(&self, row: &UnreadableRow, now: Timestamp) -> bool {
        let mut named = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        named.retain(|_, at| now < at.plus_seconds(AGAIN_SECONDS));
        let is_due = !named.contains_key(row);
        if is_due {
            named.insert(row.clone(), now);
        }
        is_due
    }
}

pub(super) fn tell(nodes: &Nodes) {
    for row in nodes.base.store.take_unreadable() {
        counters::unreadable(row.table);
        if nodes.named.is_due(&row, nodes.base.clock.now()) {
            let UnreadableRow { table, row, why } = row;
            tracing::error!(table, row, why, "a stored row cannot be read and is left out");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_named_at_once_and_then_once_a_while() {
        let named = NamedRows::default();
        let row = |id: &str| UnreadableRow {
            table: "providers",
            row: format!("id {id}"),
            why: String::new(),
        };
        let now = Timestamp::from_micros(1_000_000_000_000_000);

        assert!(named.is_due(&row("a"), now));
        assert!(!named.is_due(&row("a"), now.plus_seconds(599)));
        assert!(named.is_due(&row("b"), now.plus_seconds(599)));
        assert!(named.is_due(&row("a"), now.plus_seconds(600)));
    }
}
