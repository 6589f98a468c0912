//! A reverse proxy that does nothing but pass requests on: what any hop in between costs.

use std::{
    net::SocketAddr,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use http_body_util::Full;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{Failure, client::Connection, upstream};

/// Bytes read of one body at most.
const MOST_BYTES: usize = 8 << 20;

/// The proxy as a child process; it ends with this value.
#[derive(Debug)]
pub(crate) struct Proxy {
    child: Child,
    /// Its address.
    pub(crate) address: SocketAddr,
}

impl Proxy {
    /// Starts this program once more as a proxy of `upstream` and waits until it listens.
    pub(crate) async fn start(upstream: SocketAddr) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve-proxy", &upstream.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the proxy has no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        let address = line.trim().parse().map_err(|_| "the proxy did not start")?;
        Ok(Self { child, address })
    }

    /// The process id, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }
}

/// Connections to the upstream that are not in use.
struct Pool {
    upstream: SocketAddr,
    idle: Mutex<Vec<Connection>>,
}

/// Passes on to `upstream` until standard input ends; prints where it listens.
pub(crate) async fn serve(to: SocketAddr) -> Result<(), Failure> {
    let pool = Arc::new(Pool { upstream: to, idle: Mutex::default() });
    upstream::serve_at(upstream::ANYWHERE, Router::new().fallback(pass_on).with_state(pool)).await
}

async fn pass_on(State(pool): State<Arc<Pool>>, request: Request) -> Response {
    pool.exchange(request).await.unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response())
}

impl Pool {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let (parts, body) = request.into_parts();
        let body: Bytes = axum::body::to_bytes(body, MOST_BYTES).await?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(self.upstream).await?,
        };
        let answer = connection.send(http::Request::from_parts(parts, Full::from(body))).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        let mut response = Response::new(Body::from(answer.body));
        *response.status_mut() = answer.status;
        Ok(response)
    }
}
