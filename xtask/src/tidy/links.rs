//! Links inside the repository lead somewhere.

use super::{
    Violation,
    repository::{File, Repository},
};

/// Finds Markdown links to files or headings that are not there; links elsewhere are not followed.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    let documents = repository.files().filter(|file| file.is_markdown());
    documents.flat_map(|file| check_file(repository, file)).collect()
}

fn check_file(repository: &Repository, file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    for (line, target) in links(&file.text) {
        if !leads_somewhere(repository, file, target) {
            let what = format!("links to `{target}`, which is not there");
            found.push(Violation::new(&file.path, line, what, "mend the link"));
        }
    }
    found
}

/// Line and target of every `](target)` outside code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for piece in line.split("](").skip(1) {
            let target = piece.split([')', ' ']).next().unwrap_or_default();
            found.push((at + 1, target));
        }
    }
    found
}

fn leads_somewhere(repository: &Repository, from: &File, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.path.clone() } else { resolved(&from.path, path) };
    let folder = format!("{}/", path.trim_end_matches('/'));
    match repository.find(&path) {
        Some(file) => heading.is_empty() || !file.is_markdown() || has_heading(&file.text, heading),
        None => heading.is_empty() && repository.under(&folder).next().is_some(),
    }
}

/// `target` as seen from the folder of `from`, with `.` and `..` worked out.
fn resolved(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from.split('/').collect(),
    };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns true if one of the headings has this anchor, the way code hosts make them.
fn has_heading(text: &str, anchor: &str) -> bool {
    text.lines().filter(|line| line.starts_with('#')).any(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>() == anchor
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<usize> {
        let repository = Repository::of(&[
            ("docs/a.md", text),
            ("docs/b.md", "# The `big` picture\n"),
            ("README.md", "# Readme\n"),
        ]);
        check(&repository).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_that_exist_pass() {
        let text = "[a](b.md) [b](../README.md) [c](b.md#the-big-picture) [d](../docs) \
                    [e](https://a.example/x) [f](#here)\n# Here\n";

        assert!(broken(text).is_empty());
    }

    #[test]
    fn links_to_nothing_are_found() {
        assert_eq!(broken("[a](c.md)\n[b](b.md#small)\n"), [1, 2]);
    }

    #[test]
    fn code_holds_no_links() {
        assert!(broken("```\n[a](c.md)\n```\n").is_empty());
    }
}
