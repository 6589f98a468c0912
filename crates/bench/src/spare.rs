//! A client that leaves the processors to others: it writes what was rendered before, and looks at
//! nothing of an answer but its status and its length.
//!
//! Under overload, senders share the processors with the process that has to
//! answer, and take cycles from it.

use std::{io, net::SocketAddr};

use bytes::{Buf as _, BytesMut};
use http::{StatusCode, header::CONTENT_LENGTH};
use http_body_util::BodyExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{Failure, client::Template};

/// Header fields of an answer that are read at most.
const FIELDS: usize = 64;
/// Room for an answer to a small call.
const ROOM: usize = 8 << 10;

/// The bytes of a request, as HTTP/1.1 has them.
pub(crate) async fn rendered(request: Template) -> Result<Vec<u8>, Failure> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut bytes = format!("{} {} HTTP/1.1\r\n", head.method, head.uri).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// A keep-alive connection, one request at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    read: BytesMut,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: BytesMut::with_capacity(ROOM) })
    }

    /// Sends a rendered request and reads the whole answer; after a failure the connection is of no
    /// use.
    pub(crate) async fn send(&mut self, request: &[u8]) -> io::Result<StatusCode> {
        self.stream.write_all(request).await?;
        loop {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some((status, length)) = complete(&self.read)? {
                self.read.advance(length);
                return Ok(status);
            }
        }
    }
}

/// The status and the length of the answer at the beginning of `bytes`, once all of it is there.
fn complete(bytes: &[u8]) -> io::Result<Option<(StatusCode, usize)>> {
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut answer = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(head) = answer.parse(bytes).map_err(|_| bad())? else {
        return Ok(None);
    };
    let status = answer.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or_else(bad)?;
    let mut fields = answer.headers.iter();
    let length = fields.find(|field| field.name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str()));
    let length = length.and_then(|field| str::from_utf8(field.value).ok()?.parse::<usize>().ok());
    let whole = head.saturating_add(length.ok_or_else(bad)?);
    Ok((bytes.len() >= whole).then_some((status, whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}";

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        for end in 0..ANSWER.len() {
            assert_eq!(complete(&ANSWER[..end]).unwrap(), None, "{end}");
        }

        let whole = complete(&[ANSWER, b"HTTP/1.1 200"].concat()).unwrap();

        assert_eq!(whole, Some((StatusCode::SERVICE_UNAVAILABLE, ANSWER.len())));
    }

    #[test]
    fn an_answer_without_a_length_or_that_is_none_is_refused() {
        for bad in
            [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 xyz\r\n\r\n"]
        {
            assert_eq!(complete(bad).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[tokio::test]
    async fn a_request_is_rendered_whole() {
        let request = http::Request::post("/v1/x").header("host", "h");
        let request = request.body(http_body_util::Full::from("{}")).unwrap();

        let bytes = rendered(request).await.unwrap();

        assert_eq!(bytes, b"POST /v1/x HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{}");
    }
}
