//! Since when each version of a tool is known.

use portcullis_core::tool::ToolId;

use crate::{
    database::{Database, on_both},
    given::{self, NOW},
};

on_both! {
    async fn a_version_is_as_old_as_its_first_sight(db: Database) {
        let org = given::org(&db.store, 1).await;
        let tool: ToolId = "sample:list_items".parse().unwrap();
        let old = (tool.clone(), "sha256:a".to_owned());
        let new = (tool, "sha256:b".to_owned());
        let shared = old.clone();
        let later = NOW.plus_seconds(60);

        let first = db.store.tool_seen(Some(org), std::slice::from_ref(&old), NOW).await.unwrap();
        let second = db.store.tool_seen(Some(org), &[new.clone(), old.clone()], later).await.unwrap();
        let third = db.store.tool_seen(Some(org), &[old, new], later.plus_seconds(60)).await.unwrap();

        assert_eq!(first, [NOW]);
        assert_eq!(second, [later, NOW]);
        assert_eq!(third, [NOW, later]);
        let shared = db.store.tool_seen(None, std::slice::from_ref(&shared), later).await.unwrap();
        assert_eq!(shared, [later], "a provider of all orgs is another than that of one");
    }
}
