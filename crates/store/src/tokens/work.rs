//! Work of statements about tokens, in steps of SQLite's virtual machine.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, TokenId},
    principal::{Plan, Role, ScopeSet},
    token::TokenHash,
};
use tempfile::TempDir;

use super::{Issue, Issued, NewToken, TokenQuery, TokenRecord};
use crate::{
    audit::events::{EventFilter, EventOrder, Visibility},
    db::{Connections, Db, NewEvent, Store, change},
    settings::{DatabaseSettings, DatabaseUrl},
};

const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

struct Counted {
    store: Store,
    steps: Arc<AtomicU64>,
    org: OrgId,
    user: PrincipalId,
    _folder: TempDir,
}

fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(prefix: &str, n: u32) -> T {
    format!("{prefix}_{n:026}").parse().unwrap()
}

fn token_id(n: u32) -> TokenId {
    id("tok", n)
}

fn hash(n: u32) -> TokenHash {
    use portcullis_core::{
        random::Random,
        token::{Token, TokenKind},
    };
    #[derive(Debug)]
    struct Number(u32);
    impl Random for Number {
        fn fill(&self, bytes: &mut [u8]) {
            let digits = format!("{:08x}", self.0).into_bytes();
            bytes.iter_mut().zip(digits.into_iter().cycle()).for_each(|(byte, seed)| *byte = seed);
        }
    }
    Token::generate(TokenKind::User, &Number(n)).hash()
}

async fn count(connections: &Connections, steps: &Arc<AtomicU64>) {
    let mut conn = connections.take().await.unwrap();
    let steps = Arc::clone(steps);
    let handler = move || {
        steps.fetch_add(1, Relaxed);
        false
    };
    conn.call(move |open| Ok(open.progress_handler(1, Some(handler))?)).await.unwrap();
}

impl Counted {
    /// An org whose person has the token 1, so many made from it, one by way of another, and other tokens.
    async fn new(descendants: u32, others: u32) -> Self {
        let folder = TempDir::new().unwrap();
        let url = DatabaseUrl::sqlite(folder.path().join("portcullis.db"));
        let settings = DatabaseSettings {
            connections: 1,
            ..DatabaseSettings::new(url, crate::row_key::RowKey::derive(&[7; 32]))
        };
        let store = Store::open(&settings).await.unwrap();
        let steps = Arc::default();
        let Db::Sqlite { writer, readers, .. } = &store.db else { panic!("SQLite") };
        for pool in [writer, readers] {
            count(pool, &steps).await;
        }
        let it = Self { org: id("org", 1), user: id("usr", 1), store, steps, _folder: folder };
        let org = crate::orgs::Org {
            id: it.org,
            name: "acme".to_owned(),
            plan: Plan::Pro,
            created_at: NOW,
            disabled_at: None,
        };
        it.store.create_org(&org).await.unwrap();
        let ana =
            crate::principals::Principal::new(it.user, it.org, "ana".to_owned(), Role::Member, NOW);
        it.store.create_principal(&ana).await.unwrap();
        it.store.insert_token(&it.token(1), &hash(1)).await.unwrap();
        it.tokens(100_000, others, "NULL").await;
        it.tokens(200_000, descendants.div_ceil(2), "1").await;
        it.tokens(300_000, descendants / 2, "n - 100000").await;
        it.events(id("tok", 200_000)).await;
        it
    }

    async fn sql(&self, sql: &str) {
        let sql = sql.replace("$org", &format!("'{}'", self.org));
        let sql = sql.replace("$user", &format!("'{}'", self.user));
        let Db::Sqlite { writer, .. } = &self.store.db else { panic!("SQLite") };
        writer.take().await.unwrap().script(sql).await.unwrap();
    }

    fn token(&self, n: u32) -> TokenRecord {
        let expires_at = NOW.plus_seconds(3600);
        let scopes = ScopeSet::ALL;
        let grant = id("grn", n);
        TokenRecord::of_operator(token_id(n), self.org, self.user, grant, scopes, NOW, expires_at)
    }

    /// Inserts so many tokens from the number `from` on, each made from the one of the number `parent`.
    async fn tokens(&self, from: u32, number: u32, parent: &str) {
        if number == 0 {
            return;
        }
        let lineage = serde_json::json!(self.token(0).lineage);
        self.sql(&format!(
            "INSERT INTO tokens (id, kind, hash, org_id, principal_id, grant_id, parent_id, scopes, \
             method, issued_at, expires_at, exchange_only, lineage) \
             WITH RECURSIVE numbers (n) AS \
             (SELECT {from} UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {}) \
             SELECT printf('tok_%026d', n), 'user', CAST('many ' || n AS BLOB), $org, $user, \
             printf('grn_%026d', n), 'tok_' || printf('%026d', {parent}), '', 'token', 1, {}, 0, \
             '{lineage}' FROM numbers",
            from + number,
            NOW.plus_seconds(3600).as_micros(),
        )
        .replace("'tok_' || printf('%026d', NULL)", "NULL"))
        .await;
    }

    /// Sealed events of a token.
    async fn events(&self, token: TokenId) {
        for n in 0..20 {
            let event = NewEvent {
                id: id("evt", n),
                org_id: self.org,
                kind: "mcp.invocation".into(),
                occurred_at: NOW,
                actor_id: Some(self.user),
                via: None,
                token_id: Some(token),
                decision: None,
                dlp_result: None,
                outcome: None,
                request_id: None,
                texts: crate::db::EventTexts::default().with(crate::db::TextColumn::Core, "{}"),
                has_payload: false,
            };
            record(&self.store, &event).await.unwrap();
        }
        self.store.seal(self.org, leaf).await.unwrap();
    }

    /// The steps that each of these takes, in turn.
    async fn work(&self) -> Vec<(&'static str, u64)> {
        let Self { store, org, user, .. } = self;
        let mut all = Vec::new();
        let mut before = self.steps.load(Relaxed);
        let mut did = |what| {
            let now = self.steps.load(Relaxed);
            all.push((what, now - before));
            before = now;
        };
        store.find_token_by_hash(&hash(1)).await.unwrap().unwrap();
        did("a look-up by hash");
        store.find_tokens(&[token_id(1), token_id(200_000)]).await.unwrap();
        did("a renewal");
        assert!(store.descends(*org, token_id(200_000), token_id(1)).await.unwrap());
        did("descent");
        let record = TokenRecord { parent_id: Some(token_id(200_000)), ..self.token(2) };
        let access = NewToken { record: &record, hash: &hash(2) };
        let issue =
            Issue { access, refresh: None, login: None, client: None, code: None, assertions: &[] };
        assert_eq!(store.issue_tokens(issue).await.unwrap(), Issued::Done);
        did("an exchange");
        let narrowed = Visibility::Grant { principal: *user, token: token_id(1) };
        let filter = EventFilter::default();
        let page = store.list_events(*org, narrowed, &filter, EventOrder::Descending, None, 20);
        assert_eq!(page.await.unwrap().events.len(), 20);
        did("a list of events");
        store.find_event(*org, narrowed, id("evt", 1)).await.unwrap().unwrap();
        did("an event");
        let query = TokenQuery { now: NOW, limit: 5, ..TokenQuery::default() };
        assert_eq!(store.page_tokens(*org, &query).await.unwrap().tokens.len(), 5);
        did("a list of tokens");
        store.list_principal_keys(*org, *user).await.unwrap();
        did("a list of keys");
        store.forget_tokens(NOW).await.unwrap();
        did("a look for what ended");
        store.remove_principal_key(*org, *user, "none", NOW).await.unwrap();
        did("a key that is not there");
        store.revoke_grant(*org, id("grn", 1), NOW).await.unwrap();
        did("a revocation");
        assert_eq!(store.revoke_token(*org, token_id(1), NOW).await.unwrap(), Some(0));
        did("the same again");
        all
    }
}

fn leaf(_: &crate::audit::seal::UnsealedEvent, _: i64, _: Timestamp) -> [u8; 32] {
    [0; 32]
}

async fn record(store: &Store, event: &NewEvent) -> Result<(), crate::error::StoreError> {
    change!(store, event.org_id, |tx| {
        tx.record_event(&store.row_key, event).await?;
    });
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_work_on_a_token_grows_with_the_other_tokens_of_its_org() {
    let few = Counted::new(4, 10).await.work().await;
    let many = Counted::new(4, 10_000).await.work().await;

    for ((what, few), (_, many)) in few.into_iter().zip(many) {
        assert!(few > 0 && many * 5 <= few * 6, "{what}: {few} steps, then {many}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_grows_with_descendants_only_where_each_is_changed() {
    let one = Counted::new(2, 100).await.work().await;
    let many = Counted::new(4_000, 100).await.work().await;

    for ((what, one), (_, many)) in one.into_iter().zip(many) {
        // An exchange counts its siblings; a revocation finds, reads and marks each token.
        let most = match what {
            "a revocation" => 4_000 * 400,
            _ => one * 6 / 5,
        };
        assert!(many <= most, "{what}: {one} steps, then {many}");
    }
}
