//! The loopback address that a browser comes back to with a code (RFC 8252 §7.3).

use std::{io, time::Duration};

use portcullis_core::authorization::{COMMAND_LINE_PATH, OAuthForm};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// Time for the head of one request.
const HEAD_PATIENCE: Duration = Duration::from_secs(5);
/// The largest head.
const MAX_HEAD: usize = 16 << 10;

/// Listens on a port of this machine for the browser.
pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
}

impl Callback {
    pub(super) async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The address that the browser is to be sent to.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{COMMAND_LINE_PATH}", self.port)
    }

    /// The parameters that the browser comes back with. Whatever has another `state` is not the answer, and
    /// does not end the wait: any page can send a browser here.
    pub(super) async fn answer(&self, state: &str) -> io::Result<OAuthForm> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            let head = timeout(HEAD_PATIENCE, head(&mut stream)).await;
            let form = head.ok().and_then(Result::ok).as_deref().and_then(parameters);
            let form = form.filter(|form| form.get("state") == Some(state));
            let text = match &form {
                Some(form) if form.get("code").is_some() => {
                    "You can close this page and go back to the terminal."
                }
                Some(_) => "The login was refused. The terminal says more.",
                None => "This is not the answer that the terminal waits for.",
            };
            // The browser may be gone; the answer counts nevertheless.
            let _ = timeout(HEAD_PATIENCE, stream.write_all(page(text, form.is_some()).as_bytes()))
                .await;
            let _ = timeout(HEAD_PATIENCE, stream.shutdown()).await;
            if let Some(form) = form {
                return Ok(form);
            }
        }
    }
}

/// The head of a request, as far as it came.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            break;
        }
        head.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The parameters of a request to the path that the browser is sent to.
fn parameters(head: &str) -> Option<OAuthForm> {
    let line = head.lines().next()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let (path, query) = target.split_once('?')?;
    if path == COMMAND_LINE_PATH { OAuthForm::parse(query.as_bytes()).ok() } else { None }
}

fn page(text: &str, found: bool) -> String {
    let status = if found { "200 OK" } else { "404 Not Found" };
    let body = format!("<!doctype html><meta charset=utf-8><title>Portcullis</title><p>{text}</p>");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(callback: &Callback, target: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", callback.port)).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_an_answer_with_the_state_ends_the_wait() {
        let callback = Callback::open().await.unwrap();
        let asks = async {
            for other in
                ["/callback?code=evil&state=b", "/favicon.ico", "/?code=x&state=a", "/callback"]
            {
                assert!(get(&callback, other).await.starts_with("HTTP/1.1 404"), "{other}");
            }
            assert!(
                get(&callback, "/callback?code=c%20d&state=a").await.contains("close this page")
            );
        };

        let (answer, ()) = tokio::join!(callback.answer("a"), asks);

        assert_eq!(answer.unwrap().get("code"), Some("c d"));
    }
}
