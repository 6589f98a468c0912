//! An issuer that cannot be reached.

use portcullis_app::TrustRefusal;
use portcullis_core::{
    refusal::{Refusal, Unavailable},
    trust::CredentialCheck,
};
use portcullis_testkit::OldKeys;

use crate::given::{HOUR, check, issued_at, job, job_token, provider, verify};

#[tokio::test]
async fn without_any_keys_it_is_unavailable_until_the_issuer_is_back() {
    let (oidc, trust) = provider();
    let jwt = job_token(&oidc);
    let at = |seconds: i64| trust.verify(&jwt, None, issued_at(&jwt).plus_seconds(seconds));
    oidc.stop();

    let refusal = at(0).await.unwrap_err();

    assert_eq!(refusal, TrustRefusal::Unavailable);
    let refusal = Refusal::from(refusal);
    assert_eq!(refusal, Refusal::Unavailable { reason: Unavailable::IssuerKeys });
    assert_eq!(refusal.http_status(), 503);
    oidc.resume();
    assert_eq!(at(9).await.unwrap_err(), TrustRefusal::Unavailable, "it is not asked so soon");
    assert_eq!(oidc.fetches().discovery, 0);
    assert!(at(10).await.is_ok());
}

#[tokio::test]
async fn known_keys_are_good_for_a_day_while_the_issuer_is_down() {
    let (oidc, trust) = provider();
    let jwt = oidc.service_token(&job().ttl(30 * 3600));
    let at = |seconds: i64| trust.verify(&jwt, None, issued_at(&jwt).plus_seconds(seconds));
    assert!(at(0).await.is_ok());

    oidc.stop();

    let last = 24 * HOUR + 300;
    for seconds in [299, 300, 301, HOUR, 12 * HOUR, last - 1] {
        assert!(at(seconds).await.is_ok(), "after {seconds} s");
    }
    assert_eq!(at(last).await.unwrap_err(), TrustRefusal::Unavailable);
    oidc.resume();
    assert!(at(last + 10).await.is_ok());
}

#[tokio::test]
async fn an_unknown_key_during_an_outage_is_unavailable_rather_than_wrong() {
    let (oidc, trust) = provider();
    let known = job_token(&oidc);
    assert!(verify(&trust, &known).await.is_ok());
    oidc.rotate(OldKeys::Kept);
    let unknown = job_token(&oidc);
    let at = |seconds: i64| trust.verify(&unknown, None, issued_at(&known).plus_seconds(seconds));

    oidc.stop();

    assert_eq!(at(0).await.unwrap_err(), TrustRefusal::Unavailable);
    assert_eq!(at(5).await.unwrap_err(), TrustRefusal::Unavailable);
    assert!(verify(&trust, &known).await.is_ok(), "the known key is good");
    oidc.resume();
    assert!(at(60).await.is_ok());
}

#[tokio::test]
async fn after_an_outage_the_withdrawn_key_is_gone() {
    let (oidc, trust) = provider();
    let jwt = oidc.service_token(&job().ttl(7200));
    let at = |seconds: i64| trust.verify(&jwt, None, issued_at(&jwt).plus_seconds(seconds));
    assert!(at(0).await.is_ok());

    oidc.stop();
    oidc.rotate(OldKeys::Withdrawn);
    assert!(at(HOUR).await.is_ok(), "nobody can say that it is gone");
    oidc.resume();

    assert_eq!(check(at(HOUR + 10).await), Some(CredentialCheck::Signature));
}
