//! The register of nodes: who has a name, who is alive, and what they are told.

use crate::prelude::*;

/// The longest that news may take on a machine with other work.
const PATIENCE: Duration = Duration::from_mins(1);

fn node(name: &str, lease: &str, place: &str) -> NodeRecord {
    NodeRecord {
        name: name.to_owned(),
        lease: lease.to_owned(),
        place: place.to_owned(),
        counts_alone: false,
        policy_set: Some("sha256:1".to_owned()),
    }
}

/// As if all leases had run out.
async fn die(db: &Database) {
    db.execute("UPDATE nodes SET ends_at = 1").await;
}

on_sqlite! {
    async fn an_sqlite_file_has_no_register(db: Database) {
        assert!(Nodes::of(&db.settings).is_none());
        assert!(!db.has_dead_nodes().await.unwrap());
    }
}

on_postgres! {
    async fn a_name_is_held_by_one_process_until_its_lease_is_over(db: Database) {
        let nodes = Nodes::of(&db.settings).unwrap();
        let first = node("a", "a/1", "here");
        let second = node("a", "a/2", "there");

        assert!(nodes.hold(&first).await.unwrap());
        assert!(nodes.hold(&first).await.unwrap(), "again and again");
        assert!(!nodes.hold(&second).await.unwrap());
        nodes.release(&first).await.unwrap();
        assert!(nodes.hold(&second).await.unwrap());
        assert!(!nodes.hold(&first).await.unwrap());
        die(&db).await;
        assert!(nodes.hold(&first).await.unwrap());
    }

    async fn the_next_process_in_the_same_place_need_not_wait(db: Database) {
        let nodes = Nodes::of(&db.settings).unwrap();
        assert!(nodes.hold(&node("a", "a/1", "here")).await.unwrap());

        assert!(nodes.hold(&node("a", "a/2", "here")).await.unwrap());
    }

    async fn the_living_see_each_other_and_not_the_dead(db: Database) {
        let nodes = Nodes::of(&db.settings).unwrap();
        let a = node("a", "a/1", "1");
        let b = node("b", "b/1", "2");
        let c = node("c", "c/1", "3");
        nodes.hold(&c).await.unwrap();
        die(&db).await;
        for node in [&a, &b] {
            nodes.hold(node).await.unwrap();
        }

        let others = nodes.others(&a).await.unwrap();

        assert_eq!(others.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(others[0].policy_set.as_deref(), Some("sha256:1"));
        assert!(db.has_dead_nodes().await.unwrap());
        assert_eq!(db.forget_nodes().await.unwrap(), 1);
        assert!(!db.has_dead_nodes().await.unwrap());
    }

    async fn what_a_living_node_has_open_is_nobody_elses(db: Database) {
        let nodes = Nodes::of(&db.settings).unwrap();
        let org = org(&db, 1).await;
        let (writer, _tasks) = writer_of(&db, "a/1", clock_at(NOW));
        nodes.hold(&node("a", "a/1", "1")).await.unwrap();
        writer.intent(intent(org, 1), soon()).await.unwrap();

        assert!(db.abandoned_intents(10).await.unwrap().is_empty());
        die(&db).await;

        let open = db.abandoned_intents(10).await.unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!(db.forget_nodes().await.unwrap(), 0, "it left something open");
        db.drop_intent(org, open[0].id).await.unwrap();
        assert_eq!(db.forget_nodes().await.unwrap(), 1);
    }
}

async fn next_news(listener: &mut Listener) -> News {
    timeout(PATIENCE, listener.next()).await.expect("news").unwrap()
}

on_postgres! {
    async fn a_change_is_heard_by_those_who_listen(db: Database) {
        let [one, two] = orgs(&db).await;
        let user = user(&db, one, 1).await;
        let token = token(one, user, 1);
        db.insert_token(&token, &hash(1)).await.unwrap();
        let nodes = Nodes::of(&db.settings).unwrap();
        let mut listeners = [nodes.listen().await.unwrap(), nodes.listen().await.unwrap()];

        db.touch_tokens(&[(token.id, NOW)]).await.unwrap();
        db.execute("UPDATE tokens SET revoked_at = 1").await;
        for listener in &mut listeners {
            assert_eq!(next_news(listener).await, News::Org(one), "a use is no news");
        }
        db.execute("UPDATE orgs SET plan = 'free' WHERE name = 'org 2'").await;
        db.execute("INSERT INTO capability_pins (org_id, capability_id, changed_at) VALUES ('', 'a:b', 1)")
            .await;
        for listener in &mut listeners {
            assert_eq!(next_news(listener).await, News::Org(two));
            assert_eq!(next_news(listener).await, News::Pins);
        }
    }

    async fn a_wire_that_breaks_says_so(db: Database) {
        let nodes = Nodes::of(&db.settings).unwrap();
        let mut listener = nodes.listen().await.unwrap();

        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND query LIKE 'LISTEN%'",
        )
        .await;

        let ended = timeout(PATIENCE, listener.next()).await.expect("an end");
        assert!(ended.is_err(), "{ended:?}");
    }
}
