//! A keep-alive HTTP/1.1 connection, one request at a time.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER},
    request,
};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};

use crate::{Failure, upstream};

/// A request that can be sent many times.
pub(crate) type Template = Request<Full<Bytes>>;

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// Pause before the next try, if it names one.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON; fails when it is none.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// The answer if its status is 200; otherwise a failure that quotes it.
    pub(crate) fn ok(self) -> Result<Self, Failure> {
        if self.status == StatusCode::OK {
            return Ok(self);
        }
        let body = String::from_utf8_lossy(&self.body);
        let body: String = body.chars().take(500).collect();
        Err(format!("the answer was {}: {body}", self.status).into())
    }
}

/// One open connection; it closes with this value.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    _driver: JoinSet<()>,
}

impl Connection {
    /// Connects; fails without a listener.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Failure> {
        Self::over(TcpStream::connect(address).await?).await
    }

    /// The same from another IPv4 address of this machine.
    pub(crate) async fn open_from(own: IpAddr, address: SocketAddr) -> Result<Self, Failure> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(own, 0))?;
        Self::over(socket.connect(address).await?).await
    }

    async fn over(stream: TcpStream) -> Result<Self, Failure> {
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { sender, _driver: driver })
    }

    /// Sends one request and reads the whole answer; after a failure the connection is of no use.
    pub(crate) async fn send(&mut self, request: Template) -> Result<Answer, Failure> {
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let seconds = response.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok());
        let retry_after = seconds.and_then(|it| it.parse().ok()).map(Duration::from_secs);
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { status, retry_after, body })
    }
}

/// A request of a stateless MCP client.
pub(crate) fn mcp_message(method: &str, mut params: Value) -> Value {
    let client = json!({ "name": "portcullis-bench", "version": env!("CARGO_PKG_VERSION") });
    if let Value::Object(members) = &mut params {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": upstream::MODERN,
            "io.modelcontextprotocol/clientInfo": client,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        members.insert("_meta".to_owned(), meta);
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// `tools/call` of `echo` as a stateless MCP client sends it.
pub(crate) fn direct_call(address: SocketAddr, arguments: &Value) -> Result<Template, Failure> {
    let message = mcp_message("tools/call", json!({ "name": "echo", "arguments": arguments }));
    let request = Request::builder()
        .method(Method::POST)
        .uri(Uri::from_static(upstream::PATH))
        .header(HOST, address.to_string())
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .header("mcp-protocol-version", upstream::MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo");
    Ok(request.body(Full::from(message.to_string()))?)
}

/// The same call through the gateway.
pub(crate) fn governed_call(
    address: SocketAddr,
    token: &str,
    arguments: &Value,
) -> Result<Template, Failure> {
    post(address, token, "/v1/mcps/bench:echo/invoke", &json!({ "input": arguments }))
}

/// A call of `text` through the gateway.
pub(crate) fn text_call(
    address: SocketAddr,
    token: &str,
    bytes: usize,
) -> Result<Template, Failure> {
    post(address, token, "/v1/mcps/bench:text/invoke", &json!({ "input": { "bytes": bytes } }))
}

/// A read of the resource with the same text through the gateway.
pub(crate) fn read(address: SocketAddr, token: &str, bytes: usize) -> Result<Template, Failure> {
    let uri = format!("{}{bytes}", upstream::TEXTS);
    post(address, token, "/v1/resources/read", &json!({ "uri": uri }))
}

/// The same call through the gateway, as an MCP client sends it.
pub(crate) fn mcp_call(
    address: SocketAddr,
    token: &str,
    arguments: &Value,
) -> Result<Template, Failure> {
    let mut call = direct_call(address, arguments)?;
    *call.uri_mut() = Uri::from_static("/mcp/bench");
    let bearer = HeaderValue::from_str(&format!("Bearer {token}"))?;
    call.headers_mut().insert(AUTHORIZATION, bearer);
    Ok(call)
}

/// The same call under an idempotency key.
pub(crate) fn keyed_call(
    address: SocketAddr,
    token: &str,
    arguments: &Value,
    key: &str,
) -> Result<Template, Failure> {
    let mut call = governed_call(address, token, arguments)?;
    call.headers_mut().insert("idempotency-key", HeaderValue::from_str(key)?);
    Ok(call)
}

/// A GET of the gateway's.
pub(crate) fn get(address: SocketAddr, token: &str, path: &str) -> Result<Template, Failure> {
    Ok(request_to(address, token, path).body(Full::default())?)
}

/// A POST of JSON to the gateway.
pub(crate) fn post(
    address: SocketAddr,
    token: &str,
    path: &str,
    body: &Value,
) -> Result<Template, Failure> {
    let request = request_to(address, token, path).method(Method::POST);
    Ok(request.header(CONTENT_TYPE, "application/json").body(Full::from(body.to_string()))?)
}

fn request_to(address: SocketAddr, token: &str, path: &str) -> request::Builder {
    Request::builder()
        .uri(path)
        .header(HOST, address.to_string())
        .header(AUTHORIZATION, format!("Bearer {token}"))
}
