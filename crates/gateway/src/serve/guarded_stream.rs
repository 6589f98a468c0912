//! The stream of a connection as hyper reads and writes it: behind what was read before, without what
//! breaks the framing of HTTP/1, no more of HTTP/2 at once than others can wait for, and with a note
//! of what its client has not taken yet.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use portcullis_faces::connection::Connection;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::framing::Framing;

/// First bytes of a client that speaks HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// The rest of a head whose framing is broken, in the place of the line that breaks it: a byte that no
/// head may hold, so that hyper answers 400 in the turn of that request and closes the connection, and
/// the end that hyper waits for before it looks.
const BAD_REST: &[u8] = b"\0\r\n\r\n";

/// A stream, and what was read of it ahead.
pub(super) struct GuardedStream<S> {
    ahead: Bytes,
    stream: TokioIo<S>,
    guard: Guard,
    connection: Arc<Connection>,
}

/// The framing that a client keeps to.
enum Guard {
    /// The protocol is not known yet.
    Off,
    Http1(Box<Framing>),
    Http2(Box<Frames>),
    /// A head broke it: this is still to be read, and nothing else.
    BrokenHead(&'static [u8]),
    /// A body broke it: the connection is of no use.
    BrokenBody,
}

impl<S: AsyncRead + AsyncWrite + Unpin> GuardedStream<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>) -> Self {
        Self { ahead: Bytes::new(), stream: TokioIo::new(stream), guard: Guard::Off, connection }
    }

    /// Reads on until it is clear which protocol the client speaks. `None` if it said nothing.
    pub(super) async fn protocol(&mut self) -> io::Result<Option<Protocol>> {
        let mut first = [0; PREFACE.len()];
        let mut length = 0;
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
            self.guard = match protocol {
                Protocol::Http1 => Guard::Http1(Box::new(Framing::new())),
                Protocol::Http2 => Guard::Http2(Box::default()),
            };
            if let Some(kept) = self.guard.check(read) {
                self.ahead = [read.get(..kept).unwrap_or_default(), BAD_REST].concat().into();
                self.guard = Guard::BrokenHead(&[]);
            }
            return Ok(Some(protocol));
        }
    }
}

impl<S> GuardedStream<S> {
    fn guarded(&mut self) -> GuardedRead<'_, S> {
        let Self { stream, guard, connection, .. } = self;
        GuardedRead { stream: stream.inner_mut(), guard, connection }
    }
}

impl Guard {
    /// Number of these bytes that may be parsed, if what follows them may not.
    fn check(&mut self, bytes: &[u8]) -> Option<usize> {
        let Self::Http1(framing) = self else { return None };
        let violation = framing.read(bytes).err()?;
        *self = if violation.in_head { Self::BrokenHead(BAD_REST) } else { Self::BrokenBody };
        Some(violation.after)
    }
}

/// Bytes that are read of a connection with HTTP/2 before others of its thread get their turn: all
/// frames that have arrived are handled at once, and a byte of compressed headers may cost as much as
/// a hundred others.
const READ_AT_ONCE: usize = 8 << 10;

/// Length of what precedes the payload of a frame (RFC 9113 §4.1).
const FRAME_HEAD: usize = 9;

/// The frames of HTTP/2 as they are read.
#[derive(Default)]
struct Frames {
    /// Bytes that were read since others had their turn.
    at_once: usize,
    head: u128,
    head_length: usize,
    /// Bytes of the frame's payload that are still to come.
    payload: usize,
    is_data: bool,
}

impl Frames {
    fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        connection: &Connection,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = READ_AT_ONCE.saturating_sub(self.at_once);
        if room == 0 {
            self.at_once = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let room = room.min(buffer.remaining());
        let mut read = ReadBuf::new(buffer.initialize_unfilled_to(room));
        let polled = Pin::new(stream).poll_read(context, &mut read);
        if polled.is_pending() {
            self.at_once = 0;
        }
        ready!(polled)?;
        let besides_data = self.count_besides_data(read.filled());
        let count = read.filled().len();
        buffer.advance(count);
        self.at_once += count;
        if connection.takes_frames(besides_data) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()))
        }
    }

    /// Number of these bytes that are no payload of DATA.
    fn count_besides_data(&mut self, mut bytes: &[u8]) -> usize {
        let mut count = 0;
        while !bytes.is_empty() {
            let in_payload = self.payload > 0;
            let wanted = if in_payload { self.payload } else { FRAME_HEAD - self.head_length };
            let (now, later) = bytes.split_at(wanted.min(bytes.len()));
            bytes = later;
            if in_payload {
                self.payload -= now.len();
                count += if self.is_data { 0 } else { now.len() };
                continue;
            }
            count += now.len();
            self.head = now.iter().fold(self.head, |head, byte| (head << 8) | u128::from(*byte));
            self.head_length += now.len();
            if self.head_length == FRAME_HEAD {
                // Three bytes of length and one of type come before flags and stream.
                self.payload = usize::try_from(self.head >> 48).unwrap_or(usize::MAX);
                self.is_data = self.head.to_be_bytes()[16 - FRAME_HEAD + 3] == 0;
                (self.head, self.head_length) = (0, 0);
            }
        }
        count
    }
}

/// A stream as it is read: up to the first byte that breaks its framing.
struct GuardedRead<'a, S> {
    stream: &'a mut S,
    guard: &'a mut Guard,
    connection: &'a Connection,
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedRead<'_, S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, guard, connection } = self.get_mut();
        if let Guard::Http2(frames) = guard {
            return frames.poll_read(stream, connection, context, buffer);
        }
        let before = buffer.filled().len();
        if let Guard::Off | Guard::Http1(_) = guard {
            ready!(Pin::new(stream).poll_read(context, buffer))?;
            let read = buffer.filled().get(before..).unwrap_or_default();
            let Some(kept) = guard.check(read) else { return Poll::Ready(Ok(())) };
            buffer.set_filled(before + kept);
        }
        match guard {
            Guard::BrokenHead(rest) => {
                let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
                buffer.put_slice(now);
                *rest = later;
            }
            Guard::BrokenBody if buffer.filled().len() == before => {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            Guard::BrokenBody | Guard::Off | Guard::Http1(_) | Guard::Http2(_) => {}
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> Read for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut TokioIo::new(self.guarded())).poll_read(context, buffer);
        }
        let count = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(self.ahead.get(..count).unwrap_or_default());
        self.ahead.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> GuardedStream<S> {
    /// Notes whether the client holds up what is written.
    fn noted<T>(&self, written: Poll<T>) -> Poll<T> {
        self.connection.held_up(written.is_pending());
        written
    }
}

impl<S: AsyncWrite + Unpin> Write for GuardedStream<S> {
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

    use portcullis_faces::connection::Use;
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn detect(parts: &[&[u8]]) -> (Option<Protocol>, Bytes) {
        let (mut client, server) = tokio::io::duplex(64);
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut wire = GuardedStream::new(server, Arc::new(Connection::new(peer, Use::All)));
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
        let http1 = Some(Protocol::Http1);
        let http2 = Some(Protocol::Http2);

        assert_eq!(detect(&[PREFACE]).await, (http2, Bytes::from_static(PREFACE)));
        assert_eq!(detect(&bytewise).await, (http2, Bytes::from_static(PREFACE)));
        assert_eq!(detect(&[b"GET / HTTP/1.1"]).await.0, http1);
        assert_eq!(detect(&[b"P", b"OST /"]).await, (http1, Bytes::from_static(b"POST /")));
        assert_eq!(detect(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", b"x"]).await.0, http1);
        assert_eq!(detect(&[b"PRI"]).await, (http1, Bytes::from_static(b"PRI")));
        assert_eq!(detect(&[]).await, (None, Bytes::new()));
        assert_eq!(detect(&[b"G /\nx"]).await, (http1, Bytes::from_static(BAD_REST)));
    }

    #[test]
    fn what_is_no_data_is_counted_however_it_comes() {
        let frame = |kind: u8, payload: &[u8]| {
            let length = u8::try_from(payload.len()).unwrap();
            [&[0, 0, length, kind, 0, 0, 0, 0, 1][..], payload].concat()
        };
        let bytes =
            [frame(6, b"12345678"), frame(0, b"body"), frame(0, b""), frame(1, b"xy")].concat();

        for step in 1..=bytes.len() {
            let mut frames = Frames::default();
            let parts = bytes.chunks(step);
            let counted: usize = parts.map(|part| frames.count_besides_data(part)).sum();

            assert_eq!(counted, bytes.len() - "body".len(), "{step} bytes at a time");
        }
    }

    #[tokio::test]
    async fn others_get_their_turn_while_frames_of_one_connection_are_read() {
        let (mut client, mut server) = tokio::io::duplex(4 * READ_AT_ONCE);
        client.write_all(&vec![0; 3 * READ_AT_ONCE]).await.unwrap();
        let connection = Connection::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), Use::All);
        let mut guard = Guard::Http2(Box::default());
        let mut read = Vec::new();

        std::future::poll_fn(|context| {
            let mut room = vec![0; 4 * READ_AT_ONCE];
            let mut buffer = ReadBuf::new(&mut room);
            let mut stream =
                GuardedRead { stream: &mut server, guard: &mut guard, connection: &connection };
            while Pin::new(&mut stream).poll_read(context, &mut buffer).is_ready() {}
            read.push(buffer.filled().len());
            if read.len() == 3 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;

        assert_eq!(read, [READ_AT_ONCE; 3]);
    }
}
