//! The list fits the tree, and what does not is named.

use super::*;

#[test]
fn each_sabotage_fits_the_tree_as_it_is() {
    let root = crate::root();
    let list = read(root).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let model = words(&fs::read_to_string(root.join("docs/threat-model.md")).unwrap());
    let tests = below(&root.join("crates/gateway/tests/api"));

    let (_, stale) = apply(root, &list);

    assert_eq!(stale, Vec::<String>::new());
    let ids: BTreeSet<&String> = list.iter().map(|row| &row.id).collect();
    assert_eq!(ids.len(), list.len());
    for Sabotage { id, promise, tests: named, .. } in &list {
        assert!(model.contains(&words(promise)), "`{promise}` of `{id}` is not promised");
        assert!(!named.is_empty(), "{id}");
        for test in named {
            assert!(tests.contains(&format!("fn {test}(")), "no test `{test}` for `{id}`");
        }
    }
}

#[test]
fn a_row_whose_code_has_changed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.rs"), "if one && two {}").unwrap();
    let list: List = toml::from_str(
        "[[sabotage]]\nid = \"a\"\npromise = \"\"\nfile = \"a.rs\"\nbefore = \"one\"\n\
         after = 'sabotaged(\"a\")'\ntests = []\ncaught = true\n\
         [[sabotage]]\nid = \"b\"\npromise = \"\"\nfile = \"a.rs\"\nbefore = \"three\"\n\
         after = \"true\"\ntests = []\ncaught = true\n",
    )
    .unwrap();

    let (changed, stale) = apply(folder.path(), &list.sabotage);

    assert_eq!(changed[Path::new("a.rs")], format!("if {} && two {{}}", switch("a")));
    assert_eq!(stale.len(), 2, "{stale:?}");
    assert!(stale.iter().all(|line| line.contains("`b`")), "{stale:?}");
}

fn below(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| {
        if path.is_dir() { below(&path) } else { fs::read_to_string(path).unwrap() }
    };
    entries.map(text).collect()
}
