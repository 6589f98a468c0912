//! Bodies of webhooks as services send them: ids, times, coordinates, versions, hashes, links.

use serde_json::{Value, json};

use super::generated::{HEX, Numbers, UPPER, WORD};

/// Bodies of each kind.
const BODIES: usize = 1_500;

/// Makes one body.
type Body = fn(&mut Numbers) -> Value;

/// Each kind with its name and bodies; the same in every run.
pub(super) fn kinds() -> Vec<(&'static str, Vec<Value>)> {
    let kinds: &[(&str, Body)] = &[
        ("webhooks: code host", code_host),
        ("webhooks: payments", payments),
        ("webhooks: shop", shop),
        ("webhooks: chat", chat),
        ("webhooks: devices", devices),
        ("webhooks: builds", builds),
    ];
    let mut numbers = Numbers::new(0xD1B5_4A32_D192_ED03);
    let bodies = |body: &Body, numbers: &mut Numbers| (0..BODIES).map(|_| body(numbers)).collect();
    kinds.iter().map(|(name, body)| (*name, bodies(body, &mut numbers))).collect()
}

fn seconds(numbers: &mut Numbers) -> u64 {
    1_600_000_000 + numbers.below(200_000_000)
}

fn time(numbers: &mut Numbers) -> String {
    let (month, day) = (1 + numbers.below(12), 1 + numbers.below(28));
    let (hour, minute, second) = (numbers.below(24), numbers.below(60), numbers.below(60));
    format!("2025-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Three or four numbers, as versions have them.
fn version(numbers: &mut Numbers) -> String {
    let parts = 3 + numbers.below(2);
    let part = |numbers: &mut Numbers| {
        let end = [4, 20, 130].into_iter().nth(numbers.index(3)).unwrap_or(4);
        numbers.below(end).to_string()
    };
    (0..parts).map(|_| part(numbers)).collect::<Vec<_>>().join(".")
}

/// Between zero and the given number, with as many digits as programs print.
#[expect(clippy::cast_precision_loss, reason = "any number will do")]
fn fraction(numbers: &mut Numbers, end: f64) -> f64 {
    numbers.below(1 << 53) as f64 / (1_u64 << 53) as f64 * end
}

fn snowflake(numbers: &mut Numbers) -> String {
    let first = 1 + numbers.below(9);
    let length = 16 + numbers.index(3);
    format!("{first}{}", numbers.digits(length))
}

fn mac(numbers: &mut Numbers) -> String {
    (0..6).map(|_| numbers.of(HEX, 2)).collect::<Vec<_>>().join(":")
}

fn code_host(numbers: &mut Numbers) -> Value {
    let id = numbers.below(10_000_000_000);
    json!({
        "action": "opened",
        "installation": { "id": numbers.below(100_000_000), "node_id": numbers.of(WORD, 32) },
        "repository": {
            "id": id,
            "node_id": numbers.of(WORD, 24),
            "url": format!("https://code.example.com/repositories/{id}"),
            "size": numbers.below(1_000_000),
            "pushed_at": seconds(numbers),
            "created_at": time(numbers),
        },
        "head_commit": {
            "id": numbers.of(HEX, 40),
            "timestamp": time(numbers),
            "message": format!("Bump left-pad from {} to {}", version(numbers), version(numbers)),
        },
        "sender": { "id": numbers.below(1_000_000_000), "login": numbers.of(WORD, 8) },
    })
}

fn payments(numbers: &mut Numbers) -> Value {
    json!({
        "id": format!("evt_{}", numbers.of(WORD, 24)),
        "created": seconds(numbers),
        "api_version": "2025-03-31",
        "data": { "object": {
            "id": format!("ch_{}", numbers.of(WORD, 24)),
            "amount": numbers.below(1_000_000),
            "payment_method_details": { "card": {
                "brand": "visa",
                "exp_month": 1 + numbers.below(12),
                "last4": numbers.digits(4),
                "network_transaction_id": numbers.digits(15),
                "fingerprint": numbers.of(WORD, 16),
            } },
            "receipt_number": format!("{}-{}", numbers.digits(4), numbers.digits(4)),
            "balance_transaction": format!("txn_{}", numbers.of(WORD, 24)),
        } },
    })
}

fn shop(numbers: &mut Numbers) -> Value {
    let item = |numbers: &mut Numbers| {
        json!({
            "id": numbers.number(14),
            "variant_id": numbers.number(14),
            "product_id": numbers.number(13),
            "sku": format!("{}-{}", numbers.digits(4), numbers.digits(3)),
            "barcode": numbers.digits(13),
            "price": format!("{}.{}", numbers.below(900), numbers.digits(2)),
        })
    };
    json!({
        "id": numbers.number(13),
        "admin_graphql_api_id": format!("gid://shop/Order/{}", numbers.digits(13)),
        "checkout_id": numbers.number(14),
        "confirmation_number": numbers.of(UPPER, 9),
        "order_number": numbers.below(99_999),
        "processed_at": time(numbers),
        "location_id": numbers.number(11),
        "line_items": [item(numbers), item(numbers)],
    })
}

fn chat(numbers: &mut Numbers) -> Value {
    json!({
        "op": 0,
        "s": numbers.below(100_000),
        "d": {
            "id": snowflake(numbers),
            "channel_id": snowflake(numbers),
            "author": { "id": snowflake(numbers), "username": numbers.of(WORD, 8) },
            "nonce": snowflake(numbers),
            "content": format!("<@{}> see <#{}>", snowflake(numbers), snowflake(numbers)),
            "ts": format!("{}.{}", seconds(numbers), numbers.digits(6)),
            "timestamp": time(numbers),
        },
    })
}

fn devices(numbers: &mut Numbers) -> Value {
    json!({
        "device": {
            "eui": numbers.of(HEX, 16),
            "addr": mac(numbers),
            "serial": numbers.digits(12),
            "firmware": version(numbers),
            "last_seen": time(numbers),
        },
        "values": {
            "temperature": fraction(numbers, 40.0),
            "lat": fraction(numbers, 180.0) - 90.0,
            "lng": fraction(numbers, 360.0) - 180.0,
            "energy": fraction(numbers, 1e8),
            "series": [fraction(numbers, 1.0), fraction(numbers, 1e3), fraction(numbers, 1e6)],
        },
        "at": seconds(numbers) * 1_000 + numbers.below(1_000),
        "ns": seconds(numbers) * 1_000_000_000 + numbers.below(1_000_000_000),
    })
}

fn builds(numbers: &mut Numbers) -> Value {
    json!({
        "run_id": numbers.number(11),
        "version": version(numbers),
        "packages": [
            format!("lib{} {}", numbers.of("abcdefgh", 4), version(numbers)),
            format!("{}=={}", numbers.of("abcdefgh", 5), version(numbers)),
        ],
        "image": format!("app:{}", version(numbers)),
        "digest": format!("sha256:{}", numbers.of(HEX, 64)),
        "artifact": format!(
            "https://files.example.com/{}/build.zip?X-Amz-Date=20250101T000000Z&X-Amz-Expires=3600&X-Amz-Signature={}",
            numbers.of(WORD, 20),
            numbers.of(HEX, 64)
        ),
        "duration": fraction(numbers, 1e3),
        "log": format!("[{}] pid {} rss {} took {}s", time(numbers), numbers.digits(5), numbers.digits(9), fraction(numbers, 100.0)),
    })
}
