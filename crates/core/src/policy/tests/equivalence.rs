//! The slots against the library's own authorizer over the whole set and the whole context.

use cedar_policy::{
    Authorizer, Context, Decision as Plain, Entities, Entity, EntityUid, PolicySet as PlainSet,
    Request, RestrictedExpression,
};
use proptest::prelude::*;

use super::*;

const TOOLS: [(&str, bool); 4] =
    [("a:one", true), ("a:two", false), ("b:one", true), ("b:two", false)];

fn tools() -> Vec<Arc<Capability>> {
    let input = json!({"n": {"type": "integer"}, "s": {"type": "string"}});
    let tool =
        |(id, reads): (&str, bool)| tool_with(id, &input, &json!({"readOnlyHint": reads}), None);
    TOOLS.map(tool).to_vec()
}

/// A rule without its name, and whether it permits.
fn rule() -> impl Strategy<Value = (bool, String)> {
    let principal = prop::sample::select(vec![
        "principal",
        "principal is Mcp::User",
        "principal is Mcp::Service",
        "principal in Mcp::Role::\"member\"",
        "principal in Mcp::Role::\"service\"",
        "principal in Mcp::Scope::\"mcps:invoke\"",
        "principal is Mcp::User in Mcp::Group::\"g\"",
        "principal in Mcp::Group::\"h\"",
        "principal == Mcp::Group::\"h\"",
        "principal is Mcp::Service in Mcp::Role::\"member\"",
        "principal in Mcp::User::\"usr_01M754BKTKX1YB8Q05NMW9TP4G\"",
        "principal == Mcp::User::\"usr_01M754BKTKX1YB8Q05NMW9TP4G\"",
    ]);
    let action = prop::sample::select(vec![
        "action",
        "action == Mcp::Action::\"a:one\"",
        "action in Mcp::Action::\"a:*\"",
        "action in Mcp::Action::\"hint:read_only\"",
        "action in [Mcp::Action::\"a:two\", Mcp::Action::\"b:*\"]",
        "action in Mcp::Action::\"b:two\"",
        "action in []",
    ]);
    let resource = prop::sample::select(vec![
        "resource",
        "resource == Mcp::Tool::\"b:one\"",
        "resource in Mcp::Provider::\"b\"",
        "resource is Mcp::Tool",
        "resource is Mcp::Tool in Mcp::Provider::\"a\"",
    ]);
    let condition = prop::sample::select(vec![
        "",
        "when { context.input has n && context.input.n > 0 }",
        "unless { context.input has n && context.input.n + 9223372036854775806 > 0 }",
        "when { context.input has s && context.input.s like \"x*\" }",
        "when { context.dlp.findings.contains(\"email\") }",
        "when { context.request.mfa && resource.read_only }",
        "unless { context.input == context.input && principal.id like \"usr_*\" }",
    ]);
    (any::<bool>(), principal, action, resource, condition).prop_map(
        |(permit, principal, action, resource, condition)| {
            let effect = if permit { "permit" } else { "forbid" };
            (permit, format!("{effect} ({principal}, {action}, {resource}) {condition};\n"))
        },
    )
}

fn text(rules: &[(bool, String)]) -> String {
    let named = |(at, (_, rule)): (usize, &(bool, String))| format!("@id(\"p{at}\") {rule}");
    rules.iter().enumerate().map(named).collect()
}

fn uid(text: &str) -> EntityUid {
    text.parse().unwrap()
}

fn entity(text: &str, attributes: Vec<(&str, RestrictedExpression)>, parents: &[String]) -> Entity {
    let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value));
    Entity::new(uid(text), attributes.collect(), parents.iter().map(|p| uid(p)).collect()).unwrap()
}

/// Every entity there is, built from this file's own knowledge.
fn entities(principal: &str, role: &str, groups: &[String]) -> Entities {
    let id = principal.split('"').nth(1).unwrap().to_owned();
    let mut parents: Vec<String> = groups.iter().map(|g| format!("Mcp::Group::\"{g}\"")).collect();
    parents.extend([
        format!("Mcp::Role::\"{role}\""),
        "Mcp::Scope::\"mcps:invoke\"".to_owned(),
        format!("Mcp::Org::\"org_{ULID}\""),
    ]);
    let id = RestrictedExpression::new_string(id);
    let mut all = vec![entity(principal, vec![("id", id)], &parents)];
    for (tool, reads) in TOOLS {
        let provider = &tool[..1];
        let flag = ("read_only", RestrictedExpression::new_bool(reads));
        let parent = format!("Mcp::Provider::\"{provider}\"");
        all.push(entity(&format!("Mcp::Tool::\"{tool}\""), vec![flag], &[parent]));
        let mut groups = vec![format!("Mcp::Action::\"{provider}:*\"")];
        groups.extend(reads.then(|| "Mcp::Action::\"hint:read_only\"".to_owned()));
        all.push(entity(&format!("Mcp::Action::\"{tool}\""), vec![], &groups));
    }
    Entities::from_entities(all, None).unwrap()
}

fn record(fields: Vec<(&str, RestrictedExpression)>) -> RestrictedExpression {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    RestrictedExpression::new_record(fields).unwrap()
}

/// The whole context of the question, for every reader.
fn context(n: Option<i64>, s: Option<&str>, found: bool, mfa: bool) -> Context {
    let long = RestrictedExpression::new_long;
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let mut input = Vec::new();
    input.extend(n.map(|n| ("n", long(n))));
    input.extend(s.map(|s| ("s", text(s))));
    let findings = found.then(|| text("email"));
    let dlp = record(vec![("findings", RestrictedExpression::new_set(findings))]);
    let request = record(vec![("mfa", RestrictedExpression::new_bool(mfa))]);
    Context::from_pairs([
        ("input".to_owned(), record(input)),
        ("dlp".to_owned(), dlp),
        ("request".to_owned(), request),
    ])
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn slots_decide_like_the_library_over_the_whole_set(
        rules in prop::collection::vec(rule(), 0..12),
        which in 0usize..4,
        service in any::<bool>(),
        groups in prop::sample::subsequence(vec!["g".to_owned(), "h".to_owned()], 0..=2),
        n in prop::option::of(prop::sample::select(vec![-1i64, 0, 5, i64::MAX])),
        s in prop::option::of(prop::sample::select(vec!["x1", "y"])),
        found in any::<bool>(),
        mfa in any::<bool>(),
    ) {
        let all = tools();
        let source = text(&rules);
        let set = loaded(&source, &all);
        let role = if service { Role::Service(ScopeSet::ALL) } else { Role::Member };
        let identity = Identity { groups: groups.clone(), ..Identity::of(&caller_as(role)) };
        let caller = Principal::new(identity.clone());
        let mut input = json!({});
        if let Some(n) = n { input["n"] = json!(n); }
        if let Some(s) = s { input["s"] = json!(s); }
        let detectors: &[&str] = if found { &["email"] } else { &[] };
        let asked = Question {
            dlp: DlpFacts { detectors, count: 0, max_severity: 0, media: 0 },
            mfa,
            ..question(&caller, &all[which], &input)
        };
        let ours = set.decide(&asked);

        let kind = if service { "Service" } else { "User" };
        let principal = format!("Mcp::{kind}::\"{}\"", identity.id);
        let request = Request::new(
            uid(&principal),
            uid(&format!("Mcp::Action::\"{}\"", TOOLS[which].0)),
            uid(&format!("Mcp::Tool::\"{}\"", TOOLS[which].0)),
            context(n, s, found, mfa),
            None,
        ).unwrap();
        let plain: PlainSet = source.parse().unwrap();
        let entities = entities(&principal, role.name(), &groups);
        let theirs = Authorizer::new().is_authorized(&request, &plain, &entities);
        let name = |id: &cedar_policy::PolicyId| {
            plain.policy(id).unwrap().annotation("id").unwrap().to_owned()
        };
        let mut reasons: Vec<String> = theirs.diagnostics().reason().map(name).collect();
        let mut errors: Vec<String> = theirs.diagnostics().errors().map(|error| {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            name(error.policy_id())
        }).collect();
        reasons.sort();
        errors.sort();
        let failed: Vec<String> = errors.iter().filter(|id| !rules[id[1..].parse::<usize>().unwrap()].0).cloned().collect();

        let mut determining: Vec<String> = ours.determining.iter().map(ToString::to_string).collect();
        determining.sort();
        let our_errors: Vec<String> = ours.errors.iter().map(|error| error.policy.to_string()).collect();
        prop_assert_eq!(our_errors, errors);
        if !failed.is_empty() {
            prop_assert_eq!(&determining, &failed);
        } else if reasons.is_empty() {
            prop_assert_eq!(said(&ours), "deny default-deny");
        } else {
            prop_assert_eq!(determining, reasons);
        }
        let allowed = matches!(ours.verdict, Verdict::Allow { .. });
        prop_assert_eq!(allowed, theirs.decision() == Plain::Allow && failed.is_empty());
    }
}
