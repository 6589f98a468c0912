//! Approvals: changed with their events by revision, read, listed, forgotten.

use crate::prelude::*;

async fn find(store: &Store, org: OrgId, n: u32) -> Option<StoredApproval> {
    store.find_approval(org, id("apr", n)).await.unwrap()
}

async fn of_call(store: &Store, org: OrgId, digest: &str, now: Timestamp) -> Option<ApprovalId> {
    let found = store.find_approval_of_call(org, digest, now).await.unwrap();
    found.map(|found| found.approval.id)
}

async fn has_event(store: &Store, org: OrgId, n: u32) -> bool {
    store.find_event(org, Visibility::All, id("evt", n)).await.unwrap().is_some()
}

fn decided(approval: &Approval, vote: Vote) -> Approval {
    approval.decided(&Decider::Operator, vote, None, NOW).unwrap()
}

fn numbers(found: &[StoredApproval]) -> Vec<u32> {
    let number = |it: &StoredApproval| it.approval.id.to_string()[4..].parse().unwrap();
    found.iter().map(number).collect()
}

fn filter(status: Option<Status>) -> ApprovalFilter {
    ApprovalFilter { status, now: NOW.plus_seconds(100) }
}

async fn list(
    store: &Store,
    org: OrgId,
    filter: &ApprovalFilter,
    after: Option<ApprovalId>,
    limit: u32,
) -> Vec<StoredApproval> {
    let found = store.glance_at_approvals(org, filter, after, limit).await.unwrap();
    let ids: Vec<_> = found.iter().map(|it| it.id).collect();
    store.approvals_among(org, &ids, ApprovalParts::All).await.unwrap()
}

/// The first org with its approvals 1 to 7: one of each status, one over its time and one of another
/// requester.
async fn one_of_each(store: &Store) -> OrgId {
    let (org, writer, _tasks) = start_writer(store).await;
    for (n, status) in (1..).zip(Status::ALL) {
        let it = Approval { status, ..approval(org, n, &format!("call {n}")) };
        assert!(change(&writer, &it, None, n).await);
    }
    let over = Approval { expires_at: NOW.plus_seconds(100), ..approval(org, 6, "call 6") };
    assert!(change(&writer, &over, None, 6).await);
    let mut of_other = approval(org, 7, "call 7");
    of_other.requester.principal_id = id("usr", 2);
    assert!(change(&writer, &of_other, None, 7).await);
    org
}

on_both! {
    async fn an_approval_and_its_event_are_written_together_or_not_at_all(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        let first = approval(org, 1, "call");

        let opened = change(&writer, &first, None, 1).await;
        let same_call = change(&writer, &approval(org, 2, "call"), None, 2).await;
        let same_id = change(&writer, &approval(org, 1, "other call"), None, 3).await;

        assert_eq!((opened, same_call, same_id), (true, false, false));
        assert_eq!(find(&db, org, 1).await, Some(StoredApproval { approval: first, revision: 1 }));
        assert_eq!(find(&db, org, 2).await, None);
        let mut events = [false; 3];
        for (known, n) in events.iter_mut().zip(1..) {
            *known = has_event(&db, org, n).await;
        }
        assert_eq!(events, [true, false, false]);
    }

    async fn a_change_replaces_the_revision_that_it_was_made_of(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        let first = approval(org, 1, "call");
        change(&writer, &first, None, 1).await;
        let yes = decided(&first, Vote::Approve);
        let no = decided(&first, Vote::Deny);

        let approved = change(&writer, &yes, Some(1), 2).await;
        let denied = change(&writer, &no, Some(1), 3).await;
        let ended = change(&writer, &yes.ended(), Some(2), 4).await;
        let revived = change(&writer, &yes, Some(3), 5).await;
        let missing = change(&writer, &approval(org, 9, "call"), Some(1), 6).await;

        assert_eq!([approved, denied, ended, revived, missing], [true, false, true, false, false]);
        let found = find(&db, org, 1).await.unwrap();
        assert_eq!((found.approval, found.revision), (yes.ended(), 3));
        assert!(has_event(&db, org, 4).await);
        assert!(!has_event(&db, org, 5).await && !has_event(&db, org, 3).await);
    }

    async fn of_many_changes_at_once_one_is_made(db: Database) {
        let store = &db;
        let org = org(store, 1).await;
        let again = Store::open(&db.settings).await.unwrap();
        let writers = [writer(store), writer(store), writer(&again)];
        let opened = at_once(0..24, |n| {
            let writer = writers[n as usize % 3].0.clone();
            async move {
                let it = approval(org, n, &format!("call {}", n % 2));
                (n % 2, change(&writer, &it, None, n).await)
            }
        })
        .await;
        let won = |call| opened.iter().filter(|it| **it == (call, true)).count();
        assert_eq!((won(0), won(1)), (1, 1));
        let of_call = store.find_approval_of_call(org, "call 0", NOW).await.unwrap().unwrap();

        let made = at_once(0..24, |n| {
            let writer = writers[n as usize % 3].0.clone();
            let vote = if n % 2 == 0 { Vote::Approve } else { Vote::Deny };
            let next = decided(&of_call.approval, vote);
            async move { change(&writer, &next, Some(1), 100 + n).await }
        })
        .await;
        assert_eq!(made.iter().filter(|made| **made).count(), 1);
        assert_eq!(store.seal(org, leaf).await.unwrap(), 3, "an event for each change");
    }

    async fn of_many_requests_at_once_twenty_are_pending(db: Database) {
        let store = &db;
        let org = org(store, 1).await;
        let again = Store::open(&db.settings).await.unwrap();
        let writers = [writer(store), writer(store), writer(&again)];
        let over = Approval { expires_at: NOW, ..approval(org, 200, "over its time") };
        assert!(change(&writers[0].0, &over, None, 200).await);
        let asked = at_once(0..64, |n| {
            let writer = writers[n as usize % 3].0.clone();
            let it = approval(org, n, &format!("call {n}"));
            async move { (n, change(&writer, &it, None, n).await) }
        })
        .await;

        let pending = store.count_pending_approvals(org, id("usr", 1), NOW).await.unwrap();
        assert_eq!((asked.iter().filter(|(_, made)| *made).count(), pending), (20, 20));
        for (n, made) in &asked {
            assert_eq!(has_event(store, org, *n).await, *made, "{n}");
        }
        let mut of_other = approval(org, 100, "call 100");
        of_other.requester.principal_id = id("usr", 2);
        assert!(change(&writers[0].0, &of_other, None, 100).await, "of somebody else");
        let (first, _) = asked.iter().find(|(_, made)| *made).unwrap();
        let ended = find(store, org, *first).await.unwrap().approval.ended();
        let last = approval(org, 101, "call 101");
        assert!(!change(&writers[1].0, &last, None, 101).await, "twenty are pending");
        assert!(change(&writers[0].0, &ended, Some(1), 102).await);
        assert!(change(&writers[1].0, &last, None, 103).await, "one of them ended");
    }

    async fn changes_of_one_commit_follow_each_other(db: Database) {
        let store = &db;
        let org = org(store, 1).await;
        let (writer, task) = idle_writer(store);
        let first = approval(org, 1, "call");
        let steps = [
            (first.clone(), None),
            (first.ended(), Some(1)),
            (approval(org, 2, "call"), None),
            (approval(org, 3, "call"), None),
        ];
        let mut jobs = JoinSet::new();
        for (n, (next, from)) in (0..).zip(steps) {
            let its = writer.clone();
            jobs.spawn(async move { (n, change(&its, &next, from, n).await) });
            until_waiting(&writer, n as usize + 1).await;
        }

        let _tasks = running(task);
        let mut made = jobs.join_all().await;

        made.sort_unstable();
        assert_eq!(made, [(0, true), (1, true), (2, true), (3, false)]);
        assert_eq!(writer.progress().commits, 1);
        assert_eq!(of_call(store, org, "call", NOW).await, Some(id("apr", 2)));
    }

    async fn an_event_that_is_refused_leaves_its_approval_as_it_was(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        let first = approval(org, 1, "call");
        change(&writer, &first, None, 1).await;
        let approval = decided(&first, Vote::Approve);
        let change = ApprovalChange { approval, from: Some(1) };

        let twin = writer.change_approval(change.clone(), event(org, 1), soon()).await;
        db.refuse_writes("audit_events").await;
        let refused = writer.change_approval(change.clone(), event(org, 2), soon()).await;
        db.allow_writes("audit_events").await;
        let before = find(&db, org, 1).await.unwrap().revision;
        let written = writer.change_approval(change, event(org, 2), soon()).await;

        assert!(matches!(twin, Err(StoreError::Conflict(_))), "{twin:?}");
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        assert_eq!((before, written), (1, Ok(true)));
    }

    async fn a_change_whose_answer_is_lost_is_made_once(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        let open = ApprovalChange { approval: approval(org, 1, "call"), from: None };
        let blocked = db.block_writers().await;
        let soon_over = Instant::now() + Duration::from_secs(1);

        let lost = writer.change_approval(open.clone(), event(org, 1), soon_over).await;
        blocked.release().await;
        let again = writer.change_approval(open, event(org, 1), soon()).await;

        assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
        assert_eq!(again, Ok(false));
        assert_eq!(find(&db, org, 1).await.unwrap().revision, 1);
        assert!(has_event(&db, org, 1).await);
    }

    async fn a_call_finds_its_newest_approval_that_counts(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        let end = NOW.plus_seconds(900);
        let first = approval(org, 1, "call");
        let second = approval(org, 2, "call");

        change(&writer, &first, None, 1).await;
        assert_eq!(of_call(&db, org, "call", NOW).await, Some(first.id));
        assert_eq!(of_call(&db, org, "call", end).await, None, "over its time");
        change(&writer, &decided(&first, Vote::Deny), Some(1), 2).await;
        assert_eq!(of_call(&db, org, "call", NOW).await, Some(first.id), "denied");
        change(&writer, &second, None, 3).await;
        assert_eq!(of_call(&db, org, "call", NOW).await, Some(second.id), "the newest");
        change(&writer, &second.ended(), Some(1), 4).await;
        assert_eq!(of_call(&db, org, "call", NOW).await, Some(first.id), "ended");
        assert_eq!(of_call(&db, org, "another call", NOW).await, None);
    }

    async fn a_list_is_filtered_by_the_status_of_the_moment(db: Database) {
        let org = one_of_each(&db).await;
        given::org(&db, 2).await;

        let mut found = Vec::new();
        for status in Status::ALL {
            let filter = filter(Some(status));
            let page = list(&db, org, &filter, None, 10).await;
            found.push((status, numbers(&page)));
        }

        let expected = [
            (Status::Pending, vec![7, 1]),
            (Status::Approved, vec![2]),
            (Status::Denied, vec![3]),
            (Status::Expired, vec![6, 4]),
            (Status::Consumed, vec![5]),
        ];
        assert_eq!(found, expected);
        for (principal, at, pending) in [(1, 0, 2), (1, 100, 1), (2, 100, 1), (2, 900, 0), (3, 0, 0)] {
            let id = id("usr", principal);
            let now = NOW.plus_seconds(at);
            assert_eq!(db.count_pending_approvals(org, id, now).await.unwrap(), pending);
        }
    }

    async fn pages_of_a_list_follow_each_other_newest_first(db: Database) {
        let org = one_of_each(&db).await;

        let mut pages = Vec::new();
        let mut after = None;
        loop {
            let page = list(&db, org, &filter(None), after, 3).await;
            let Some(last) = page.last() else { break };
            after = Some(last.approval.id);
            pages.push(numbers(&page));
        }

        assert_eq!(pages, [vec![7, 6, 5], vec![4, 3, 2], vec![1]]);
        let pending = filter(Some(Status::Pending));
        let page = list(&db, org, &pending, Some(id("apr", 7)), 3).await;
        assert_eq!(numbers(&page), [1]);
    }

    async fn open_ones_of_all_orgs_are_found_and_old_ended_ones_forgotten(db: Database) {
        let store = &db;
        let orgs = orgs(store).await;
        for org in orgs {
            let (writer, _tasks) = writer(store);
            let base = if org == orgs[0] { 0 } else { 10 };
            for (n, status) in (base..).zip(Status::ALL) {
                let expires_at = NOW.plus_seconds(100 - i64::from(n));
                let it = Approval { status, expires_at, ..approval(org, n, &format!("call {n}")) };
                assert!(change(&writer, &it, None, n).await);
            }
        }
        let due = Some(NOW.plus_seconds(90));
        for (at, count) in [(0, 2), (95, 1), (1000, 0)] {
            let pending = store.pending_approvals(NOW.plus_seconds(at)).await.unwrap();
            let oldest = (count > 0).then_some(NOW);
            assert_eq!(pending, PendingApprovals { count, oldest }, "{at}");
        }

        assert_eq!(numbers(&store.open_approvals(None, 10).await.unwrap()), [11, 10, 1, 0]);
        assert_eq!(numbers(&store.open_approvals(None, 3).await.unwrap()), [11, 10, 1]);
        assert_eq!(numbers(&store.open_approvals(due, 10).await.unwrap()), [11, 10]);
        let forgotten = store.forget_approvals(NOW.plus_seconds(88)).await.unwrap();
        assert_eq!(forgotten, 2, "13 and 14; of the others none is older or has ended");
        assert_eq!(store.forget_approvals(NOW.plus_seconds(1000)).await.unwrap(), 4);
        assert_eq!(store.open_approvals(None, 10).await.unwrap().len(), 4);
    }

    async fn nothing_is_shown_to_or_changed_by_another_org(db: Database) {
        let [ours, theirs] = orgs(&db).await;
        let (writer, _tasks) = writer(&db);
        assert!(change(&writer, &approval(ours, 1, "call"), None, 1).await);

        let foreign = Approval { org_id: theirs, ..approval(ours, 1, "call").ended() };
        assert!(!change(&writer, &foreign, Some(1), 2).await);
        assert_eq!(find(&db, theirs, 1).await, None);
        assert_eq!(of_call(&db, theirs, "call", NOW).await, None);
        let user = id("usr", 1);
        assert_eq!(db.count_pending_approvals(theirs, user, NOW).await.unwrap(), 0);
        let listed = list(&db, theirs, &filter(None), None, 10).await;
        assert!(listed.is_empty());
        assert!(change(&writer, &approval(theirs, 1, "call"), None, 3).await, "its own");
        assert_eq!(find(&db, ours, 1).await.unwrap().revision, 1);
    }

    async fn one_that_cannot_be_read_takes_no_other_along(db: Database) {
        let org = one_of_each(&db).await;
        db.execute("UPDATE approvals SET state = '{}', expires_at = 1 WHERE id LIKE '%1'").await;
        db.execute("UPDATE approvals SET digest = 'another call' WHERE id LIKE '%2'").await;

        let found = db.find_approval(org, id("apr", 1)).await;
        let listed = list(&db, org, &filter(None), None, 10).await;
        let open = db.open_approvals(None, 1).await.unwrap();

        assert_eq!(found, Err(StoreError::Corrupt("approvals.state")));
        assert_eq!(numbers(&listed), [7, 6, 5, 4, 3]);
        assert_eq!(numbers(&open), [6]);
        assert!(db.take_unreadable().iter().all(|row| row.table == "approvals"));
    }

    async fn a_glance_tells_who_may_see_an_approval_without_reading_it(db: Database) {
        let org = one_of_each(&db).await;
        let whole = list(&db, org, &filter(None), None, 10).await;
        // Whatever is not looked at cannot be in the way.
        db.execute("UPDATE approvals SET state = 'none', input = 'none'").await;

        let seen = db.glance_at_approvals(org, &filter(None), None, 10).await.unwrap();
        let some = filter(Some(Status::Pending));
        let pending = db.glance_at_approvals(org, &some, None, 10).await.unwrap();

        for (glance, StoredApproval { approval, .. }) in seen.iter().zip(&whole) {
            assert_eq!(glance.id, approval.id);
            assert_eq!(glance.principal_id, approval.requester.principal_id);
            assert_eq!(glance.capability_id, approval.tool.id);
            assert_eq!(glance.audience, Audience::of(approval));
            assert!((300..2_000).contains(&glance.bytes), "{}", glance.bytes);
        }
        assert_eq!((seen.len(), pending.len()), (7, 2));
        let ids: Vec<ApprovalId> = seen.iter().map(|glance| glance.id).collect();
        let unread = db.approvals_among(org, &ids, ApprovalParts::All).await.unwrap();
        assert!(unread.is_empty(), "none of them can be read any more");
    }

    async fn those_that_are_named_are_read_with_or_without_their_inputs(db: Database) {
        let org = one_of_each(&db).await;
        let ids = [id("apr", 2), id("apr", 5), id("apr", 99)];

        let all = db.approvals_among(org, &ids, ApprovalParts::All).await.unwrap();
        let light = db.approvals_among(org, &ids, ApprovalParts::WithoutInput).await.unwrap();
        let other = given::org(&db, 2).await;
        let theirs = db.approvals_among(other, &ids, ApprovalParts::All).await.unwrap();

        assert_eq!((numbers(&all), numbers(&light), theirs.len()), (vec![5, 2], vec![5, 2], 0));
        assert_eq!(all[0].approval.input, serde_json::json!({ "amount": 7 }));
        let expected = Approval { input: serde_json::Value::Null, ..all[0].approval.clone() };
        assert_eq!(light[0].approval, expected);
    }

    async fn one_whose_input_is_gone_is_not_shown(db: Database) {
        let org = one_of_each(&db).await;

        for (n, input) in [(1, "''"), (2, "'null'"), (3, "'{'")] {
            let gone = format!("UPDATE approvals SET input = {input} WHERE id LIKE '%{n}'");
            db.execute_text(gone).await;

            let found = db.find_approval(org, id("apr", n)).await;

            assert_eq!(found, Err(StoreError::Corrupt("approvals.input")), "{input}");
        }
    }

    async fn an_org_keeps_the_newest_ended_ones_within_count_and_bytes(db: Database) {
        let store = &db;
        let ours = one_of_each(store).await;
        let theirs = org(store, 2).await;
        let (writer, _tasks) = writer(store);
        change(&writer, &approval(theirs, 11, "call").ended(), None, 11).await;
        let all = filter(None);
        let left = async || numbers(&list(store, ours, &all, None, 10).await);
        let most = |count, bytes| ApprovalLimits { count, bytes };

        assert_eq!(store.forget_surplus_approvals(most(7, u64::MAX)).await.unwrap(), 0);
        assert_eq!(store.forget_surplus_approvals(most(4, u64::MAX)).await.unwrap(), 1);
        assert_eq!(left().await, [7, 6, 5, 4, 2, 1], "3 is the oldest that has ended");
        assert_eq!(store.forget_surplus_approvals(most(10, 1_000)).await.unwrap(), 2);
        assert_eq!(left().await, [7, 6, 2, 1], "those that are open stay");
        assert_eq!(list(store, theirs, &all, None, 10).await.len(), 1);
    }
}
