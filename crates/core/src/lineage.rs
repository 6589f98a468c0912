//! The credentials that a token descends from, and what they still allow.
//!
//! A token can be exchanged, narrowed and delegated again and again. Its lineage holds, flat and
//! bounded, what all of these steps rely on, so that each use looks at the whole chain without
//! walking it: the trust rules that admitted anybody in it, everybody who acts, and the permission
//! of each to act.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Object, ObjectBuilder, Ref, RefOr, Schema, Type, schema::SchemaType},
};

use crate::id::PrincipalId;

/// Principals that can act through one token at most. Each of them is named in every event.
pub const MAX_ACTORS: usize = 8;

/// Everything outside a token that has to hold whenever it is used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lineage {
    /// The rule that admitted the subject; none when the operator's shell made the first token.
    root: Option<String>,
    /// Each rule that admitted a subject or an actor, and the principal it made of the JWT.
    pub(crate) logins: BTreeSet<(String, PrincipalId)>,
    /// Everybody who acts for the subject, the newest first.
    actors: Vec<PrincipalId>,
    /// Each rule that has to let a principal act for its subjects.
    pub(crate) delegations: BTreeSet<(String, PrincipalId)>,
    /// True if the token was made from another token, or for an actor.
    derived: bool,
}

/// More principals would act through one token than [`MAX_ACTORS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token can be delegated through at most {MAX_ACTORS} principals")]
pub struct TooManyActors;

impl Lineage {
    /// Of a token that the rule of this name gives `principal` for a JWT.
    #[must_use]
    pub fn login(rule: &str, principal: PrincipalId) -> Self {
        Self {
            root: Some(rule.to_owned()),
            logins: [(rule.to_owned(), principal)].into(),
            ..Self::default()
        }
    }

    /// Of a token made from the one that has this lineage.
    #[must_use]
    pub fn derived(self) -> Self {
        Self { derived: true, ..self }
    }

    /// Of a token through which `actor` acts for `subject`: it relies on what both credentials rely
    /// on. The actors of either of them go on acting.
    pub fn acted_by(
        self,
        subject: PrincipalId,
        actor: PrincipalId,
        credential: &Self,
    ) -> Result<Self, TooManyActors> {
        let newest = std::iter::once(actor).chain(credential.actors.iter().copied());
        let mut actors: Vec<PrincipalId> = Vec::new();
        for acting in newest.chain(self.actors) {
            if acting != subject && !actors.contains(&acting) {
                actors.push(acting);
            }
        }
        if actors.len() > MAX_ACTORS {
            return Err(TooManyActors);
        }
        let permitted = self.root.iter().flat_map(|rule| {
            let rule = rule.clone();
            actors.iter().map(move |acting| (rule.clone(), *acting))
        });
        let mut delegations: BTreeSet<_> = permitted.collect();
        delegations.extend(self.delegations);
        delegations.extend(credential.delegations.iter().cloned());
        let mut logins = self.logins;
        logins.extend(credential.logins.iter().cloned());
        Ok(Self { root: self.root, logins, actors, delegations, derived: true })
    }

    /// Everybody who acts for the subject, the newest first.
    #[must_use]
    pub fn actors(&self) -> &[PrincipalId] {
        &self.actors
    }

    /// The current actor: the principal that acts for the subject.
    #[must_use]
    pub fn via(&self) -> Option<PrincipalId> {
        self.actors.first().copied()
    }

    /// Returns true if the token was narrowed from another token, or delegated.
    #[must_use]
    pub const fn is_derived(&self) -> bool {
        self.derived
    }

    /// The actors as the nested member `act` of RFC 8693 §4.1; `None` when there are none.
    #[must_use]
    pub fn act(&self) -> Option<Act> {
        (!self.actors.is_empty()).then(|| Act(self.actors.clone()))
    }
}

/// Everybody who acts, the newest outermost: `{"act": {"sub": "sa_…"}, "sub": "sa_…"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act(Vec<PrincipalId>);

impl PartialSchema for Act {
    fn schema() -> RefOr<Schema> {
        let nested: Object = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::Object))
            .description(Some(
                "Everybody who acts, nested as in RFC 8693 §4.1, the newest outermost.",
            ))
            .property("act", Ref::from_schema_name(Self::name()))
            .property("sub", Ref::from_schema_name(PrincipalId::name()))
            .required("sub")
            .into();
        nested.into()
    }
}

impl ToSchema for Act {}

impl Serialize for Act {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nested(&self.0).serialize(serializer)
    }
}

struct Nested<'a>(&'a [PrincipalId]);

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        if let Some((newest, earlier)) = self.0.split_first() {
            if !earlier.is_empty() {
                members.serialize_entry("act", &Nested(earlier))?;
            }
            members.serialize_entry("sub", newest)?;
        }
        members.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn principal(n: u8) -> PrincipalId {
        format!("sa_01M754BKTKX1YB8Q05NMW9TP{n:02}").parse().unwrap()
    }

    #[test]
    fn actors_are_nested_with_the_newest_outermost() {
        let subject = principal(0);
        let one = principal(1);
        let two = principal(2);
        let first = Lineage::login("people", subject).acted_by(subject, one, &Lineage::default());

        let second = first.unwrap().acted_by(subject, two, &Lineage::login("ci", two)).unwrap();

        assert_eq!(second.via(), Some(two));
        assert_eq!(json!(second.act()), json!({"sub": two, "act": {"sub": one}}));
        assert_eq!(
            json!(second),
            json!({
                "root": "people",
                "logins": [["ci", two], ["people", subject]],
                "actors": [two, one],
                "delegations": [["people", one], ["people", two]],
                "derived": true,
            })
        );
        assert_eq!(serde_json::from_value::<Lineage>(json!(second)).unwrap(), second);
    }

    #[test]
    fn whoever_acted_through_the_actors_token_goes_on_acting() {
        let subject = principal(0);
        let one = principal(1);
        let two = principal(2);
        let of_actor = Lineage::login("ci", one).acted_by(one, two, &Lineage::default()).unwrap();

        let both = Lineage::login("people", subject).acted_by(subject, one, &of_actor).unwrap();

        assert_eq!(both.actors(), [one, two]);
        assert!(both.delegations.contains(&("people".to_owned(), two)));
        assert!(both.delegations.contains(&("ci".to_owned(), two)));
    }

    #[test]
    fn a_chain_of_the_same_actors_does_not_grow_and_one_of_others_ends() {
        let subject = principal(0);
        let mut lineage = Lineage::default();
        for turn in 0..40 {
            let actor = principal(1 + turn % 2);
            lineage = lineage.acted_by(subject, actor, &Lineage::default()).unwrap();
        }
        assert_eq!(lineage.actors(), [principal(2), principal(1)]);

        for n in 3..=8 {
            lineage = lineage.acted_by(subject, principal(n), &Lineage::default()).unwrap();
        }
        let refused = lineage.acted_by(subject, principal(9), &Lineage::default());
        assert_eq!(refused, Err(TooManyActors));
    }
}
