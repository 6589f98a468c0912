//! Entries with an address: streamable HTTP.

use std::net::IpAddr;

use portcullis_upstream::Endpoint;

use super::{
    imported::Imported,
    members::{Members, SSE},
    secrets::{Detectors, has_uuid, is_expanded, is_secret_name, quote_name, quoted},
    variables::is_usable_variable,
};

/// Headers that the gateway sends itself.
const OWN_HEADERS: [&str; 7] = [
    "accept", "connection", "content-type", "host", "mcp-protocol-version", "mcp-session-id",
    "user-agent",
];

/// Schemes of `Authorization` that stay before a secret.
const SCHEMES: [&str; 6] = ["apikey", "api-key", "basic", "bearer", "key", "token"];

/// A server and the headers that a client sends to it.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    /// The client logs in with OAuth.
    pub(super) logs_in: bool,
}

impl Remote {
    pub(super) fn read(members: &mut Members) -> Result<Self, String> {
        let mut url = None;
        for name in ["httpUrl", "serverUrl", "url"] {
            url = url.or(members.text(name)?);
        }
        let mut headers = members.pairs("headers")?;
        headers.extend(members.pairs("http_headers")?);
        for (name, variable) in members.pairs("env_http_headers")? {
            headers.push((name, format!("${{{variable}}}")));
        }
        if let Some(variable) = members.text("bearer_token_env_var")? {
            headers.push(("Authorization".to_owned(), format!("Bearer ${{{variable}}}")));
        }
        let logins = ["oauth", "auth", "authProviderType", "oauth_resource"];
        let logs_in = logins.iter().any(|name| members.left.remove(*name).is_some());
        if members.left.remove("headersHelper").is_some() {
            return Err(
                "a program of the client makes its headers; have whoever connects bring a \
                        key, with `auth = \"api_key\"`"
                    .to_owned(),
            );
        }
        Ok(Self { url: url.unwrap_or_default(), headers, logs_in })
    }
}

/// Writes a server that is reached by an address.
pub(super) fn import(
    remote: Remote,
    imported: &mut Imported<'_>,
    detectors: &Detectors,
) -> Result<(), String> {
    address(&remote.url, imported, detectors)?;
    let header = credential_header(remote.headers)?;
    match (header, remote.logs_in) {
        (Some(_), true) => {
            Err("it has both a header and a login with OAuth; remove one".to_owned())
        }
        (Some((name, value)), false) => {
            credential(&name, &value, imported);
            Ok(())
        }
        (None, true) => {
            imported.set("auth", "\"oauth2\"");
            imported.note(
                "Whoever uses it connects once: see docs/providers.md. A client that was registered \
                 for it belongs into [providers.oauth].",
            );
            Ok(())
        }
        (None, false) => {
            imported.note("If the server asks for a login, add: auth = \"oauth2\"");
            Ok(())
        }
    }
}

fn address(text: &str, imported: &mut Imported<'_>, detectors: &Detectors) -> Result<(), String> {
    if is_expanded(text) {
        let reference = imported.refer("url", text, "the URL");
        imported.set("url", &reference);
        return Ok(());
    }
    let endpoint = Endpoint::allowed(text).map_err(|error| format!("its address: {error}"))?;
    let url = endpoint.address();
    if url.path().trim_end_matches('/').ends_with("/sse") {
        return Err(SSE.to_owned());
    }
    let private = is_private(url.host_str().unwrap_or_default());
    if url.scheme() == "http" && !private {
        return Err(
            "its address begins with `http://`, so that anybody on the way could read the \
                    calls; use `https://`"
                .to_owned(),
        );
    }
    let secret = detectors.suspect(text)
        || has_uuid(text)
        || url
            .query_pairs()
            .any(|(name, value)| is_secret_name(&name) || detectors.suspect(&value));
    if secret {
        let reference = imported.refer("url", text, "the URL, which seems to hold a secret");
        imported.set("url", &reference);
    } else {
        imported.set("url", &quoted(text));
    }
    if private {
        imported.set("allow_private", "true");
    }
    Ok(())
}

/// A host that is only found in a private network, as far as its name tells.
fn is_private(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V4(it)) => it.is_loopback() || it.is_private(),
        Ok(IpAddr::V6(it)) => it.is_loopback() || it.is_unique_local(),
        Err(_) => {
            let endings = [".localhost", ".local", ".internal", ".lan", ".home.arpa"];
            host == "localhost"
                || !host.contains('.')
                || endings.iter().any(|ending| host.ends_with(ending))
        }
    }
}

/// The one header that carries the credential. Rejects a second header: the gateway sends one, and
/// a header that is left out may be what keeps a server read-only.
fn credential_header(headers: Vec<(String, String)>) -> Result<Option<(String, String)>, String> {
    let mut headers: Vec<_> = headers
        .into_iter()
        .filter(|(name, _)| !OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()))
        .collect();
    if headers.len() > 1 {
        let names: Vec<_> = headers.iter().map(|(name, _)| quote_name(name)).collect();
        return Err(format!(
            "it wants the headers {}, and this gateway sends one to a server; if one is enough, \
             remove the others",
            names.join(", ")
        ));
    }
    Ok(headers.pop())
}

fn credential(name: &str, value: &str, imported: &mut Imported<'_>) {
    let value = value.trim();
    let (scheme, secret) = match value.split_once(' ') {
        Some((scheme, rest)) if SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) => {
            (Some(scheme), rest.trim_start())
        }
        Some(_) | None => (None, value),
    };
    let authorizes = name.eq_ignore_ascii_case("authorization");
    let part = if authorizes { "token" } else { name };
    let what = match scheme {
        Some(scheme) => format!("what follows `{scheme}` in the header {}", quote_name(name)),
        None => format!("the header {}", quote_name(name)),
    };
    let reference = imported.refer(part, secret, &what);
    imported.set("auth", "\"api_key\"");
    imported.set("api_key", &reference);
    if !(authorizes && scheme == Some("Bearer")) {
        imported.set("api_key_header", &quoted(name));
    }
    if let Some(scheme) = scheme.filter(|scheme| !(authorizes && *scheme == "Bearer")) {
        imported.set("api_key_format", &quoted(&format!("{scheme} {{}}")));
    }
    debug_assert!(imported.variables.iter().all(|it| is_usable_variable(&it.name)));
}
