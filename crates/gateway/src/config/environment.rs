//! `PORTCULLIS_…` variables that lie over the configuration file.
//!
//! A variable sets something if its name goes down a level (`PORTCULLIS_SERVER__LISTEN`) or is a key at the
//! top (`PORTCULLIS_DATA_DIR`). All others, such as those that clients read, are not ours.

use portcullis_core::did_you_mean;
use toml::{Table, Value};

use super::{Config, ConfigError};

/// The beginning of the names.
const PREFIX: &str = "PORTCULLIS_";

/// Keys at the top of the configuration.
const TOP: [&str; 21] = [
    "admin", "audit", "connect", "console", "data_dir", "database", "dlp", "keys", "limits", "log",
    "login", "mcp", "oauth", "policies", "providers", "server", "tokens", "tools", "traces",
    "trust", "webhooks",
];

/// A variable that sets something.
#[derive(Debug)]
pub(super) struct Setting {
    name: String,
    path: Vec<String>,
    value: Value,
}

/// True if a variable of this name sets something.
pub(super) fn sets_something(name: &str) -> bool {
    path(name).is_some()
}

/// Place of the key that a variable of this name sets.
fn path(name: &str) -> Option<Vec<String>> {
    let path: Vec<String> = name.strip_prefix(PREFIX)?.split("__").map(str::to_lowercase).collect();
    let [first, rest @ ..] = path.as_slice() else { return None };
    (!rest.is_empty() || TOP.contains(&first.as_str())).then_some(path)
}

/// The settings among these variables, in the order of their names. Rejects one that would be a
/// setting with two underscores: it was meant.
pub(super) fn settings(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Vec<Setting>, ConfigError> {
    let mut found = Vec::new();
    for (name, text) in variables.filter(|(name, _)| name.starts_with(PREFIX)) {
        let value = format!("v = {text}").parse::<Table>().ok().and_then(|mut t| t.remove("v"));
        let value = value.unwrap_or(Value::String(text));
        if let Some(path) = path(&name) {
            found.push(Setting { name, path, value });
        } else if let Some(meant) = suggest(&name, &value) {
            return Err(ConfigError::Wrong(format!(
                "the variable `{name}` sets nothing: two underscores go down a level, `{meant}`"
            )));
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// The name with two underscores where one was written, if it sets something.
fn suggest(name: &str, value: &Value) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?.to_lowercase();
    let (top, key) = TOP.iter().find_map(|top| {
        let key = rest.strip_prefix(top)?.strip_prefix('_')?;
        Some((top, key))
    })?;
    let path = vec![(*top).to_owned(), key.to_owned()];
    let setting = Setting { name: String::new(), path, value: value.clone() };
    laid_over(&Table::new(), [&setting]).ok()?;
    Some(format!("{PREFIX}{}__{}", top.to_uppercase(), key.to_uppercase()))
}

/// The configuration of this table with these settings over it. The error names the wrong variable.
pub(super) fn overlaid(table: &Table, settings: &[Setting]) -> Result<Config, ConfigError> {
    let error = match laid_over(table, settings) {
        Ok(config) => return Ok(config),
        Err(error) => error,
    };
    // The one without which it would be another error, or none.
    let decides = |name: &str| {
        let others = settings.iter().filter(|setting| setting.name != name);
        laid_over(table, others).err().as_ref() != Some(&error)
    };
    let names: Vec<&str> = settings.iter().map(|setting| setting.name.as_str()).collect();
    // Of a key and one below it, the one below.
    let wrong = names.iter().filter(|name| decides(name)).max_by_key(|name| name.len());
    let wrong = wrong.map_or_else(|| names.join("`, `"), |name| (*name).to_owned());
    let meant = meant(&error);
    Err(ConfigError::Wrong(format!("`{wrong}` does not fit the configuration{meant}: {error}")))
}

/// The keys or words nearest to one that is not known, from the message about it.
pub(super) fn meant(message: &str) -> String {
    let unknown = ["unknown field `", "unknown variant `"];
    let rest = unknown.iter().find_map(|it| message.rsplit_once(it).map(|(_, rest)| rest));
    let parts = rest.and_then(|rest| rest.split_once("`, expected "));
    parts.map_or_else(String::new, |(name, known)| {
        did_you_mean(name, known.split('`').skip(1).step_by(2))
    })
}

fn laid_over<'a>(
    table: &Table,
    settings: impl IntoIterator<Item = &'a Setting>,
) -> Result<Config, String> {
    let mut table = table.clone();
    for Setting { path, value, .. } in settings {
        set(&mut table, path, value)?;
    }
    table.try_into().map_err(|error: toml::de::Error| without_value(&error.to_string()))
}

fn set(table: &mut Table, path: &[String], value: &Value) -> Result<(), String> {
    match path {
        [] => Ok(()),
        [last] => {
            table.insert(last.clone(), value.clone());
            Ok(())
        }
        [first, rest @ ..] => {
            let inner = table.entry(first.clone()).or_insert_with(|| Value::Table(Table::new()));
            match inner {
                Value::Table(inner) => set(inner, rest, value),
                Value::String(_)
                | Value::Integer(_)
                | Value::Float(_)
                | Value::Boolean(_)
                | Value::Datetime(_)
                | Value::Array(_) => Err(format!("there is no table `{first}`")),
            }
        }
    }
}

/// The message without the text that was given, which may be a secret.
pub(super) fn without_value(message: &str) -> String {
    let given = message.split_once("string \"").and_then(|(before, rest)| {
        let (_, after) = rest.rsplit_once("\", expected")?;
        Some(format!("{before}a text, expected{after}"))
    });
    given.unwrap_or_else(|| message.to_owned()).trim_end().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay(variables: &[(&str, &str)]) -> Result<Config, String> {
        let variables =
            variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let settings = settings(variables).map_err(|error| error.to_string())?;
        overlaid(&Table::new(), &settings).map_err(|error| error.to_string())
    }

    #[test]
    fn the_keys_at_the_top_are_those_of_the_configuration() {
        let unknown = toml::from_str::<Config>("no_such_key = 1").unwrap_err().to_string();
        let (_, expected) = unknown.split_once("expected ").unwrap();
        let mut keys: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        keys.sort_unstable();

        assert_eq!(keys, TOP);
    }

    #[test]
    fn variables_of_somebody_else_are_left_alone() {
        for name in ["PORTCULLIS_URL", "PORTCULLIS_TOKEN", "PORTCULLIS_CONFIG", "PORTCULLIS_PORT"] {
            assert!(overlay(&[(name, "tcp://10.0.0.1:80")]).is_ok(), "{name}");
            assert!(!sets_something(name), "{name}");
        }
    }

    #[test]
    fn a_variable_that_is_wrong_is_named_and_its_text_is_not_repeated() {
        let fine = ("PORTCULLIS_SERVER__LISTEN", "127.0.0.1:1");
        for (name, wanted) in [
            ("PORTCULLIS_SERVER__LISTN", "(did you mean `listen`?)"),
            ("PORTCULLIS_SEVER__LISTEN", "(did you mean `server`?)"),
            ("PORTCULLIS_SERVER__MAX_CONNECTIONS", "a text, expected"),
            ("PORTCULLIS_SERVER__LISTEN__PORT", "no table `listen`"),
            ("PORTCULLIS_KEYS", "a text, expected"),
        ] {
            let told = overlay(&[fine, (name, "hunter2")]).unwrap_err();

            assert!(told.contains(&format!("`{name}`")) && told.contains(wanted), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
        let meant = overlay(&[("PORTCULLIS_SERVER_LISTEN", "127.0.0.1:1")]).unwrap_err();
        assert!(meant.contains("`PORTCULLIS_SERVER__LISTEN`"), "{meant}");
    }
}
