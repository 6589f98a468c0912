//! Vocabulary of the Model Context Protocol: versions, methods, error codes, `_meta` members and
//! headers, the reading of a client's request, and the names and the index under which tools are
//! offered.
//!
//! Both sides of the gateway use it: the client that calls upstream servers, and the server that
//! agents speak to. Nothing here knows how messages travel.

pub mod apps;
pub mod code;
pub mod header;
pub mod interaction;
pub mod listed;
pub mod meta;
mod method;
pub mod names;
pub mod params;
pub mod refused;
mod request;
pub mod search;
pub mod skills;
pub mod tasks;
pub mod uris;
mod version;

pub use self::{
    method::Method,
    request::{
        Message, Mirror, MirroredHeaders, ProtocolError, Request, RequestId, compare, mismatch,
    },
    version::{Era, LEGACY, MODERN, OFFERED},
};
