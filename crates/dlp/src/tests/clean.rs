//! Look-alikes that must pass, and hostile bodies that must not cost much.

use super::*;

#[test]
fn everyday_values_are_clean() {
    let value = json!({
        "id": 1_700_000_000_123_u64,
        "node_id": "MDEwOlJlcG9zaXRvcnkxMjk2MjY5",
        "uuid": "550e8400-e29b-41d4-a716-446655440000",
        "digits": "12345678-1234-1234-1234-123456789012",
        "sha1": "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
        "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "order_number": "536228726",
        "ticket": 536_228_726,
        "snowflake": 1_234_567_890_123_456_789_u64,
        "version": "10.15.7.1234",
        "created_at": "2024-11-05T10:22:33.123456789Z",
        "stamp": "20241105102233",
        "range": "1024-2048-4096",
        "bind": "127.0.0.1:8080",
        "coords": [48.856_614_123_456_78, 2.352_221_912_345_678],
        "isbn": "978-3-16-148410-0",
        "package": "@scope/name@1.2.3",
        "remote": "git@github.com:org/repo.git",
        "url": "https://api.example.com/v1/items/4111?page=2&per_page=100#top",
        "html": "<a href=\"x\">Fish &amp; chips</a>",
        "code": "let sk_live = std::env::var(\"KEY\")?; // AKIA?",
        "etag": "W/\"686897696a7c876b7e\""
    });

    assert_eq!(places(&value), Vec::<String>::new());
}

/// Texts that hostile bodies repeat.
const UNITS: &str = "4|41|4111 |4111-|1 |@|a@|a@b.co |eyJ|eyJ.|eyJhbGciOiJub25lIn0.|ghp_|AKIA|\
    AKIAQYLPMN5HHHFPZAM|-----BEGIN PRIVATE KEY-----|postgres://|://a:b@|aws|\
    aws Zq8vT3nKf0LwRj5mXyB7cHdPs2GuEa9NiVkQ4t|YWFh|616161|%41|&#65;|\\u0041|\u{200B}|\u{FF14}|\
    sk-proj-|DE89|DE89 |SG.|:|a:|deadbeef:|2001:db8::1 ";

#[test]
fn hostile_bodies_cost_a_bounded_multiple_of_their_size() {
    const SIZE: usize = 1 << 18;
    let fill = |unit: &str| json!(unit.repeat(SIZE / unit.len()));
    let engine = engine();
    for unit in UNITS.split('|') {
        let (_, work) = engine
            .scan_within(&fill(unit), &Subject::of(key()), &Limits::default())
            .unwrap_or_else(|error| panic!("{unit:?}: {error}"));

        assert!(work <= 24 * SIZE, "{unit:?} took {} bytes of work a byte", work / SIZE);
    }
}
