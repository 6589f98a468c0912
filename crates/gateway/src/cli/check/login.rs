//! The issuers at which people log in, as `check` finds them.

use portcullis_app::LoginIssuerState;
use serde_json::{Value, json};

pub(super) fn to_json(state: &LoginIssuerState) -> Value {
    let LoginIssuerState { name, issuer, error } = state;
    json!({ "name": name, "issuer": issuer, "usable": error.is_none(), "error": error })
}

pub(super) fn to_text(state: &LoginIssuerState) -> String {
    let LoginIssuerState { name, issuer, error } = state;
    match error {
        None => format!("login       {name}: {issuer} can be used"),
        Some(error) => format!("login       {name}: {issuer} CANNOT be used: {error}"),
    }
}
