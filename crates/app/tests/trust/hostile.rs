//! JWTs that a stranger makes of what a real provider publishes, and an issuer that never answers.

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_app::TrustRefusal;
use portcullis_core::trust::CredentialCheck;
use portcullis_upstream::{Endpoint, KeyLocation};
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::Duration};

use crate::given::{check, issued_at, job_token, provider, trusting_keys_at, verify};

fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A JWT with the claims of another one.
fn forged(good: &str, header: &Value, signature: &[u8]) -> String {
    let claims = good.split('.').nth(1).unwrap();
    format!("{}.{claims}.{}", b64(header.to_string()), b64(signature))
}

fn header_of(jwt: &str) -> Value {
    let header = URL_SAFE_NO_PAD.decode(jwt.split('.').next().unwrap()).unwrap();
    serde_json::from_slice(&header).unwrap()
}

#[tokio::test]
async fn what_is_public_signs_nothing() {
    let (oidc, trust) = provider();
    let good = job_token(&oidc);
    let kid = header_of(&good)["kid"].clone();
    let jwks = oidc.jwks();
    let n = jwks["keys"][0]["n"].as_str().unwrap();
    let mac = |alg: &str, secret: &[u8]| {
        let unsigned = forged(&good, &json!({"alg": alg, "kid": kid}), &[]);
        let signed = unsigned.trim_end_matches('.');
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        format!("{signed}.{}", b64(tag))
    };

    for jwt in [
        mac("HS256", n.as_bytes()),
        mac("HS256", &URL_SAFE_NO_PAD.decode(n).unwrap()),
        mac("HS256", jwks.to_string().as_bytes()),
        mac("RS256", n.as_bytes()),
        forged(&good, &json!({"alg": "none"}), &[]),
        forged(&good, &json!({"alg": "RS256", "kid": kid}), &[]),
        forged(&good, &json!({"alg": "ES256", "kid": kid}), &[0; 64]),
        forged(&good, &json!({"alg": "EdDSA", "kid": kid}), &[0; 64]),
    ] {
        assert_eq!(check(verify(&trust, &jwt).await), Some(CredentialCheck::Signature));
    }
    assert!(verify(&trust, &good).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_never_answers_keeps_nobody_waiting_for_long() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let jwks = Endpoint::allowed(&format!("{issuer}/jwks")).unwrap();
    let trust = trusting_keys_at(&issuer, KeyLocation::Jwks(jwks));
    let claims = json!({"iss": issuer, "iat": 1_795_172_535, "exp": 1_795_172_835}).to_string();
    let jwt = format!("{}.{}.AAAA", b64(r#"{"alg":"RS256","kid":"a"}"#), b64(claims));
    let began = tokio::time::Instant::now();

    let outcomes = futures_util::future::join_all((0..50).map(|_| verify(&trust, &jwt))).await;

    assert!(began.elapsed() <= Duration::from_secs(7), "{:?}", began.elapsed());
    assert!(outcomes.iter().all(|it| *it.as_ref().unwrap_err() == TrustRefusal::Unavailable));
    let again = trust.verify(&jwt, None, issued_at(&jwt).plus_seconds(5)).await;
    assert_eq!(again.unwrap_err(), TrustRefusal::Unavailable);
    assert!(began.elapsed() <= Duration::from_secs(7), "the second one does not wait at all");
}
