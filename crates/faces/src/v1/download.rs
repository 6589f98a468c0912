//! A file as an answer: streamed, in part (RFC 9110 §14), or compressed with gzip.

use std::{io::SeekFrom, io::Write as _, sync::Arc};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use flate2::{Compression, write::GzEncoder};
use futures_util::stream;
use portcullis_app::{App, ExportFile};
use portcullis_core::{id::OrgId, refusal::Refusal};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt},
};

use crate::exchange::outcome::insert;

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// Bytes of a file, from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    first: u64,
    last: u64,
}

/// The file of an org, or what the client wants of it.
pub(crate) fn answer(
    export: ExportFile,
    headers: &HeaderMap,
    app: &Arc<App>,
    org: OrgId,
) -> Result<Response, Refusal> {
    let tag = format!("\"{}\"", export.sha256);
    let part = match range(headers, export.bytes, &tag) {
        ByteRange::All => None,
        ByteRange::Part(part) => Some(part),
        ByteRange::Nothing => return Err(Refusal::RangeNotSatisfiable { bytes: export.bytes }),
    };
    let zipped = part.is_none() && takes_gzip(headers);
    let file = File::from_std(export.file);
    let mut response = Response::new(match part {
        Some(part) => plain(file, part.first, part.last + 1 - part.first),
        None if zipped => compressed(file, export.bytes, app, org),
        None => plain(file, 0, export.bytes),
    });
    let told = response.headers_mut();
    insert(told, header::CONTENT_TYPE, export.media_type);
    insert(told, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{}\"", export.name));
    insert(told, header::ACCEPT_RANGES, "bytes");
    insert(told, header::VARY, "accept-encoding");
    if zipped {
        told.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        insert(told, header::ETAG, &format!("\"{}-gzip\"", export.sha256));
        return Ok(response);
    }
    insert(told, header::ETAG, &tag);
    let length = part.map_or(export.bytes, |part| part.last + 1 - part.first);
    told.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if let Some(Part { first, last }) = part {
        insert(told, header::CONTENT_RANGE, &format!("bytes {first}-{last}/{}", export.bytes));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteRange {
    All,
    Part(Part),
    /// A part that lies behind the end.
    Nothing,
}

/// The part that `Range` asks for. Several parts, other units and what cannot be read are answered with
/// the whole file, as is a part of a file that has changed (`If-Range`).
fn range(headers: &HeaderMap, bytes: u64, tag: &str) -> ByteRange {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let Some((unit, range)) = text(header::RANGE).and_then(|text| text.split_once('=')) else {
        return ByteRange::All;
    };
    if !unit.eq_ignore_ascii_case("bytes") || text(header::IF_RANGE).is_some_and(|it| it != tag) {
        return ByteRange::All;
    }
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More than fits is behind the end of any file.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let Some((first, last)) = range.split_once('-') else { return ByteRange::All };
    let (first, last) = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => (first, last),
        (Some(first), None) if last.is_empty() => (first, u64::MAX),
        (None, Some(0)) if first.is_empty() => return ByteRange::Nothing,
        (None, Some(length)) if first.is_empty() => (bytes.saturating_sub(length), u64::MAX),
        (Some(_) | None, Some(_) | None) => return ByteRange::All,
    };
    if first >= bytes {
        return ByteRange::Nothing;
    }
    ByteRange::Part(Part { first, last: last.min(bytes - 1) })
}

/// Returns true if `Accept-Encoding` permits gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let codings = values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let mut wanted = None;
    for coding in codings {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let name = name.trim();
        let named = name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip");
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        let takes = weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0);
        if named || (name == "*" && wanted.is_none()) {
            wanted = Some(takes);
        }
    }
    wanted.unwrap_or(false)
}

fn plain(file: File, from: u64, length: u64) -> Body {
    let pieces =
        stream::try_unfold((file, Some(from), length), |(mut file, seek, left)| async move {
            if let Some(from) = seek.filter(|from| *from > 0) {
                file.seek(SeekFrom::Start(from)).await?;
            }
            let Some(piece) = piece(&mut file, left).await? else { return Ok(None) };
            let left = left.saturating_sub(u64::try_from(piece.len()).unwrap_or(u64::MAX));
            Ok::<_, std::io::Error>(Some((piece, (file, None, left))))
        });
    Body::from_stream(pieces)
}

/// The next bytes of at most `left`; a file that is shorter than it was is an error, so that the
/// client does not take half of it for the whole.
async fn piece(file: &mut File, left: u64) -> std::io::Result<Option<Bytes>> {
    let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
    if most == 0 {
        return Ok(None);
    }
    let mut piece = BytesMut::zeroed(most);
    let read = file.read(&mut piece).await?;
    if read == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    piece.truncate(read);
    Ok(Some(piece.freeze()))
}

fn compressed(file: File, length: u64, app: &Arc<App>, org: OrgId) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let app = Arc::clone(app);
    let pieces = stream::try_unfold(
        (file, Some(encoder), length, app),
        move |(mut file, encoder, mut left, app)| async move {
            let Some(mut encoder) = encoder else { return Ok(None) };
            // The encoder may swallow several pieces before it gives one.
            while encoder.get_ref().is_empty() {
                let Some(piece) = piece(&mut file, left).await? else {
                    let rest = Bytes::from(encoder.finish()?);
                    return Ok(Some((rest, (file, None, 0, app))));
                };
                left = left.saturating_sub(u64::try_from(piece.len()).unwrap_or(u64::MAX));
                encoder = compress(&app, org, encoder, piece).await?;
            }
            let written = Bytes::from(std::mem::take(encoder.get_mut()));
            Ok::<_, std::io::Error>(Some((written, (file, Some(encoder), left, app))))
        },
    );
    Body::from_stream(pieces)
}

/// Compresses a piece when it is the org's turn, off the thread that serves: a file has gigabytes.
async fn compress(
    app: &App,
    org: OrgId,
    mut encoder: GzEncoder<Vec<u8>>,
    piece: Bytes,
) -> std::io::Result<GzEncoder<Vec<u8>>> {
    let work = move || encoder.write_all(&piece).map(|()| encoder);
    let written = app.base.worked(org, usize::MAX, work).await;
    written.map_err(|refusal| std::io::Error::other(refusal.to_string()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let parsed = pairs.iter().map(|(name, value)| {
            let name: header::HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        });
        parsed.collect()
    }

    #[test]
    fn a_part_is_what_the_standard_says() {
        let part = |first, last| ByteRange::Part(Part { first, last });
        for (text, wanted) in [
            ("bytes=0-0", part(0, 0)),
            ("bytes=5-", part(5, 9)),
            ("bytes=5-100", part(5, 9)),
            ("bytes=-3", part(7, 9)),
            ("bytes=-100", part(0, 9)),
            ("bytes=10-", ByteRange::Nothing),
            ("bytes=99999999999999999999999-", ByteRange::Nothing),
            ("bytes=-0", ByteRange::Nothing),
            ("bytes=5-4", ByteRange::All),
            ("bytes=0-1,3-4", ByteRange::All),
            ("bytes=a-b", ByteRange::All),
            ("bytes=-", ByteRange::All),
            ("lines=0-1", ByteRange::All),
            ("bytes", ByteRange::All),
        ] {
            assert_eq!(range(&headers(&[("range", text)]), 10, "\"x\""), wanted, "{text}");
        }
        for (tag, wanted) in [("\"x\"", part(1, 2)), ("\"y\"", ByteRange::All)] {
            let both = headers(&[("range", "bytes=1-2"), ("if-range", tag)]);
            assert_eq!(range(&both, 10, "\"x\""), wanted, "{tag}");
        }
    }

    #[test]
    fn gzip_is_for_those_who_take_it() {
        for (text, wanted) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip;q=0, *", false),
            ("*;q=0, gzip", true),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(&headers(&[("accept-encoding", text)])), wanted, "{text}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
