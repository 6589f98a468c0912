//! Nothing in the repository depends on where one machine keeps its files.

use super::{
    Violation,
    repository::{File, Repository},
};

/// Beginnings of people's and build machines' folders; put together here so as not to find itself.
const PLACES: [&str; 5] = [
    concat!("/", "home/"),
    concat!("/", "Users/"),
    concat!("/", "root/"),
    concat!("/", "work/"),
    concat!("C:", "\\Users\\"),
];

/// Finds absolute paths into a person's folders.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    repository.files().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        for place in PLACES.iter().filter(|place| names(line, place)) {
            found.push(Violation::new(
                &file.path,
                at + 1,
                format!("holds a path of one machine, `{place}…`"),
                "use a path relative to the repository, or a temporary folder",
            ));
        }
    }
    found
}

/// Returns true if `place` is in `line` as the beginning of a path, not in the middle of a URL.
fn names(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        before.is_none_or(|c| !(c.is_alphanumeric() || "._-~}{*".contains(c)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_into_a_home_folder_is_found_at_its_line() {
        let text = format!("fine\nsee {}ann/portcullis\n", PLACES[0]);

        let found = check(&Repository::of(&[("docs/a.md", &text)]));

        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }

    #[test]
    fn the_same_word_inside_a_url_or_a_relative_path_is_not() {
        let text = format!("https://a.example{}x and ~{}y", PLACES[0], PLACES[3]);

        assert!(check(&Repository::of(&[("docs/a.md", &text)])).is_empty());
    }
}
