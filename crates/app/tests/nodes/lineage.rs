//! Random chains of narrowing and delegation while rules, roles, principals and the org change: a
//! token does exactly what everything it descends from could do together now.

use std::{collections::BTreeSet, net::Ipv4Addr, sync::Arc};

use portcullis_app::{App, ExchangeRequest, Presented, PresentedToken, Purpose};
use portcullis_core::{
    id::{OrgId, PrincipalId, TokenId},
    lineage::Lineage,
    principal::{AuthMethod, Role, ScopeSet},
    refusal::Refusal,
    secret::Secret,
    trust::{
        Expectation, Expectations, LoginClaims, MaxTtl, RoleMap, RuleSubject, TrustRule, TrustRules,
    },
};
use portcullis_store::Store;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use tempfile::TempDir;

use crate::node::{NOW, Stopped, app, org, origin, principal, store, token};

const CASES: usize = 24;
const RULES: [&str; 3] = ["people", "jobs", "agents"];

/// An action of a principal. Numbers pick among the existing tokens, principals and rules.
#[derive(Debug, Clone, Copy)]
enum Act {
    Narrow(u32, u16),
    Delegate(u32, u32, u16),
    Revoke(u32),
}

/// A change by the operator.
#[derive(Debug, Clone, Copy)]
enum Change {
    RemoveRule(u32),
    RestoreRule(u32),
    RuleScopes(u32, u16),
    RuleDelegation(u32, u8),
    Role(u32, u16),
    Disable(u32),
    Enable(u32),
    Org(bool),
}

fn rounds() -> impl Strategy<Value = Vec<(Vec<Act>, Vec<Change>)>> {
    let act = prop_oneof![
        4 => any::<(u32, u16)>().prop_map(|(of, scopes)| Act::Narrow(of, scopes)),
        4 => any::<(u32, u32, u16)>().prop_map(|(of, via, scopes)| Act::Delegate(of, via, scopes)),
        1 => any::<u32>().prop_map(Act::Revoke),
    ];
    let change = prop_oneof![
        2 => any::<u32>().prop_map(Change::RemoveRule),
        3 => any::<u32>().prop_map(Change::RestoreRule),
        2 => any::<(u32, u16)>().prop_map(|(rule, scopes)| Change::RuleScopes(rule, scopes)),
        2 => any::<(u32, u8)>().prop_map(|(rule, actors)| Change::RuleDelegation(rule, actors)),
        3 => any::<(u32, u16)>().prop_map(|(who, scopes)| Change::Role(who, scopes)),
        1 => any::<u32>().prop_map(Change::Disable),
        3 => any::<u32>().prop_map(Change::Enable),
        1 => prop::bool::weighted(0.2).prop_map(Change::Org),
    ];
    let acts = prop::collection::vec(act, 1..8);
    let round = (acts, prop::collection::vec(change, 0..4));
    prop::collection::vec(round, 1..5)
}

/// A trust rule as the model knows it.
#[derive(Debug, Clone)]
struct Rule {
    present: bool,
    scopes: ScopeSet,
    delegation: BTreeSet<usize>,
    /// The principal it makes; users of an issuer when there is none.
    fixed: Option<usize>,
}

#[derive(Debug, Clone)]
struct Somebody {
    id: PrincipalId,
    scopes: ScopeSet,
    disabled: bool,
}

/// A token as the model knows it: what it was made from, and what was asked for.
struct ModelToken {
    text: String,
    id: TokenId,
    principal: usize,
    rule: Option<usize>,
    from: Option<(usize, Option<usize>)>,
    scopes: ScopeSet,
    revoked: bool,
}

struct World {
    store: Store,
    folder: TempDir,
    app: Arc<App>,
    org: OrgId,
    open: bool,
    people: Vec<Somebody>,
    rules: Vec<Rule>,
    tokens: Vec<ModelToken>,
    asked: u32,
    /// All that happens, for the reader of a failure.
    story: String,
}

fn scopes(bits: u16) -> ScopeSet {
    let all = portcullis_core::principal::Scope::ALL;
    all.into_iter()
        .enumerate()
        .filter(|(n, _)| bits & (1 << n) != 0)
        .map(|(_, scope)| scope)
        .collect()
}

impl World {
    async fn begin(told: String) -> Self {
        let folder = TempDir::new().unwrap();
        let store = store(folder.path()).await;
        let org = org(&store).await;
        let mut people = Vec::new();
        for n in 0..5 {
            // The first is a user, as a rule for an issuer's users makes them.
            let role = if n == 0 { Role::Admin } else { Role::Service(ScopeSet::ALL) };
            let id = principal(&store, org, &format!("somebody {n}"), role).await;
            people.push(Somebody { id, scopes: role.scopes(), disabled: false });
        }
        let everybody: BTreeSet<usize> = (0..people.len()).collect();
        let rule = |fixed| Rule {
            present: true,
            scopes: ScopeSet::ALL,
            delegation: everybody.clone(),
            fixed,
        };
        let rules = vec![rule(None), rule(Some(1)), rule(Some(2))];
        let app = restarted(&folder, &store, trusted(org, &people, &rules));
        let mut world = Self {
            store,
            folder,
            app,
            org,
            open: true,
            people,
            rules,
            tokens: Vec::new(),
            asked: 0,
            story: told,
        };
        for (principal, rule) in
            [(0, Some(0)), (1, Some(1)), (2, Some(2)), (3, None), (4, None), (0, None)]
        {
            world.root(principal, rule).await;
        }
        world
    }

    /// A token as a login by this rule gives it, or the operator's shell.
    async fn root(&mut self, principal: usize, rule: Option<usize>) {
        let who = self.people[principal].id;
        let method = rule.map_or(AuthMethod::Operator, |rule| AuthMethod::Oidc {
            trust: RULES[rule].to_owned(),
        });
        let lineage = rule.map_or_else(Lineage::default, |rule| Lineage::login(RULES[rule], who));
        let (text, id) = token(&self.store, self.org, who, method, lineage).await;
        self.tokens.push(ModelToken {
            text,
            id,
            principal,
            rule,
            from: None,
            scopes: ScopeSet::ALL,
            revoked: false,
        });
    }

    fn pick(&self, number: u32) -> usize {
        number as usize % self.tokens.len()
    }

    async fn act(&mut self, act: Act) {
        match act {
            Act::Narrow(of, bits) => self.exchange(self.pick(of), None, scopes(bits)).await,
            Act::Delegate(of, via, bits) => {
                let of = self.pick(of);
                let via = self.pick(via);
                self.exchange(of, (of != via).then_some(via), scopes(bits)).await;
            }
            Act::Revoke(of) => {
                // The first six stay, or soon nothing would be left.
                let of = self.pick(of);
                if of >= 6 {
                    let id = self.tokens[of].id;
                    self.store.revoke_token(self.org, id, NOW).await.unwrap();
                    self.tokens[of].revoked = true;
                    self.reopen();
                }
            }
        }
    }

    async fn exchange(&mut self, of: usize, via: Option<usize>, asked: ScopeSet) {
        let subject = Secret::new(self.tokens[of].text.clone());
        let bearer = via.map(|via| Secret::new(self.tokens[via].text.clone()));
        let presented = Presented { bearer, subject: Some(subject), ..Presented::default() };
        let from = self.origin();
        let granted = match self.app.access.credentials(presented, &from).await {
            Err(refused) => Err(refused.refusal),
            Ok(credentials) => {
                let request = ExchangeRequest { scope: Some(asked), ..ExchangeRequest::default() };
                self.app.access.exchange(credentials, request, &from).await
            }
        };
        let made = ModelToken {
            text: String::new(),
            id: self.tokens[of].id,
            principal: self.tokens[of].principal,
            rule: None,
            from: Some((of, via)),
            scopes: asked,
            revoked: false,
        };
        let allowed = self.together(&made);
        match granted {
            Ok(granted) => {
                assert_eq!(allowed, Some(asked), "more than may be given: {}", self.story);
                let text = granted.access.secret().expose().to_owned();
                self.tokens.push(ModelToken { text, id: granted.record.id, ..made });
            }
            Err(refusal) => {
                let whole = allowed == Some(asked) && !asked.is_empty();
                assert!(!whole, "it may be given: {refusal:?}: {}", self.story);
                assert!(!matches!(refusal, Refusal::Internal | Refusal::Unavailable { .. }));
            }
        }
    }

    fn origin(&mut self) -> portcullis_app::Origin {
        self.asked += 1;
        origin(Ipv4Addr::from(0x0a00_0000 + self.asked))
    }

    /// Scopes of a token at this moment, computed by walking the whole chain.
    fn together(&self, token: &ModelToken) -> Option<ScopeSet> {
        let somebody = &self.people[token.principal];
        if token.revoked || somebody.disabled || !self.open {
            return None;
        }
        let own = token.scopes.intersection(somebody.scopes);
        let Some((subject, actor)) = token.from else {
            let Some(rule) = token.rule else { return Some(own) };
            let rule = &self.rules[rule];
            let present = rule.present && rule.fixed.is_none_or(|fixed| fixed == token.principal);
            return present.then(|| own.intersection(rule.scopes));
        };
        let mut scopes = own.intersection(self.together(&self.tokens[subject])?);
        if let Some(actor) = actor {
            scopes = scopes.intersection(self.together(&self.tokens[actor])?);
            let root = self.root_of(subject);
            let permitted =
                |rule: usize| self.acting(token).is_subset(&self.rules[rule].delegation);
            if !root.is_none_or(permitted) {
                return None;
            }
        }
        Some(scopes)
    }

    /// Everybody who acts through a token.
    fn acting(&self, token: &ModelToken) -> BTreeSet<usize> {
        let Some((subject, actor)) = token.from else { return BTreeSet::new() };
        let mut acting = self.acting(&self.tokens[subject]);
        if let Some(actor) = actor {
            acting.insert(self.tokens[actor].principal);
            acting.extend(self.acting(&self.tokens[actor]));
        }
        acting.remove(&token.principal);
        acting
    }

    /// The rule that admitted the subject.
    fn root_of(&self, token: usize) -> Option<usize> {
        match self.tokens[token].from {
            Some((subject, _)) => self.root_of(subject),
            None => self.tokens[token].rule,
        }
    }

    async fn change(&mut self, change: Change) {
        let rule = |number: u32| number as usize % RULES.len();
        let who = |number: u32| number as usize % 5;
        match change {
            Change::RemoveRule(n) => self.rules[rule(n)].present = false,
            Change::RestoreRule(n) => self.rules[rule(n)].present = true,
            Change::RuleScopes(n, bits) => self.rules[rule(n)].scopes = scopes(bits),
            Change::RuleDelegation(n, bits) => {
                let listed = (0..5).filter(|who| bits & (1 << who) != 0);
                self.rules[rule(n)].delegation = listed.collect();
            }
            Change::Role(n, bits) => {
                let n = who(n);
                let given = match (n, bits % 3) {
                    (0, 0) => Role::Member,
                    (0, 1) => Role::Auditor,
                    (0, _) => Role::Admin,
                    _ => Role::Service(scopes(bits)),
                };
                self.store.set_role(self.org, self.people[n].id, given).await.unwrap();
                self.people[n].scopes = given.scopes();
            }
            Change::Disable(n) => {
                let id = self.people[who(n)].id;
                self.store.disable_principal(self.org, id, NOW).await.unwrap();
                self.people[who(n)].disabled = true;
            }
            Change::Enable(n) => {
                let id = self.people[who(n)].id;
                self.store.enable_principal(self.org, id).await.unwrap();
                self.people[who(n)].disabled = false;
            }
            Change::Org(false) => {
                self.store.enable_org(self.org).await.unwrap();
                self.open = true;
            }
            Change::Org(true) => {
                self.store.disable_org(self.org, NOW).await.unwrap();
                self.open = false;
            }
        }
    }

    /// A node that starts again.
    fn reopen(&mut self) {
        let rules = trusted(self.org, &self.people, &self.rules);
        self.app = restarted(&self.folder, &self.store, rules);
    }

    /// Fails if any token does something else than its whole chain lets it.
    async fn check(&mut self) {
        for number in 0..self.tokens.len() {
            let from = self.origin();
            let text = self.tokens[number].text.clone();
            let token = PresentedToken::bearer(Some(&text));
            let session = self.app.access.authenticate(token, Purpose::Access, &from).await;
            let found = session.map(|session| session.caller.scopes).map_err(|it| it.refusal);
            match self.together(&self.tokens[number]) {
                Some(wanted) => assert_eq!(found, Ok(wanted), "token {number}: {}", self.story),
                None => {
                    assert_eq!(found, Err(Refusal::TokenRevoked), "token {number}: {}", self.story);
                }
            }
        }
    }
}

/// An app that knows nothing but its store and these rules.
fn restarted(folder: &TempDir, store: &Store, rules: TrustRules) -> Arc<App> {
    app(folder.path(), store, Arc::new(Stopped::at(NOW)), rules, None)
}

/// The rules of the model as a configuration has them.
fn trusted(org: OrgId, people: &[Somebody], rules: &[Rule]) -> TrustRules {
    let verified = || ("email_verified".parse().unwrap(), Expectation::Flag(true));
    let everybody = || {
        RoleMap::new("groups".parse().unwrap(), vec![("*".parse().unwrap(), Role::Admin)]).unwrap()
    };
    let present = rules.iter().zip(RULES).filter(|(rule, _)| rule.present);
    let rules = present.map(|(rule, name)| TrustRule {
        name: name.to_owned(),
        org,
        issuer: "https://issuer.example".to_owned(),
        audience: name.to_owned(),
        expects: Expectations::new(vec![verified()]).unwrap(),
        who: match rule.fixed {
            Some(fixed) => RuleSubject::Fixed(people[fixed].id),
            None => RuleSubject::User { from: "sub".parse().unwrap(), roles: everybody() },
        },
        login: LoginClaims::new("groups".parse().unwrap()),
        scopes: rule.scopes,
        max_ttl: MaxTtl::new(900).unwrap(),
        single_use: false,
        id_jag: false,
        scim: None,
        delegation: rule.delegation.iter().map(|who| people[*who].id).collect(),
    });
    TrustRules::new(rules.collect()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_ever_does_what_its_root_could_not_do_now() {
    let mut runner = TestRunner::new(Config::default());
    for _ in 0..CASES {
        let rounds = rounds().new_tree(&mut runner).unwrap().current();
        let mut world = World::begin(format!("{rounds:?}")).await;
        for (acts, changes) in rounds {
            for act in acts {
                world.act(act).await;
            }
            for change in changes {
                world.change(change).await;
            }
            world.reopen();
            world.check().await;
        }
    }
}
