//! The principal of a call, as policies see it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use arc_swap::ArcSwapOption;
use cedar_policy::{
    Entity, EntityTypeName, EntityUid, ExpressionConstructionError, RestrictedExpression,
};
use cedar_policy_core::ast;

use crate::policy::{
    engine::{Key, PrincipalKeys, RequestEntity},
    language::entity_types::{entity_types, principal_type, uid},
};
use crate::{authorization::ClientRef, id::PrincipalKind, principal::Caller, trust::Login};

/// Identity of a principal in plain values: of a caller, or of a made-up principal in a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub kind: PrincipalKind,
    /// The principal's id, such as `usr_…`.
    pub id: String,
    pub org: String,
    pub roles: Vec<String>,
    pub scopes: Vec<String>,
    pub groups: Vec<String>,
    /// Further claims about it: the tags of the principal, always sets.
    pub claims: BTreeMap<String, BTreeSet<String>>,
    /// The claims that no event may hold, because something is in them that DLP looks for.
    pub withheld: BTreeSet<String>,
    pub mfa: bool,
    /// Agent that acts on its behalf, if any.
    pub agent: Option<Agent>,
    /// The OAuth client that its token was granted to, if any: `principal.client`.
    pub client: Option<ClientRef>,
}

/// Agent that acts on a user's behalf: `context.agent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub id: String,
    /// Kind of principal, such as `service`.
    pub kind: String,
}

impl Identity {
    /// A principal without properties: no role, no scope, no group.
    #[must_use]
    pub const fn new(kind: PrincipalKind, id: String, org: String) -> Self {
        Self {
            kind,
            id,
            org,
            roles: Vec::new(),
            scopes: Vec::new(),
            groups: Vec::new(),
            claims: BTreeMap::new(),
            withheld: BTreeSet::new(),
            mfa: false,
            agent: None,
            client: None,
        }
    }

    /// The verified caller, of whom no login says more.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        let id = caller.principal_id.to_string();
        let org = caller.org_id.to_string();
        let agent = |via: crate::id::PrincipalId| Agent {
            id: via.to_string(),
            kind: via.kind().as_str().to_owned(),
        };
        Self {
            roles: vec![caller.role.name().to_owned()],
            scopes: caller.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
            agent: caller.via.map(agent),
            client: caller.client.as_deref().map(|grant| grant.client.clone()),
            ..Self::new(caller.principal_id.kind(), id, org)
        }
    }

    /// The verified caller, and what its login said.
    #[must_use]
    pub fn logged_in(caller: &Caller, login: &Login) -> Self {
        Self {
            groups: login.groups.iter().cloned().collect(),
            claims: login.claims.clone(),
            mfa: login.mfa,
            ..Self::of(caller)
        }
    }

    fn parents(&self) -> impl Iterator<Item = EntityUid> {
        let names = entity_types();
        let all = |kind: &'static EntityTypeName, ids: &[String]| {
            ids.iter().map(|id| uid(kind, id)).collect::<Vec<_>>()
        };
        let orgs = std::iter::once(uid(&names.org, &self.org));
        orgs.chain(all(&names.role, &self.roles))
            .chain(all(&names.scope, &self.scopes))
            .chain(all(&names.group, &self.groups))
    }
}

/// The client as policies see it: `id`, `kind` and `name`.
fn client_record(client: &ClientRef) -> Result<RestrictedExpression, ExpressionConstructionError> {
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    RestrictedExpression::new_record([
        ("id".to_owned(), text(&client.id)),
        ("kind".to_owned(), text(client.kind.as_str())),
        ("name".to_owned(), text(&client.name)),
    ])
}

/// The level and the methods of the login of a person, as policies see them: `acr`, if the issuer named one, and
/// `amr`, which is empty where it named none.
fn authentication(identity: &Identity) -> Vec<(String, RestrictedExpression)> {
    let text = |text: &String| RestrictedExpression::new_string(text.clone());
    let told = |claim: &str| {
        let values = identity.claims.get(claim).filter(|_| identity.kind == PrincipalKind::User);
        values.into_iter().flatten()
    };
    let methods = RestrictedExpression::new_set(told("amr").map(text));
    let level = told("acr").next().map(|level| ("acr".to_owned(), text(level)));
    level.into_iter().chain([("amr".to_owned(), methods)]).collect()
}

/// An identity made ready for decisions. Making one costs more than a decision does, so it is made
/// once for each session.
#[derive(Debug)]
pub struct Principal {
    identity: Identity,
    pub(in crate::policy) party: RequestEntity,
    /// The principal itself and everything it is in.
    pub(in crate::policy) entities: HashSet<EntityUid>,
    pub(in crate::policy) entity: Arc<ast::Entity>,
    /// The keys of this principal, and of which set.
    keys: ArcSwapOption<HeldKeys>,
}

#[derive(Debug)]
struct HeldKeys {
    of: Arc<PrincipalKeys>,
    keys: Arc<[Key]>,
}

impl Principal {
    /// Makes the identity ready.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        let kind = principal_type(identity.kind);
        let principal = uid(kind, &identity.id);
        let parents: HashSet<EntityUid> = identity.parents().collect();
        let text = |text: &String| RestrictedExpression::new_string(text.clone());
        let mut attributes = HashMap::from([("id".to_owned(), text(&identity.id))]);
        attributes.extend(authentication(&identity));
        if let Some(client) = &identity.client
            && let Ok(record) = client_record(client)
        {
            attributes.insert("client".to_owned(), record);
        }
        let tags = identity.claims.iter().map(|(name, values)| {
            (name.clone(), RestrictedExpression::new_set(values.iter().map(text)))
        });
        let tags: Vec<_> = tags.collect();
        let entity = Entity::new_with_tags(principal.clone(), attributes, parents.clone(), tags);
        // Strings and sets of them always evaluate; a principal without parents and tags fails
        // closed.
        let entity = entity.unwrap_or_else(|_| Entity::with_uid(principal.clone()));
        let entity: &ast::Entity = entity.as_ref();
        let mut entities = parents;
        entities.insert(principal.clone());
        Self {
            identity,
            party: RequestEntity::new(principal),
            entities,
            entity: Arc::new(entity.clone()),
            keys: ArcSwapOption::empty(),
        }
    }

    /// The verified caller, made ready.
    #[must_use]
    pub fn of(caller: &Caller) -> Self {
        Self::new(Identity::of(caller))
    }

    /// Identity of the principal.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Keys that are true of this principal; looked up once for each set.
    pub(in crate::policy) fn keys(&self, keys: &Arc<PrincipalKeys>) -> Arc<[Key]> {
        if let Some(held) = &*self.keys.load()
            && Arc::ptr_eq(&held.of, keys)
        {
            return Arc::clone(&held.keys);
        }
        let found: Arc<[Key]> = keys.of(self.party.uid(), &self.entities).into();
        let held = HeldKeys { of: Arc::clone(keys), keys: Arc::clone(&found) };
        self.keys.store(Some(Arc::new(held)));
        found
    }
}
