//! Grants: one refresh token is unspent, and revocation reaches whatever came from it.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::Config;
use proptest::test_runner::TestRunner;

use crate::prelude::*;

const GRANT_ENDS: Timestamp = NOW.plus_seconds(7 * 86_400);

/// The access token `n` and the refresh token `n + 1`, in the grant `grant`.
fn pair(org: OrgId, user: PrincipalId, grant: u32, n: u32) -> (TokenRecord, TokenRecord) {
    let grant_id = id("grn", grant);
    let method = AuthMethod::Oidc { trust: "acme-idp".to_owned() };
    let access = TokenRecord { grant_id, method, ..token(org, user, n) };
    let refresh = TokenRecord {
        id: token_id(n + 1),
        kind: TokenKind::Refresh,
        expires_at: NOW.plus_seconds(86_400),
        ..access.clone()
    };
    (access, refresh)
}

async fn login(store: &Store, org: OrgId, user: PrincipalId, n: u32) {
    login_saying(store, org, user, n, None).await;
}

/// Issues the pair `n`, `n + 1` of a login at which this was said.
async fn login_saying(
    store: &Store,
    org: OrgId,
    user: PrincipalId,
    n: u32,
    login: Option<&LoginRecord>,
) {
    let (access, refresh) = pair(org, user, n, n);
    let (first, second) = (hash(n), hash(n + 1));
    let issue =
        Issue { refresh: Some(refresh_of(&refresh, &second)), login, ..issue(&access, &first) };
    assert_eq!(store.issue_tokens(issue).await.unwrap(), Issued::Done);
}

/// The org and the person that tokens are of.
#[derive(Clone, Copy)]
struct Holder {
    org: OrgId,
    user: PrincipalId,
}

/// Presents the refresh token `presented` of the grant `grant` for the pair `n`, `n + 1`.
async fn rotate(
    store: &Store,
    Holder { org, user }: Holder,
    grant: u32,
    presented: u32,
    n: u32,
    now: Timestamp,
) -> Rotated {
    let (access, refresh) = pair(org, user, grant, n);
    let second = hash(n + 1);
    let rotation = Rotation {
        presented: &hash(presented),
        access: NewToken { record: &access, hash: &hash(n) },
        refresh: refresh_of(&refresh, &second),
        sealed: &n.to_be_bytes(),
        now,
    };
    store.rotate(rotation).await.unwrap()
}

/// The pair that was given again, by the number of its access token.
fn repeated(rotated: &Rotated) -> Option<u32> {
    let Rotated::Repeated(pair) = rotated else { return None };
    let n = u32::from_be_bytes(pair.sealed.as_slice().try_into().unwrap());
    assert_eq!((pair.access.id, pair.refresh.id), (token_id(n), token_id(n + 1)));
    Some(n)
}

/// A token made from `parent`.
fn child(org: OrgId, user: PrincipalId, n: u32, parent: TokenId) -> TokenRecord {
    TokenRecord { parent_id: Some(parent), method: AuthMethod::Token, ..token(org, user, n) }
}

async fn all(store: &Store, org: OrgId) -> Vec<TokenRecord> {
    let page = TokenPage { principal_id: None, after: None, limit: 10_000 };
    store.list_tokens(org, page).await.unwrap()
}

on_both! {
    async fn a_spent_token_gives_its_pair_again_while_the_next_one_is_unspent(db: Database) {
        let (org, user) = member(&db).await;
        let who = Holder { org, user };
        login(&db, org, user, 10).await;
        let later = |seconds| NOW.plus_seconds(seconds);

        assert_eq!(rotate(&db, who, 10, 11, 20, later(0)).await, Rotated::Done);
        assert_eq!(repeated(&rotate(&db, who, 10, 11, 30, later(30)).await), Some(20));
        let late = rotate(&db, who, 10, 11, 30, later(31)).await;
        assert_eq!(late, Rotated::Refused(Presented::Reused));
        assert_eq!(rotate(&db, who, 10, 21, 30, later(31)).await, Rotated::Done);
        let older = rotate(&db, who, 10, 11, 40, later(31)).await;
        assert_eq!(older, Rotated::Refused(Presented::Reused), "it is not the last one spent");
        assert_eq!(repeated(&rotate(&db, who, 10, 21, 40, later(32)).await), Some(30));

        db.forget_sealed_pairs(later(31)).await.unwrap();
        assert_eq!(repeated(&rotate(&db, who, 10, 21, 40, later(32)).await), Some(30));
        db.forget_sealed_pairs(later(77)).await.unwrap();
        let gone = rotate(&db, who, 10, 21, 40, later(33)).await;
        assert_eq!(gone, Rotated::Refused(Presented::Reused), "what is forgotten is not given");
    }

    async fn a_refresh_token_is_found_with_its_state(db: Database) {
        let (org, user) = member(&db).await;
        let who = Holder { org, user };
        login(&db, org, user, 10).await;

        let fresh = db.find_refresh(&hash(11)).await.unwrap().unwrap();
        rotate(&db, who, 10, 11, 20, NOW).await;
        let spent = db.find_refresh(&hash(11)).await.unwrap().unwrap();
        db.revoke_token(org, token_id(20), NOW).await.unwrap();
        let revoked = db.find_refresh(&hash(21)).await.unwrap().unwrap();

        assert_eq!(fresh.state.presented(NOW), Presented::Fresh);
        assert_eq!((fresh.known.token.id, fresh.grant_ends_at), (token_id(11), GRANT_ENDS));
        assert_eq!(fresh.access_seconds, 3600);
        assert_eq!(spent.state.presented(NOW), Presented::Repeated);
        assert_eq!(revoked.state.presented(NOW), Presented::Revoked);
        assert_eq!(db.find_refresh(&hash(10)).await.unwrap(), None, "an access token");
        assert_eq!(db.find_refresh(&hash(99)).await.unwrap(), None);
    }

    async fn of_many_at_the_same_moment_one_spends_and_all_get_its_pair(db: Database) {
        let (org, user) = member(&db).await;
        let who = Holder { org, user };
        login(&db, org, user, 10).await;

        let answers = at_once(1..=20u32, |n| {
            let store = db.store.clone();
            async move {
                (n * 100, rotate(&store, who, 10, 11, n * 100, NOW).await)
            }
        })
        .await;

        let winners: Vec<u32> =
            answers.iter().filter(|(_, got)| *got == Rotated::Done).map(|(n, _)| *n).collect();
        assert_eq!(winners.len(), 1);
        assert!(answers.iter().all(|(n, got)| *n == winners[0] || repeated(got) == Some(winners[0])));
        assert_eq!(all(&db, org).await.len(), 4, "no pair but the winner's exists");
    }

    async fn nothing_is_made_from_what_is_revoked(db: Database) {
        let (org, user) = member(&db).await;
        for n in [1, 2] {
            db.insert_token(&token(org, user, n), &hash(n)).await.unwrap();
        }
        db.revoke_token(org, token_id(2), NOW).await.unwrap();
        let through = TokenRecord { via_token_id: Some(token_id(2)), ..child(org, user, 5, token_id(1)) };

        assert_eq!(exchange(&db, &child(org, user, 3, token_id(1)), 3).await, Issued::Done);
        let orphan = child(org, user, 4, token_id(2));
        assert_eq!(exchange(&db, &orphan, 4).await, Issued::ParentRevoked);
        assert_eq!(exchange(&db, &through, 5).await, Issued::ParentRevoked);
        assert_eq!(all(&db, org).await.len(), 3);
    }

    async fn nothing_is_made_for_or_by_a_principal_whose_access_ended(db: Database) {
        let (org, user) = member(&db).await;
        let other = given::user(&db, org, 2).await;
        login(&db, org, user, 1).await;
        db.disable_principal(org, user, NOW).await.unwrap();
        let delegated = TokenRecord { via: Some(user), ..token(org, other, 4) };

        assert_eq!(exchange(&db, &token(org, user, 3), 3).await, Issued::PrincipalEnded);
        assert_eq!(exchange(&db, &delegated, 4).await, Issued::PrincipalEnded);
        assert_eq!(exchange(&db, &token(org, other, 5), 5).await, Issued::Done);

        assert_eq!(all(&db, org).await.len(), 3, "the pair of the login and the last one");
        db.enable_principal(org, user).await.unwrap();
        assert_eq!(exchange(&db, &token(org, user, 3), 3).await, Issued::Done);
    }

    async fn a_delegated_token_falls_with_either_of_its_parents(db: Database) {
        let (org, user) = member(&db).await;
        for n in [1, 2] {
            db.insert_token(&token(org, user, n), &hash(n)).await.unwrap();
        }
        let through = TokenRecord { via_token_id: Some(token_id(2)), ..child(org, user, 3, token_id(1)) };
        exchange(&db, &through, 3).await;

        let fallen = db.revoke_token(org, token_id(2), NOW).await.unwrap();

        assert_eq!(fallen, Some(1));
        let record = db.find_token(org, token_id(3)).await.unwrap().unwrap();
        assert_eq!(record.revoked_at, Some(NOW));
    }

    async fn an_assertion_is_exchanged_once_and_nothing_is_left_of_the_second(db: Database) {
        let (org, user) = member(&db).await;
        let assertion = Assertion { digest: [7; 32], expires_at: NOW.plus_seconds(60) };

        let answers = at_once(1..=8, |n| {
            let store = db.store.clone();
            async move {
                let record = token(org, user, n);
                let (hash, assertions) = (hash(n), &[assertion]);
                store.issue_tokens(Issue { assertions, ..issue(&record, &hash) }).await.unwrap()
            }
        })
        .await;

        assert_eq!(answers.iter().filter(|got| **got == Issued::Done).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|got| **got == Issued::Replayed).count(), 7);
        assert_eq!(all(&db, org).await.len(), 1);
        assert_eq!(db.forget_assertions(NOW.plus_seconds(60)).await.unwrap(), 0);
        assert_eq!(db.forget_assertions(NOW.plus_seconds(61)).await.unwrap(), 1);
    }

    async fn any_interleaving_keeps_one_unspent_token_a_grant_and_no_live_orphan(db: Database) {
        let cases = if db.is_sqlite() { 48 } else { 16 };
        let mut runner = TestRunner::new(Config::default());
        for case in 0..cases {
            let batches = batches().new_tree(&mut runner).unwrap().current();
            let org = org(&db, case).await;
            let mut world = World::begin(&db, org, case).await;
            for batch in &batches {
                world.run(batch).await;
                world.check(&format!("{batches:?}")).await;
            }
        }
    }
}

/// An operation on one of the tokens; the number selects it.
#[derive(Debug, Clone, Copy)]
enum Act {
    Refresh(u32),
    Revoke(u32),
    Attenuate(u32),
    Delegate(u32, u32),
    /// All that came before is so many seconds older.
    Wait(u8),
}

/// Acts in batches: what is in one batch happens at the same moment.
fn batches() -> impl Strategy<Value = Vec<Vec<Act>>> {
    let act = prop_oneof![
        5 => any::<u32>().prop_map(Act::Refresh),
        1 => any::<u32>().prop_map(Act::Revoke),
        2 => any::<u32>().prop_map(Act::Attenuate),
        1 => any::<(u32, u32)>().prop_map(|(of, via)| Act::Delegate(of, via)),
        1 => (1u8..40).prop_map(Act::Wait),
    ];
    prop::collection::vec(prop::collection::vec(act, 1..6), 1..8)
}

/// Two grants of one user, and a place to begin numbering.
struct World {
    store: Store,
    who: Holder,
    now: Timestamp,
    next: u32,
}

impl World {
    async fn begin(store: &Store, org: OrgId, case: u32) -> Self {
        let first = 1_000_000 + case * 10_000;
        let user = user(store, org, first).await;
        for grant in [first, first + 10] {
            login(store, org, user, grant).await;
        }
        Self { store: store.clone(), who: Holder { org, user }, now: NOW, next: first + 20 }
    }

    async fn run(&mut self, batch: &[Act]) {
        let tokens = all(&self.store, self.who.org).await;
        let pick = |number: u32| tokens[usize::try_from(number).unwrap() % tokens.len()].clone();
        let mut acts = JoinSet::new();
        for act in batch {
            let store = self.store.clone();
            let who = self.who;
            let now = self.now;
            let n = self.next;
            self.next += 10;
            match *act {
                Act::Wait(seconds) => self.now = self.now.plus_seconds(i64::from(seconds)),
                Act::Refresh(number) => {
                    let token = pick(number);
                    if token.kind == TokenKind::Refresh {
                        acts.spawn(async move { refresh(&store, who, &token, n, now).await });
                    }
                }
                Act::Revoke(number) => {
                    let id = pick(number).id;
                    acts.spawn(async move {
                        store.revoke_token(who.org, id, now).await.unwrap();
                    });
                }
                Act::Attenuate(number) => {
                    let record = child(who.org, who.user, n, pick(number).id);
                    acts.spawn(async move {
                        exchange(&store, &record, n).await;
                    });
                }
                Act::Delegate(of, via) => {
                    let via_token_id = Some(pick(via).id);
                    let record = child(who.org, who.user, n, pick(of).id);
                    let record = TokenRecord { via_token_id, ..record };
                    acts.spawn(async move {
                        exchange(&store, &record, n).await;
                    });
                }
            }
        }
        acts.join_all().await;
    }

    async fn check(&self, what: &str) {
        let tokens = all(&self.store, self.who.org).await;
        let find = |id: TokenId| tokens.iter().find(|token| token.id == id).unwrap();
        let mut unspent = BTreeMap::<_, usize>::new();
        for token in &tokens {
            for parent in [token.parent_id, token.via_token_id].into_iter().flatten() {
                let orphan = find(parent).revoked_at.is_some() && token.revoked_at.is_none();
                assert!(!orphan, "{} lives on without {parent}: {what}", token.id);
            }
            let kin = tokens.iter().filter(|other| other.grant_id == token.grant_id);
            let revoked = kin.filter(|other| other.revoked_at.is_some()).count();
            assert!(revoked == 0 || token.revoked_at.is_some(), "half a grant lives: {what}");
            if token.kind == TokenKind::Refresh {
                let hash = hash(number_of(token.id));
                let known = self.store.find_refresh(&hash).await.unwrap().unwrap();
                let live = known.state.presented(self.now) == Presented::Fresh;
                *unspent.entry(token.grant_id).or_default() += usize::from(live);
            }
        }
        assert!(unspent.values().all(|count| *count <= 1), "{unspent:?}: {what}");
    }
}

fn number_of(id: TokenId) -> u32 {
    id.to_string().trim_start_matches("tok_").parse().unwrap()
}

/// As the gateway does: what is used again ends the grant.
async fn refresh(store: &Store, who: Holder, token: &TokenRecord, n: u32, now: Timestamp) {
    let grant: u32 = token.grant_id.to_string().trim_start_matches("grn_").parse().unwrap();
    let rotated = rotate(store, who, grant, number_of(token.id), n, now).await;
    if rotated == Rotated::Refused(Presented::Reused) {
        store.revoke_token(who.org, token.id, now).await.unwrap();
    }
}

on_both! {
    async fn what_was_said_at_a_login_is_known_with_every_token_of_its_grant(db: Database) {
        let (org, user) = member(&db).await;
        let other = given::user(&db, org, 2).await;
        let said = |group: &str, seconds| LoginRecord {
            said: Login {
                groups: [group.to_owned()].into(),
                claims: [("region".to_owned(), ["eu".to_owned()].into())].into(),
                mfa: true,
            },
            said_at: NOW.plus_seconds(seconds),
        };
        for (n, login) in [(10, said("staff", 5)), (20, said("former", 1))] {
            login_saying(&db, org, user, n, Some(&login)).await;
        }
        db.insert_token(&token(org, other, 30), &hash(30)).await.unwrap();
        rotate(&db, Holder { org, user }, 10, 11, 12, NOW.plus_seconds(9)).await;

        let login_of = async |n| db.find_token_by_hash(&hash(n)).await.unwrap().unwrap().login;
        for n in [10, 11, 12, 13] {
            assert_eq!(login_of(n).await, Some(said("staff", 5)), "token {n}");
        }
        assert_eq!(login_of(20).await, Some(said("former", 1)));
        assert_eq!(login_of(30).await, None);
        let refresh = db.find_refresh(&hash(13)).await.unwrap().unwrap();
        assert_eq!(refresh.known.login, Some(said("staff", 5)));
        let last = db.last_login(org, user).await.unwrap();
        assert_eq!(last, Some(said("staff", 5)), "the last, whatever was stored last");
        assert_eq!(db.last_login(org, other).await.unwrap(), None);
        let groups = ["staff", "former", "sta", "eu", "groups", "a\"b"];
        let groups = groups.into_iter().map(str::to_owned).collect();
        let unnamed = db.unnamed_groups(org, &groups).await.unwrap();
        assert_eq!(unnamed.into_iter().collect::<Vec<_>>(), ["a\"b", "eu", "groups", "sta"]);
        let elsewhere = given::org(&db, 2).await;
        assert_eq!(db.unnamed_groups(elsewhere, &groups).await.unwrap(), groups);
    }
}
