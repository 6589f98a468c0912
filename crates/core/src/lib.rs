//! The domain of Portcullis: ids, tokens, tools, calls, policy, DLP and audit records.
//!
//! Everything here is pure. **Invariant:** core never waits, has no clock and no random source of
//! its own, and knows neither HTTP nor SQL nor MCP transports.

pub mod approval;
pub mod audit;
pub mod authorization;
pub mod browser_session;
pub mod call;
pub mod capability;
pub mod clock;
pub mod grant;
pub mod hidden;
pub mod id;
pub mod idempotency;
pub mod lifetime;
pub mod limits;
pub mod lineage;
pub mod mcp;
pub mod oauth;
pub mod openid;
pub mod policy;
pub mod principal;
pub mod random;
pub mod refusal;
pub mod scim;
pub mod scope;
pub mod secret;
pub mod token;
pub mod trace;
pub mod trust;
pub mod vault;
mod words;

pub use portcullis_dlp::{self as dlp, did_you_mean, terminal};
pub use portcullis_json as json;

#[cfg(test)]
mod testing;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
