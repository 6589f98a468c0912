//! Text as machines write it: ids, hashes, times, numbers, images. It is the same in every run.

use std::fmt::Write as _;

/// Lines of each kind.
const LINES: usize = 20_000;

/// Makes one line.
type Line = fn(&mut Numbers) -> String;

/// A generator of numbers that look random (xorshift).
pub(super) struct Numbers(u64);

impl Numbers {
    /// The numbers that follow a seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A place in a list of three or so.
    pub(super) fn index(&mut self, end: u64) -> usize {
        usize::try_from(self.below(end)).unwrap_or(0)
    }

    /// A number of so many digits.
    pub(super) fn number(&mut self, digits: u32) -> u64 {
        let least = 10_u64.pow(digits.clamp(1, 19) - 1);
        least + self.below(9 * least)
    }

    pub(super) fn digits(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b'0' + u8::try_from(self.below(10)).unwrap_or(0))).collect()
    }

    pub(super) fn of(&mut self, alphabet: &str, count: usize) -> String {
        let chars: Vec<char> = alphabet.chars().collect();
        let length = u64::try_from(chars.len()).unwrap_or(1);
        let at = |n: u64| usize::try_from(n).ok().and_then(|n| chars.get(n).copied());
        (0..count).filter_map(|_| at(self.below(length))).collect()
    }
}

pub(super) const HEX: &str = "0123456789abcdef";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(super) const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(super) const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Each kind with its name.
pub(super) fn texts() -> Vec<(String, String)> {
    let kinds: &[(&str, Line)] = &[
        ("generated: UUIDs", uuid),
        ("generated: SHA-1 and SHA-256", hash),
        ("generated: timestamps", timestamp),
        ("generated: order and ticket numbers", order),
        ("generated: digits of any length", |numbers| {
            let count = 6 + usize::try_from(numbers.below(14)).unwrap_or(0);
            numbers.digits(count)
        }),
        ("generated: base64", |numbers| {
            format!("data:image/png;base64,{}", numbers.of(BASE64, 1200))
        }),
        ("generated: upper-case codes", |numbers| {
            let count = 6 + usize::try_from(numbers.below(14)).unwrap_or(0);
            numbers.of(UPPER, count)
        }),
        ("generated: JSON rows", row),
    ];
    let mut numbers = Numbers::new(0x9E37_79B9_7F4A_7C15);
    kinds
        .iter()
        .map(|(name, line)| {
            let lines = (0..LINES).fold(String::new(), |mut text, _| {
                let _ = writeln!(text, "{}", line(&mut numbers));
                text
            });
            ((*name).to_owned(), lines)
        })
        .collect()
}

fn uuid(numbers: &mut Numbers) -> String {
    let parts = [8, 4, 4, 4, 12].map(|length| numbers.of(HEX, length));
    parts.join("-")
}

fn hash(numbers: &mut Numbers) -> String {
    format!("{}  {}", numbers.of(HEX, 40), numbers.of(HEX, 64))
}

fn timestamp(numbers: &mut Numbers) -> String {
    let seconds = 1_600_000_000 + numbers.below(200_000_000);
    let (hour, minute) = (numbers.below(24), numbers.below(60));
    let (month, day) = (1 + numbers.below(12), 1 + numbers.below(28));
    let fraction = numbers.digits(9);
    format!(
        "2025-{month:02}-{day:02}T{hour:02}:{minute:02}:07.{fraction}Z {seconds} {seconds}{} {seconds}.{fraction}",
        numbers.digits(3)
    )
}

fn order(numbers: &mut Numbers) -> String {
    let year = 2020 + numbers.below(6);
    format!(
        "order {} ticket #{} invoice {year}-{} ref {}-{} tracking 1Z{} sku {}-{}",
        numbers.digits(9),
        numbers.digits(7),
        numbers.digits(6),
        numbers.of("ABEFJKQXZ", 2),
        numbers.digits(8),
        numbers.of(UPPER, 16),
        numbers.of("ABEFJKQX", 4),
        numbers.digits(5)
    )
}

fn row(numbers: &mut Numbers) -> String {
    let id = numbers.next();
    format!(
        r#"{{"id": {id}, "node_id": "{}", "sha": "{}", "size": {}, "created_at": {}, "score": 0.{}, "etag": "W/\"{}\""}}"#,
        numbers.of(BASE64, 28),
        numbers.of(HEX, 40),
        numbers.below(1_000_000),
        1_600_000_000 + numbers.below(200_000_000),
        numbers.digits(16),
        numbers.of(HEX, 32)
    )
}
