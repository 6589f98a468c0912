//! A set that is another set with changes: what simulation asks, and nothing puts in force.

use std::collections::{BTreeMap, BTreeSet};

use super::{PolicyFile, annotations::Status};

/// What is changed in a set. A policy that is both added and removed is added.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Policies that are added, or that take the place of those with their names. Errors name the
    /// path that is given here.
    pub upsert: Vec<PolicyFile>,
    /// Names of policies that are left out.
    pub remove: BTreeSet<String>,
    /// The status that policies get, whatever their `@mode` says.
    pub statuses: BTreeMap<String, Status>,
}

/// How a set differs from another, by policy name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// In this set alone.
    pub added: Vec<String>,
    /// In both, with another meaning or status.
    pub changed: Vec<String>,
    /// In the other set alone.
    pub removed: Vec<String>,
}
