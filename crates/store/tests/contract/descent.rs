//! Many tokens that descend from one: bounded in number, ended by one mark, revoked and read in proportion to what
//! there is, and deleted when they ended long ago.

use crate::prelude::*;

/// A token made from the `parent`th.
fn child(org: OrgId, user: PrincipalId, n: u32, parent: u32) -> TokenRecord {
    TokenRecord { parent_id: Some(token_id(parent)), ..token(org, user, n) }
}

async fn insert(store: &Store, n: u32, record: &TokenRecord) {
    store.insert_token(record, &hash(n)).await.unwrap();
}

async fn issue_saying(
    store: &Store,
    n: u32,
    record: &TokenRecord,
    login: Option<&LoginRecord>,
) -> Issued {
    let hash = hash(n);
    store.issue_tokens(Issue { login, ..issue(record, &hash) }).await.unwrap()
}

/// Inserts tokens with these numbers: each made from the first, if there is one, or from the one before it.
async fn insert_many(
    db: &Database,
    like: &TokenRecord,
    numbers: std::ops::Range<u32>,
    parent: &str,
) {
    let id = |prefix: &str, n: &str| {
        if db.is_sqlite() {
            format!("'{prefix}_' || printf('%026d', {n})")
        } else {
            format!("'{prefix}_' || lpad(({n})::text, 26, '0')")
        }
    };
    let hash = if db.is_sqlite() {
        "CAST('many ' || n AS BLOB)"
    } else {
        "convert_to('many ' || n, 'UTF8')"
    };
    let TokenRecord { org_id, principal_id, expires_at, issued_at, .. } = like;
    let lineage = serde_json::json!(like.lineage);
    let parent = if parent == "NULL" { "NULL".to_owned() } else { id("tok", parent) };
    db.execute_text(format!(
        "INSERT INTO tokens (id, kind, hash, org_id, principal_id, grant_id, parent_id, scopes, \
         method, issued_at, expires_at, exchange_only, lineage) \
         WITH RECURSIVE numbers (n) AS \
         (SELECT {} UNION ALL SELECT n + 1 FROM numbers WHERE n < {}) \
         SELECT {}, 'user', {hash}, '{org_id}', '{principal_id}', {}, {parent}, '', 'token', {}, \
         {}, 0, '{lineage}' FROM numbers",
        numbers.start,
        numbers.end - 1,
        id("tok", "n"),
        id("grn", "n"),
        issued_at.as_micros(),
        expires_at.as_micros(),
    ))
    .await;
}

async fn revoked_at(store: &Store, n: u32) -> Option<Timestamp> {
    store.find_token_by_hash(&hash(n)).await.unwrap().unwrap().token.revoked_at
}

on_both! {
    async fn the_mark_on_a_token_ends_all_below_it_before_they_are_marked(db: Database) {
        let (org, user) = member(&db).await;
        let refresh = TokenRecord {
            kind: TokenKind::Refresh, grant_id: id("grn", 1), ..token(org, user, 2)
        };
        let first = token(org, user, 1);
        let [one, two, eight] = [1, 2, 8].map(hash);
        let pair = Issue { refresh: Some(refresh_of(&refresh, &two)), ..issue(&first, &one) };
        assert_eq!(db.issue_tokens(pair).await.unwrap(), Issued::Done);
        let through = TokenRecord { via_token_id: Some(token_id(3)), ..token(org, user, 4) };
        for (n, record) in [(3, &child(org, user, 3, 1)), (4, &through), (5, &token(org, user, 5))] {
            insert(&db, n, record).await;
        }

        // What a crash leaves behind the first transaction.
        let mark = format!("UPDATE tokens SET revoked_at = 7 WHERE id = '{}'", token_id(1));
        db.execute_text(mark).await;

        let ended = Some(Timestamp::from_micros(7));
        for n in [1, 2, 3, 4] {
            assert_eq!(revoked_at(&db, n).await, ended, "{n}");
        }
        assert_eq!(revoked_at(&db, 5).await, None);
        let many = db.find_tokens(&[3, 4, 5].map(token_id)).await.unwrap();
        let live: Vec<_> =
            many.iter().filter(|it| it.token.revoked_at.is_none()).map(|it| it.token.id).collect();
        assert_eq!(live, [token_id(5)]);
        let known = db.find_refresh(&hash(2)).await.unwrap().unwrap();
        assert_eq!(known.state.presented(NOW), Presented::Revoked);
        let next = TokenRecord { id: token_id(8), ..refresh.clone() };
        let rotation = Rotation {
            presented: &hash(2),
            access: NewToken { record: &TokenRecord { id: token_id(7), ..first }, hash: &hash(7) },
            refresh: refresh_of(&next, &eight),
            sealed: b"", now: NOW,
        };
        let rotated = db.rotate(rotation).await.unwrap();
        assert_eq!(rotated, Rotated::Refused(Presented::Revoked));
        assert_eq!(exchange(&db, &child(org, user, 6, 4), 6).await, Issued::ParentRevoked);

        let rest = db.revoke_token(org, token_id(1), NOW).await.unwrap();
        let again = db.revoke_token(org, token_id(1), NOW).await.unwrap();

        assert_eq!((rest, again), (Some(3), Some(0)), "the rest is marked by the next try");
        for n in [2, 3, 4] {
            let stored = db.find_token(org, token_id(n)).await.unwrap().unwrap();
            assert_eq!(stored.revoked_at, Some(NOW), "{n}");
        }
    }

    async fn a_token_has_a_bounded_number_of_live_children_and_ancestors(db: Database) {
        let (org, user) = member(&db).await;
        insert(&db, 1, &token(org, user, 1)).await;
        let gone = TokenRecord { expires_at: NOW, ..token(org, user, 0) };
        insert_many(&db, &gone, 100_000..100_010, "1").await;
        insert_many(&db, &token(org, user, 0), 200_000..200_000 + MAX_LIVE_CHILDREN - 1, "1").await;
        insert_many(&db, &token(org, user, 0), 300_000..300_000 + MAX_ANCESTORS, "NULL").await;
        for n in 300_001..300_000 + MAX_ANCESTORS {
            let link = format!(
                "UPDATE tokens SET parent_id = '{}' WHERE id = '{}'", token_id(n - 1), token_id(n)
            );
            db.execute_text(link).await;
        }
        let last = 300_000 + MAX_ANCESTORS;
        let acting = TokenRecord { via_token_id: Some(token_id(1)), ..token(org, user, 5) };

        assert_eq!(exchange(&db, &child(org, user, 2, 1), 2).await, Issued::Done);
        assert_eq!(exchange(&db, &child(org, user, 3, 1), 3).await, Issued::TooManyChildren);
        assert_eq!(exchange(&db, &child(org, user, 4, 2), 4).await, Issued::Done);
        assert_eq!(exchange(&db, &acting, 5).await, Issued::Done, "others are counted alone");
        assert_eq!(exchange(&db, &child(org, user, last, last - 1), 6).await, Issued::Done);
        let beyond = exchange(&db, &child(org, user, last + 1, last), 7).await;
        assert_eq!(beyond, Issued::TooManyAncestors);
    }

    async fn the_tokens_by_which_a_holder_acts_are_counted_for_each_person(db: Database) {
        let (org, user) = member(&db).await;
        let other = given::user(&db, org, 2).await;
        insert(&db, 1, &token(org, user, 1)).await;
        insert_many(&db, &token(org, user, 0), 200_000..200_000 + MAX_LIVE_CHILDREN, "NULL").await;
        db.execute_text(format!(
            "UPDATE tokens SET via_token_id = '{}' WHERE id >= '{}'", token_id(1), token_id(200_000)
        ))
        .await;
        let acting = |who, n| TokenRecord { via_token_id: Some(token_id(1)), ..token(org, who, n) };

        assert_eq!(exchange(&db, &acting(user, 2), 2).await, Issued::TooManyChildren);
        assert_eq!(exchange(&db, &acting(other, 3), 3).await, Issued::Done);
    }

    async fn many_descendants_are_revoked_with_the_rest_of_their_grants_and_no_others(db: Database) {
        let (org, user) = member(&db).await;
        for n in [1, 2] {
            insert(&db, n, &token(org, user, n)).await;
        }
        insert(&db, 3, &child(org, user, 3, 1)).await;
        insert_many(&db, &token(org, user, 0), 10_000..12_500, "3").await;
        insert_many(&db, &token(org, user, 0), 20_000..21_500, "n - 10000").await;
        let gone = TokenRecord { expires_at: NOW, ..token(org, user, 0) };
        insert_many(&db, &gone, 40_000..40_010, "1").await;
        insert_many(&db, &token(org, user, 0), 50_000..50_010, "2").await;

        let first = db.revoke_token(org, token_id(1), NOW).await.unwrap();
        let again = db.revoke_token(org, token_id(1), NOW).await.unwrap();

        assert_eq!((first, again), (Some(4_001), Some(0)), "what has expired has ended already");
        for (n, revoked) in [(1, true), (3, true), (12_499, true), (21_499, true), (40_000, false), (50_000, false)] {
            let found = db.find_token(org, token_id(n)).await.unwrap().unwrap();
            assert_eq!(found.revoked_at.is_some(), revoked, "{n}");
        }
    }

    async fn what_ended_long_ago_is_deleted_from_the_bottom_up(db: Database) {
        let (org, user) = member(&db).await;
        let said = |seconds| LoginRecord {
            said: Login { groups: [].into(), claims: [].into(), mfa: false },
            said_at: NOW.plus_seconds(seconds),
        };
        let ends = |seconds, record| TokenRecord { expires_at: NOW.plus_seconds(seconds), ..record };
        // 1 lives; 2 and 3 below it have ended, as has the chain 4 ─ 5 and, with a refresh token, 6.
        for (n, record) in [
            (1, token(org, user, 1)),
            (2, ends(10, child(org, user, 2, 1))),
            (3, ends(5, TokenRecord { via_token_id: Some(token_id(2)), ..child(org, user, 3, 2) })),
            (4, ends(10, token(org, user, 4))),
            (5, ends(99, child(org, user, 5, 4))),
        ] {
            assert_eq!(issue_saying(&db, n, &record, Some(&said(n.into()))).await, Issued::Done);
        }
        let refresh = ends(10, TokenRecord { kind: TokenKind::Refresh, ..token(org, user, 6) });
        let access = ends(10, TokenRecord { id: token_id(7), ..refresh.clone() });
        let (six, seven, last_said) = (hash(6), hash(7), said(6));
        let (refresh, login) = (Some(refresh_of(&refresh, &six)), Some(&last_said));
        let issue = Issue { refresh, login, ..issue(&access, &seven) };
        assert_eq!(db.issue_tokens(issue).await.unwrap(), Issued::Done);
        let mut done = event(org, 1);
        (done.actor_id, done.token_id) = (Some(user), Some(token_id(3)));
        sealed(&db, org, vec![done]).await;

        let gone = db.forget_tokens(NOW.plus_seconds(50)).await.unwrap();
        let again = db.forget_tokens(NOW.plus_seconds(50)).await.unwrap();

        assert_eq!((gone, again), (4, 0), "2, 3, 6 and 7; 4 stays for the sake of 5");
        for (n, is_left) in [(1, true), (2, false), (3, false), (4, true), (5, true), (6, false), (7, false)] {
            assert_eq!(db.find_token(org, token_id(n)).await.unwrap().is_some(), is_left, "{n}");
        }
        let last = db.last_login(org, user).await.unwrap();
        assert_eq!(last, Some(said(6)), "the last login of a person stays");
        db.revoke_token(org, token_id(4), NOW).await.unwrap();
        assert!(revoked_at(&db, 5).await.is_some(), "what lives is revoked by what it came from");
        let found = db.find_event(org, Visibility::Own(user), id("evt", 1)).await.unwrap();
        assert!(found.is_some(), "an event of a deleted token shows");
        assert_eq!(db.forget_tokens(NOW.plus_seconds(100)).await.unwrap(), 2);
        assert_eq!(db.last_login(org, user).await.unwrap(), last);
    }

    async fn a_list_of_tokens_in_a_rare_state_looks_at_a_bounded_number(db: Database) {
        let (org, user) = member(&db).await;
        insert_many(&db, &token(org, user, 0), 10_000..15_000, "NULL").await;
        let revoked = TokenRecord { revoked_at: Some(NOW), ..token(org, user, 20_000) };
        insert(&db, 20_000, &revoked).await;
        for principal in [None, Some(user)] {
            let state = Some(ListedState::Revoked);
            let query = TokenQuery { principal, state, now: NOW, limit: 10, ..TokenQuery::default() };

            let first = db.page_tokens(org, &query).await.unwrap();
            let rest = TokenQuery { after: first.reached, ..query };
            let second = db.page_tokens(org, &rest).await.unwrap();

            assert_eq!((first.tokens.len(), first.reached), (0, Some(token_id(14_999))));
            assert_eq!((second.tokens.len(), second.reached), (1, None));
            assert_eq!(second.tokens[0].token.id, revoked.id);
        }
    }

    async fn events_below_a_token_are_found_however_many_tokens_are_below_it(db: Database) {
        let (org, user) = member(&db).await;
        insert(&db, 1, &token(org, user, 1)).await;
        insert_many(&db, &token(org, user, 0), 10_000..14_000, "1").await;
        let mut events = Vec::new();
        for (n, token) in [(0, 13_999), (1, 1), (2, 77)] {
            let mut done = event(org, n);
            (done.actor_id, done.token_id) = (Some(user), Some(token_id(token)));
            events.push(done);
        }
        sealed(&db, org, events).await;
        let grant = Visibility::Grant { principal: user, token: token_id(1) };
        let filter = EventFilter::default();

        let page = db.list_events(org, grant, &filter, EventOrder::Ascending, None, 10).await;

        let found: Vec<_> = page.unwrap().events.iter().map(|event| event.id).collect();
        assert_eq!(found, [id("evt", 0), id("evt", 1)]);
    }
}

on_postgres! {
    async fn postgresql_reads_what_descends_from_a_token_and_no_other(db: Database) {
        let (org, user) = member(&db).await;
        insert(&db, 1, &token(org, user, 1)).await;
        insert_many(&db, &token(org, user, 0), 10_000..12_000, "1").await;
        insert_many(&db, &token(org, user, 0), 20_000..22_000, "n - 10000").await;
        insert_many(&db, &token(org, user, 0), 100_000..130_000, "NULL").await;
        insert(&db, 200_000, &child(org, user, 200_000, 100_000)).await;
        let mut done = event(org, 1);
        (done.actor_id, done.token_id) = (Some(user), Some(token_id(21_000)));
        sealed(&db, org, vec![done]).await;
        let visible = Visibility::Grant { principal: user, token: token_id(1) };
        let filter = EventFilter::default();
        // The statistics of a connection are complete when it has ended.
        db.close().await;
        db.execute("ANALYZE tokens").await;

        for (most, descendants) in [(300, 100_000), (40_000, 1), (100, 1)] {
            db.execute("SELECT pg_stat_reset()").await;
            let store = Store::open(&db.settings).await.unwrap();
            store.revoke_token(org, token_id(descendants), NOW).await.unwrap();
            let order = EventOrder::Descending;
            let page = store.list_events(org, visible, &filter, order, None, 10).await.unwrap();
            assert_eq!(page.events.len(), 1);
            store.find_token_by_hash(&hash(1)).await.unwrap();
            store.close().await;

            db.execute_text(format!(
                "DO $$ DECLARE tuples BIGINT; BEGIN \
                 SELECT SUM(seq_tup_read + idx_tup_fetch) INTO tuples FROM pg_stat_user_tables \
                 WHERE relname = 'tokens'; \
                 ASSERT tuples < {most}, tuples || ' tuples read for {descendants}'; END $$"
            ))
            .await;
        }
    }
}
