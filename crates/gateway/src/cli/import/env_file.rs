//! Secrets of clients as a file of variables, which shells and systemd read alike.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use portcullis_core::secret::Secret;
use zeroize::Zeroizing;

use crate::cli::output::Failure;

/// Writes a new file that only its owner may read. Fails if there is one already.
pub(super) fn write(path: &Path, secrets: &BTreeMap<String, Secret>) -> Result<(), Failure> {
    match create(path, &text(secrets)) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(format!("`{}` exists already; name a file that is not there yet", path.display())
                .into())
        }
        Err(error) => Err(format!("`{}` cannot be written: {error}", path.display()).into()),
    }
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A line for each variable. Values that a shell would read as something else are quoted.
fn text(secrets: &BTreeMap<String, Secret>) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::new());
    for (name, value) in secrets {
        text.extend([name, "="]);
        let is_bare = |it: char| it.is_ascii_alphanumeric() || "_-.,:/+=@%".contains(it);
        if value.expose().chars().all(is_bare) {
            text.push_str(value.expose());
        } else {
            text.push('"');
            for letter in value.expose().chars() {
                if matches!(letter, '"' | '\\' | '$' | '`') {
                    text.push('\\');
                }
                text.push(letter);
            }
            text.push('"');
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_a_shell_would_read_something_else() {
        let secrets =
            [("A", "sk-1/2+3=="), ("B", "two words"), ("C", "a\"b\\c$d`e"), ("D", "it's")]
                .map(|(name, value)| (name.to_owned(), Secret::new(value.to_owned())));

        let text = text(&BTreeMap::from(secrets));

        assert_eq!(*text, "A=sk-1/2+3==\nB=\"two words\"\nC=\"a\\\"b\\\\c\\$d\\`e\"\nD=\"it's\"\n");
    }
}
