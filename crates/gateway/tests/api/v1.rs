//! Version 1 of the API, one file a resource.

mod auth;
mod invoke;
mod mcps;
mod providers;
