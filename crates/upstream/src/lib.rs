//! Outgoing connections: MCP servers over stdio and streamable HTTP, and other services.
//!
//! The only crate that dials out or starts processes. It speaks both eras of MCP, the stateless
//! one (2026-07-28) and the one with an `initialize` handshake (2025-11-25 and before), and finds
//! out by itself which one a server speaks. Upstreams are taken to be hostile: whatever they send
//! is bounded in size, time and number, and nothing they say reaches an error message.
//!
//! **Invariant:** a `tools/call` of which a byte may have been sent is never sent again, not even
//! when the server answers 404 to its session: the next call opens a new one.

pub mod answer;
pub mod api;
pub mod browser;
pub mod client_document;
pub mod command;
pub mod detector;
pub mod error;
pub mod forms;
pub mod jwks;
pub mod live;
pub mod oauth;
pub mod otlp;
pub mod outbound;
pub mod probe;
pub mod reach;
pub mod sample;
pub mod server;
pub mod settings;
pub mod text;
pub mod tools;
pub mod webhook;
pub mod witness;

mod announced;
mod breaker;
mod clients;
mod http;
mod http_client;
mod ids;
mod mcp;
mod params;
mod server_message;
mod session_health;
mod stdio;
mod task;

pub use announced::Watch;
pub use answer::CallAnswer;
pub use api::{ApiAnswer, ApiClient, ApiError, RequestContent, with_query};
pub use client_document::{ClientDocument, NoClientDocument};
pub use command::secret_printed_by;
pub use detector::{DetectorError, DetectorSettings, ExternalDetector};
pub use error::{CallError, CallErrorKind, FAILURES, SettingsError};
pub use forms::{FormTally, Forms};
pub use jwks::{Discovery, FetchError, KeyLocation};
pub use live::{Live, Progress};
pub use oauth::{Client, OAuthError};
pub use otlp::{OtlpReceiver, ReceiverError};
pub use outbound::Outbound;
pub use reach::{Endpoint, Reach};
pub use server::{Server, Trace};
pub use server_message::ServerWords;
pub use settings::{Credential, Program, Protocol, ServerSettings, Transport};
pub use task::{TaskEnd, TaskRequest, TaskState, ToldTask};
pub use tools::{DefinitionList, SkipReason, Skipped};
pub use webhook::{Message, SigningSecret, SigningSecretError, Webhook, WebhookError};
pub use witness::{Witness, WitnessError, Witnessing};
