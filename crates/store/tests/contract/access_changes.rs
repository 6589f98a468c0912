//! Changes that decide about callers, as nodes read them.

use crate::database;
use crate::prelude::*;

/// A node that reads changes.
struct Reader<'a> {
    store: &'a Store,
    mark: AccessMark,
    seen: BTreeSet<AccessChange>,
}

impl<'a> Reader<'a> {
    async fn begin(store: &'a Store) -> Self {
        let first = store.access_changes(None).await.unwrap();
        assert!(first.changes.is_empty() && !first.is_complete);
        Self { store, mark: first.mark, seen: BTreeSet::new() }
    }

    /// Orgs that changed since the last time.
    async fn changed(&mut self) -> BTreeSet<OrgId> {
        let read = self.store.access_changes(Some(self.mark)).await.unwrap();
        assert!(read.is_complete);
        self.mark = read.mark;
        let changes: BTreeSet<_> = read.changes.into_iter().collect();
        let new = changes.difference(&self.seen).map(|(_, org)| *org).collect();
        self.seen = changes;
        new
    }
}

/// A token of the user of an org, all of this number.
async fn issued(store: &Store, n: u32) -> TokenRecord {
    let org = org(store, n).await;
    let user = user(store, org, n).await;
    let token = token(org, user, n);
    store.insert_token(&token, &hash(n)).await.unwrap();
    token
}

on_both! {
    async fn a_change_is_told_once_and_a_use_is_none(db: Database) {
        let mine = issued(&db, 1).await;
        let theirs = issued(&db, 2).await;
        let one = mine.org_id;
        let two = theirs.org_id;
        let mut reader = Reader::begin(&db).await;
        let mut late = Reader::begin(&db).await;

        db.touch_tokens(&[(mine.id, NOW)]).await.unwrap();
        let touched = reader.changed().await;
        db.revoke_token(one, mine.id, NOW).await.unwrap();
        let revoked = reader.changed().await;
        db.set_plan(two, Plan::Pro).await.unwrap();
        let planned = reader.changed().await;
        db.disable_principal(one, mine.principal_id, NOW).await.unwrap();
        let disabled = reader.changed().await;
        db.forget_access_changes().await.unwrap();

        assert_eq!([touched, reader.changed().await], [BTreeSet::new(), BTreeSet::new()]);
        assert_eq!([revoked, disabled], [[one].into(), [one].into()]);
        assert_eq!(planned, [two].into());
        assert_eq!(late.changed().await, [one, two].into(), "who comes later misses nothing");
    }
}

on_postgres! {
    async fn a_change_that_is_committed_late_is_not_missed(db: Database) {
        let slow = issued(&db, 1).await;
        let quick = issued(&db, 2).await;
        let one = slow.org_id;
        let two = quick.org_id;
        let mut reader = Reader::begin(&db).await;
        let conn = database::connect(&db.url()).await;
        let revoke = format!(
            "BEGIN; SET LOCAL portcullis.installation = 'on'; \
             UPDATE tokens SET revoked_at = 1 WHERE id = '{}'",
            slow.id
        );
        conn.batch_execute(&revoke).await.unwrap();

        // Begun later, committed earlier.
        db.revoke_token(two, quick.id, NOW).await.unwrap();
        let before = reader.changed().await;
        conn.batch_execute("COMMIT").await.unwrap();

        assert_eq!(before, [two].into());
        assert_eq!(reader.changed().await, [one].into());
    }
}
