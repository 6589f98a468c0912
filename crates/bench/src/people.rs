//! An org, a service account and a token of it, made in the store itself.

use std::collections::BTreeSet;

use portcullis_core::{
    clock::Clock as _,
    id::{GrantId, Ids, OrgId, PrincipalId, PrincipalKind, TokenId},
    principal::{AuthMethod, Plan, Role, ScopeSet},
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
    let principal = Principal {
        id,
        org_id: org,
        name: "bench".to_owned(),
        role: Role::Service(ScopeSet::ALL),
        groups: BTreeSet::new(),
        provisioned_groups: BTreeSet::new(),
        created_at: SystemClock.now(),
        disabled_at: None,
    };
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
    let record = TokenRecord {
        id: TokenId::new(IDS),
        kind: TokenKind::Service,
        org_id: org,
        principal_id: service,
        via: None,
        grant_id: GrantId::new(IDS),
        parent_id: None,
        via_token_id: None,
        scopes: ScopeSet::ALL,
        label: None,
        method: AuthMethod::Operator,
        issued_at,
        expires_at: issued_at.plus_seconds(A_DAY),
        revoked_at: None,
        last_used_at: None,
        allowed_cidrs: None,
        exchange_only: false,
        lineage: Some(portcullis_core::lineage::Lineage::default()),
        dpop_jkt: None,
    };
    store.insert_token(&record, &token.hash()).await?;
    Ok(token.secret().expose().to_owned())
}
