//! Keys that come and go, and how often they are asked for.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::{FutureExt, future::join_all};
use portcullis_core::trust::CredentialCheck;
use portcullis_testkit::{Oidc, OldKeys};
use serde_json::json;

use crate::given::{HOUR, check, issued_at, job, job_token, provider, trusting, verify};

/// The same JWT under the name of another key.
fn with_key_id(jwt: &str, kid: &str) -> String {
    let header = json!({"alg": "RS256", "kid": kid}).to_string();
    let (_, rest) = jwt.split_once('.').unwrap();
    format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header))
}

#[tokio::test]
async fn a_new_key_is_found_at_once_and_a_kept_one_stays_good() {
    let (oidc, trust) = provider();
    let before = job_token(&oidc);
    assert!(verify(&trust, &before).await.is_ok());

    oidc.rotate(OldKeys::Kept);
    let after = job_token(&oidc);

    assert!(verify(&trust, &after).await.is_ok());
    assert!(verify(&trust, &before).await.is_ok());
    assert_eq!(oidc.fetches().jwks, 2);
}

#[tokio::test]
async fn a_withdrawn_key_is_good_for_five_minutes_at_most() {
    let (oidc, trust) = provider();
    let jwt = oidc.service_token(&job().ttl(3600));
    let at = |seconds: i64| trust.verify(&jwt, None, issued_at(&jwt).plus_seconds(seconds));
    assert!(at(0).await.is_ok());

    oidc.rotate(OldKeys::Withdrawn);

    assert!(at(299).await.is_ok(), "nobody has said that it is gone");
    assert_eq!(check(at(300).await), Some(CredentialCheck::Signature));
}

#[tokio::test]
async fn a_withdrawn_key_is_gone_when_the_new_one_is_seen() {
    let (oidc, trust) = provider();
    let before = job_token(&oidc);
    assert!(verify(&trust, &before).await.is_ok());

    oidc.rotate(OldKeys::Withdrawn);
    assert!(verify(&trust, &job_token(&oidc)).await.is_ok());

    assert_eq!(check(verify(&trust, &before).await), Some(CredentialCheck::Signature));
}

#[tokio::test]
async fn unknown_keys_cause_one_fetch_a_minute_however_many_come() {
    let oidc = Oidc::start();
    let trust = Arc::new(trusting(oidc.issuer()));
    let good = oidc.service_token(&job().ttl(3600));
    let now = issued_at(&good);
    assert!(verify(&trust, &good).await.is_ok());
    let flood = |seconds: i64| {
        let strangers = (0..200).map(|n| with_key_id(&good, &format!("key-{n}")));
        let trust = Arc::clone(&trust);
        join_all(strangers.map(move |jwt| {
            let trust = Arc::clone(&trust);
            async move { trust.verify(&jwt, None, now.plus_seconds(seconds)).await }
        }))
    };

    for (seconds, fetches) in [(0, 2), (1, 2), (59, 2), (60, 3), (119, 3), (120, 4)] {
        for outcome in flood(seconds).await {
            assert_eq!(check(outcome), Some(CredentialCheck::Signature));
        }
        assert_eq!(oidc.fetches().jwks, fetches, "after {seconds} s");
    }
}

#[tokio::test]
async fn a_second_rotation_within_a_minute_is_seen_after_it() {
    let (oidc, trust) = provider();
    assert!(verify(&trust, &job_token(&oidc)).await.is_ok());
    oidc.rotate(OldKeys::Kept);
    let second = job_token(&oidc);
    assert!(verify(&trust, &second).await.is_ok());

    oidc.rotate(OldKeys::Kept);
    let third = job_token(&oidc);
    let at = |seconds: i64| trust.verify(&third, None, issued_at(&second).plus_seconds(seconds));

    assert_eq!(check(at(59).await), Some(CredentialCheck::Signature));
    assert!(at(60).await.is_ok());
}

#[tokio::test]
async fn all_who_come_at_once_wait_for_one_fetch() {
    let (oidc, trust) = provider();
    let jwt = job_token(&oidc);

    let outcomes = join_all((0..100).map(|_| verify(&trust, &jwt))).await;

    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!((oidc.fetches().discovery, oidc.fetches().jwks), (1, 1));
}

#[tokio::test]
async fn who_hangs_up_does_not_end_the_fetch() {
    let (oidc, trust) = provider();
    let jwt = job_token(&oidc);

    assert!(verify(&trust, &jwt).now_or_never().is_none(), "it waits, and is dropped");

    assert!(verify(&trust, &jwt).await.is_ok());
    assert_eq!(oidc.fetches().jwks, 1);
}

#[tokio::test]
async fn an_issuer_that_nobody_trusts_is_never_asked() {
    let ours = Oidc::start();
    let theirs = Oidc::start();
    let trust = trusting(ours.issuer());

    for _ in 0..20 {
        let outcome = verify(&trust, &job_token(&theirs)).await;

        assert_eq!(check(outcome), Some(CredentialCheck::Issuer));
    }
    assert_eq!((theirs.fetches().discovery, theirs.fetches().jwks), (0, 0));
    assert_eq!((ours.fetches().discovery, ours.fetches().jwks), (0, 0));
}

#[tokio::test]
async fn keys_are_confirmed_every_five_minutes() {
    let (oidc, trust) = provider();
    let jwt = oidc.service_token(&job().ttl(7200));

    for seconds in (0..HOUR).step_by(30) {
        assert!(trust.verify(&jwt, None, issued_at(&jwt).plus_seconds(seconds)).await.is_ok());
    }

    assert_eq!(oidc.fetches().jwks, 12);
}

#[tokio::test]
async fn a_clock_that_was_ahead_keeps_no_keys() {
    let (oidc, trust) = provider();
    let jwt = oidc.service_token(&job().ttl(36_000));
    let at = |seconds: i64| trust.verify(&jwt, None, issued_at(&jwt).plus_seconds(seconds));
    assert!(at(9 * HOUR).await.is_ok());
    oidc.rotate(OldKeys::Withdrawn);

    assert_eq!(check(at(0).await), Some(CredentialCheck::Signature));
}
