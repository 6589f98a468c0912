//! Server-sent events, read piece by piece and bounded.

use std::{collections::VecDeque, time::Duration};

/// One event that carries data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) data: Vec<u8>,
}

/// One event is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// The state between two pieces of a stream.
#[derive(Debug)]
pub(crate) struct Parser {
    max_event_bytes: usize,
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    after_return: bool,
    first_line: bool,
    ready: VecDeque<Event>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

/// The longest `id` that we remember, and the longest wait that a server may ask for.
const MAX_ID_BYTES: usize = 1024;
const MAX_RETRY: Duration = Duration::from_mins(5);

impl Parser {
    pub(crate) fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            line: Vec::new(),
            data: None,
            after_return: false,
            first_line: true,
            ready: VecDeque::new(),
            last_id: None,
            retry: None,
        }
    }

    /// Reads a piece of the stream; [`Self::next`] then gives the events it completed.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> Result<(), TooLarge> {
        if self.after_return && !piece.is_empty() {
            self.after_return = false;
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', piece) {
            let (line, rest) = piece.split_at(end);
            self.extend_line(line)?;
            self.end_line()?;
            piece = match rest {
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.extend_line(piece)
    }

    /// The next complete event.
    pub(crate) fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// The event that the end of the stream completes, if one was begun.
    pub(crate) fn finish(&mut self) -> Option<Event> {
        if !self.line.is_empty() {
            self.end_line().ok()?;
        }
        self.data.take().map(|data| Event { data })
    }

    /// The id from which the stream could be resumed.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Time that the server asks clients to wait before they resume.
    pub(crate) const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Forgets what a broken stream left unfinished, but neither its last id nor its wishes.
    pub(crate) fn restart(&mut self) {
        self.line.clear();
        self.data = None;
        self.after_return = false;
        self.first_line = true;
    }

    fn extend_line(&mut self, piece: &[u8]) -> Result<(), TooLarge> {
        let size = self.line.len() + piece.len() + self.data.as_ref().map_or(0, Vec::len);
        // The field's name is not data.
        if size > self.max_event_bytes.saturating_add(16) {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), TooLarge> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.first_line)
            && let Some(rest) = line.strip_prefix(b"\xef\xbb\xbf")
        {
            line = rest.to_vec();
        }
        if line.is_empty() {
            if let Some(data) = self.data.take() {
                self.ready.push_back(Event { data });
            }
            return Ok(());
        }
        let (name, value) = split(&line);
        match name {
            b"data" => self.add_data(value)?,
            b"id" if value.len() <= MAX_ID_BYTES && !value.contains(&0) => {
                self.last_id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            b"retry" => self.set_retry(value),
            _ => {}
        }
        line.clear();
        self.line = line;
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), TooLarge> {
        let Some(data) = &mut self.data else {
            self.data = Some(value.to_vec());
            return Ok(());
        };
        if data.len() + value.len() >= self.max_event_bytes {
            return Err(TooLarge);
        }
        data.push(b'\n');
        data.extend_from_slice(value);
        Ok(())
    }

    fn set_retry(&mut self, value: &[u8]) {
        let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        if let Some(millis) = millis {
            self.retry = Some(Duration::from_millis(millis).min(MAX_RETRY));
        }
    }
}

/// The field's name and its value without the one space that may precede it.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = memchr::memchr(b':', line) else { return (line, &[]) };
    let (name, rest) = line.split_at(colon);
    let value = rest.strip_prefix(b":").unwrap_or(rest);
    (name, value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(parser: &mut Parser, pieces: &[&[u8]]) -> Vec<String> {
        for piece in pieces {
            parser.push(piece).unwrap();
        }
        std::iter::from_fn(|| parser.next())
            .map(|event| String::from_utf8(event.data).unwrap())
            .collect()
    }

    #[test]
    fn all_line_ends_comments_and_several_data_lines_are_understood() {
        let stream = b"\xef\xbb\xbfdata: a\ndata:b\r\n\r\n: ping\r\rdata\rdata: x\r\r\
            event: message\nid: 7\nretry: 20\ndata: c\n\nid: 8\n\ndata: never";
        let mut parser = Parser::new(100);

        assert_eq!(events(&mut parser, &[stream]), ["a\nb", "\nx", "c"]);
        assert_eq!(parser.last_id(), Some("8"));
        assert_eq!(parser.retry(), Some(Duration::from_millis(20)));
    }

    #[test]
    fn the_way_a_stream_is_cut_into_pieces_does_not_matter() {
        let stream = b"data: one\r\ndata: two\r\n\r\nid: 3\rdata: \xc3\xa9\r\rdata: z\n\n";
        let whole = events(&mut Parser::new(100), &[stream]);

        for cut in 0..stream.len() {
            let (left, right) = stream.split_at(cut);
            assert_eq!(events(&mut Parser::new(100), &[left, right]), whole, "{cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(events(&mut Parser::new(100), &bytes), whole);
        assert_eq!(whole, ["one\ntwo", "é", "z"]);
    }

    #[test]
    fn an_event_that_never_ends_is_cut_off() {
        let mut one_line = Parser::new(64);
        let mut many_lines = Parser::new(64);

        let first = (0..100).find_map(|_| one_line.push(b"data: 0123456789").err());
        let second = (0..100).find_map(|_| many_lines.push(b"data: 0123456789\n").err());

        assert_eq!((first, second), (Some(TooLarge), Some(TooLarge)));
    }
}
