//! An org, a service account and a token of it, made in the store itself.

use portcullis_core::{
    clock::Clock as _,
    id::{GrantId, Ids, OrgId, PrincipalId, PrincipalKind, TokenId},
    principal::{Plan, Role, ScopeSet},
    token::{Token, TokenKind},
};
use portcullis_store::{Org, Principal, Store, TokenRecord};

use crate::{
    Failure,
    machine::{SystemClock, SystemRandom},
};

const A_DAY: i64 = 86_400;
const IDS: Ids<'static> = Ids { clock: &SystemClock, random: &SystemRandom };

/// Makes an org.
pub(crate) async fn org(store: &Store, name: &str, plan: Plan) -> Result<OrgId, Failure> {
    let id = OrgId::new(IDS);
    let created_at = SystemClock.now();
    store
        .create_org(&Org { id, name: name.to_owned(), plan, created_at, disabled_at: None })
        .await?;
    Ok(id)
}

/// Makes a service account of the org that may do everything.
pub(crate) async fn service(store: &Store, org: OrgId) -> Result<PrincipalId, Failure> {
    let id = PrincipalId::new(PrincipalKind::Service, IDS);
    let role = Role::Service(ScopeSet::ALL);
    let principal = Principal::new(id, org, "bench".to_owned(), role, SystemClock.now());
    store.create_principal(&principal).await?;
    Ok(id)
}

/// Makes a token of the service account that is good for a day, and gives its text.
pub(crate) async fn token(
    store: &Store,
    org: OrgId,
    service: PrincipalId,
) -> Result<String, Failure> {
    let token = Token::generate(TokenKind::Service, &SystemRandom);
    let issued_at = SystemClock.now();
    let record = TokenRecord::of_operator(
        TokenId::new(IDS),
        org,
        service,
        GrantId::new(IDS),
        ScopeSet::ALL,
        issued_at,
        issued_at.plus_seconds(A_DAY),
    );
    store.insert_token(&record, &token.hash()).await?;
    Ok(token.secret().expose().to_owned())
}
