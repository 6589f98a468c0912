//! A gateway on another machine: commands work over its API, with the rights of a token.

mod callback;
mod login;
mod logins;

use std::{
    env, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use axum::http::Method;
use clap::Args;
use portcullis_core::{
    oauth::PublicUrl,
    principal::{ScopeError, ScopeSet},
    secret::Secret,
};
use portcullis_upstream::{ApiAnswer, ApiClient, RequestContent};
use serde_json::Value;

pub(super) use self::login::{LoginCommand, LogoutCommand};
use super::output::{Failure, visible};

/// The variable with the token of programs.
const TOKEN_VARIABLE: &str = "PORTCULLIS_TOKEN";
/// The variable with the address of a gateway.
const URL_VARIABLE: &str = "PORTCULLIS_URL";
/// The longest token in a file.
const MAX_TOKEN_BYTES: u64 = 16 << 10;

/// Gateway that a command works on.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct GatewayOptions {
    /// Work on the gateway at this address, over its API; without it `PORTCULLIS_URL` counts, unless a
    /// configuration is named
    #[arg(long, value_name = "URL", global = true)]
    pub(super) url: Option<String>,
    /// File with the token for `--url`; otherwise `PORTCULLIS_TOKEN`, or the login of `portcullis login`
    #[arg(long, value_name = "FILE", global = true)]
    token_file: Option<PathBuf>,
}

impl GatewayOptions {
    /// The address that is named here or in the environment.
    fn address(&self) -> Result<String, Failure> {
        let url = self.url.clone().or_else(address_of_environment);
        url.ok_or_else(|| "name the gateway with `--url` or PORTCULLIS_URL".into())
    }

    /// A client of the gateway at an address. Fails if that is not `https`, or `http` on a loopback address.
    fn client(url: &str) -> Result<ApiClient, Failure> {
        let url = PublicUrl::parse(url).ok_or_else(|| {
            format!(
                "`--url` is `{}`, but has to be `https://host` or `https://host:port`, with a path if \
                 the gateway has one; `http` goes to loopback addresses only, such as \
                 http://127.0.0.1:8080",
                visible(url)
            )
        })?;
        Ok(ApiClient::new(&url)?)
    }

    /// The gateway at an address, with the token for it. A token belongs to one org, so that none can be named
    /// beside it.
    pub(super) async fn gateway(
        &self,
        url: &str,
        org: Option<&str>,
    ) -> Result<RemoteGateway, Failure> {
        if org.is_some() {
            return Err("leave out `--org`: over the API a token is of one org".into());
        }
        let client = Self::client(url)?;
        let (token, source) = match self.given_token()? {
            Some(token) => (token, TokenSource::Given),
            None => (login::token(&client).await?, TokenSource::Login),
        };
        Ok(RemoteGateway { client, token, source })
    }

    /// The token of a file or of the environment.
    fn given_token(&self) -> Result<Option<Secret>, Failure> {
        let text = match &self.token_file {
            Some(file) => Some(read_token(file)?),
            None => env::var(TOKEN_VARIABLE).ok(),
        };
        let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Ok(text.map(Secret::new))
    }
}

/// The gateway that the environment names.
pub(super) fn address_of_environment() -> Option<String> {
    env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty())
}

fn read_token(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = fs::File::open(file)
        .and_then(|file| file.take(MAX_TOKEN_BYTES).read_to_string(&mut text))
        .and_then(|_| {
            if text.trim().is_empty() { Err(io::Error::other("it is empty")) } else { Ok(()) }
        });
    read.map_err(|error| format!("`{}`: {error}", file.display()))?;
    Ok(text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenSource {
    /// A file or the environment.
    Given,
    /// `portcullis login`.
    Login,
}

/// A gateway, and the token to use it with.
pub(super) struct RemoteGateway {
    client: ApiClient,
    token: Secret,
    source: TokenSource,
}

impl RemoteGateway {
    /// Gives the file at a path to `write`, piece by piece.
    pub(super) async fn download(
        &self,
        path: &str,
        write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let ApiAnswer { status, body } = self.client.download(path, &self.token, write).await?;
        match status {
            200 => Ok(()),
            _ => Err(self.refusal(status, &serde_json::from_slice(&body).unwrap_or_default())),
        }
    }

    /// The answer to a request, whatever its status is.
    pub(super) async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiAnswer, Failure> {
        let text = body.map(Value::to_string);
        let content = text.as_deref().map_or(RequestContent::Nothing, RequestContent::Json);
        Ok(self.client.send(method, path, Some(&self.token), content).await?)
    }

    /// A refusal of the gateway as an error: code, message, and the request, for the reader of the log.
    pub(super) fn refusal(&self, status: u16, answer: &Value) -> Failure {
        let member = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(visible);
        let origin = self.client.origin();
        let Some(code) = member("/error/code") else {
            return format!(
                "what answers at `{origin}` is not the API of a gateway (status {status})"
            )
            .into();
        };
        let message = member("/error/message").unwrap_or_default();
        let request = member("/meta/request_id").unwrap_or_default();
        let is_over = status == 401 && self.source == TokenSource::Login;
        let hint = if is_over { format!("; {}", login::again(origin)) } else { String::new() };
        format!("{message} ({code}, {request}){hint}").into()
    }
}

/// The text in a member of an answer.
pub(super) fn member<'a>(answer: &'a Value, name: &str) -> Result<&'a str, Failure> {
    answer.get(name).and_then(Value::as_str).ok_or_else(|| unreadable(name))
}

/// Error for an answer whose member `name` is not as it should be.
pub(super) fn unreadable(name: &str) -> Failure {
    format!("`{name}` in the answer of the gateway cannot be read: is it a newer version?").into()
}

/// A text as one segment of a path.
pub(super) fn segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    let letter = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(letter).collect()
}

/// A list of scopes; an empty one is a variable that was not set rather than a wish.
pub(super) fn scopes(text: &str) -> Result<ScopeSet, String> {
    let scopes: ScopeSet = text.parse().map_err(|error: ScopeError| error.to_string())?;
    if scopes.iter().next().is_none() {
        return Err("there is no scope in it; name at least one".to_owned());
    }
    Ok(scopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_out_encrypted_or_to_this_machine() {
        for url in [
            "https://gw.example", "https://gw.example:8443/", "https://gw.example/path",
            "http://127.0.0.1:1", "http://[::1]:1",
        ] {
            assert!(GatewayOptions::client(url).is_ok(), "{url}");
        }
        for url in [
            "http://gw.example",
            "http://localhost:8080",
            "http://127.0.0.1.evil.example",
            "http://10.0.0.1",
            "https://user@gw.example",
            "https://gw.example/../path",
            "https://gw.example?x",
            "ftp://gw.example",
            "gw.example",
            "",
        ] {
            assert!(GatewayOptions::client(url).is_err(), "{url}");
        }
    }

    #[test]
    fn what_is_named_is_one_segment() {
        assert_eq!(segment("github:a/../b?c#d"), "github:a%2F..%2Fb%3Fc%23d");
    }
}
