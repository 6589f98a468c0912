//! Copies of events: the sealer refuses them, or the verifier finds them.

use std::path::PathBuf;

use rusqlite::Connection;
use tokio::runtime::Runtime;

use super::{Scene, copy_of};

#[test]
fn a_copy_is_refused_and_one_whose_original_was_hidden_from_the_sealer_is_found_later() {
    let runtime = Runtime::new().unwrap();
    let scene = runtime.block_on(Scene::new());
    let size = scene.newest.checkpoint().size;
    // The newest call: a hold covers it, so nothing of it was erased and its row has its code.
    let newest = format!(
        "SELECT MAX(s.sequence) FROM audit_seals s JOIN audit_events e ON e.position = s.position \
         WHERE s.org_id = '{}' AND e.type = 'mcp.invocation'",
        scene.org.id
    );
    let place = format!("org_id = '{}' AND sequence = ({newest})", scene.org.id);
    let original = format!("position = (SELECT position FROM audit_seals WHERE {place})");
    let verified =
        |file: &PathBuf| runtime.block_on(scene.verified(file, &scene.newest)).0.unwrap_err();
    let sealed = |file: &PathBuf| {
        let size = format!("SELECT size FROM audit_heads WHERE org_id = '{}'", scene.org.id);
        let open = Connection::open(file).unwrap();
        open.query_row(&size, (), |row| row.get::<_, i64>(0)).unwrap().unsigned_abs()
    };
    let (file, open) = scene.copy();
    open.execute(&copy_of(&original, "id"), ()).unwrap();

    let refused = verified(&file);

    assert_eq!(refused.exit_code(), 10, "{refused}");
    assert_eq!(sealed(&file), size);
    assert_eq!(verified(&file).exit_code(), 10);
    assert_eq!(sealed(&file), size + 1, "the event that tells of it, once");
    assert_eq!(verified(&file).exit_code(), 10);
    assert_eq!(sealed(&file), size + 1);
    let (file, open) = scene.copy();
    let entry = format!("kind = 4 AND {original}");
    open.execute(&format!("CREATE TABLE entry AS SELECT * FROM audit_index WHERE {entry}"), ())
        .unwrap();
    open.execute(&format!("DELETE FROM audit_index WHERE {entry}"), ()).unwrap();
    open.execute(&copy_of(&original, "id"), ()).unwrap();
    let hidden = verified(&file);
    assert_eq!(hidden.exit_code(), 10, "{hidden}");
    assert!(hidden.to_string().contains("two places"), "{hidden}");
    assert_eq!(sealed(&file), size + 1, "the sealer could not tell");
    open.execute("INSERT INTO audit_index SELECT * FROM entry", ()).unwrap();

    let copied = verified(&file);

    assert_eq!(copied.exit_code(), 10, "{copied}");
    assert!(copied.to_string().contains("two places"), "{copied}");
}
