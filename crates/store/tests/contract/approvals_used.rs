//! Approvals used by calls: taken with their intents, exactly as often as they permit.

use crate::prelude::*;

/// Opens the `n`th approval as approved, for calls of this digest.
async fn approved(writer: &AuditWriter, org: OrgId, n: u32, digest: &str, uses: u32) -> Approval {
    let it = approval(org, n, digest);
    let it = Approval { status: Status::Approved, uses_left: uses, ..it };
    assert!(change(writer, &it, None, 1000 + n).await);
    it
}

/// Status and uses left of the `n`th approval.
async fn find_uses_left(store: &Store, org: OrgId, n: u32) -> (Status, u32) {
    let found = store.find_approval(org, id("apr", n)).await.unwrap().unwrap();
    (found.approval.status, found.approval.uses_left)
}

async fn begin(writer: &AuditWriter, intent: NewIntent) -> Began {
    writer.intent(intent, soon()).await.unwrap()
}

fn with_key(intent: NewIntent, digest: &str) -> NewIntent {
    let keyed = keyed_intent(intent.org_id, 1, digest);
    let mut key = keyed.key.unwrap();
    key.fingerprint = intent.id.to_string();
    NewIntent { key: Some(key), ..intent }
}

/// The intents in this order, committed together.
async fn together(store: &Store, intents: Vec<NewIntent>) -> Vec<Began> {
    let (writer, task) = idle_writer(store);
    let mut jobs = JoinSet::new();
    for (n, intent) in intents.into_iter().enumerate() {
        let its = writer.clone();
        jobs.spawn(async move { (n, begin(&its, intent).await) });
        until_waiting(&writer, n + 1).await;
    }
    let _tasks = running(task);
    let mut began = jobs.join_all().await;
    began.sort_unstable_by_key(|(n, _)| *n);
    began.into_iter().map(|(_, began)| began).collect()
}

on_both! {
    async fn as_many_of_many_at_once_begin_as_there_are_uses(db: Database) {
        let store = &db;
        let org = org(&db, 1).await;
        let again = Store::open(&db.settings).await.unwrap();
        let writers = [writer(store), writer(&again), writer(&again)];
        for (n, uses) in [(1, 1), (2, 5)] {
            approved(&writers[0].0, org, n, "call", uses).await;
            let began = at_once(0..16, |i| {
                let writer = writers[i as usize % 3].0.clone();
                let intent = approved_intent(org, n * 100 + i, &[(n, "call")]);
                async move { begin(&writer, intent).await }
            })
            .await;

            let count = began.iter().filter(|began| **began == Began::Begun).count();
            assert_eq!(count, uses as usize);
            assert!(!began.contains(&Began::KeyTaken));
            assert_eq!(find_uses_left(store, org, n).await, (Status::Consumed, 0));
        }
        assert_eq!(store.abandoned_intents(100).await.unwrap().len(), 6);
        let found = store.find_approval(org, id("apr", 2)).await.unwrap().unwrap();
        assert_eq!(found.revision, 6, "each use is a revision");
    }

    async fn all_of_one_commit_are_counted(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        approved(&writer, org, 1, "call", 5).await;
        let intents = (0..16).map(|n| approved_intent(org, n, &[(1, "call")])).collect();

        let began = together(&db, intents).await;

        assert!(began[..5].iter().all(|began| *began == Began::Begun), "{began:?}");
        assert!(began[5..].iter().all(|began| *began == Began::NotApproved), "{began:?}");
        assert_eq!(db.abandoned_intents(100).await.unwrap().len(), 5);
    }

    async fn an_approval_that_does_not_permit_the_call_lets_it_not_begin(db: Database) {
        let [org, other] = orgs(&db).await;
        let (writer, _tasks) = writer(&db);
        for (n, status) in (1..).zip(Status::ALL) {
            let it = Approval { status, ..approval(org, n, &format!("call {n}")) };
            assert!(change(&writer, &it, None, n).await);
        }
        let over = approval(org, 6, "call 6");
        let over = Approval { status: Status::Approved, expires_at: NOW, ..over };
        assert!(change(&writer, &over, None, 6).await);

        let mut intents = vec![
            approved_intent(org, 100, &[(2, "call 3")]),
            approved_intent(other, 101, &[(2, "call 2")]),
        ];
        for n in [1, 3, 4, 5, 6, 7] {
            intents.push(approved_intent(org, 10 + n, &[(n, &format!("call {n}"))]));
        }
        for intent in intents {
            let what = format!("{intent:?}");
            assert_eq!(begin(&writer, intent).await, Began::NotApproved, "{what}");
        }
        assert_eq!(find_uses_left(&db, org, 2).await, (Status::Approved, 1));
        assert!(db.abandoned_intents(10).await.unwrap().is_empty());

        assert_eq!(begin(&writer, approved_intent(org, 9, &[(2, "call 2")])).await, Began::Begun);
    }

    async fn an_intent_takes_its_key_and_its_uses_or_nothing(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        approved(&writer, org, 1, "call", 1).await;
        let one = [(1, "call")];
        let key = async |digest: &str| {
            let known = db.find_idempotency_key(org, digest, NOW).await.unwrap();
            known.map(|known| known.subject)
        };

        let taken = begin(&writer, keyed_intent(org, 1, "taken")).await;
        let lost = begin(&writer, with_key(approved_intent(org, 2, &one), "taken")).await;
        assert_eq!((taken, lost), (Began::Begun, Began::KeyTaken));
        assert_eq!(find_uses_left(&db, org, 1).await, (Status::Approved, 1), "the use is not taken");

        let begun = begin(&writer, with_key(approved_intent(org, 3, &one), "key")).await;
        let refused = begin(&writer, with_key(approved_intent(org, 4, &one), "free")).await;
        assert_eq!((begun, refused), (Began::Begun, Began::NotApproved));
        assert_eq!(key("key").await, Some(id::<EventId>("evt", 3).to_string()));
        assert_eq!(key("free").await, None, "the key is not taken");
        assert_eq!(begin(&writer, keyed_intent(org, 5, "free")).await, Began::Begun);
    }

    async fn keys_of_one_commit_go_to_those_that_are_approved(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        approved(&writer, org, 1, "call", 1).await;
        approved(&writer, org, 2, "other", 1).await;

        let results = together(&db, vec![
            with_key(approved_intent(org, 10, &[(3, "none")]), "a"),
            with_key(approved_intent(org, 11, &[(4, "none")]), "a"),
            with_key(approved_intent(org, 12, &[(1, "call")]), "a"),
            keyed_intent(org, 13, "a"),
            keyed_intent(org, 14, "b"),
            with_key(approved_intent(org, 15, &[(2, "other")]), "b"),
            approved_intent(org, 16, &[(2, "other")]),
        ]).await;

        let begun = Began::Begun;
        let taken = Began::KeyTaken;
        let not = Began::NotApproved;
        assert_eq!(results, [not, not, begun, taken, begun, taken, begun]);
        assert_eq!(find_uses_left(&db, org, 2).await, (Status::Consumed, 0));
    }

    async fn of_several_approvals_all_are_used_or_none(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        approved(&writer, org, 1, "a", 3).await;
        approved(&writer, org, 2, "b", 1).await;
        let a = (1, "a");
        let b = (2, "b");

        let results = together(&db, vec![
            approved_intent(org, 1, &[a, (3, "none")]),
            approved_intent(org, 2, &[a, b]),
            approved_intent(org, 3, &[a, b]),
            approved_intent(org, 4, &[b, a]),
            approved_intent(org, 5, &[a, a, a]),
            approved_intent(org, 6, &[a, a]),
        ]).await;

        let begun = Began::Begun;
        let not = Began::NotApproved;
        assert_eq!(results, [not, begun, not, not, not, begun]);
        assert_eq!(find_uses_left(&db, org, 1).await, (Status::Consumed, 0));
        assert_eq!(find_uses_left(&db, org, 2).await, (Status::Consumed, 0));
    }

    async fn a_change_made_before_a_use_is_made_of_nothing_older(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        let it = approved(&writer, org, 1, "call", 2).await;
        begin(&writer, approved_intent(org, 1, &[(1, "call")])).await;

        let stale = change(&writer, &it.ended(), Some(1), 2).await;
        let found = db.find_approval(org, it.id).await.unwrap().unwrap();
        let ended = change(&writer, &found.approval.ended(), Some(found.revision), 3).await;
        let used = begin(&writer, approved_intent(org, 4, &[(1, "call")])).await;

        assert_eq!((stale, ended, used), (false, true, Began::NotApproved));
        assert_eq!(find_uses_left(&db, org, 1).await, (Status::Expired, 1));
    }

    async fn an_intent_that_is_refused_leaves_its_use_untaken(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        approved(&writer, org, 1, "call", 1).await;
        let intent = approved_intent(org, 1, &[(1, "call")]);

        db.refuse_writes("audit_intents").await;
        let refused = writer.intent(intent.clone(), soon()).await;
        db.allow_writes("audit_intents").await;
        let untaken = find_uses_left(&db, org, 1).await;
        let begun = writer.intent(intent, soon()).await;

        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        assert_eq!((untaken, begun), ((Status::Approved, 1), Ok(Began::Begun)));
    }

    async fn an_intent_whose_answer_is_lost_has_its_use_and_stays_open(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        approved(&writer, org, 1, "call", 1).await;
        let intent = approved_intent(org, 1, &[(1, "call")]);
        let blocked = db.block_writers().await;
        let soon_over = Instant::now() + Duration::from_secs(1);

        let lost = writer.intent(intent, soon_over).await;
        blocked.release().await;
        let next = begin(&writer, approved_intent(org, 2, &[(1, "call")])).await;

        assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
        assert_eq!(next, Began::NotApproved);
        let open = db.abandoned_intents(10).await.unwrap();
        assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [id("evt", 1)]);
    }

    async fn batches_of_several_nodes_never_wait_for_each_other_in_a_circle(db: Database) {
        let store = &db;
        let org = org(&db, 1).await;
        let again = Store::open(&db.settings).await.unwrap();
        let writers = [writer(store), writer(store), writer(&again)];
        for (n, digest) in [(1, "a"), (2, "b"), (3, "c")] {
            approved(&writers[0].0, org, n, digest, 90).await;
        }
        let pairs = [[(1, "a"), (2, "b")], [(3, "c"), (1, "a")], [(2, "b"), (3, "c")]];

        let mut intents = JoinSet::new();
        let mut changes = JoinSet::new();
        for n in 0..240 {
            let writer = writers[n as usize % 3].0.clone();
            let intent = approved_intent(org, n, &pairs[n as usize % 5 % 3]);
            let intent = with_key(intent, &format!("key {}", (n * 7) % 60));
            intents.spawn(async move { writer.intent(intent, soon()).await });
            let writer = writers[(n as usize / 3) % 3].0.clone();
            let call = (n * 11) % 40;
            let mut it = approval(org, 100 + n, &format!("new {call}"));
            it.requester.principal_id = id("usr", call % 4);
            changes.spawn(async move { change(&writer, &it, None, 5000 + n).await });
        }

        let began: Vec<_> = intents.join_all().await.into_iter().map(Result::unwrap).collect();
        let opened = changes.join_all().await;
        assert_eq!(began.iter().filter(|began| **began == Began::Begun).count(), 60);
        assert_eq!(opened.into_iter().filter(|opened| *opened).count(), 40);
        let mut uses = 0;
        for n in 1..=3 {
            uses += 90 - find_uses_left(store, org, n).await.1;
        }
        assert_eq!(uses, 120, "two for each that began");
    }
}
