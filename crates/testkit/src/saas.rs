//! A service as many are: plain OAuth 2.0 with habits of its own, and an MCP server that takes its
//! tokens. What it publishes about itself is up to the test.
#![expect(clippy::indexing_slicing, reason = "an absent member of JSON is null")]

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::stream;
use http::{HeaderMap, StatusCode, header};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use crate::serving::serve;

/// Id of the client that the service knows.
pub const CLIENT_ID: &str = "portcullis-client";
/// Its secret.
pub const CLIENT_SECRET: &str = "saas-client-secret-0123456789";

/// Behaviour of the service.
#[derive(Debug, Clone, Default)]
pub struct Habits {
    /// Seconds an access token lives; for ever when absent.
    pub expires_in: Option<u64>,
    /// True if no refresh tokens are given.
    pub keeps_refresh: bool,
    /// Status that the token endpoint answers instead of working.
    pub token_status: Option<u16>,
    /// Delay of the token endpoint.
    pub thinks: Duration,
    /// True if every refresh token is invalid from now on.
    pub ended: bool,
    /// True if a renewal that names a resource is refused.
    pub refuses_resource: bool,
    /// `iss` in the callback.
    pub iss: Option<String>,
    /// The scope that the MCP server asks for.
    pub needs_scope: Option<String>,
    /// Documents by path: status, and body.
    pub documents: BTreeMap<String, (u16, String)>,
    /// Documents without an end by path: the pause before each next piece of them.
    pub unending: BTreeMap<String, Duration>,
    /// Challenge of its MCP server to requests without a token.
    pub challenge: Option<String>,
}

#[derive(Debug)]
struct Issued {
    account: String,
    scopes: String,
    ends: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Code {
    account: String,
    challenge: String,
    redirect_uri: String,
    scopes: String,
}

#[derive(Debug, Default)]
struct Inside {
    habits: Habits,
    number: u64,
    codes: HashMap<String, Code>,
    access: HashMap<String, Issued>,
    refresh: HashMap<String, (String, String)>,
    sessions: HashMap<String, String>,
    calls: Vec<(String, Value)>,
    token_requests: Vec<BTreeMap<String, String>>,
    revoked: Vec<String>,
    foreign: Vec<String>,
    received: Vec<String>,
}

/// The service; it ends when it is dropped.
#[derive(Debug)]
pub struct Saas {
    address: SocketAddr,
    inside: Arc<Mutex<Inside>>,
    _serving: DropGuard,
}

impl Saas {
    /// Starts it on a free port.
    pub async fn start(habits: Habits) -> Self {
        let inside = Arc::new(Mutex::new(Inside { habits, ..Inside::default() }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inside));
        let (address, serving) = serve(router).await;
        Self { address, inside, _serving: serving }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("the service")
    }

    /// Its origin.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// URL of its MCP server.
    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.origin())
    }

    /// Behaves otherwise from now on.
    pub fn change(&self, change: impl FnOnce(&mut Habits)) {
        change(&mut self.inside().habits);
    }

    /// A `[[providers]]` entry of it in TOML without `slug` and `url`, with its habits as data.
    pub fn oauth(&self) -> String {
        let origin = self.origin();
        format!(
            "auth = \"oauth2\"\nprotocol = \"legacy\"\n\
             account = {{ url = \"{origin}/user\", id = \"/id\", name = \"/login\" }}\n\
             [providers.oauth]\nauthorize_url = \"{origin}/authorize?audience=api\"\n\
             token_url = \"{origin}/token\"\nrevoke_url = \"{origin}/revoke\"\n\
             client_id = \"{CLIENT_ID}\"\nclient_secret = {{ env = \"SAAS_SECRET\" }}\n\
             token_auth = \"client_secret_post\"\nscope_separator = \",\"\nscopes = [\"read\"]\n\
             allowed_scopes = [\"read\", \"write\"]\nauthorize_parameters = {{ prompt = \"consent\" }}\n\
             resource = \"\"\ntoken_format = \"token {{}}\"\n"
        )
    }

    /// Plays the browser of `account` at the page that an authorization URL leads to: consents,
    /// and gives the address it is sent back to.
    pub async fn consent(&self, authorization_url: &str, account: &str) -> String {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client");
        let url = format!("{authorization_url}&as={account}");
        let response = client.get(url).send().await.expect("an answer");
        let location = response.headers().get("location").expect("a way back");
        location.to_str().expect("a text").to_owned()
    }

    /// Every call of a tool so far: whose token it came with, and its arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.inside().calls.clone()
    }

    /// Every form that the token endpoint got so far.
    pub fn token_requests(&self) -> Vec<BTreeMap<String, String>> {
        self.inside().token_requests.clone()
    }

    /// Every request so far, whatever it was for: its line, headers and body.
    pub fn received(&self) -> Vec<String> {
        self.inside().received.clone()
    }

    /// Every token that was revoked by request so far.
    pub fn revoked(&self) -> Vec<String> {
        self.inside().revoked.clone()
    }

    /// Whatever was wrong about whose session a message came in.
    pub fn foreign(&self) -> Vec<String> {
        self.inside().foreign.clone()
    }

    /// Every token, code and secret that the service gave out or knows.
    pub fn secrets(&self) -> Vec<String> {
        let inside = self.inside();
        let tokens = inside.access.keys().chain(inside.refresh.keys()).chain(inside.codes.keys());
        let used = inside
            .token_requests
            .iter()
            .filter_map(|form| form.get("code").or_else(|| form.get("refresh_token")).cloned());
        tokens.cloned().chain(used).chain([CLIENT_SECRET.to_owned()]).collect()
    }

    /// Ends every access token of an account, as a security team would.
    pub fn end_access(&self, account: &str) {
        self.inside().access.retain(|_, issued| issued.account != account);
    }

    /// Ends everything of an account.
    pub fn end_all(&self, account: &str) {
        self.end_access(account);
        self.inside().refresh.retain(|_, (whose, _)| whose != account);
    }
}

async fn answer(State(inside): State<Arc<Mutex<Inside>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 4 << 20).await.expect("a body");
    let text = String::from_utf8_lossy(&body).into_owned();
    let path = parts.uri.path().to_owned();
    let received = format!("{} {}\n{:?}\n{text}", parts.method, parts.uri, parts.headers);
    inside.lock().expect("the service").received.push(received);
    let document = inside.lock().expect("the service").habits.documents.get(&path).cloned();
    if let Some((status, body)) = document {
        let status = StatusCode::from_u16(status).expect("a status");
        let location = if status.is_redirection() { body.clone() } else { String::new() };
        let headers = [("content-type", "application/json".to_owned()), ("location", location)];
        return (status, headers, body).into_response();
    }
    let unending = inside.lock().expect("the service").habits.unending.get(&path).copied();
    if let Some(pause) = unending {
        return without_end(pause);
    }
    match path.as_str() {
        "/authorize" => authorize(&inside, parts.uri.query().unwrap_or_default()),
        "/token" => token(&inside, &text).await,
        "/revoke" => revoke(&inside, &text),
        "/user" => user(&inside, &parts.headers),
        "/mcp" => mcp(&inside, &parts.headers, &text),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn form(text: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("form:x?{text}")).expect("a form");
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// A document that goes on until the client stops reading.
fn without_end(pause: Duration) -> Response {
    let piece = Bytes::from(vec![b' '; if pause.is_zero() { 64 << 10 } else { 1 }]);
    let pieces = stream::unfold(piece, move |piece| async move {
        tokio::time::sleep(pause).await;
        Some((Ok::<_, Infallible>(piece.clone()), piece))
    });
    ([("content-type", "application/json")], Body::from_stream(pieces)).into_response()
}

fn authorize(inside: &Mutex<Inside>, query: &str) -> Response {
    let asked = form(query);
    let get = |name: &str| asked.get(name).cloned().unwrap_or_default();
    assert_eq!(get("code_challenge_method"), "S256", "{asked:?}");
    let mut inside = inside.lock().expect("the service");
    let mut back = Url::parse(&get("redirect_uri")).expect("a redirect URI");
    if get("as") == "nobody" {
        back.query_pairs_mut()
            .append_pair("error", "access_denied")
            .append_pair("error_description", "<script>alert(1)</script>");
    } else {
        inside.number += 1;
        let code = format!("saas-code-{:08}", inside.number);
        let known = Code {
            account: get("as"),
            challenge: get("code_challenge"),
            redirect_uri: get("redirect_uri"),
            scopes: get("scope"),
        };
        inside.codes.insert(code.clone(), known);
        back.query_pairs_mut().append_pair("code", &code);
    }
    back.query_pairs_mut().append_pair("state", &get("state"));
    if let Some(iss) = &inside.habits.iss {
        back.query_pairs_mut().append_pair("iss", iss);
    }
    (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
}

fn json(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

async fn token(inside: &Mutex<Inside>, text: &str) -> Response {
    let asked = form(text);
    let (thinks, status) = {
        let mut inside = inside.lock().expect("the service");
        inside.token_requests.push(asked.clone());
        (inside.habits.thinks, inside.habits.token_status)
    };
    tokio::time::sleep(thinks).await;
    if let Some(status) = status {
        let body = format!("an error page that tells {text}");
        return (StatusCode::from_u16(status).expect("a status"), body).into_response();
    }
    let mut inside = inside.lock().expect("the service");
    let get = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    // A habit of its own: refusals come with status 200.
    if get("client_id") != CLIENT_ID || get("client_secret") != CLIENT_SECRET {
        return json(&json!({"error": "incorrect_client_credentials"}));
    }
    let renews = get("grant_type") == "refresh_token";
    if inside.habits.refuses_resource && renews && asked.contains_key("resource") {
        return json(&json!({"error": "invalid_target"}));
    }
    let granted = match get("grant_type") {
        "authorization_code" => inside
            .codes
            .remove(get("code"))
            .filter(|code| {
                let digest = aws_lc_rs::digest::digest(
                    &aws_lc_rs::digest::SHA256,
                    get("code_verifier").as_bytes(),
                );
                URL_SAFE_NO_PAD.encode(digest) == code.challenge
                    && code.redirect_uri == get("redirect_uri")
            })
            .map(|code| (code.account, code.scopes)),
        "refresh_token" if inside.habits.ended => None,
        "refresh_token" => inside.refresh.remove(get("refresh_token")),
        _ => None,
    };
    let Some((account, scopes)) = granted else {
        return json(&json!({"error": "bad_verification_code", "error_description": text}));
    };
    json(&issue(&mut inside, account, scopes))
}

fn issue(inside: &mut Inside, account: String, scopes: String) -> Value {
    inside.number += 1;
    let access = format!("saas-access-{:08}-{account}", inside.number);
    let mut answer = json!({"access_token": access, "token_type": "bearer", "scope": scopes});
    let life = inside.habits.expires_in;
    if let Some(life) = life {
        // Another habit: numbers are texts.
        answer["expires_in"] = json!(life.to_string());
    }
    if !inside.habits.keeps_refresh {
        let refresh = format!("saas-refresh-{:08}-{account}", inside.number);
        answer["refresh_token"] = json!(refresh);
        inside.refresh.insert(refresh, (account.clone(), scopes.clone()));
    }
    let ends = life.map(|life| Instant::now() + Duration::from_secs(life));
    inside.access.insert(access, Issued { account, scopes, ends });
    answer
}

fn revoke(inside: &Mutex<Inside>, text: &str) -> Response {
    let asked = form(text);
    let token = asked.get("token").cloned().unwrap_or_default();
    let mut inside = inside.lock().expect("the service");
    inside.access.remove(&token);
    inside.refresh.remove(&token);
    inside.revoked.push(token);
    StatusCode::OK.into_response()
}

/// Account and scopes of a request's token.
fn whose(inside: &Inside, headers: &HeaderMap) -> Option<(String, String)> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let token = shown.strip_prefix("token ").or_else(|| shown.strip_prefix("Bearer "))?;
    let issued = inside.access.get(token)?;
    let live = issued.ends.is_none_or(|ends| Instant::now() < ends);
    live.then(|| (issued.account.clone(), issued.scopes.clone()))
}

fn user(inside: &Mutex<Inside>, headers: &HeaderMap) -> Response {
    let inside = inside.lock().expect("the service");
    match whose(&inside, headers) {
        Some((account, _)) => json(&json!({"id": 583_231, "login": account})),
        None => StatusCode::UNAUTHORIZED.into_response(),
    }
}

fn mcp(inside: &Mutex<Inside>, headers: &HeaderMap, text: &str) -> Response {
    let message: Value = serde_json::from_str(text).unwrap_or_default();
    let mut inside = inside.lock().expect("the service");
    let Some((account, scopes)) = whose(&inside, headers) else {
        let challenge = inside.habits.challenge.clone().unwrap_or_else(|| "Bearer".to_owned());
        let headers = [(header::WWW_AUTHENTICATE, challenge)];
        return (StatusCode::UNAUTHORIZED, headers).into_response();
    };
    let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    if let Some(id) = &session {
        let owner = inside.sessions.get(id).cloned();
        if owner.as_deref() != Some(&account) {
            inside.foreign.push(format!("{account} in the session of {owner:?}"));
        }
    }
    let method = message["method"].as_str().unwrap_or_default();
    let mut given = String::new();
    let result = match method {
        "initialize" => {
            inside.number += 1;
            given = format!("session-{}", inside.number);
            inside.sessions.insert(given.clone(), account);
            json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "saas", "version": "1"},
            })
        }
        "tools/list" => json!({"tools": [{
            "name": "whoami",
            "description": "Says whose account this is.",
            "inputSchema": {"type": "object"},
        }]}),
        "tools/call" => {
            if let Some(needed) = inside.habits.needs_scope.clone()
                && !scopes.split(',').any(|scope| scope == needed)
            {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
                let headers = [(header::WWW_AUTHENTICATE, challenge)];
                return (StatusCode::FORBIDDEN, headers).into_response();
            }
            inside.calls.push((account.clone(), message["params"]["arguments"].clone()));
            let who = json!({"account": account});
            json!({"content": [{"type": "text", "text": who.to_string()}], "structuredContent": who})
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let mut response = Response::new(Body::from(answer.to_string()));
    let headers = response.headers_mut();
    headers.insert("content-type", "application/json".parse().expect("a value"));
    if !given.is_empty() {
        headers.insert("mcp-session-id", given.parse().expect("a value"));
    }
    response
}
