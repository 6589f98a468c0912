//! People and groups that an identity provider keeps over SCIM, changed together with the event that records it.

mod groups;
mod users;

pub use self::{
    groups::{GroupGuard, ScimGroup, ScimGroupChange, ScimGroupFilter, ScimMember},
    users::{ScimUser, ScimUserChange, ScimUserFilter},
};

use portcullis_core::id::OrgId;

use crate::db::{Bound, Value};

/// A page of resources, and how many there are in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScimPage<T> {
    pub items: Vec<T>,
    pub total: u64,
}

/// Result of a change; nothing is written unless it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScimWritten {
    Done,
    /// The person changed since it was read, or is gone.
    Stale,
    /// The person is the last admin, who is kept.
    LastAdmin,
    /// One of the members is no user of the org that a provider keeps, or none that the account may add.
    UnknownMember,
    /// There are as many as may be, of members or of groups of one user.
    Full,
}

/// The text as it is compared: ASCII letters in any case, all others to the letter, so that no character can stand
/// for another one.
fn key(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// Conditions of a filter: SQL with a parameter for each value, from `$2` on.
#[derive(Debug, Default)]
struct Conditions {
    sql: String,
    values: Vec<String>,
}

impl Conditions {
    /// Adds that the column has the value, if there is one.
    fn equal(mut self, column: &'static str, value: Option<String>) -> Self {
        use std::fmt::Write as _;
        if let Some(value) = value {
            self.values.push(value);
            let _ = write!(self.sql, " AND {column} = ${}", self.values.len() + 1);
        }
        self
    }

    /// Values of a statement about this org with these conditions.
    fn bound(&self, org: OrgId) -> Vec<Bound> {
        [org.bound()].into_iter().chain(self.values.iter().map(Value::bound)).collect()
    }

    /// Adds a condition without a value.
    fn with(mut self, sql: &'static str) -> Self {
        self.sql.push_str(sql);
        self
    }

    /// The statement for a page behind the conditions.
    fn page(&self, select: &str, order: &str, offset: u32, count: u32) -> String {
        format!("{select}{} ORDER BY {order} LIMIT {count} OFFSET {offset}", self.sql)
    }
}
