//! Principals that the provider's tokens make, and the tokens that are rejected.

use portcullis_core::{
    principal::Role,
    trust::{CredentialCheck, Subject},
};
use portcullis_testkit::Wanted;

use crate::given::{
    APP, GATEWAY, HOUR, SERVICE, check, issued_at, job, job_token, provider, verify,
};

#[tokio::test]
async fn a_job_s_token_is_its_service_account_by_each_algorithm() {
    let (oidc, trust) = provider();

    for alg in ["RS256", "PS256", "ES256", "EdDSA"] {
        let subject = verify(&trust, &oidc.service_token(&job().alg(alg))).await.unwrap();

        assert_eq!(subject.who, Subject::Fixed(SERVICE.parse().unwrap()), "{alg}");
        assert!(subject.single_use.is_some(), "{alg}");
    }
    assert_eq!((oidc.fetches().discovery, oidc.fetches().jwks), (1, 1));
}

#[tokio::test]
async fn an_id_token_is_its_user_by_each_algorithm() {
    let (oidc, trust) = provider();

    for (alg, group, role) in [
        ("RS256", "mcp-admins", Role::Admin),
        ("PS256", "mcp-users", Role::Member),
        ("ES256", "mcp-users", Role::Member),
        ("EdDSA", "mcp-users", Role::Member),
    ] {
        let wanted = Wanted::new(APP)
            .claim("email_verified", true)
            .claim("name", "Ada Okafor")
            .claim("groups", vec!["staff", group])
            .alg(alg);
        let subject = verify(&trust, &oidc.user_token("00u1", &wanted)).await.unwrap();

        let Subject::User(user) = subject.who else { panic!("a user") };
        assert_eq!((user.issuer.as_str(), user.subject.as_str()), (oidc.issuer(), "00u1"));
        assert_eq!((user.name.as_str(), user.role), ("Ada Okafor", role), "{alg}");
    }
}

#[tokio::test]
async fn tokens_that_mean_somebody_else_are_refused_with_the_check_that_failed() {
    let (oidc, trust) = provider();
    let user = |wanted: Wanted| oidc.user_token("00u1", &wanted);

    for (jwt, expected) in [
        (oidc.service_token(&job().claim("repository_id", "1")), CredentialCheck::Trust),
        (oidc.service_token(&Wanted::new(GATEWAY)), CredentialCheck::Trust),
        (oidc.service_token(&Wanted::new("https://other.example")), CredentialCheck::Audience),
        (oidc.service_token(&job().claim("nbf", 4_000_000_000_u32)), CredentialCheck::Time),
        (oidc.service_token(&job().claim("jti", "")), CredentialCheck::Trust),
        (user(Wanted::new(APP).claim("email_verified", false)), CredentialCheck::Trust),
        (user(Wanted::new(APP).claim("email_verified", true)), CredentialCheck::Trust),
        (user(Wanted::new("another-app").claim("email_verified", true)), CredentialCheck::Audience),
        (oidc.logout_token("00u1", APP), CredentialCheck::Signature),
    ] {
        assert_eq!(check(verify(&trust, &jwt).await), Some(expected));
    }
}

#[tokio::test]
async fn a_token_ends_a_minute_after_its_end() {
    let (oidc, trust) = provider();
    let jwt = job_token(&oidc);
    let at = |seconds: i64| trust.verify(&jwt, None, issued_at(&jwt).plus_seconds(seconds));

    assert!(at(300 + 59).await.is_ok());
    assert_eq!(check(at(300 + 60).await), Some(CredentialCheck::Time));
}

#[tokio::test]
async fn a_token_of_a_provider_whose_clock_is_off_is_refused() {
    let (oidc, trust) = provider();
    let now = issued_at(&job_token(&oidc));

    for (seconds, expected) in [
        (-2 * HOUR, Some(CredentialCheck::Time)),
        (2 * HOUR, Some(CredentialCheck::Time)),
        (0, None),
    ] {
        oidc.set_clock(seconds);
        let jwt = job_token(&oidc);

        assert_eq!(check(trust.verify(&jwt, None, now).await), expected, "{seconds}");
    }
}
