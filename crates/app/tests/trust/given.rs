//! Fixtures of the tests.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_app::{KeySource, Trust, TrustRefusal};
use portcullis_core::{
    clock::Timestamp,
    principal::{Role, ScopeSet},
    random::Random,
    trust::{
        CredentialCheck, Expectation, Expectations, LoginClaims, MaxTtl, RoleMap, RuleSubject,
        TrustRule, TrustRules, TrustedSubject,
    },
};
use portcullis_testkit::{Oidc, Wanted};
use portcullis_upstream::{Discovery, Endpoint, KeyLocation, Outbound};
use serde_json::Value;
use tokio_util::task::TaskTracker;

pub(crate) const ORG: &str = "org_01M754BKTKX1YB8Q05NMW9TP4G";
pub(crate) const SERVICE: &str = "sa_01M754BKTK9KV856N96WMEHWY9";
pub(crate) const GATEWAY: &str = "https://gateway.acme.example";
pub(crate) const APP: &str = "mcp-gateway";
pub(crate) const HOUR: i64 = 3600;

#[derive(Debug)]
struct Fixed;

impl Random for Fixed {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// A rule for CI jobs of one repository.
pub(crate) fn jobs(issuer: &str) -> TrustRule {
    let repository = ("repository_id".parse().unwrap(), Expectation::text("821093847").unwrap());
    TrustRule {
        name: "jobs".to_owned(),
        org: ORG.parse().unwrap(),
        issuer: issuer.to_owned(),
        audience: GATEWAY.to_owned(),
        expects: Expectations::new(vec![repository]).unwrap(),
        who: RuleSubject::Fixed(SERVICE.parse().unwrap()),
        login: LoginClaims::new("groups".parse().unwrap()),
        scopes: ScopeSet::ALL,
        max_ttl: MaxTtl::new(900).unwrap(),
        single_use: true,
        id_jag: false,
        scim: None,
        delegation: Vec::new(),
    }
}

/// A rule for people with a verified address.
pub(crate) fn people(issuer: &str) -> TrustRule {
    let verified = ("email_verified".parse().unwrap(), Expectation::Flag(true));
    let roles = vec![
        ("mcp-admins".parse().unwrap(), Role::Admin),
        ("mcp-*".parse().unwrap(), Role::Member),
    ];
    let roles = RoleMap::new("groups".parse().unwrap(), roles).unwrap();
    TrustRule {
        name: "people".to_owned(),
        audience: APP.to_owned(),
        expects: Expectations::new(vec![verified]).unwrap(),
        who: RuleSubject::User { from: "sub".parse().unwrap(), roles },
        single_use: false,
        id_jag: false,
        ..jobs(issuer)
    }
}

/// Both rules, with keys found by discovery that are good for a day while the issuer is down.
pub(crate) fn trusting(issuer: &str) -> Trust {
    let discovery = Discovery::of(issuer, Endpoint::allowed).unwrap();
    trusting_keys_at(issuer, KeyLocation::Discovery(discovery))
}

/// A provider, and the trust in it.
pub(crate) fn provider() -> (Oidc, Trust) {
    let oidc = Oidc::start();
    let trust = trusting(oidc.issuer());
    (oidc, trust)
}

pub(crate) fn trusting_keys_at(issuer: &str, location: KeyLocation) -> Trust {
    let rules = TrustRules::new(vec![jobs(issuer), people(issuer)]).unwrap();
    let source = KeySource::Published { location, stale_seconds: 24 * HOUR };
    let sources = BTreeMap::from([(issuer.to_owned(), source)]);
    Trust::new(rules, sources, &Outbound::new(Arc::new(Fixed)), &TaskTracker::new())
}

/// A job of the repository.
pub(crate) fn job() -> Wanted {
    Wanted::new(GATEWAY)
        .claim("repository_id", "821093847")
        .claim("sub", "repo:acme@5544123/api@821093847:ref:refs/heads/main")
}

pub(crate) fn job_token(oidc: &Oidc) -> String {
    oidc.service_token(&job())
}

/// When a JWT was issued, by its own account: the present moment of these tests.
pub(crate) fn issued_at(jwt: &str) -> Timestamp {
    let claims = URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    Timestamp::default().plus_seconds(claims["iat"].as_i64().unwrap())
}

/// Result of verifying a JWT at the moment it was issued.
pub(crate) async fn verify(trust: &Trust, jwt: &str) -> Result<TrustedSubject, TrustRefusal> {
    trust.verify(jwt, None, issued_at(jwt)).await
}

/// Check that refuses a JWT.
pub(crate) fn check(outcome: Result<TrustedSubject, TrustRefusal>) -> Option<CredentialCheck> {
    match outcome {
        Err(TrustRefusal::Invalid(rejection)) => Some(rejection.check()),
        Err(TrustRefusal::Unavailable) => panic!("the keys are there"),
        Ok(_) => None,
    }
}
