//! `portcullis login` and `portcullis logout`: the command line as a client of a gateway (RFC 8252).

use std::time::Duration;

use axum::http::Method;
use clap::Args;
use portcullis_core::{
    authorization::{COMMAND_LINE, Face, OAuthForm},
    clock::Timestamp,
    oauth::{PkceVerifier, State},
    principal::ScopeSet,
    secret::Secret,
};
use portcullis_upstream::{ApiClient, RequestContent, browser};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    GatewayOptions,
    callback::Callback,
    logins::{KeptLogin, LoginFile},
    scopes,
};
use crate::{
    boot::{self, SystemRandom},
    cli::output::{Failure, Output, visible},
};

/// Time for a person to log in and to consent.
const PATIENCE: Duration = Duration::from_mins(10);
/// A token that ends within this time is refreshed before it is used.
const MARGIN_SECONDS: i64 = 30;
/// The scopes of all commands. A person gets those among them that their role has.
const SCOPES: &str = "admin approvals:read audit:read mcps:read policies:read providers:read";

/// Log in to a gateway with a browser, to work on it with `--url`
///
/// Prints an address, opens it in a browser if there is one, and waits until you have logged in and consented
/// there. The tokens are kept in a file that only you can read, in `$XDG_STATE_HOME/portcullis/logins`
/// (`~/.local/state/portcullis/logins`), and are sent to this gateway only.
#[derive(Args)]
pub(in crate::cli) struct LoginCommand {
    #[command(flatten)]
    remote: GatewayOptions,
    /// Scopes to ask for; you get those that your role has
    #[arg(long, value_name = "SCOPES", value_parser = scopes, default_value = SCOPES)]
    scopes: ScopeSet,
    /// Print the address only
    #[arg(long)]
    no_browser: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Log out of a gateway: its tokens are revoked, and removed from this machine
#[derive(Args)]
pub(in crate::cli) struct LogoutCommand {
    #[command(flatten)]
    remote: GatewayOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl LoginCommand {
    pub(in crate::cli) async fn run(self) -> Result<(), Failure> {
        let client = GatewayOptions::client(&self.remote.address()?)?;
        let file = LoginFile::of(client.origin())?;
        check_server(&client).await?;
        let callback = Callback::open().await?;
        let state = State::generate(&SystemRandom);
        let verifier = PkceVerifier::generate(&SystemRandom);
        let redirect_uri = callback.address();
        let resource = resource(&client);
        let address = client.address(
            "/oauth/authorize",
            &[
                ("response_type", "code"),
                ("client_id", COMMAND_LINE),
                ("redirect_uri", &redirect_uri),
                ("resource", &resource),
                ("scope", &self.scopes.to_string()),
                ("state", state.expose()),
                ("code_challenge", &verifier.challenge()),
                ("code_challenge_method", "S256"),
            ],
        );
        let output = Output::new(self.json);
        let opened = !self.no_browser && browser::open(&address);
        let told = if opened { "your browser opens" } else { "open in a browser" };
        output.note(&format!("{told}: {address}"));
        let answer = timeout(PATIENCE, callback.answer(state.expose())).await;
        let answer = answer.map_err(|_| "nobody came back from the browser in time")??;
        let code = code_of(&answer, client.origin())?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", COMMAND_LINE),
            ("code", code),
            ("code_verifier", verifier.secret().expose()),
            ("redirect_uri", &redirect_uri),
            ("resource", &resource),
        ];
        let granted = token_request(&client, &fields).await?;
        let login = granted.map_err(|error| format!("the gateway gives no token: {error}"))?;
        file.write(&login)?;
        let shown = json!({ "url": login.url, "scope": login.scope, "logged_in": true });
        let text = format!("logged in to {} with the scopes {}", login.url, visible(&login.scope));
        output.record(&shown, &text)
    }
}

impl LogoutCommand {
    pub(in crate::cli) async fn run(self) -> Result<(), Failure> {
        let client = GatewayOptions::client(&self.remote.address()?)?;
        let file = LoginFile::of(client.origin())?;
        let output = Output::new(self.json);
        let shown = json!({ "url": client.origin(), "logged_in": false });
        let Some(login) = file.read()? else {
            return output.record(&shown, &format!("nobody is logged in to {}", client.origin()));
        };
        file.remove()?;
        let token = login.refresh_token();
        let fields = [("token", token.expose()), ("client_id", COMMAND_LINE)];
        let sent = client.send(Method::POST, "/oauth/revoke", None, RequestContent::Form(&fields));
        let answer = sent.await.map_err(|error| {
            format!("the tokens are removed here, but are not revoked at the gateway: {error}")
        })?;
        if answer.status != 200 {
            return Err(format!(
                "the tokens are removed here, but the gateway does not revoke them (status {})",
                answer.status
            )
            .into());
        }
        output.record(&shown, &format!("logged out of {}", client.origin()))
    }
}

/// Next step when a login is over.
pub(super) fn again(origin: &str) -> String {
    format!("log in again with `portcullis login --url {origin}`")
}

/// The access token of the login at a gateway, refreshed if it is about to end.
pub(super) async fn token(client: &ApiClient) -> Result<Secret, Failure> {
    let origin = client.origin();
    let file = LoginFile::of(origin)?;
    let login = file.read()?.ok_or_else(|| {
        format!(
            "nobody is logged in to {origin}: run `portcullis login --url {origin}`, or name a token with \
             `--token-file` or PORTCULLIS_TOKEN"
        )
    })?;
    if boot::now().plus_seconds(MARGIN_SECONDS) < login.expires_at {
        return Ok(login.access_token());
    }
    let refresh_token = login.refresh_token();
    let resource = resource(client);
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", COMMAND_LINE),
        ("refresh_token", refresh_token.expose()),
        ("resource", &resource),
    ];
    let refreshed = token_request(client, &fields).await?;
    let ended =
        |error: String| format!("the login at {origin} is over ({error}): {}", again(origin));
    let login = refreshed.map_err(ended)?;
    file.write(&login)?;
    Ok(login.access_token())
}

fn resource(client: &ApiClient) -> String {
    format!("{}{}", client.origin(), Face::Rest.path())
}

/// Fails unless a gateway with an authorization server is there that calls itself by this address (RFC 8414 §3.3).
async fn check_server(client: &ApiClient) -> Result<(), Failure> {
    let path = "/.well-known/oauth-authorization-server";
    let answer = client.send(Method::GET, path, None, RequestContent::Nothing).await?;
    let origin = client.origin();
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let issuer = told.get("issuer").and_then(Value::as_str);
    match issuer.filter(|_| answer.status == 200) {
        Some(issuer) if issuer.trim_end_matches('/') == origin => Ok(()),
        Some(issuer) => Err(format!(
            "the gateway at {origin} calls itself {}: name that address with `--url`",
            visible(issuer)
        )
        .into()),
        None => Err(format!(
            "nobody can log in at {origin} (status {}): its operator switches logins on with `[login]`; \
             programs name a token with `--token-file` or PORTCULLIS_TOKEN",
            answer.status
        )
        .into()),
    }
}

/// The code of an answer that came from this gateway (RFC 9207).
fn code_of<'a>(answer: &'a OAuthForm, origin: &str) -> Result<&'a str, Failure> {
    if answer.get("iss").map(|iss| iss.trim_end_matches('/')) != Some(origin) {
        return Err("the browser came back from another gateway: nothing was sent there".into());
    }
    if let Some(error) = answer.get("error") {
        let told = answer.get("error_description").unwrap_or_default();
        return Err(format!("the login was refused: {} ({})", visible(told), visible(error)).into());
    }
    answer.get("code").ok_or_else(|| "the browser came back without a code".into())
}

/// The login that a token request gives, or the error of the gateway in its words.
async fn token_request(
    client: &ApiClient,
    fields: &[(&str, &str)],
) -> Result<Result<KeptLogin, String>, Failure> {
    let begun = boot::now();
    let sent = client.send(Method::POST, "/oauth/token", None, RequestContent::Form(fields));
    let answer = sent.await?;
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |name: &str| told.get(name).and_then(Value::as_str);
    if answer.status >= 500 || answer.status == 429 {
        return Err(format!("the gateway gives no token now (status {})", answer.status).into());
    }
    let granted = (text("access_token"), text("refresh_token"), told.get("expires_in"));
    let (Some(access), Some(refresh), Some(seconds)) = granted else {
        let error = text("error").map_or_else(|| format!("status {}", answer.status), visible);
        let more = text("error_description").map(visible).unwrap_or_default();
        return Ok(Err(format!("{error}: {more}")));
    };
    Ok(Ok(KeptLogin::new(
        client.origin().to_owned(),
        &Secret::new(access.to_owned()),
        &Secret::new(refresh.to_owned()),
        end_of(begun, seconds),
        text("scope").unwrap_or_default().to_owned(),
    )))
}

fn end_of(begun: Timestamp, seconds: &Value) -> Timestamp {
    begun.plus_seconds(seconds.as_i64().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(query: &str) -> Result<String, String> {
        let form = OAuthForm::parse(query.as_bytes()).unwrap();
        let code = code_of(&form, "https://gw.example").map(str::to_owned);
        code.map_err(|error| error.to_string())
    }

    #[test]
    fn a_code_counts_only_if_this_gateway_gave_it() {
        assert_eq!(code("code=c&iss=https%3A%2F%2Fgw.example"), Ok("c".to_owned()));
        for other in
            ["code=c", "code=c&iss=https%3A%2F%2Fevil.example", "iss=https%3A%2F%2Fgw.example"]
        {
            assert!(code(other).is_err(), "{other}");
        }
        let refused = code("error=access_denied&error_description=no&iss=https%3A%2F%2Fgw.example");
        assert_eq!(refused, Err("the login was refused: no (access_denied)".to_owned()));
    }

    #[test]
    fn the_default_scopes_are_scopes() {
        assert!(scopes(SCOPES).is_ok());
    }
}
