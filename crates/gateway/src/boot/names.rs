//! Names of orgs and principals in the configuration, looked up in the store.

use portcullis_app::{Operator, OperatorError};

use super::{BootError, OfflineNode};
use crate::config::{Config, NamedOrg, Provider, is_org, is_principal};

/// Stands for an org whose name is not known, in a configuration that is told to be wrong.
const NO_ORG: &str = "org_00000000000000000000000000";
const NO_PRINCIPAL: &str = "sa_00000000000000000000000000";

/// The configuration with ids in the place of names, and why names are not known. Unless nothing is said to be
/// wrong, it is good for being told more of its problems only.
pub(super) async fn identified(config: &Config) -> (Config, Vec<BootError>) {
    let mut config = config.clone();
    if config.named_orgs().is_empty() {
        return (config, Vec::new());
    }
    match OfflineNode::open(&config).await {
        Ok(node) => {
            let unknown = identify(&mut config, &node.operator).await;
            node.close().await;
            (config, unknown)
        }
        Err(error) => unidentified(&config, error),
    }
}

/// The same where the store cannot be asked.
pub(super) fn unidentified(config: &Config, error: BootError) -> (Config, Vec<BootError>) {
    let mut config = config.clone();
    for NamedOrg { org, principals, .. } in config.named_orgs() {
        if !is_org(org) {
            NO_ORG.clone_into(org);
        }
        let names = principals.into_iter().filter(|it| !is_principal(it));
        names.for_each(|principal| NO_PRINCIPAL.clone_into(principal));
    }
    (config, vec![error])
}

/// The same for commands that need no store. Where there is none, a provider is not bound to an org that is
/// given by its name.
pub(super) async fn identified_if_known(config: &Config) -> Result<Config, BootError> {
    let mut config = config.clone();
    if config.named_orgs().is_empty() {
        return Ok(config);
    }
    match OfflineNode::present(&config).await? {
        Some(node) => {
            let unknown = identify(&mut config, &node.operator).await;
            node.close().await;
            unknown.into_iter().next().map_or(Ok(()), Err)?;
        }
        None => config.providers.iter_mut().for_each(Provider::forget_name),
    }
    Ok(config)
}

async fn identify(config: &mut Config, operator: &Operator) -> Vec<BootError> {
    let mut unknown = Vec::new();
    for NamedOrg { place, org, principals } in config.named_orgs() {
        let told = |error: OperatorError| BootError::Other(format!("{place}: {error}"));
        if !is_org(org) {
            match operator.org(org).await {
                Ok(found) => *org = found.id.to_string(),
                Err(error) => {
                    unknown.push(told(error));
                    NO_ORG.clone_into(org);
                }
            }
        }
        for principal in principals.into_iter().filter(|it| !is_principal(it)) {
            if *org == NO_ORG {
                NO_PRINCIPAL.clone_into(principal);
                continue;
            }
            match operator.principal_of(Some(org), principal).await {
                Ok(found) => *principal = found.id.to_string(),
                Err(error) => {
                    unknown.push(told(error));
                    NO_PRINCIPAL.clone_into(principal);
                }
            }
        }
    }
    unknown
}
