//! Names of orgs and principals in the configuration, looked up in the store.

use portcullis_app::{Shell, ShellError};

use super::{BootError, Office};
use crate::config::{Config, NamedOrg, Provider, is_org, is_principal};

/// The configuration with ids in the place of names. Rejects an unknown name.
pub(crate) async fn identified(config: &Config) -> Result<Config, BootError> {
    let mut config = config.clone();
    if !config.named_orgs().is_empty() {
        let office = Office::open(&config).await?;
        let found = identify(&mut config, &office.shell).await;
        office.close().await;
        found?;
    }
    Ok(config)
}

/// The same for commands that need no store. Where there is none, a provider is not bound to an org that is
/// given by its name.
pub(super) async fn identified_if_known(config: &Config) -> Result<Config, BootError> {
    let mut config = config.clone();
    if config.named_orgs().is_empty() {
        return Ok(config);
    }
    match Office::present(&config).await? {
        Some(office) => {
            let found = identify(&mut config, &office.shell).await;
            office.close().await;
            found?;
        }
        None => config.providers.iter_mut().for_each(Provider::forget_name),
    }
    Ok(config)
}

async fn identify(config: &mut Config, shell: &Shell) -> Result<(), BootError> {
    for NamedOrg { place, org, principals } in config.named_orgs() {
        let unknown = |error: ShellError| BootError::Other(format!("{place}: {error}"));
        if !is_org(org) {
            *org = shell.org(org).await.map_err(unknown)?.id.to_string();
        }
        for principal in principals.into_iter().filter(|it| !is_principal(it)) {
            let found = shell.principal_of(Some(org), principal).await.map_err(unknown)?;
            *principal = found.id.to_string();
        }
    }
    Ok(())
}
