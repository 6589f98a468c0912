//! Files line by line, gzipped or not, with a progress figure on a terminal.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, IsTerminal, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use flate2::read::MultiGzDecoder;
use portcullis_core::audit::export::{Fault, MAX_LINE_BYTES};

use super::unreadable;

/// Shorter files are done before anybody reads a figure.
const LONG: u64 = 8 << 20;
/// After so many lines the figure is written anew.
const STEP: u64 = 20_000;

/// A file, read once from its beginning.
pub(super) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    /// True if the last line ended with a line feed.
    pub(super) whole: bool,
    size: u64,
    read: Arc<AtomicU64>,
    shows: bool,
}

struct CountingReader {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        Ok(count)
    }
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, Fault> {
        let opened = || -> io::Result<Self> {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            let read = Arc::default();
            let counted = CountingReader { file, read: Arc::clone(&read) };
            let mut plain = BufReader::with_capacity(1 << 18, counted);
            let gzipped = plain.fill_buf()?.starts_with(&[0x1f, 0x8b]);
            let reader: Box<dyn BufRead> = if gzipped {
                Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(plain)))
            } else {
                Box::new(plain)
            };
            let shows = size > LONG && io::stderr().is_terminal();
            let path = path.to_owned();
            let line = Vec::new();
            Ok(Self { path, reader, line, whole: true, size, read, shows })
        };
        opened().map_err(|error| unreadable(path, &error))
    }

    /// The next line without its line feed; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Fault> {
        self.line.clear();
        let most = u64::try_from(MAX_LINE_BYTES + 2).unwrap_or(u64::MAX);
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.line);
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Fault::Incomplete("the compressed file is cut off".to_owned()));
            }
            Err(error) => return Err(unreadable(&self.path, &error)),
        }
        self.whole = self.line.pop_if(|last| *last == b'\n').is_some();
        Ok(Some(&self.line))
    }

    /// The whole text, of which `first` is the first line.
    pub(super) fn all(mut self, first: &[u8], most: u64) -> Result<String, Fault> {
        let mut text = first.to_vec();
        if self.whole {
            text.push(b'\n');
        }
        let rest = self.reader.by_ref().take(most + 1).read_to_end(&mut text);
        rest.map_err(|error| unreadable(&self.path, &error))?;
        if u64::try_from(text.len()).is_ok_and(|length| length > most) {
            return Err(Fault::unreadable("the file is too large for what it should be"));
        }
        String::from_utf8(text).map_err(|_| Fault::unreadable("the file is no text"))
    }

    /// The whole text of a file.
    pub(super) fn text(path: &Path, most: u64) -> Result<String, Fault> {
        let mut lines = Self::open(path)?;
        let first = lines.next()?.unwrap_or_default().to_vec();
        lines.all(&first, most)
    }

    /// Shows how far it is, on a terminal.
    pub(super) fn progress(&self, events: u64) {
        if self.shows && events.is_multiple_of(STEP) {
            let read = self.read.load(Ordering::Relaxed);
            let percent = read.saturating_mul(100).checked_div(self.size).unwrap_or(0);
            let _ = write!(io::stderr().lock(), "\r{percent:3} %  {events} events");
        }
    }

    /// Removes the figure.
    pub(super) fn done(&self) {
        if self.shows {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
