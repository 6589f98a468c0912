//! Circles of files, rooms and modules, found in small repositories.

use super::*;

const FOLDER: &str = "crates/core/src/dlp";

fn repository(files: &[(&str, &str)]) -> Repository {
    let paths: Vec<_> =
        files.iter().map(|(path, text)| (format!("crates/core/src/{path}"), *text)).collect();
    let files: Vec<_> = paths.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    Repository::of(&files)
}

fn files(files: &[(&str, &str)]) -> Vec<String> {
    let found = between_files(&repository(files), FOLDER);
    found.iter().map(ToString::to_string).collect()
}

fn in_core(files: &[(&str, &str)]) -> Vec<String> {
    let found = in_crate(&repository(files), "crates/core");
    found.iter().map(ToString::to_string).collect()
}

fn rooms(files: &[(&str, &str)]) -> Vec<(String, usize)> {
    let repository = repository(files);
    let sources = sources(&repository, "crates/core");
    let found = over_rooms(&Crate { sources: &sources }.arrows(), "crates/core");
    found.into_iter().map(|it| (it.path.replace("crates/core/src/", ""), it.line)).collect()
}

#[test]
fn a_circle_of_two_files_is_found_at_the_import_that_closes_it() {
    let found = files(&[
        ("dlp.rs", "mod a;\nmod b;\n"),
        ("dlp/a.rs", "use super::b::B;\n"),
        ("dlp/b.rs", "//! B.\nuse crate::dlp::{\n    a::{A, C},\n};\nstruct B;\n"),
    ]);

    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("crates/core/src/dlp/b.rs:2: "), "{}", found[0]);
    assert!(found[0].contains("a → b → a"), "{}", found[0]);
}

#[test]
fn a_circle_of_three_through_paths_in_code_is_found() {
    let found = files(&[
        ("dlp.rs", "mod a;\nmod b;\nmod c;\n"),
        ("dlp/a.rs", "use super::b;\nfn f() { b::g() }\n"),
        ("dlp/b.rs", "fn g() { crate::dlp::c::h() }\n"),
        ("dlp/c.rs", "fn h(a: super::a::A) {}\n"),
    ]);

    assert_eq!(found.len(), 1);
    assert!(found[0].contains("a → b → c → a"), "{}", found[0]);
}

#[test]
fn a_table_of_contents_is_looked_through() {
    let contents = "mod a;\nmod b;\npub use a::A;\npub use b::B;\n";
    let one_way = [
        ("dlp.rs", contents),
        ("dlp/a.rs", "struct A;\n"),
        ("dlp/b.rs", "use super::A;\nstruct B;\n"),
    ];
    assert!(files(&one_way).is_empty());

    let both_ways = [
        ("dlp.rs", contents),
        ("dlp/a.rs", "use super::B;\nstruct A;\n"),
        ("dlp/b.rs", "use super::A;\nstruct B;\n"),
    ];
    assert_eq!(files(&both_ways).len(), 1);
}

#[test]
fn a_parent_that_uses_a_child_which_uses_it_is_a_circle() {
    let found = files(&[
        ("dlp.rs", "mod a;\nstruct Engine(a::A);\n"),
        ("dlp/a.rs", "use super::Engine;\nstruct A;\n"),
    ]);

    assert_eq!(found.len(), 1);
}

#[test]
fn tests_visibility_and_a_name_for_itself_are_no_arrows() {
    let found = files(&[
        ("dlp.rs", "mod a;\npub use a::A as B;\n#[cfg(test)]\nmod tests;\n"),
        ("dlp/a.rs", "pub(in crate::dlp) struct A;\nimpl A { fn b() -> Self { Self } }\n"),
        ("dlp/tests.rs", "use super::a::A;\n"),
        ("dlp/c.rs", "use super::a::A;\n#[cfg(test)]\nmod tests { use super::super::d::D; }\n"),
        ("dlp/d.rs", "use super::c::C;\n"),
    ]);

    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn modules_may_have_no_circle_though_their_files_have_none() {
    let files = [
        ("dlp.rs", "mod mask;\nmod scan;\n"),
        ("dlp/mask.rs", "mod b;\nmod c;\n"),
        ("dlp/scan.rs", "mod a;\nmod d;\n"),
        ("dlp/scan/a.rs", "use crate::dlp::mask::b::B;\n"),
        ("dlp/mask/b.rs", "struct B;\n"),
        ("dlp/mask/c.rs", "use crate::dlp::scan::d::D;\n"),
        ("dlp/scan/d.rs", "struct D;\n"),
    ];
    let repository = repository(&files);

    assert!(between_files(&repository, FOLDER).is_empty());
    assert_eq!(between_modules(&repository, FOLDER).len(), 1);
    assert!(between_modules(&repository, "crates/core/src").is_empty());
}
#[test]
fn a_circle_is_found_in_every_crate_unless_it_leads_through_the_file_of_its_folder() {
    let contents = "mod a;\nmod b;\npub use a::A;\nstruct Noun;\n";
    let siblings = [
        ("dlp.rs", contents),
        ("dlp/a.rs", "use super::b::B;\nstruct A;\n"),
        ("dlp/b.rs", "use super::A;\nstruct B;\n"),
    ];
    let family = [("dlp.rs", contents), ("dlp/a.rs", "use super::Noun;\nstruct A;\n")];

    assert_eq!(check(&repository(&siblings)).len(), 1);
    assert!(check(&repository(&family)).is_empty());
    assert_eq!(files(&family).len(), 1);
}

#[test]
fn a_circle_over_two_rooms_is_found_once_at_its_line() {
    let files = [
        ("access.rs", "mod tokens;\n"),
        ("access/tokens.rs", "//! T.\n\nuse crate::audit::events::Event;\n"),
        ("audit.rs", "pub mod events;\n"),
        ("audit/events.rs", "use super::log::Log;\n"),
        ("audit/log.rs", "use crate::{access::{self, tokens::Token}, base::Base};\n"),
        ("base.rs", "pub(super) struct Base;\n"),
    ];

    assert_eq!(rooms(&files), [("access/tokens.rs".to_owned(), 3)]);
}

#[test]
fn a_circle_over_two_rooms_is_found_though_it_leads_through_the_file_of_a_folder() {
    let files = [
        ("access.rs", "mod tokens;\n"),
        ("access/tokens.rs", "use crate::audit::events::Event;\nstruct Token;\n"),
        ("audit.rs", "pub mod events;\nstruct Audit(crate::access::tokens::Token);\n"),
        ("audit/events.rs", "use super::Audit;\n"),
    ];

    assert_eq!(rooms(&files), [("access/tokens.rs".to_owned(), 1)]);
    assert_eq!(in_core(&files).len(), 1);
}

#[test]
fn circles_within_a_room_and_in_tests_are_left_alone() {
    let files = [
        ("access.rs", "pub(crate) use self::tokens::Token;\n"),
        ("access/tokens.rs", "use super::Access;\nuse crate::audit::Audit;\n"),
        ("audit.rs", "#[cfg(test)]\nmod tests {\n    use crate::access::Access;\n}\n"),
    ];

    assert_eq!(rooms(&files), []);
}

#[test]
fn the_file_that_puts_rooms_together_belongs_to_none() {
    let files = [
        ("access.rs", "use crate::App;\n"),
        ("lib.rs", "mod access;\npub use self::access::Access;\npub struct App;\n"),
    ];

    assert_eq!(rooms(&files), []);
    assert_eq!(in_core(&files), Vec::<String>::new());
}
