//! Rows that cannot be read back. Each is left out of an answer by itself, and kept here until it
//! is reported; the rows beside it are answered as ever.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use super::{FromRow, Row, Store};
use crate::error::{DriverError, StoreError};

/// A row that was left out of an answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnreadableRow {
    pub table: &'static str,
    /// Its keys, as far as they can be read: `org_id … id …`.
    pub row: String,
    pub why: String,
}

/// Rows kept until they are reported; further ones are not kept.
#[derive(Debug, Default)]
pub(crate) struct Unreadable(Mutex<BTreeSet<UnreadableRow>>);

const MOST: usize = 1000;

/// The columns that tell a row from others, in whatever table.
const KEYS: [&str; 5] = ["org_id", "id", "capability_id", "slug", "row_id"];

/// Longest key that is reported.
const KEY_BYTES: usize = 64;

/// A row of a list, which is read as a whole or left out as a whole.
pub(crate) trait Readable: Sized {
    const TABLE: &'static str;
    /// The type it is read as.
    type Record;
    fn read(self) -> Result<Self::Record, StoreError>;
}

/// A row of a list as it was found.
pub(crate) struct Found<T: Readable>(Result<T::Record, UnreadableRow>);

impl<T: Readable + FromRow> FromRow for Found<T> {
    /// Never fails: what would end the whole query is kept in the row's place.
    fn from_row(row: Row<'_>) -> Result<Self, DriverError> {
        let read = T::from_row(row).map_err(|error| error.to_string());
        let read = read.and_then(|row| row.read().map_err(|error| error.to_string()));
        Ok(Self(read.map_err(|why| UnreadableRow { table: T::TABLE, row: keys(row), why })))
    }
}

fn keys(row: Row<'_>) -> String {
    let key = |name: &&'static str| {
        let value: String = row.get(name).ok()?;
        let shown: String = value.chars().filter(char::is_ascii_graphic).take(KEY_BYTES).collect();
        Some(format!("{name} {shown}"))
    };
    KEYS.iter().filter_map(key).collect::<Vec<_>>().join(" ")
}

impl Store {
    /// The rows of a list that can be read.
    pub(crate) fn readable<T: Readable>(&self, found: Vec<Found<T>>) -> Vec<T::Record> {
        let each = found.into_iter().map(|Found(read)| read);
        each.filter_map(|read| read.map_err(|row| self.left_out(row)).ok()).collect()
    }

    /// The same of records that are read without a step between.
    pub(crate) fn records<T: Readable<Record = T>>(&self, found: Vec<Found<T>>) -> Vec<T> {
        self.readable(found)
    }

    /// Keeps a row that is left out until it is reported.
    pub fn left_out(&self, row: UnreadableRow) {
        let mut known = self.unreadable.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST {
            known.insert(row);
        }
    }

    /// The rows that were left out of answers since this was asked last, each once.
    #[must_use]
    pub fn take_unreadable(&self) -> BTreeSet<UnreadableRow> {
        std::mem::take(&mut *self.unreadable.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
