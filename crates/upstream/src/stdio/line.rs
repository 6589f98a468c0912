//! Reading lines of bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::mcp::scan::IdScanner;

/// One line of a child's output, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// The line was too long; the id of the request it answered, where that could be told.
    TooLong(Option<u64>),
}

/// Multiple of the longest line at which the child is given up.
const PATIENCE: usize = 16;

/// Reads the next line; `None` at the end of the output. A last line without an end is dropped:
/// the child died while writing it. Fails when a line does not end within 16 times `max_bytes`.
pub(super) async fn next<R: AsyncBufRead + Unpin>(
    input: &mut R,
    max_bytes: usize,
) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut scanner: Option<IdScanner> = None;
    let mut total = 0_usize;
    loop {
        let piece = input.fill_buf().await?;
        if piece.is_empty() {
            return Ok(None);
        }
        let end = memchr::memchr(b'\n', piece);
        let (part, used) = match end {
            Some(end) => (piece.get(..end).unwrap_or_default(), end + 1),
            None => (piece, piece.len()),
        };
        total = total.saturating_add(part.len());
        match &mut scanner {
            Some(scanner) => scanner.push(part),
            None if total > max_bytes => {
                let mut started = IdScanner::default();
                started.push(&std::mem::take(&mut line));
                started.push(part);
                scanner = Some(started);
            }
            None => line.extend_from_slice(part),
        }
        input.consume(used);
        if end.is_some() {
            let whole = Line::Whole(line);
            return Ok(Some(scanner.map_or(whole, |scanner| Line::TooLong(scanner.id()))));
        }
        if total > max_bytes.saturating_mul(PATIENCE) {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn lines(text: &str, max_bytes: usize) -> Vec<Option<Line>> {
        let mut input = BufReader::with_capacity(5, text.as_bytes());
        let mut found = Vec::new();
        loop {
            let line = next(&mut input, max_bytes).await.unwrap();
            let end = line.is_none();
            found.push(line);
            if end {
                return found;
            }
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_are_told_apart_and_an_unfinished_one_is_dropped() {
        let found = lines("a\n\nlonger line\nunfinished", 100).await;

        assert_eq!(found, [Some(whole("a")), Some(whole("")), Some(whole("longer line")), None]);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_still_tells_whose_it_is() {
        let long = format!("{{\"result\":\"{}\",\"id\":42}}", "x".repeat(50));
        let found = lines(&format!("{long}\nplain text that is too long as well\nok\n"), 20).await;

        assert_eq!(
            found,
            [Some(Line::TooLong(Some(42))), Some(Line::TooLong(None)), Some(whole("ok")), None]
        );
    }

    #[tokio::test]
    async fn a_line_without_end_is_not_read_forever() {
        let endless = "x".repeat(1000);
        let mut input = endless.as_bytes();

        assert!(next(&mut input, 20).await.is_err());
    }
}
