//! Everything in a configuration that keeps a node from starting, found at once, so that the
//! operator does not mend one problem only to be told of the next.

use std::error::Error;

use portcullis_core::openid::LoginKey;
use portcullis_upstream::Outbound;

use super::{BootError, Mode, durability, names, read_key};
use crate::config::{Config, ConfigError};

/// The configuration with ids in the place of names. Rejects one with problems that show without port, and,
/// for a node that only looks, a database that would be brought up to date.
pub(super) async fn none_in(
    config: &Config,
    mode: Mode,
    outbound: &Outbound,
) -> Result<Config, BootError> {
    let (config, unknown) = match durability::refuse_other_schema(config, mode).await {
        Ok(()) => names::identified(config).await,
        Err(error) => names::unidentified(config, error),
    };
    none_beside(unknown, &config, outbound)?;
    Ok(config)
}

fn none_beside(
    mut found: Vec<BootError>,
    config: &Config,
    outbound: &Outbound,
) -> Result<(), BootError> {
    // The key was told of when the store was opened for names.
    if !found.iter().any(|error| matches!(error, BootError::Key(..) | BootError::KeyForm(_))) {
        found.extend(read_key(&config.key_file()).err());
    }
    found.extend(config.dlp.load(outbound).err().map(BootError::Dlp));
    let declared = config.providers.iter().map(|it| it.declare(outbound, &config.connect).err());
    let hooks = config.webhooks.iter().map(|(name, hook)| hook.declare(name, outbound).err());
    // Nothing is sealed with this key: the settings are looked at.
    let login = config.trusted().and_then(|trusted| {
        config.login_parts(&trusted.rules, LoginKey::new(&[0; 32]), outbound).map(drop)
    });
    let others: [Option<ConfigError>; 3] =
        [login.err(), config.connect.connecting().err(), config.traces.declare(outbound).err()];
    found.extend(declared.chain(hooks).chain(others).flatten().map(BootError::Config));
    match found.pop() {
        None => Ok(()),
        Some(only) if found.is_empty() => Err(only),
        Some(last) => {
            found.push(last);
            let lines: Vec<String> = found.iter().map(|error| describe(error)).collect();
            Err(BootError::Several(lines.join("\n")))
        }
    }
}

/// A line about an error and its causes.
fn describe(error: &dyn Error) -> String {
    let mut line = format!("  - {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        line = format!("{line}: {inner}");
        cause = inner.source();
    }
    line
}
