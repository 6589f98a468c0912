//! Lineage of tokens, stored with each.

use crate::prelude::*;

fn login(org: OrgId, who: PrincipalId, n: u32, rule: &str) -> TokenRecord {
    TokenRecord {
        method: AuthMethod::Oidc { trust: rule.to_owned() },
        lineage: Lineage::login(rule, who),
        ..token(org, who, n)
    }
}

fn narrowed(from: &TokenRecord, n: u32) -> TokenRecord {
    TokenRecord {
        parent_id: Some(from.id),
        method: AuthMethod::Token,
        via: from.via,
        lineage: from.lineage.clone().derived(),
        ..token(from.org_id, from.principal_id, n)
    }
}

/// `actor` acts for the subject of `from` from now on.
fn delegated(from: &TokenRecord, actor: &TokenRecord, n: u32) -> TokenRecord {
    let lineage = from.lineage.clone();
    let lineage = lineage.acted_by(from.principal_id, actor.principal_id, &actor.lineage).unwrap();
    TokenRecord {
        via: lineage.via(),
        via_token_id: Some(actor.id),
        issued_at: NOW.plus_seconds(n.into()),
        lineage,
        ..narrowed(from, n)
    }
}

async fn insert_tokens(store: &Store, tokens: &[&TokenRecord]) {
    for token in tokens {
        let number = token.id.to_string();
        let number = number[number.len() - 4..].parse().unwrap();
        store.insert_token(token, &hash(number)).await.unwrap();
    }
}

on_both! {
    async fn everybody_who_acts_is_found_with_the_token(db: Database) {
        let (org, ana) = member(&db).await;
        let agent = user(&db, org, 2).await;
        let other = user(&db, org, 3).await;
        let root = login(org, ana, 1, "people");
        let first = token(org, agent, 2);
        let second = token(org, other, 3);
        let through = delegated(&delegated(&root, &first, 4), &second, 5);
        let before = delegated(&root, &first, 4);
        insert_tokens(&db, &[&root, &first, &second, &before, &through]).await;

        db.set_role(org, agent, Role::Auditor).await.unwrap();
        db.disable_principal(org, other, NOW).await.unwrap();

        let one = db.find_token_by_hash(&hash(5)).await.unwrap().unwrap();
        let several = db.find_tokens(&[token_id(5), token_id(1)]).await.unwrap();
        let mut states: Vec<_> =
            one.actors.iter().map(|actor| (actor.role, actor.disabled_at)).collect();
        states.sort_by_key(|(_, disabled)| *disabled);
        assert_eq!(states, [(Role::Auditor, None), (Role::Member, Some(NOW))]);
        for known in several {
            assert_eq!(known.actors.len(), if known.token.id == token_id(5) { 2 } else { 0 });
        }
    }

    async fn descent_is_told_over_any_number_of_steps_and_only_downwards(db: Database) {
        let (org, user) = member(&db).await;
        let mut chain = vec![token(org, user, 1)];
        for n in 2..40 {
            let next = narrowed(chain.last().unwrap(), n);
            chain.push(next);
        }
        let beside = narrowed(&chain[0], 50);
        insert_tokens(&db, &chain.iter().chain([&beside]).collect::<Vec<_>>()).await;
        let descends = async |below: u32, above: u32| {
            db.descends(org, token_id(below), token_id(above)).await.unwrap()
        };

        assert!(descends(39, 1).await && descends(39, 20).await && descends(7, 7).await);
        assert!(!descends(1, 39).await && !descends(50, 2).await && !descends(2, 50).await);
        assert!(!descends(99, 1).await && !descends(1, 99).await);
    }

    async fn a_grant_shows_what_was_done_under_it(db: Database) {
        let (org, ana) = member(&db).await;
        let agent = user(&db, org, 2).await;
        let root = token(org, ana, 1);
        let actor = token(org, agent, 2);
        let child = narrowed(&root, 3);
        let grandchild = narrowed(&child, 4);
        let through = delegated(&child, &actor, 5);
        let refreshed = TokenRecord { grant_id: child.grant_id, ..token(org, ana, 6) };
        let all = [&root, &actor, &child, &grandchild, &through, &refreshed];
        insert_tokens(&db, &all).await;
        let mut events = Vec::new();
        for (n, token) in all.into_iter().enumerate() {
            let mut event = event(org, u32::try_from(n).unwrap());
            (event.actor_id, event.via) = (Some(token.principal_id), token.via);
            event.token_id = Some(token.id);
            events.push(event);
        }
        let mut without_token = event(org, 6);
        without_token.actor_id = Some(ana);
        events.push(without_token);
        sealed(&db, org, events).await;

        let filter = EventFilter::default();
        for (token, seen) in [
            (&child, vec![2, 3, 4, 5]),
            (&refreshed, vec![2, 3, 4, 5]),
            (&grandchild, vec![3]),
            (&through, vec![4]),
            (&root, vec![0, 2, 3, 4]),
        ] {
            let grant = Visibility::Grant { principal: token.principal_id, token: token.id };
            for order in [EventOrder::Ascending, EventOrder::Descending] {
                let page = db.list_events(org, grant, &filter, order, None, 10);
                let mut found: Vec<_> =
                    page.await.unwrap().events.iter().map(|event| event.id).collect();
                found.sort_unstable();
                let wanted: Vec<_> = seen.iter().map(|n| id("evt", *n)).collect();
                assert_eq!(found, wanted, "{}", token.id);
            }
            for n in 0..7 {
                let found = db.find_event(org, grant, id("evt", n)).await.unwrap();
                assert_eq!(found.is_some(), seen.contains(&n), "{} {n}", token.id);
            }
        }
    }
}
