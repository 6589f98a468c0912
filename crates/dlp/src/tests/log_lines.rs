//! Numbers in the lines of logs, and numbers that a key says are something else.

use super::*;

/// Names of the detectors that find something in a text.
fn detectors(text: &str) -> Vec<String> {
    scan(&json!(text)).detectors().iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_number_in_a_line_of_a_log_is_nothing_by_itself() {
    for line in [
        "2026-03-01T10:22:01.123Z call-router: call 6173300142 routed to worker 41773",
        "03-17 16:13:38.954  2227  2227 I PhoneStatusBar: setSystemUiVisibility",
        "2026-03-01T10:22:01Z ssn table: vacuumed 509452281 pages",
        "2026-03-01T10:22:01Z card cache: evicted 4565881380083909 bytes",
        "2015-10-18 18:01:57,119 INFO Job: size of containertokens_dob is 1\n2015-10-18 18:01:57,120 INFO x",
        "INFO passport.js: strategy google user 219068343",
        "2026-03-01T10:22:01Z stats: 415-555-0132 of 0412 345 678 done",
        "1780387014476 sms batch 82736450 queued",
    ] {
        assert_eq!(detectors(line), [""; 0], "{line}");
    }
}

#[test]
fn a_word_right_before_a_number_of_a_log_counts() {
    for (line, expected) in [
        ("2026-03-01T10:22:01Z ERROR declined card 4111111111111111 for order 8812", "credit_card"),
        ("2026-03-01T10:22:01Z WARN invalid ssn 219461783", "us_ssn"),
        ("Mar  1 10:22:01 shop app[12]: verified SSN of applicant: 219-46-1783", "us_ssn"),
        ("2026-03-01T10:22:01Z phone=4155550132 ok", "national_phone_number"),
        ("[10:22:01] Ada: call me at 0171 1234567", "national_phone_number"),
    ] {
        assert_eq!(detectors(line), [expected], "{line}");
    }
}

#[test]
fn the_last_word_of_the_nearest_key_says_what_a_value_is() {
    for quiet in [
        json!({ "host": "a", "server_version": "133.18.19.20" }),
        json!({ "server": { "version": "133.18.19.20" } }),
        json!("host\tversion\nserver\t133.18.19.20\nserver\t134.11.20.77\n"),
    ] {
        assert_eq!(places(&quiet), [""; 0], "{quiet}");
    }
    assert_eq!(
        places(&json!({ "version_server": "133.18.19.20" })),
        ["ipv4_address /version_server"]
    );
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
