//! A hop that does nothing: HTTP on the threads that the gateway serves with, each with connections of
//! its own to the upstream.

use std::{cell::RefCell, net::SocketAddr};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use portcullis_lanes::Lanes;
use tokio::net::TcpStream;

use crate::{
    Failure,
    client::{self, Connection, Template},
    upstream,
};

/// Bytes read of one body at most.
const MOST_BYTES: usize = 8 << 20;

thread_local! {
    /// Connections to the upstream that are not in use.
    static IDLE: RefCell<Vec<Connection>> = const { RefCell::new(Vec::new()) };
}

/// Passes everything on to `upstream` until standard input ends; prints where it listens.
pub(crate) async fn pass_on(to: SocketAddr) -> Result<(), Failure> {
    serve(move |request| async move { ask(to, request.map(Full::from)).await }).await
}

/// Answers with `answer` until standard input ends; prints where it listens.
pub(crate) async fn serve<A, F>(answer: A) -> Result<(), Failure>
where
    A: Fn(Request<Bytes>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<client::Answer, Failure>> + Send,
{
    let listener = upstream::listen(upstream::ANYWHERE)?;
    let lanes = Lanes::start();
    let accepting = async {
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let stream = stream.into_std()?;
            let lane = lanes.assign();
            let answer = answer.clone();
            let runtime = lane.runtime.clone();
            runtime.spawn(async move {
                let _lane = lane;
                let Ok(stream) = TcpStream::from_std(stream) else { return };
                let service = service_fn(|request| respond(&answer, request));
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // The client went away.
                let _ = served.await;
            });
        }
    };
    let served = tokio::select! {
        served = accepting => served,
        () = upstream::parent_is_gone() => Ok(()),
    };
    lanes.end().await;
    served
}

async fn respond<A, F>(
    answer: &A,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Failure>
where
    A: Fn(Request<Bytes>) -> F,
    F: Future<Output = Result<client::Answer, Failure>>,
{
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MOST_BYTES).collect().await?.to_bytes();
    let answered = answer(Request::from_parts(head, body)).await;
    let mut response = Response::new(Full::default());
    match answered {
        Ok(client::Answer { status, body, .. }) => {
            *response.status_mut() = status;
            *response.body_mut() = Full::from(body);
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_GATEWAY,
    }
    Ok(response)
}

/// Asks the upstream over a connection of this thread.
pub(crate) async fn ask(
    upstream: SocketAddr,
    request: Template,
) -> Result<client::Answer, Failure> {
    let idle = IDLE.with_borrow_mut(Vec::pop);
    let mut connection = match idle {
        Some(connection) => connection,
        None => Connection::open(upstream).await?,
    };
    let answer = connection.send(request).await?;
    IDLE.with_borrow_mut(|idle| idle.push(connection));
    Ok(answer)
}
