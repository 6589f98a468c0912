//! What the operator's shell may do: orgs, principals, tokens. The shell is the first root of
//! trust; whatever it does is recorded with the actor `system`.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, Auth, Detached, Event, EventType, Outcome, Target},
    clock::Clock,
    id::{EventId, GrantId, Ids, OrgId, PrincipalId, PrincipalKind, TokenId},
    principal::{AuthMethod, Plan, Role, ScopeSet},
    random::Random,
    refusal::Executed,
    token::{CidrList, Token, TokenKind},
};
use portcullis_store::{AuditWriter, Org, Principal, Store, StoreError, TokenPage, TokenRecord};

use crate::audit::{patience, row_of};

/// Days a token lives unless told otherwise.
const DEFAULT_DAYS: i64 = 90;
/// Days a token may live at most.
const MAX_DAYS: i64 = 365;
const DAY: i64 = 24 * 60 * 60;
/// Characters of a name at most.
const MAX_NAME: usize = 200;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The name cannot be one.
    #[error("a name has 1 to {MAX_NAME} characters, none of them a control character")]
    Name,
    /// There is an org of that name already.
    #[error("there is an org `{0}` already; names are unique in an installation")]
    Taken(String),
    /// There is no such org.
    #[error("there is no org `{0}`; `portcullis org list` shows those there are")]
    NoOrg(String),
    /// There is no such principal.
    #[error("there is no principal `{0}`; `portcullis principal list` shows those there are")]
    NoPrincipal(String),
    /// There is no such token.
    #[error("there is no token `{0}`; `portcullis token list` shows those there are")]
    NoToken(String),
    /// The token would be able to do more than its principal.
    #[error("the scopes `{asked}` are more than the principal may have: `{allowed}`")]
    TooMuch {
        /// What was asked for.
        asked: ScopeSet,
        /// What the role allows.
        allowed: ScopeSet,
    },
    /// The lifetime is out of bounds.
    #[error("a token lives from 60 seconds to {MAX_DAYS} days")]
    Lifetime,
    /// The role does not fit the kind of principal.
    #[error(
        "a service account has the role `service` with a list of scopes, a user has member, auditor or admin"
    )]
    RoleMismatch,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A token that was just made; the only moment its text is known.
#[derive(Debug)]
pub struct NewToken {
    /// The token, to be handed to its owner.
    pub token: Token,
    /// What was stored of it.
    pub record: TokenRecord,
}

/// What a token shall be.
#[derive(Debug)]
pub struct TokenRequest {
    /// Whose it is.
    pub principal: PrincipalId,
    /// What it may do; `None` means the default of the role.
    pub scopes: Option<ScopeSet>,
    /// How long it lives, in seconds; `None` means 90 days.
    pub lifetime_seconds: Option<i64>,
    /// Free text recorded in every event.
    pub label: Option<String>,
    /// Where it may be used from.
    pub allowed_from: Option<CidrList>,
}

/// The operator's shell.
#[derive(Debug)]
pub struct Shell {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The random source.
    pub random: Arc<dyn Random>,
    /// The store.
    pub store: Store,
    /// Writes the events.
    pub writer: AuditWriter,
    /// The user of the operating system, recorded as the actor's name.
    pub os_user: Option<String>,
}

impl Shell {
    fn ids(&self) -> Ids<'_> {
        Ids { clock: &*self.clock, random: &*self.random }
    }

    /// Makes an org.
    pub async fn create_org(&self, name: &str, plan: Plan) -> Result<Org, ShellError> {
        named(name)?;
        let org = Org {
            id: OrgId::new(self.ids()),
            name: name.to_owned(),
            plan,
            created_at: self.clock.now(),
            disabled_at: None,
        };
        match self.store.create_org(&org).await {
            Ok(()) => Ok(org),
            Err(StoreError::Conflict(_)) => Err(ShellError::Taken(name.to_owned())),
            Err(error) => Err(error.into()),
        }
    }

    /// Every org.
    pub async fn orgs(&self) -> Result<Vec<Org>, ShellError> {
        Ok(self.store.list_orgs().await?)
    }

    /// The org with this id or name.
    pub async fn org(&self, id_or_name: &str) -> Result<Org, ShellError> {
        let found = match id_or_name.parse::<OrgId>() {
            Ok(id) => self.store.find_org(id).await?,
            Err(_) => self.store.find_org_by_name(id_or_name).await?,
        };
        found.ok_or_else(|| ShellError::NoOrg(id_or_name.to_owned()))
    }

    /// Changes an org's plan; running nodes follow within 5 seconds.
    pub async fn set_plan(&self, org: &Org, plan: Plan) -> Result<(), ShellError> {
        self.store.set_plan(org.id, plan).await?;
        Ok(())
    }

    /// Makes a user or a service account.
    pub async fn create_principal(
        &self,
        org: OrgId,
        name: &str,
        kind: PrincipalKind,
        role: Role,
    ) -> Result<Principal, ShellError> {
        named(name)?;
        let service = matches!(role, Role::Service(_));
        if service != (kind == PrincipalKind::Service) {
            return Err(ShellError::RoleMismatch);
        }
        let principal = Principal {
            id: PrincipalId::new(kind, self.ids()),
            org_id: org,
            name: name.to_owned(),
            role,
            created_at: self.clock.now(),
            disabled_at: None,
        };
        self.store.create_principal(&principal).await?;
        Ok(principal)
    }

    /// Everybody in an org.
    pub async fn principals(&self, org: OrgId) -> Result<Vec<Principal>, ShellError> {
        Ok(self.store.list_principals(org).await?)
    }

    /// Finds a principal by its id in whichever org it is.
    pub async fn principal(&self, id: PrincipalId) -> Result<Principal, ShellError> {
        for org in self.store.list_orgs().await? {
            if let Some(found) = self.store.find_principal(org.id, id).await? {
                return Ok(found);
            }
        }
        Err(ShellError::NoPrincipal(id.to_string()))
    }

    /// Makes a token. It can do no more than its principal's role allows, and it always ends.
    pub async fn create_token(&self, request: TokenRequest) -> Result<NewToken, ShellError> {
        let principal = self.principal(request.principal).await?;
        let allowed = principal.role.scopes();
        let scopes = request.scopes.unwrap_or_else(|| principal.role.default_scopes());
        if !scopes.is_subset_of(allowed) {
            return Err(ShellError::TooMuch { asked: scopes, allowed });
        }
        let lifetime = request.lifetime_seconds.unwrap_or(DEFAULT_DAYS * DAY);
        if !(60..=MAX_DAYS * DAY).contains(&lifetime) {
            return Err(ShellError::Lifetime);
        }
        let now = self.clock.now();
        let token = Token::generate(TokenKind::of_principal(principal.id.kind()), &*self.random);
        let record = TokenRecord {
            id: TokenId::new(self.ids()),
            kind: token.kind(),
            org_id: principal.org_id,
            principal_id: principal.id,
            via: None,
            grant_id: GrantId::new(self.ids()),
            parent_id: None,
            via_token_id: None,
            scopes,
            label: request.label,
            method: AuthMethod::Operator,
            issued_at: now,
            expires_at: now.plus_seconds(lifetime),
            revoked_at: None,
            last_used_at: None,
            allowed_cidrs: request.allowed_from,
            exchange_only: false,
        };
        self.tell(EventType::TokenIssued, principal.org_id, record.id).await?;
        self.store.insert_token(&record, &token.hash()).await?;
        Ok(NewToken { token, record })
    }

    /// The tokens of an org, newest last.
    pub async fn tokens(&self, org: OrgId) -> Result<Vec<TokenRecord>, ShellError> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page = TokenPage { principal_id: None, after, limit: 500 };
            let page = self.store.list_tokens(org, page).await?;
            after = page.last().map(|token| token.id);
            let last = page.len() < 500;
            all.extend(page);
            if last {
                return Ok(all);
            }
        }
    }

    /// Revokes a token and what descends from it; gives how many others fell with it. Running
    /// nodes follow within 5 seconds.
    pub async fn revoke_token(&self, id: TokenId) -> Result<u64, ShellError> {
        for org in self.store.list_orgs().await? {
            if self.store.find_token(org.id, id).await?.is_some() {
                self.tell(EventType::TokenRevoked, org.id, id).await?;
                let others = self.store.revoke_token(org.id, id, self.clock.now()).await?;
                return others.ok_or_else(|| ShellError::NoToken(id.to_string()));
            }
        }
        Err(ShellError::NoToken(id.to_string()))
    }

    async fn tell(&self, kind: EventType, org: OrgId, token: TokenId) -> Result<(), ShellError> {
        let actor = Actor { auth: Auth { method: "operator", trust: None }, ..Actor::system() };
        let event = Event {
            id: EventId::new(self.ids()),
            org_id: org,
            kind,
            occurred_at: self.clock.now(),
            count: None,
            actor,
            request: None,
            target: Some(Target {
                credential: None,
                id: Some(token.to_string()),
                provider_id: None,
                kind: "token",
                version: None,
            }),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: Detached::default().keep(
                "actor_name",
                self.os_user.as_deref(),
                &*self.random,
            ),
        };
        Ok(self.writer.append(row_of(&event), patience()).await?)
    }
}

/// Names are shown to people and recorded in events.
fn named(name: &str) -> Result<(), ShellError> {
    let length = name.trim().chars().count();
    if (1..=MAX_NAME).contains(&length) && !name.chars().any(char::is_control) {
        Ok(())
    } else {
        Err(ShellError::Name)
    }
}
