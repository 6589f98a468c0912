//! Version 1 of the API, one file a resource.

mod admin;
mod approvals;
mod auth;
mod checkpoint;
pub(crate) mod connect;
mod counts;
mod events;
pub(crate) mod exports;
mod invoke;
mod mcps;
mod policies;
mod policies_check;
mod policies_explain;
mod policies_operated;
mod policies_reload;
mod policies_replay;
mod policies_simulate;
mod principal_keys;
mod providers;
mod requests;
mod sessions;
