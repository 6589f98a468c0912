//! The configuration as its file says it, to tell what changed in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Deserialize;
use toml::{Spanned, Table, Value};

/// The one table that is read again while the gateway runs.
const RELOADED: &str = "dlp";

/// The settings of a file. They may hold secrets, so they are not printed.
#[derive(Clone, Default)]
pub(crate) struct Written {
    table: Table,
    /// The slugs of the providers, each with its line.
    slugs: Vec<(String, usize)>,
}

/// The slugs of a file with their places.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Slugs {
    providers: Vec<Slug>,
}

#[derive(Deserialize)]
struct Slug {
    slug: Spanned<String>,
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings …")
    }
}

impl Written {
    /// Those of a text that was read as a configuration before.
    pub(super) fn of(text: &str) -> Self {
        let found: Slugs = toml::from_str(text).unwrap_or_default();
        let placed = |Slug { slug }: Slug| {
            let before = text.get(..slug.span().start).unwrap_or_default();
            (slug.into_inner(), before.matches('\n').count() + 1)
        };
        let slugs = found.providers.into_iter().map(placed).collect();
        Self { table: text.parse().unwrap_or_default(), slugs }
    }

    /// The lines on which the file gives providers this slug.
    pub(super) fn lines_of(&self, slug: &str) -> Vec<String> {
        let lines = self.slugs.iter().filter(|(name, _)| name == slug);
        lines.map(|(_, line)| line.to_string()).collect()
    }

    /// `[dlp]`.
    pub(crate) fn dlp(&self) -> Option<&Value> {
        self.table.get(RELOADED)
    }

    /// Settings that are others in `now`, and that a running node does not take: `server.listen`,
    /// `providers.github`.
    pub(crate) fn needing_restart(&self, now: &Self) -> Vec<String> {
        let (before, now) = (&self.table, &now.table);
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let names = names.into_iter().filter(|name| *name != RELOADED);
        names.flat_map(|name| changed(name, before.get(name), now.get(name))).collect()
    }
}

fn changed(name: &str, before: Option<&Value>, now: Option<&Value>) -> Vec<String> {
    if before == now {
        return Vec::new();
    }
    let (before, now) = (parts(before), parts(now));
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let keys = keys.into_iter().filter(|key| before.get(*key) != now.get(*key));
    let keys: Vec<String> = keys.map(|key| format!("{name}.{key}")).collect();
    if keys.is_empty() { vec![name.to_owned()] } else { keys }
}

/// Members of a table, or the entries of a list by their slugs.
fn parts(value: Option<&Value>) -> BTreeMap<String, &Value> {
    let table = value.and_then(Value::as_table).into_iter().flatten();
    let list = value.and_then(Value::as_array).into_iter().flatten();
    let entries = list.filter_map(|it| Some((it.get("slug")?.as_str()?.to_owned(), it)));
    table.map(|(key, value)| (key.clone(), value)).chain(entries).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_placed_by_their_lines() {
        let text = "data_dir = \"ä\"\n[[providers]]\nslug = \"a\"\ncommand = [\"x\"]\n\
                    [[providers]]\nslug = \"b\"\n[[providers]]\nname = \"A\"\nslug = \"a\"\n";
        for (slug, lines) in [("a", &["3", "9"][..]), ("b", &["6"]), ("c", &[])] {
            assert_eq!(Written::of(text).lines_of(slug), lines, "{slug}");
        }
    }

    #[test]
    fn what_changed_is_named_by_table_and_key_or_slug() {
        let before = "data_dir = \"a\"\n[server]\nlisten = \"x\"\n[[providers]]\nslug = \"a\"\n\
                      [[trust]]\nissuer = \"i\"\n[dlp.actions]\nsecret = \"block\"\n";
        for (change, to, wanted) in [
            ("", "", &[][..]),
            ("\"block\"", "\"flag\"", &[]),
            ("data_dir = \"a\"", "data_dir = \"b\"", &["data_dir"]),
            (
                "listen = \"x\"",
                "listen = \"y\"\nmax_calls = 1",
                &["server.listen", "server.max_calls"],
            ),
            (
                "slug = \"a\"",
                "slug = \"a\"\nname = \"A\"\n[[providers]]\nslug = \"b\"",
                &["providers.a", "providers.b"],
            ),
            ("slug = \"a\"", "slug = \"b\"", &["providers.a", "providers.b"]),
            ("issuer = \"i\"", "issuer = \"j\"", &["trust"]),
        ] {
            let after = before.replacen(change, to, 1);
            let needing = Written::of(before).needing_restart(&Written::of(&after));
            assert_eq!(needing, wanted, "{after}");
        }
    }
}
