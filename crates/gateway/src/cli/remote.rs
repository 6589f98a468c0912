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
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    oauth::PublicUrl,
    principal::{Role, ScopeError, ScopeSet},
    secret::Secret,
};
use portcullis_store::Principal;
use portcullis_upstream::{ApiAnswer, ApiClient, RequestContent, with_query};
use serde_json::{Value, json};

pub(super) use self::login::{LoginCommand, LogoutCommand};
use super::output::{Failure, visible};

/// The variable with the token of programs.
const TOKEN_VARIABLE: &str = "PORTCULLIS_TOKEN";
/// The variable with the address of a gateway.
const URL_VARIABLE: &str = "PORTCULLIS_URL";
/// The longest token in a file.
const MAX_TOKEN_BYTES: u64 = 16 << 10;
/// Items asked for at once, and pages that are read of a list.
const PAGE: &str = "200";
const MAX_PAGES: usize = 1_000;

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
    /// `data` of the answer to a request.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let mut answer = self.answer(method, path, body).await?;
        Ok(answer.get_mut("data").map(Value::take).unwrap_or_default())
    }

    /// `data` of what is at a path.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::GET, path, None).await
    }

    /// `data` of the answer to a body that is posted.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send(Method::POST, path, Some(body)).await
    }

    /// `data` of the answer to what is deleted.
    pub(super) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.send(Method::DELETE, path, None).await
    }

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

    /// One page of a list, with the position at which it goes on.
    pub(super) async fn page(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
    ) -> Result<(Vec<Value>, Option<String>), Failure> {
        let mut answer = self.answer(Method::GET, &with_query(path, parameters), None).await?;
        let cursor = answer.pointer("/meta/pagination/next_cursor").and_then(Value::as_str);
        let cursor = cursor.map(str::to_owned);
        match answer.pointer_mut("/data/items").map(Value::take) {
            Some(Value::Array(items)) => Ok((items, cursor)),
            Some(_) | None => Err("the answer of the gateway is no list".into()),
        }
    }

    /// All items of a list.
    pub(super) async fn list(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut asked = vec![("limit", PAGE)];
            asked.extend(parameters);
            asked.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let (items, next) = self.page(path, &asked).await?;
            all.extend(items);
            match next {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
        Err("the list of the gateway does not end".into())
    }

    async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let text = body.map(Value::to_string);
        let content = text.as_deref().map_or(RequestContent::Nothing, RequestContent::Json);
        let ApiAnswer { status, body } =
            self.client.send(method, path, Some(&self.token), content).await?;
        let answer: Option<Value> = serde_json::from_slice(&body).ok();
        match answer {
            Some(answer) if (200..300).contains(&status) => Ok(answer),
            answer => Err(self.refusal(status, &answer.unwrap_or_default())),
        }
    }

    /// A refusal of the gateway as an error: code, message, and the request, for the reader of the log.
    fn refusal(&self, status: u16, answer: &Value) -> Failure {
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

    /// The org of the token.
    pub(super) async fn org_id(&self) -> Result<OrgId, Failure> {
        let org = self.get("/v1/org").await?;
        member(&org, "id")?.parse().map_err(|_| unreadable("id"))
    }

    /// The principal that is named by its id or its name.
    pub(super) async fn principal(&self, named: &str) -> Result<Principal, Failure> {
        let org = self.org_id().await?;
        if let Ok(id) = named.parse::<PrincipalId>() {
            return principal_of(&self.get(&format!("/v1/principals/{id}")).await?, org);
        }
        let all = self.list("/v1/principals", &[]).await?;
        let found = all.iter().find(|it| it.get("name").and_then(Value::as_str) == Some(named));
        let unknown =
            || format!("there is no principal `{}` in the org of the token", visible(named));
        principal_of(found.ok_or_else(unknown)?, org)
    }

    /// Changes a principal; gives it as it is then.
    pub(super) async fn change_principal(
        &self,
        id: PrincipalId,
        patch: &Value,
    ) -> Result<Principal, Failure> {
        let org = self.org_id().await?;
        let place = format!("/v1/principals/{id}");
        principal_of(&self.send(Method::PATCH, &place, Some(patch)).await?, org)
    }
}

/// A principal as the API tells it.
pub(super) fn principal_of(answer: &Value, org_id: OrgId) -> Result<Principal, Failure> {
    let scopes = || member(answer, "scopes")?.parse().map_err(|_| unreadable("scopes"));
    let groups = |name| {
        let listed = answer.get(name).and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Ok(Principal {
        id: member(answer, "id")?.parse().map_err(|_| unreadable("id"))?,
        org_id,
        name: member(answer, "name")?.to_owned(),
        role: match member(answer, "role")? {
            "member" => Role::Member,
            "auditor" => Role::Auditor,
            "admin" => Role::Admin,
            "service" => Role::Service(scopes()?),
            _ => return Err(unreadable("role")),
        },
        groups: groups("groups"),
        provisioned_groups: groups("provisioned_groups"),
        created_at: moment(answer, "created_at")?.ok_or_else(|| unreadable("created_at"))?,
        disabled_at: moment(answer, "disabled_at")?,
    })
}

/// The text in a member of an answer.
pub(super) fn member<'a>(answer: &'a Value, name: &str) -> Result<&'a str, Failure> {
    answer.get(name).and_then(Value::as_str).ok_or_else(|| unreadable(name))
}

fn moment(answer: &Value, name: &str) -> Result<Option<Timestamp>, Failure> {
    let text = answer.get(name).and_then(Value::as_str);
    let parsed = text.map(|text| Timestamp::parse_rfc3339(text).ok_or_else(|| unreadable(name)));
    parsed.transpose()
}

fn unreadable(name: &str) -> Failure {
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

/// The body of a request without the members that are `null`.
pub(super) fn body(mut members: Value) -> Value {
    if let Value::Object(members) = &mut members {
        members.retain(|_, value| !value.is_null());
    }
    members
}

/// The record of the org, as `portcullis org` prints it.
pub(super) fn org_record(answer: &Value) -> Value {
    let at = |pointer: &str| answer.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "id": at("/id"),
        "name": at("/name"),
        "plan": at("/plan"),
        "requests_per_minute": at("/limits/requests_per_minute"),
        "invocations_per_minute": at("/limits/invocations_per_minute"),
        "created_at": at("/created_at"),
        "disabled_at": null,
    })
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

    #[test]
    fn a_principal_is_read_from_what_the_api_tells() {
        let org: OrgId = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let mut told = json!({
            "id": "sa_01M754BKTK9KV856N96WMEHWY9", "kind": "service", "name": "ci", "role": "service",
            "scopes": "mcps:read", "groups": ["a"], "disabled": false,
            "created_at": "2026-11-20T11:02:15.123Z", "disabled_at": null,
        });

        let read = principal_of(&told, org).unwrap();

        assert_eq!(
            (read.name.as_str(), read.role.name(), read.disabled_at),
            ("ci", "service", None)
        );
        assert!(read.groups.contains("a"));
        told["role"] = json!("king");
        assert!(principal_of(&told, org).is_err());
    }
}
