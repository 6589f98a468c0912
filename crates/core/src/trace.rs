//! W3C Trace Context: place of a request in the client's trace.

use std::fmt;

use serde::{Serialize, Serializer};

/// Characters of a `traceparent` of version 00, and of the part of later ones that is understood.
const LENGTH: usize = 55;
/// Characters of a `tracestate` that are passed on.
const STATE_LENGTH: usize = 512;
/// The flags whose meaning is known: sampled, and trace id made at random.
const KNOWN_FLAGS: u8 = 0b11;
const SAMPLED: u8 = 0b01;
const RANDOM: u8 = 0b10;

/// A trace: everything that follows from one action. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// One piece of work within a trace. Never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// The `traceparent` of a request (W3C Trace Context level 2, §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: TraceId,
    /// The span that the request was sent from.
    pub span: SpanId,
    flags: u8,
}

impl TraceId {
    /// A trace id of these bytes. Zero is no id; the last bit is set then.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        Self(if number == 0 { 1_u128.to_be_bytes() } else { bytes })
    }
}

impl SpanId {
    /// A span id of this number; zero is no id, so one is taken instead.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(if number == 0 { 1_u64.to_be_bytes() } else { number.to_be_bytes() })
    }
}

impl TraceParent {
    /// A trace that begins with `span`, which is recorded; its id was made at random.
    #[must_use]
    pub const fn starting_with(trace: TraceId, span: SpanId) -> Self {
        Self { trace, span, flags: SAMPLED | RANDOM }
    }

    /// The same trace, seen from `span`, which is recorded.
    #[must_use]
    pub const fn from_span(self, span: SpanId) -> Self {
        Self { trace: self.trace, span, flags: self.flags | SAMPLED }
    }

    /// Reads a header. `None` unless it is exactly one; of a version to come, what version 00 says
    /// is understood.
    #[must_use]
    pub fn parse(header: &[u8]) -> Option<Self> {
        let ([v1, v2, b'-', rest @ ..], true) = (header, header.len() >= LENGTH) else {
            return None;
        };
        let version = hex([*v1, *v2])?;
        let future = version != 0 && header.get(LENGTH).is_none_or(|next| *next == b'-');
        if version == 0xff || !(future || header.len() == LENGTH) {
            return None;
        }
        let (trace, rest) = bytes::<16>(rest)?;
        let (span, rest) = bytes::<8>(rest.strip_prefix(b"-")?)?;
        let ([flags], _) = bytes::<1>(rest.strip_prefix(b"-")?)?;
        let is_id = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
        (is_id(&trace) && is_id(&span)).then_some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
            flags: flags & KNOWN_FLAGS,
        })
    }

    /// Returns true if the sender records this trace.
    #[must_use]
    pub const fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// The part of a `tracestate` that is passed on: whole entries, 512 characters at most.
#[must_use]
pub fn whole_entries(state: &str) -> &str {
    if state.len() <= STATE_LENGTH {
        return state;
    }
    let end = state.as_bytes().iter().take(STATE_LENGTH + 1).rposition(|byte| *byte == b',');
    end.and_then(|end| state.get(..end)).unwrap_or_default()
}

/// `N` bytes from the front of `text`, in lower-case hexadecimal, and what follows.
fn bytes<const N: usize>(text: &[u8]) -> Option<([u8; N], &[u8])> {
    let (digits, rest) = text.split_at_checked(N * 2)?;
    let (pairs, _) = digits.as_chunks::<2>();
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = hex(*pair)?;
    }
    Some((bytes, rest))
}

fn hex([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |character: u8| match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    };
    Some(digit(high)? << 4 | digit(low)?)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

/// The header, in version 00.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, self.flags)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for TraceParent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_parent_reads_back_what_it_wrote() {
        let parent = TraceParent::parse(GOOD.as_bytes()).unwrap();

        assert_eq!(parent.to_string(), GOOD);
        assert_eq!(parent.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(parent.is_sampled());
    }

    #[test]
    fn only_a_well_formed_parent_counts() {
        let long = format!("{GOOD}-what");
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            long.as_str(),
        ] {
            assert_eq!(TraceParent::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn of_a_later_version_what_is_known_is_understood() {
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what";

        let parent = TraceParent::parse(later.as_bytes()).unwrap();

        assert_eq!(parent.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03");
    }

    #[test]
    fn the_same_trace_goes_on_from_another_span() {
        let unsampled = GOOD.replace("-01", "-02");
        let parent = TraceParent::parse(unsampled.as_bytes()).unwrap();

        let next = parent.from_span(SpanId::new(7));

        assert!(!parent.is_sampled());
        assert_eq!(next.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-03");
    }

    #[test]
    fn nothing_has_the_id_zero() {
        assert_eq!(TraceId::new([0; 16]).to_string(), format!("{:032x}", 1));
        assert_eq!(SpanId::new(0).to_string(), "0000000000000001");
    }

    #[test]
    fn a_long_state_loses_whole_entries() {
        let entry = format!("a={}", "x".repeat(253));
        let state = format!("{entry},{entry},b=1");

        assert_eq!(whole_entries("a=1,b=2"), "a=1,b=2");
        assert_eq!(whole_entries(&state), format!("{entry},{entry}").as_str());
        assert_eq!(whole_entries(&state[1..]), format!("{},{entry}", &entry[1..]).as_str());
        assert_eq!(whole_entries(&"x".repeat(513)), "");
    }
}
