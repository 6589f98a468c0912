//! Accepted definition of a tool, and the one that waits.

use crate::prelude::*;

fn definition(tool: &str, version: &str) -> UpstreamDefinition {
    let text = format!(r#"{{"name":"{version}"}}"#);
    UpstreamDefinition { tool: tool.parse().unwrap(), version: version.to_owned(), text }
}

fn later(seconds: i64) -> Timestamp {
    NOW.plus_seconds(seconds)
}

fn tool() -> CapabilityId {
    "sample:list_items".parse().unwrap()
}

/// Accepted, waiting and told version of the only pin of the provider; `-` for none.
async fn versions(store: &Store, org: Option<OrgId>) -> [String; 3] {
    let pins = store.list_pins(org, "sample").await.unwrap().pins;
    let [Pin { accepted, found, told, .. }] = pins.as_slice() else { panic!("{pins:?}") };
    let version = |it: &Option<PinVersion>| it.as_ref().map(|it| it.version.clone());
    [version(accepted), version(found), told.clone()].map(|it| it.unwrap_or_else(|| "-".to_owned()))
}

on_both! {
    async fn the_first_definition_is_pinned_and_no_other_takes_its_place(db: Database) {
        let store = &db;

        store.pin_tools(None, &[definition("sample:list_items", "a")], NOW).await.unwrap();
        store.pin_tools(None, &[definition("sample:list_items", "b")], later(1)).await.unwrap();

        assert_eq!(versions(store, None).await, ["a", "-", "-"]);
        let pin = store.list_pins(None, "sample").await.unwrap().pins.remove(0);
        assert_eq!(pin.accepted.unwrap().at, NOW);
    }

    async fn pins_of_a_provider_are_those_of_its_tools_and_prompts(db: Database) {
        let ids = ["sample:b", "prompt:sample:a", "sample-two:a", "prompt:sample-two:a", "prompt:other:a"];
        let all: Vec<_> = ids.iter().map(|id| definition(id, "v")).collect();
        db.pin_tools(None, &all, NOW).await.unwrap();

        let pins = db.list_pins(None, "sample").await.unwrap().pins;

        let found: Vec<_> = pins.iter().map(|pin| pin.tool.as_str()).collect();
        assert_eq!(found, ["sample:b", "prompt:sample:a"]);
    }

    async fn what_waits_is_accepted_only_by_its_own_version(db: Database) {
        db.pin_tools(None, &[definition("sample:list_items", "a")], NOW).await.unwrap();
        db.hold_tools(None, &[definition("sample:list_items", "b")], later(1)).await.unwrap();
        db.told_of_tools(None, &[(tool(), "b".to_owned())]).await.unwrap();
        assert_eq!(versions(&db, None).await, ["a", "b", "b"]);

        // It changed once more between look and acceptance.
        db.hold_tools(None, &[definition("sample:list_items", "c")], later(2)).await.unwrap();
        assert!(!db.accept_tool(None, &tool(), "b", later(3)).await.unwrap());
        assert_eq!(versions(&db, None).await, ["a", "c", "b"]);

        assert!(db.accept_tool(None, &tool(), "c", later(4)).await.unwrap());
        assert_eq!(versions(&db, None).await, ["c", "-", "-"]);
        let changes = db.pins_changed_since(later(4)).await.unwrap();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].accepted.as_deref(), Some("c"));
        assert!(db.pins_changed_since(later(5)).await.unwrap().is_empty());
    }

    async fn an_upstream_that_takes_its_change_back_is_as_it_was(db: Database) {
        db.pin_tools(None, &[definition("sample:list_items", "a")], NOW).await.unwrap();
        db.hold_tools(None, &[definition("sample:list_items", "b")], later(1)).await.unwrap();

        db.release_tools(None, &[tool()], later(2)).await.unwrap();
        db.hold_tools(None, &[definition("sample:list_items", "a")], later(3)).await.unwrap();

        assert_eq!(versions(&db, None).await, ["a", "-", "-"]);
    }

    async fn a_tool_that_waits_from_the_beginning_has_nothing_accepted(db: Database) {
        db.hold_tools(None, &[definition("sample:list_items", "a")], NOW).await.unwrap();
        db.release_tools(None, &[tool()], later(1)).await.unwrap();
        assert_eq!(versions(&db, None).await, ["-", "a", "-"]);

        db.pin_tools(None, &[definition("sample:list_items", "b")], later(2)).await.unwrap();
        assert_eq!(versions(&db, None).await, ["b", "-", "-"]);
    }

    async fn pins_of_an_org_are_its_own(db: Database) {
        let [one, other] = orgs(&db).await;
        for (org, version) in [(Some(one), "a"), (Some(other), "b"), (None, "c")] {
            db.pin_tools(org, &[definition("sample:list_items", version)], NOW).await.unwrap();
        }
        // Slugs of which one is the beginning of the other are two providers.
        db.pin_tools(None, &[definition("sample-2:x", "d"), definition("samplf:x", "e")], NOW).await.unwrap();

        for (org, version) in [(Some(one), "a"), (Some(other), "b"), (None, "c")] {
            assert_eq!(versions(&db, org).await, [version, "-", "-"]);
        }
        assert_eq!(db.pins_of(&tool()).await.unwrap().len(), 3);
        assert_eq!(db.page_pins(None, 100).await.unwrap().len(), 5);
        assert!(!db.accept_tool(Some(one), &tool(), "b", NOW).await.unwrap());
    }

    async fn pins_are_read_page_by_page_and_each_once(db: Database) {
        let all: Vec<UpstreamDefinition> = (0..1203).map(|n| definition(&format!("sample:t{n:04}"), "a")).collect();
        db.pin_tools(None, &all, NOW).await.unwrap();

        let listed = db.list_pins(None, "sample").await.unwrap();
        let first = db.page_pins(None, 1000).await.unwrap();
        let last = first.last().map(|pin| (&pin.tool, pin.org));
        let rest = db.page_pins(last, 1000).await.unwrap();

        assert_eq!((listed.pins.len(), listed.nameless), (1203, 0));
        assert_eq!((first.len(), rest.len()), (1000, 203));
        let paged: Vec<Pin> = first.into_iter().chain(rest).collect();
        assert_eq!(paged, listed.pins);
    }

    async fn only_what_waits_can_be_forgotten(db: Database) {
        db.pin_tools(None, &[definition("sample:accepted", "a")], NOW).await.unwrap();
        db.hold_tools(None, &[definition("sample:waits", "b")], NOW).await.unwrap();
        let both = ["sample:accepted", "sample:waits"].map(|tool| tool.parse().unwrap());

        db.forget_waiting(None, &both).await.unwrap();

        let left = db.list_pins(None, "sample").await.unwrap().pins;
        assert_eq!(left.iter().map(|pin| &pin.tool).collect::<Vec<_>>(), [&both[0]]);
        let texts = db.definitions_of(None, &both[0]).await.unwrap();
        assert_eq!(texts.accepted.as_deref(), Some(r#"{"name":"a"}"#));
    }

    async fn a_surplus_is_noted_until_there_is_none(db: Database) {
        let org = Some(org(&db, 1).await);
        for (org, tools) in [(None, 7), (org, 3), (org, 4)] {
            db.note_surplus(org, "sample", tools, NOW).await.unwrap();
        }
        let noted: Vec<_> =
            db.surplus().await.unwrap().into_iter().map(|it| (it.org, it.tools)).collect();
        assert_eq!(noted, [(None, 7), (org, 4)]);

        db.note_surplus(None, "sample", 0, NOW).await.unwrap();

        assert_eq!(db.surplus().await.unwrap().len(), 1);
    }

    async fn pins_are_found_by_their_kinds(db: Database) {
        use CapabilityKind::{Prompt, Resource, Template, Tool};
        let org = org(&db, 1).await;
        let ids = ["a:prompt", "prompt:a:b", "resource:a:*", "resource:a:x://b", "resource:a:x://{b}"];
        db.pin_tools(None, &ids.map(|id| definition(id, "v")), NOW).await.unwrap();

        for (kinds, wanted) in [
            (&[][..], &ids[..]),
            (&[Tool], &ids[..1]),
            (&[Prompt], &ids[1..2]),
            (&[Resource], &ids[2..4]),
            (&[Template], &ids[4..]),
            (&[Prompt, Resource], &ids[1..4]),
        ] {
            let found = db.page_pins_of_org(org, WantedPins::All, kinds, None, 9).await.unwrap();
            let found: Vec<&str> = found.iter().map(|pin| pin.tool.as_str()).collect();
            assert_eq!(found, wanted, "{kinds:?}");
        }
    }

    async fn an_org_sees_what_waits_of_its_own_and_of_shared_providers(db: Database) {
        let [ours, theirs] = orgs(&db).await;
        for (org, tool) in
            [(None, "s:a"), (None, "s:b"), (Some(ours), "s:a"), (Some(ours), "t:c"), (Some(theirs), "s:a")]
        {
            db.pin_tools(org, &[definition(tool, "1")], NOW).await.unwrap();
            if tool != "s:b" {
                db.hold_tools(org, &[definition(tool, "2")], NOW).await.unwrap();
            }
        }
        let wanted: Vec<(Option<OrgId>, CapabilityId)> =
            [(None, "s:a"), (Some(ours), "s:a"), (Some(ours), "t:c")]
                .map(|(org, tool)| (org, tool.parse().unwrap()))
                .to_vec();

        let mut seen = Vec::new();
        let mut after = None::<Pin>;
        loop {
            let beyond = after.as_ref().map(|pin| (&pin.tool, pin.org));
            let page = db.page_pins_of_org(ours, WantedPins::Waiting, &[], beyond, 1).await.unwrap();
            let Some(pin) = page.into_iter().next() else { break };
            seen.push((pin.org, pin.tool.clone()));
            after = Some(pin);
        }

        assert_eq!(seen, wanted);
    }
}
