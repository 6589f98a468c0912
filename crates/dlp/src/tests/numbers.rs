//! Thousands of made-up numbers of each kind as people and programs write them, and near misses.

use super::*;
use crate::catalogue::checks::luhn;

/// Numbers that look random, the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn digits(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b'0' + u8::try_from(self.below(10)).unwrap())).collect()
    }

    /// The number with a right check digit behind a prefix.
    fn luhn(&mut self, prefix: &str, length: usize) -> String {
        let body = format!("{prefix}{}", self.digits(length - prefix.len() - 1));
        let with = |check: u8| format!("{body}{check}");
        let is_right =
            |number: &String| luhn(&number.bytes().map(|b| b - b'0').collect::<Vec<_>>());
        (0..10).map(with).find(is_right).unwrap()
    }

    /// The digits in groups of one to five, at least three groups, with one sign between them.
    fn grouped(&mut self, digits: &str) -> String {
        let sign = self.one(&[" ", "-", ".", " ", "\n"]);
        let mut parts = Vec::new();
        let mut rest = digits;
        while !rest.is_empty() {
            let longest = rest.len().min(digits.len().div_ceil(3)).min(5);
            let (part, after) = rest.split_at(1 + self.below(longest));
            parts.push(part);
            rest = after;
        }
        parts.join(sign)
    }
}

/// The share of values in which a detector of the category finds something, and those in which none
/// does.
fn share(category: Category, values: &[Value]) -> (f64, Vec<String>) {
    let is_found = |value: &Value| scan(value).iter().any(|found| found.category() == category);
    let missed: Vec<&Value> = values.iter().filter(|value| !is_found(value)).collect();
    let found = f64::from(u32::try_from(values.len() - missed.len()).unwrap());
    let shown = missed.iter().take(5).map(ToString::to_string).collect();
    (found / f64::from(u32::try_from(values.len()).unwrap()), shown)
}

fn acted_on(values: &[Value]) -> Vec<String> {
    let is_acted_on = |value: &Value| {
        scan(value)
            .iter()
            .any(|found| engine().default_action(found, Direction::Output) > Action::Flag)
    };
    values.iter().filter(|value| is_acted_on(value)).map(ToString::to_string).collect()
}

/// Prefixes and lengths of issuers, some of which only a word tells.
const ISSUERS: &[(&str, usize)] = &[
    ("4", 16),
    ("51", 16),
    ("2221", 16),
    ("37", 15),
    ("6011", 16),
    ("3528", 16),
    ("36", 14),
    ("6212", 19),
    ("5018", 12),
    ("6759", 18),
    ("9792", 16),
    ("8600", 16),
    ("508", 16),
];

#[test]
fn cards_are_found_beside_a_word_in_any_grouping() {
    let texts = "card number @, paid with card @ yesterday, Visa: @, \
        my mastercard @ was declined, Kreditkarte @, credit card no. @, tarjeta @, @ is the card";
    let texts: Vec<&str> = texts.split(", ").collect();
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut values = Vec::new();
    for round in 0..1_500 {
        let (prefix, length) = ISSUERS[round % ISSUERS.len()];
        let digits = numbers.luhn(prefix, length);
        let card = if round % 3 == 0 { digits } else { numbers.grouped(&digits) };
        let text = numbers.one(&texts);
        let key = numbers.one(&["card", "card_number", "cardNumber", "pan", "credit_card", "ccn"]);
        values.push(json!(text.replace('@', &card)));
        values.push(json!({ key: card }));
        values.push(json!({ "card": { "number": card } }));
    }

    let (found, missed) = share(Category::Financial, &values);

    assert!(found >= 0.98, "{found}: {missed:?}");
}

#[test]
fn numbers_of_programs_are_no_cards() {
    let mut numbers = Numbers(0x1234_5678_9ABC_DEF1);
    let mut values = Vec::new();
    for _ in 0..600 {
        let length = 1 + numbers.below(9);
        let whole = numbers.digits(length);
        let fraction = numbers.digits(8);
        let seven = numbers.digits(7);
        let id = numbers.digits(15);
        let nanos = numbers.digits(17);
        let snowflake = numbers.digits(17);
        values.extend([
            json!({ "card": { "score": format!("{whole}.{fraction}") } }),
            json!(format!("card balance 1{whole}.{fraction}")),
            json!(format!("{seven}1.{fraction}")),
            json!({ "card": { "created": format!("17{}", numbers.digits(11)), "id": snowflake } }),
            json!({ "card": { "network_transaction_id": id } }),
            json!(format!("card event 17{nanos}")),
            json!(format!("at 4{}.{fraction}{seven}, -7{}.{seven}{fraction}", numbers.below(9), 1)),
            json!(format!("1{snowflake}")),
            json!(format!("sha 4{seven}{fraction}4{seven}{fraction}deadbeef")),
        ]);
    }

    let wrong = acted_on(&values);

    assert!(wrong.len() * 1_000 <= values.len(), "{} {:?}", wrong.len(), wrong.get(..5));
}

#[test]
fn telephone_numbers_are_found_beside_a_word_in_any_grouping() {
    let texts = "call me at @, my number is @, Tel. @, reach me on @ after five, Handy: @, \
        téléphone : @, llámame al @, WhatsApp @, звоните @, 手机 @, fax @";
    let texts: Vec<&str> = texts.split(", ").collect();
    let mut numbers = Numbers(0x0F1E_2D3C_4B5A_6978);
    let mut values = Vec::new();
    for _ in 0..1_500 {
        let first = 2 + numbers.below(7);
        let length = 6 + numbers.below(8);
        let digits = format!("{first}{}", numbers.digits(length));
        let (area, rest) = digits.split_at(3);
        let phone = match numbers.below(6) {
            0 => digits.clone(),
            1 => format!("({area}) {rest}"),
            2 => format!("0{area}/{rest}"),
            3 => format!("+49 (0){area} {rest}"),
            4 => format!("{area}-{rest} ext 3"),
            _ => numbers.grouped(&digits).replace('\n', " "),
        };
        let text = numbers.one(&texts);
        let key = numbers.one(&["phone", "tel", "mobile", "contactPhone", "fax", "phone_number"]);
        values.push(json!(text.replace('@', &phone)));
        values.push(json!({ key: phone }));
    }

    let (found, missed) = share(Category::Contact, &values);

    assert!(found >= 0.97, "{found}: {missed:?}");
}

#[test]
fn days_versions_and_ids_are_no_telephone_numbers() {
    let mut numbers = Numbers(0x7777_3333_1111_9999);
    let mut values = Vec::new();
    for _ in 0..500 {
        let year = 1990 + numbers.below(40);
        let month = 1 + numbers.below(12);
        let day = 1 + numbers.below(28);
        let quad: Vec<String> = (0..4).map(|_| numbers.below(256).to_string()).collect();
        values.extend([
            json!(format!("phone bought {year}-{month:02}-{day:02} 10:22")),
            json!(format!("mobile since {day:02}.{month:02}.{year}")),
            json!(format!("mobile {year}-{}", year + 3)),
            json!(format!("telephone build {year}{month:02}{day:02}")),
            json!({ "phone_number_id": format!("1{}", numbers.digits(14)) }),
            json!(format!("mobile score {}.{}", numbers.below(9), numbers.digits(12))),
            json!({ "phone": { "firmware": quad.join(".") } }),
        ]);
    }

    let (found, _) = share(Category::Contact, &values);

    assert!(found <= 0.01, "{found}");
}

/// A check digit makes a number in a row telling enough to be found in groups, too.
#[test]
fn numbers_with_a_check_digit_are_found_in_any_grouping() {
    let mut numbers = Numbers(0xABCD_EF01_2345_6789);
    let row = regex::Regex::new("[0-9]{8,18}").unwrap();
    let finds =
        |detector: &Detector, text: &str| scan(&json!(text)).detectors().contains(&detector.name());
    let mut values = 0;
    let mut missed = Vec::new();
    for detector in engine().detectors().filter(|it| it.category() == Category::NationalId) {
        for example in detector.positives().iter().filter(|example| !example.starts_with('{')) {
            let Some(found) = row.find(example) else { continue };
            let before = &example[..found.start()];
            let after = &example[found.end()..];
            let other = numbers.digits(found.len());
            let is_checked = !finds(detector, &format!("{before}{other}{after}"));
            let is_a_row = before.chars().all(|c| !c.is_ascii_digit())
                && !after.contains(|c: char| c.is_ascii_digit());
            let has_word = before.contains(|c: char| c.is_alphabetic());
            let stands_free = !before.ends_with(|c: char| c.is_ascii_alphanumeric())
                && !after.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !is_checked || !is_a_row || !stands_free || !has_word {
                continue;
            }
            for _ in 0..20 {
                let text = format!("{before}{}{after}", numbers.grouped(found.as_str()));
                values += 1;
                if !finds(detector, &text) {
                    missed.push(format!("{}: {text}", detector.name()));
                }
            }
        }
    }

    assert!(values > 600, "{values}");
    assert!(missed.len() * 50 <= values, "{} of {values}: {:?}", missed.len(), missed.get(..8));
}

#[test]
fn ibans_are_found_in_any_grouping_and_not_with_a_wrong_digit() {
    let mut numbers = Numbers(0x5555_AAAA_1234_4321);
    let mut values = Vec::new();
    for iban in ["DE89370400440532013000", "GB29NWBK60161331926819", "FR1420041010050500013M02606"]
    {
        for _ in 0..200 {
            let sign = numbers.one(&[" ", ".", "-", "/", "\n"]);
            let mut text = String::new();
            for (place, character) in iban.chars().enumerate() {
                if place > 3 && numbers.below(4) == 0 {
                    text.push_str(sign);
                }
                text.push(character);
            }
            values.push(json!(format!("to {text} please")));
        }
    }
    let wrong: Vec<Value> =
        values.iter().map(|value| json!(value.as_str().unwrap().replace(['3'], "5"))).collect();

    assert!(share(Category::Financial, &values).0 >= 0.999);
    let finds = |value: &Value| scan(value).detectors().contains(&"iban");
    assert_eq!(wrong.iter().find(|value| finds(value)), None);
}

#[test]
fn versions_times_and_devices_are_told_from_addresses() {
    let mut numbers = Numbers(0x2468_ACE0_1357_9BDF);
    let mut addresses = Vec::new();
    let mut others = Vec::new();
    for _ in 0..500 {
        let mut octet = || 20 + numbers.below(180);
        let quad = format!("{}.{}.{}.{}", 130 + octet() / 3, octet(), octet(), 101 + octet() / 2);
        let version = format!("{}.{}.{}.{}", octet() / 20, octet() / 10, octet(), octet() / 9);
        addresses.push(json!(format!("from {quad}:8080")));
        addresses.push(json!({ "remote_addr": quad }));
        addresses.push(json!(format!("{quad} - - [05/Nov/2024:10:22:33] GET /")));
        others.push(json!(format!("Bump pad from {version} to {quad}")));
        others.push(json!(format!("pad=={quad}")));
        others.push(json!(format!("libpad {version}")));
        others.push(json!({ "firmware": quad }));
        others.push(json!(format!("pad-{quad}.tar.gz")));
        others.push(json!({ "at": "2024-11-05T10:22:33Z", "n": numbers.digits(12), "to": "2024-11-05T10:22:33Z" }));
    }

    let (found, missed) = share(Category::Network, &addresses);
    let (wrong, _) = share(Category::Network, &others);

    assert!(found >= 0.999, "{found}: {missed:?}");
    assert!(wrong <= 0.001, "{wrong}");
}

#[test]
fn a_wrong_check_digit_below_the_right_key_is_possible_and_only_flagged() {
    for value in [
        json!({ "iban": "DE89 3704 0044 0532 0130 01" }),
        json!({ "nhs_number": "943 476 5918" }),
        json!({ "patient": { "npi": 1_234_567_890 } }),
    ] {
        let findings = scan(&value);

        let finding = findings.iter().next().unwrap();
        assert_eq!((finding.detector(), findings.count()), ("mistyped_number", 1), "{value}");
        assert_eq!(finding.likelihood(), Likelihood::Possible);
        for direction in [Direction::Input, Direction::Output] {
            assert_eq!(engine().default_action(finding, direction), Action::Flag);
        }
    }
}
