//! When, for whom and what for a JWT is valid.

use serde_json::{Value, json};

use super::{AUDIENCE, NOW, admitted, rule, with};
use crate::trust::{CredentialCheck, Rejection};

fn outcome(changes: &Value) -> Result<(), Rejection> {
    admitted(vec![rule("a")], &with(changes)).map(|_| ())
}

fn check(changes: &Value) -> Option<CredentialCheck> {
    outcome(changes).err().map(|rejection| rejection.check())
}

#[test]
fn times_have_a_minute_of_leeway_and_no_more() {
    for (changes, valid) in [
        (json!({"exp": NOW - 59}), true),
        (json!({"exp": NOW - 60}), false),
        (json!({"exp": NOW - 3600}), false),
        (json!({"nbf": NOW + 60}), true),
        (json!({"nbf": NOW + 61}), false),
        (json!({"iat": NOW + 60}), true),
        (json!({"iat": NOW + 61}), false),
        (json!({"iat": NOW - 864_000}), true),
        (json!({"nbf": null, "iat": null}), true),
        (json!({"exp": 253_402_300_799_i64}), true),
    ] {
        let expected = if valid { None } else { Some(CredentialCheck::Time) };

        assert_eq!(check(&changes), expected, "{changes}");
    }
}

#[test]
fn a_jwt_without_an_end_is_refused() {
    for exp in [
        json!(null),
        json!("1795172835"),
        json!("never"),
        json!(-1),
        json!(true),
        json!([NOW + 300]),
        json!(253_402_300_800_i64),
        json!(1e300),
        json!("∞"),
    ] {
        assert_eq!(check(&json!({"exp": exp})), Some(CredentialCheck::Time), "{exp}");
    }
    for changes in [json!({"nbf": "soon"}), json!({"iat": {}}), json!({"nbf": -1})] {
        assert_eq!(check(&changes), Some(CredentialCheck::Time), "{changes}");
    }
}

#[test]
fn dates_may_have_a_fraction() {
    let text = |exp: &str| format!(r#"{{"exp": {exp}}}"#).parse::<Value>().unwrap();

    assert_eq!(check(&text("1795172835.75")), None);
    assert_eq!(check(&text("1795170000.75")), Some(CredentialCheck::Time));
    assert_eq!(check(&text("1.795172835e9")), Some(CredentialCheck::Time));
}

#[test]
fn the_audience_is_one_of_those_the_token_is_for() {
    let slash = format!("{AUDIENCE}/");
    for (aud, valid) in [
        (json!(AUDIENCE), true),
        (json!([AUDIENCE]), true),
        (json!(["https://other.example", AUDIENCE]), true),
        (json!("https://other.example"), false),
        (json!(slash), false),
        (json!(AUDIENCE.to_uppercase()), false),
        (json!("*"), false),
        (json!([]), false),
        (json!([[AUDIENCE]]), false),
        (json!({"aud": AUDIENCE}), false),
        (json!(null), false),
        (json!(format!("{AUDIENCE} https://other.example")), false),
    ] {
        let expected = if valid { None } else { Some(CredentialCheck::Audience) };

        assert_eq!(check(&json!({"aud": aud})), expected, "{aud}");
    }
}

#[test]
fn what_was_signed_for_another_purpose_proves_nobody() {
    let logout = json!({"events": {"http://schemas.openid.net/event/backchannel-logout": {}}});
    let bound = json!({"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}});

    for changes in [logout, bound] {
        assert!(matches!(outcome(&changes), Err(Rejection::WrongPurpose(_))), "{changes}");
    }
}
