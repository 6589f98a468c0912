//! Tokens of an org: listed, made for service accounts, and revoked by its admins.

use portcullis_core::{
    audit::EventType,
    clock::Timestamp,
    id::{GrantId, PrincipalId, PrincipalKind, TokenId},
    lineage::Lineage,
    principal::{AuthMethod, ScopeSet},
    refusal::Refusal,
    secret::Secret,
    token::{CidrList, Token},
    trust::Thumbprint,
};
use portcullis_store::{ListedState, ListedToken, TokenQuery, TokenRecord};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{Administration, broken, check_grant};
use crate::{identity::directory::tokens::TokenRequest, request::Ctx};

/// The longest label in characters.
const MAX_LABEL: usize = 64;

const NOT_A_TOKEN: &str =
    "That is no token and no id of one: wrong form or wrong checksum, so nobody made it.";

/// What is known of a token, never the token itself.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TokenRecord)]
pub struct TokenView {
    /// Its id.
    #[schema(value_type = String, example = "tok_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub id: TokenId,
    /// `user`, `service` or `refresh`.
    #[schema(example = "service")]
    pub kind: &'static str,
    /// `live`, `expired`, `revoked`, `spent` (a refresh token that was used) or `principal_disabled`.
    #[schema(example = "live")]
    pub state: &'static str,
    /// Its principal.
    #[schema(value_type = String, example = "sa_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub principal_id: PrincipalId,
    #[schema(example = "ci")]
    pub principal_name: String,
    /// Actor for the principal, if it was delegated.
    #[schema(value_type = Option<String>)]
    pub via: Option<PrincipalId>,
    /// The token that it was narrowed or delegated from.
    #[schema(value_type = Option<String>)]
    pub parent_id: Option<TokenId>,
    /// Separated by spaces; the role of its principal can allow fewer at this moment.
    #[schema(example = "mcps:invoke mcps:read")]
    pub scopes: String,
    /// Free text, which is recorded in every event.
    pub label: Option<String>,
    /// `operator`, `oidc` or `token`.
    #[schema(example = "operator")]
    pub method: &'static str,
    /// The trust rule of its login, if it comes from one.
    pub trust: Option<String>,
    /// Networks that it may be used from; `null` means anywhere.
    pub allowed_from: Option<Vec<String>>,
    /// True if it can only be exchanged for another token.
    pub exchange_only: bool,
    /// Thumbprint of the key that it is bound to (DPoP, RFC 9449); `null` if its bearer may use it.
    #[schema(value_type = Option<String>)]
    pub dpop_jkt: Option<Thumbprint>,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    /// The minute in which it was seen last.
    pub last_used_at: Option<Timestamp>,
}

impl TokenView {
    fn of(token: TokenRecord, principal_name: String, state: ListedState) -> Self {
        let networks = |list: CidrList| list.to_string().split(',').map(str::to_owned).collect();
        let method = token.method.name();
        Self {
            id: token.id,
            kind: token.kind.as_str(),
            state: state.as_str(),
            principal_id: token.principal_id,
            principal_name,
            via: token.via,
            parent_id: token.parent_id,
            scopes: token.scopes.to_string(),
            label: token.label,
            method,
            trust: match token.method {
                AuthMethod::Oidc { trust } => Some(trust),
                AuthMethod::Operator | AuthMethod::Token | AuthMethod::Key { .. } => None,
            },
            allowed_from: token.allowed_cidrs.map(networks),
            exchange_only: token.exchange_only,
            dpop_jkt: token.dpop_jkt,
            issued_at: token.issued_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            last_used_at: token.last_used_at,
        }
    }
}

/// A token that was just made, and its text: the only moment at which it is told.
#[derive(Debug, Serialize, ToSchema)]
pub struct MadeToken {
    #[serde(flatten)]
    pub record: TokenView,
    /// The token itself. It is not stored and cannot be shown again.
    #[serde(serialize_with = "expose")]
    #[schema(value_type = String, example = "svc_live_…")]
    pub token: Secret,
}

fn expose<S: serde::Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}

/// A token with what it descends from, and what it may do at this moment.
#[derive(Debug, Serialize, ToSchema)]
pub struct InspectedToken {
    /// `state` is also `principal_disabled` where one that acts through it is, and `org_disabled`.
    #[serde(flatten)]
    pub record: TokenView,
    /// Tokens with the same are revoked together.
    #[schema(value_type = String, example = "grn_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub grant_id: GrantId,
    /// Rules and principals that have to be there whenever it is used.
    #[schema(value_type = Object)]
    pub lineage: Lineage,
    /// Role of its principal.
    #[schema(example = "service")]
    pub role: &'static str,
    /// Scopes that the roles of its principal and of all who act through it allow, separated by spaces.
    #[schema(example = "mcps:invoke mcps:read")]
    pub effective_scopes: String,
}

/// A page of tokens. It may be short or empty before the end.
#[derive(Debug)]
pub struct ListedTokens {
    pub items: Vec<TokenView>,
    /// Place at which the list goes on, if it does.
    pub end: Option<TokenId>,
}

impl Administration {
    /// The tokens of the caller's org, by id.
    pub async fn tokens(&self, ctx: &Ctx, query: TokenQuery) -> Result<ListedTokens, Refusal> {
        let query = TokenQuery { now: self.base.now(), ..query };
        let found = self.base.store.page_tokens(ctx.caller().org_id, &query).await?;
        let view =
            |listed: ListedToken| TokenView::of(listed.token, listed.principal_name, listed.state);
        Ok(ListedTokens { items: found.tokens.into_iter().map(view).collect(), end: found.reached })
    }

    /// Makes a token for a service account of the caller's org: people log in, but the operator makes tokens for
    /// them as well. It can do no more
    /// than the account, and nothing that its maker must not give. Recorded before it is stored.
    pub async fn create_token(
        &self,
        ctx: &Ctx,
        request: TokenRequest,
    ) -> Result<MadeToken, Refusal> {
        self.writable()?;
        let principal = self.found(ctx, &request.principal.to_string()).await?;
        if principal.id.kind() == PrincipalKind::User && !ctx.caller().is_operator {
            return Err(Refusal::bad_request(
                "Tokens are made for service accounts; people log in at `POST /v1/auth/token`.",
            ));
        }
        if request.label.as_deref().is_some_and(|label| !is_label(label)) {
            let message = "A label has 1 to 64 characters, none of them a control character.";
            return Err(Refusal::bad_request(message));
        }
        let made =
            request.into_token(&principal, self.base.ids(), self.base.now()).map_err(broken)?;
        let record = made.record;
        check_grant(ctx.caller(), record.scopes)?;
        let change = json!({ "principal": principal.id, "scopes": record.scopes });
        let event = self.event(ctx, EventType::TokenIssued, "token", record.id, Some(change));
        self.audit.record(event).await?;
        self.base.store.insert_token(&record, &made.token.hash()).await?;
        let state = match principal.disabled_at {
            Some(_) => ListedState::PrincipalDisabled,
            None => ListedState::Live,
        };
        let token = made.token.secret().clone();
        Ok(MadeToken { record: TokenView::of(record, principal.name, state), token })
    }

    /// A token of the caller's org, given its id or the token itself, with its state and scopes at this moment.
    pub async fn inspect_token(
        &self,
        ctx: &Ctx,
        id_or_token: &str,
    ) -> Result<InspectedToken, Refusal> {
        let store = &self.base.store;
        let org = self.found_org(ctx).await?;
        let (found, shown) = if let Ok(token) = Token::parse(id_or_token) {
            let known = store.find_token_by_hash(&token.hash()).await?;
            let found = known.map(|known| known.token).filter(|it| it.org_id == org.id);
            // A secret is not printed back.
            (found, token.kind().prefix())
        } else {
            let id = id_or_token.parse().map_err(|_| Refusal::bad_request(NOT_A_TOKEN))?;
            (store.find_token(org.id, id).await?, id_or_token)
        };
        let token = found.ok_or_else(|| Refusal::not_found("token", shown))?;
        let principal = self.found(ctx, &token.principal_id.to_string()).await?;
        let mut involved = vec![principal];
        for actor in token.lineage.actors() {
            involved.push(self.found(ctx, &actor.to_string()).await?);
        }
        let state = match token.revoked_at {
            Some(_) => ListedState::Revoked.as_str(),
            None if store.is_spent(org.id, token.id).await? => ListedState::Spent.as_str(),
            None if token.expires_at <= self.base.now() => ListedState::Expired.as_str(),
            None if org.disabled_at.is_some() => "org_disabled",
            None if involved.iter().any(|it| it.disabled_at.is_some()) => {
                ListedState::PrincipalDisabled.as_str()
            }
            None => ListedState::Live.as_str(),
        };
        let scopes = involved.iter().map(|it| it.role.scopes());
        let scopes = scopes.fold(token.scopes, ScopeSet::intersection);
        let principal = involved.swap_remove(0);
        Ok(InspectedToken {
            grant_id: token.grant_id,
            lineage: token.lineage.clone(),
            role: principal.role.name(),
            effective_scopes: scopes.to_string(),
            record: TokenView { state, ..TokenView::of(token, principal.name, ListedState::Live) },
        })
    }

    /// Revokes a token of the caller's org with all that descends from it; gives the number of
    /// others that fell with it.
    pub async fn revoke_token(&self, ctx: Ctx, id: &str) -> Result<(TokenId, u64), Refusal> {
        self.writable()?;
        let token: TokenId =
            id.parse().map_err(|_| Refusal::not_found("token", without_secret(id)))?;
        self.access.revoke_token(ctx, Some(token)).await
    }
}

/// The text, or the mark of its kind if it is a token: a secret is not printed back.
fn without_secret(text: &str) -> &str {
    Token::parse(text).map_or(text, |token| token.kind().prefix())
}

fn is_label(text: &str) -> bool {
    (1..=MAX_LABEL).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}
