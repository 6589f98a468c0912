//! The stream of a connection as hyper reads and writes it: behind what was read before, and with a
//! note of what its client has not taken yet.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use super::speech::PARTING;
use crate::connection::Connection;

/// First bytes of a client that speaks HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// A stream, and what was read of it ahead.
pub(super) struct Wire<S> {
    ahead: Bytes,
    stream: TokioIo<S>,
    connection: Arc<Connection>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>) -> Self {
        Self { ahead: Bytes::new(), stream: TokioIo::new(stream), connection }
    }

    /// Reads on until it is clear which protocol the client speaks. `None` if it said nothing.
    pub(super) async fn protocol(&mut self) -> io::Result<Option<Protocol>> {
        let (mut first, mut length) = ([0; PREFACE.len()], 0);
        loop {
            let rest = first.get_mut(length..).unwrap_or_default();
            let count = self.stream.inner_mut().read(rest).await?;
            length += count;
            let read = first.get(..length).unwrap_or_default();
            let protocol = match PREFACE.strip_prefix(read) {
                Some([]) => Protocol::Http2,
                Some(_) if count > 0 => continue,
                Some(_) if length == 0 => return Ok(None),
                Some(_) | None => Protocol::Http1,
            };
            self.ahead = Bytes::copy_from_slice(read);
            return Ok(Some(protocol));
        }
    }

    /// Waits until the client says something more. `false` if it went.
    pub(super) async fn is_woken(&mut self) -> io::Result<bool> {
        let mut first = [0];
        let count = self.stream.inner_mut().read(&mut first).await?;
        self.ahead = Bytes::copy_from_slice(first.get(..count).unwrap_or_default());
        Ok(count > 0)
    }

    /// Takes leave of the client, which has a moment to hear of it.
    pub(super) async fn end(mut self) -> io::Result<()> {
        let ended = timeout(PARTING, self.stream.inner_mut().shutdown()).await;
        ended.unwrap_or(Ok(()))
    }

    /// Puts back what was read of it. Nothing at all would still hold the buffer that it was read into.
    pub(super) fn put_back(&mut self, ahead: Bytes) {
        self.ahead = if ahead.is_empty() { Bytes::new() } else { ahead };
    }

    /// Something was read ahead.
    pub(super) fn has_more(&self) -> bool {
        !self.ahead.is_empty()
    }
}

impl<S: AsyncRead + Unpin> Read for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            let read = Pin::new(&mut self.stream).poll_read(context, buffer);
            if read.is_ready() {
                self.connection.heard();
            }
            return read;
        }
        self.connection.heard();
        let count = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(self.ahead.get(..count).unwrap_or_default());
        self.ahead.advance(count);
        if self.ahead.is_empty() {
            self.ahead = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Wire<S> {
    /// Notes whether the client holds up what is written.
    fn noted<T>(&self, written: Poll<T>) -> Poll<T> {
        self.connection.held_up(written.is_pending());
        written
    }
}

impl<S: AsyncWrite + Unpin> Write for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.noted(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.noted(ended)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.noted(written)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;
    use crate::connection::Use;

    async fn told(parts: &[&[u8]]) -> (Option<Protocol>, Bytes) {
        let (mut client, server) = tokio::io::duplex(64);
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut wire = Wire::new(server, Arc::new(Connection::new(peer, Use::All)));
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
        let speaking = async move {
            for part in parts {
                client.write_all(&part).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let (protocol, ()) = tokio::join!(wire.protocol(), speaking);
        let protocol = protocol.unwrap();
        (protocol, wire.ahead)
    }

    #[tokio::test]
    async fn the_protocol_is_told_by_the_first_bytes_however_they_come() {
        let bytewise: Vec<&[u8]> = PREFACE.chunks(1).collect();
        let (http1, http2) = (Some(Protocol::Http1), Some(Protocol::Http2));

        assert_eq!(told(&[PREFACE]).await, (http2, Bytes::from_static(PREFACE)));
        assert_eq!(told(&bytewise).await, (http2, Bytes::from_static(PREFACE)));
        assert_eq!(told(&[b"GET / HTTP/1.1"]).await.0, http1);
        assert_eq!(told(&[b"P", b"OST /"]).await, (http1, Bytes::from_static(b"POST /")));
        assert_eq!(told(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", b"x"]).await.0, http1);
        assert_eq!(told(&[b"PRI"]).await, (http1, Bytes::from_static(b"PRI")));
        assert_eq!(told(&[]).await, (None, Bytes::new()));
    }
}
