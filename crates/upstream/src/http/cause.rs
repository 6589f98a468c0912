//! Causes that keep a server from use, in words for its operator. Words of the server stand in them, and are to be
//! masked before anybody reads it.

use std::{error::Error, io};

use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, LOCATION},
};
use hyper_util::client::legacy;

use crate::text;

/// The most characters of what a server wrote.
const LONGEST: usize = 200;

/// Cause of a connection that was not made, or that broke.
pub(crate) fn of_connection(error: &legacy::Error) -> String {
    let mut is_dns = false;
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        is_dns |= cause.to_string().starts_with("dns error");
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return of_io(cause, is_dns);
        }
        next = cause.source();
    }
    if error.is_connect() { "no connection is made" } else { "the connection breaks off" }
        .to_owned()
}

fn of_io(error: &io::Error, is_dns: bool) -> String {
    // The library wraps errors of TLS once more.
    let mut wrapped = error.get_ref();
    while let Some(inner) = wrapped {
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return format!("TLS fails: {tls}");
        }
        wrapped = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    }
    let is = |kinds: &[io::ErrorKind]| kinds.contains(&error.kind());
    let told = if is(&[io::ErrorKind::PermissionDenied]) {
        "its host has no public address; `allow_private = true` admits private ones"
    } else if is_dns {
        "its host name is unknown"
    } else if is(&[io::ErrorKind::ConnectionRefused]) {
        "nothing listens at its address and port"
    } else if is(&[io::ErrorKind::TimedOut]) {
        "no connection is made in time"
    } else if is(&[io::ErrorKind::ConnectionReset, io::ErrorKind::UnexpectedEof]) {
        "it closes the connection; perhaps it speaks another protocol there"
    } else {
        "the connection breaks off"
    };
    told.to_owned()
}

/// Cause of an answer that is none of MCP.
pub(super) fn of_answer(status: StatusCode, headers: &HeaderMap) -> String {
    let header = |name| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        text::one_line(value.unwrap_or("nothing"), LONGEST)
    };
    if status.is_redirection() {
        return format!("it redirects to {}; write that address in `url`", header(LOCATION));
    }
    if status == StatusCode::NOT_FOUND {
        return "there is nothing at the path of its `url` (404)".to_owned();
    }
    if status.is_success() {
        return format!("it answers with {}, which is not MCP", header(CONTENT_TYPE));
    }
    format!("it answers with the status {status}")
}
