//! Every function of the store, on both databases.
//!
//! SQLite runs in a fresh folder. PostgreSQL is the server that `PORTCULLIS_TEST_POSTGRES` names;
//! without it its half fails, unless `PORTCULLIS_TEST_SQLITE_ONLY=1` says that this is meant.

#![cfg(test)]

mod database;
mod given;
mod growth;
mod prelude;
mod statements;

mod access_changes;
mod approvals;
mod approvals_stories;
mod approvals_used;
mod audit_counts;
mod audit_events;
mod audit_plans;
mod audit_refused;
mod audit_reindex;
mod audit_seal;
mod audit_tree;
mod audit_writer;
mod authorization;
mod browser_sessions;
mod connections;
mod counters;
mod descent;
mod exports;
mod idempotency;
mod identities;
mod lineage;
mod months;
mod moving;
mod nodes;
mod opening;
mod orgs;
mod pins;
mod policies;
mod policy_overrides;
mod principal_keys;
mod principals;
mod provider_tasks;
mod providers;
mod refreshes;
mod retention;
mod row_security;
mod scim;
mod search;
mod tenancy;
mod tokens;
mod tools;
mod unreadable;
mod usage;
