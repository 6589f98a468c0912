//! Conditions of rules on a principal, as numbers.

use std::collections::HashMap;

use cedar_policy::{EntityTypeName, EntityUid};

use super::EntityScope;

/// One thing that a scope can ask of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u32);

/// The keys there are. A successor keeps the numbers of the one before, so that what was built with
/// that one stays usable.
#[derive(Debug, Clone, Default)]
pub struct PrincipalKeys {
    entities: HashMap<EntityUid, OfEntity>,
    kinds: HashMap<EntityTypeName, Key>,
    taken: u32,
}

/// Conditions about one entity.
#[derive(Debug, Clone, Default)]
struct OfEntity {
    eq: Option<Key>,
    within: Option<Key>,
    typed: Vec<(EntityTypeName, Key)>,
}

impl PrincipalKeys {
    const ANY: Key = Key(0);

    /// The key of a constraint, a new one if it is the first of its kind.
    pub fn intern(&mut self, scope: &EntityScope) -> Key {
        let fresh = Key(self.taken + 1);
        let key = match scope {
            EntityScope::Any => Self::ANY,
            EntityScope::Is(kind) => *self.kinds.entry(kind.clone()).or_insert(fresh),
            EntityScope::Eq(uid) => *self.entity(uid).eq.get_or_insert(fresh),
            EntityScope::In(uid) => *self.entity(uid).within.get_or_insert(fresh),
            EntityScope::IsIn(kind, uid) => {
                let typed = &mut self.entity(uid).typed;
                if let Some((_, key)) = typed.iter().find(|(known, _)| known == kind) {
                    *key
                } else {
                    typed.push((kind.clone(), fresh));
                    fresh
                }
            }
        };
        self.taken = self.taken.max(key.0);
        key
    }

    /// The key of a constraint, if a rule asked for it.
    #[must_use]
    pub fn find(&self, scope: &EntityScope) -> Option<Key> {
        match scope {
            EntityScope::Any => Some(Self::ANY),
            EntityScope::Is(kind) => self.kinds.get(kind).copied(),
            EntityScope::Eq(uid) => self.entities.get(uid)?.eq,
            EntityScope::In(uid) => self.entities.get(uid)?.within,
            EntityScope::IsIn(kind, uid) => {
                let typed = &self.entities.get(uid)?.typed;
                typed.iter().find(|(known, _)| known == kind).map(|(_, key)| *key)
            }
        }
    }

    fn entity(&mut self, uid: &EntityUid) -> &mut OfEntity {
        self.entities.entry(uid.clone()).or_default()
    }

    /// Every key that is true of a principal with these ancestors, in order. What no rule names has
    /// no key.
    pub fn of<'a>(
        &self,
        principal: &EntityUid,
        ancestors: impl IntoIterator<Item = &'a EntityUid>,
    ) -> Vec<Key> {
        let kind = principal.type_name();
        let mut keys = vec![Self::ANY];
        keys.extend(self.kinds.get(kind));
        if let Some(itself) = self.entities.get(principal) {
            keys.extend(itself.eq);
            keys.extend(itself.within_as(kind));
        }
        for ancestor in ancestors.into_iter().filter(|uid| *uid != principal) {
            let known = self.entities.get(ancestor);
            keys.extend(known.into_iter().flat_map(|entity| entity.within_as(kind)));
        }
        keys.sort_unstable();
        keys
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.taken as usize + 1
    }

    /// Never: there is a key for rules that ask nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

impl OfEntity {
    fn within_as(&self, kind: &EntityTypeName) -> impl Iterator<Item = Key> {
        let typed = self.typed.iter().filter(move |(wanted, _)| wanted == kind);
        self.within.into_iter().chain(typed.map(|(_, key)| *key))
    }
}
