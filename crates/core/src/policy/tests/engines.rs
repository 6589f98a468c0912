//! The index and its evaluation against the library's own authorizer, on a world that has nothing
//! to do with tools.

use std::collections::HashSet;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicyId, PolicySet as PlainSet, Request,
    RestrictedExpression,
};
use proptest::{prelude::*, sample::select, sample::subsequence};

use super::engine::{Conditions, Member, PrincipalKeys, RequestTarget, Rule, Situation, Slice};

const PRINCIPALS: [&str; 4] = ["U::\"a\"", "U::\"b\"", "S::\"a\"", "G::\"x\""];
const ACTIONS: [&str; 3] = ["Action::\"read\"", "Action::\"write\"", "Action::\"all\""];
const RESOURCES: [&str; 3] = ["T::\"1\"", "T::\"2\"", "P::\"1\""];
/// Groups that anything may be in.
const GROUPS: [&str; 4] = ["G::\"x\"", "G::\"y\"", "U::\"a\"", "P::\"1\""];

fn constraint(var: &'static str, entities: &'static [&'static str]) -> BoxedStrategy<String> {
    let named = prop_oneof![select(entities), select(&GROUPS[..])];
    let kind = select(vec!["U", "S", "G", "T", "P"]);
    prop_oneof![
        2 => Just(var.to_owned()),
        2 => named.clone().prop_map(move |uid| format!("{var} == {uid}")),
        3 => named.clone().prop_map(move |uid| format!("{var} in {uid}")),
        1 => kind.clone().prop_map(move |kind| format!("{var} is {kind}")),
        2 => (kind, named).prop_map(move |(kind, uid)| format!("{var} is {kind} in {uid}")),
    ]
    .boxed()
}

fn action() -> impl Strategy<Value = String> {
    let several = subsequence(&ACTIONS[..], 0..=3);
    prop_oneof![
        Just("action".to_owned()),
        select(&ACTIONS[..]).prop_map(|uid| format!("action == {uid}")),
        several.prop_map(|uids| format!("action in [{}]", uids.join(", "))),
    ]
}

fn rule() -> impl Strategy<Value = String> {
    let conditions = select(vec![
        "",
        "when { true }",
        "when { principal.n > 1 }",
        "unless { principal has n && principal.n == 2 }",
        "when { context.n + 9223372036854775800 > 0 }",
        "when { principal in resource || resource in G::\"y\" }",
        "when { context.n } when { false }",
        "when { principal.getTag(\"t\").contains(\"v\") }",
        "when { principal.hasTag(\"t\") && principal.getTag(\"t\").contains(\"v\") }",
        "when { ip(context.text).isLoopback() }",
        "when { if context.n > 5 then principal in G::\"x\" else context.nothing }",
    ]);
    let parts = (
        select(vec!["permit", "forbid"]),
        constraint("principal", &PRINCIPALS),
        action(),
        constraint("resource", &RESOURCES),
        conditions,
    );
    parts.prop_map(|(effect, principal, action, resource, condition)| {
        format!("{effect} ({principal}, {action}, {resource}) {condition};")
    })
}

fn uid(text: &str) -> EntityUid {
    text.parse().unwrap()
}

/// Everything there is; each of `in_groups` is in these groups, `G::"y"` only through `G::"x"`.
fn world(in_groups: &[(&str, Vec<&str>)], numbers: bool) -> Entities {
    let mut all = vec![
        Entity::new_no_attrs(uid("G::\"x\""), HashSet::from([uid("G::\"y\"")])),
        Entity::new_no_attrs(uid("Action::\"read\""), HashSet::from([uid("Action::\"all\"")])),
        Entity::new_no_attrs(uid("Action::\"write\""), HashSet::from([uid("Action::\"all\"")])),
    ];
    for (entity, groups) in in_groups {
        let number = ("n".to_owned(), RestrictedExpression::new_long(2));
        let text = RestrictedExpression::new_string("v".to_owned());
        let tag = ("t".to_owned(), RestrictedExpression::new_set([text]));
        let parents = groups.iter().map(|group| uid(group)).filter(|group| *group != uid(entity));
        let entity = Entity::new_with_tags(
            uid(entity),
            numbers.then_some(number),
            parents,
            numbers.then_some(tag),
        );
        all.push(entity.unwrap());
    }
    Entities::from_entities(all, None).unwrap()
}

/// Answers of the library about each rule by itself.
fn plain(rules: &[Rule], request: &Request, entities: &Entities) -> (Vec<u32>, Vec<u32>) {
    let mut satisfied = Vec::new();
    let mut errored = Vec::new();
    for (number, rule) in (0..).zip(rules) {
        let set = PlainSet::from_policies([rule.cedar().clone()]).unwrap();
        let response = Authorizer::new().is_authorized(request, &set, entities);
        if response.diagnostics().errors().next().is_some() {
            errored.push(number);
        } else if response.diagnostics().reason().next().is_some() {
            satisfied.push(number);
        }
    }
    (satisfied, errored)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn whatever_the_world_the_index_finds_what_applies_and_says_what_the_library_says(
        texts in prop::collection::vec(rule(), 1..10),
        principal in select(&PRINCIPALS[..]),
        action in select(&ACTIONS[..2]),
        resource in select(&RESOURCES[..]),
        groups in subsequence(&GROUPS[..2], 0..=2),
        place in subsequence(vec!["P::\"1\"", "G::\"y\""], 0..=2),
        numbers in any::<bool>(),
        n in select(vec![0i64, 6, i64::MAX]),
    ) {
        let rule = |(number, text): (usize, &String)| {
            let id = PolicyId::new(format!("r{number}"));
            let policy = cedar_policy::Policy::parse(Some(id), text).unwrap();
            Rule::new(policy, &mut Conditions::default())
        };
        let rules: Vec<Rule> = texts.iter().enumerate().map(rule).collect();
        let mut in_groups = vec![(principal, groups), (resource, place)];
        in_groups.retain(|(entity, _)| *entity != "G::\"x\"");
        let entities = world(&in_groups, numbers);
        let context = Context::from_pairs([
            ("n".to_owned(), RestrictedExpression::new_long(n)),
            ("text".to_owned(), RestrictedExpression::new_string("127.0.0.1".to_owned())),
        ]).unwrap();
        let [principal, action, resource] = [principal, action, resource].map(uid);
        let request = Request::new(
            principal.clone(), action.clone(), resource.clone(), context, None,
        ).unwrap();
        let (satisfied, errored) = plain(&rules, &request, &entities);

        let within = |uid: &EntityUid| -> HashSet<EntityUid> {
            entities.ancestors(uid).into_iter().flatten().cloned().collect()
        };
        let member = |uid: EntityUid| Member { within: within(&uid), near: None, uid };
        let place = RequestTarget { action: member(action), resource: member(resource) };
        let mut keys = PrincipalKeys::default();
        let fitting = (0..).zip(&rules).filter(|(_, rule)| rule.fit(&place).is_some());
        let slice = Slice::new(fitting, &mut keys);
        let picked = keys.of(&principal, &within(&principal));
        let situation = Situation { request, entities: entities.clone() };

        let found = slice.evaluate(&picked, &situation);

        prop_assert_eq!(found.satisfied, satisfied);
        let failed: Vec<u32> = found.errored.iter().map(|(number, _)| *number).collect();
        prop_assert_eq!(failed, errored);
    }
}
