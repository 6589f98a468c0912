//! Error codes of JSON-RPC 2.0 and those that MCP reserves.

/// The text is not JSON, or JSON that two readers could read differently.
pub const PARSE_ERROR: i64 = -32700;
/// The message is no JSON-RPC request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is not offered.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// A failure inside the server.
pub const INTERNAL_ERROR: i64 = -32603;

/// A header differs from the body that it mirrors, or is missing.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The protocol version is not spoken.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// There is no such resource; before 2026-07-28 only.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// The client has to open an address first; of 2025-11-25 only.
pub const URL_ELICITATION: i64 = -32042;
