//! `portcullis principal`.

mod keys;

use std::collections::BTreeSet;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use portcullis_app::{NewPrincipal, PrincipalPatch, Shell};
use portcullis_core::{
    id::{PrincipalId, PrincipalKind},
    principal::{Role, ScopeSet},
};
use portcullis_store::{Org, Principal};
use serde_json::{Value, json};

use super::{
    installation::Installation,
    of_org::{OfOrg, Search},
    output::Failure,
    remote::{RemoteGateway, body, principal_of},
};
use crate::boot::OfflineNode;

#[derive(Subcommand)]
pub(super) enum Principals {
    /// Make a user or a service account
    Create {
        /// Its name, for people; it is recorded in every event
        name: String,
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        /// A person, or a program
        #[arg(long = "type", value_enum, default_value_t = Kind::User)]
        kind: Kind,
        /// Role of a user
        #[arg(long, value_enum, default_value_t = RoleName::Member)]
        role: RoleName,
        /// Scopes of a service account, such as "mcps:read mcps:invoke"
        #[arg(long, value_name = "SCOPES", value_parser = crate::cli::remote::scopes)]
        scopes: Option<ScopeSet>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Give a principal another role, or a service account other scopes; running nodes follow
    /// within 5 seconds
    SetRole {
        #[command(flatten)]
        whom: Whom,
        /// New role of a user
        #[arg(long, value_enum)]
        role: Option<RoleName>,
        /// New scopes of a service account
        #[arg(long, value_name = "SCOPES", value_parser = crate::cli::remote::scopes)]
        scopes: Option<ScopeSet>,
    },
    /// Put a principal into groups that policies and approvals name, besides those of its logins;
    /// running nodes follow within 5 seconds
    #[command(
        group = ArgGroup::new("which").required(true).args(["groups", "none"]),
        override_usage = "portcullis principal set-groups [OPTIONS] <PRINCIPAL> <GROUP>...\n       \
            portcullis principal set-groups [OPTIONS] <PRINCIPAL> --none"
    )]
    SetGroups {
        #[command(flatten)]
        whom: Whom,
        /// All the groups it is in from now on; it leaves others that it was put into before
        #[arg(value_name = "GROUP")]
        groups: Vec<String>,
        /// Take it out of every group that it was put into
        #[arg(long)]
        none: bool,
    },
    /// Accept none of a principal's tokens any more; running nodes follow within 5 seconds
    Disable {
        #[command(flatten)]
        whom: Whom,
    },
    /// Accept a principal's tokens again
    Enable {
        #[command(flatten)]
        whom: Whom,
    },
    /// Register, list and remove the public keys of a service account
    #[command(subcommand)]
    Key(keys::Keys),
    /// List everybody in an org
    List {
        #[command(flatten)]
        search: Search,
        #[command(flatten)]
        of: OfOrg,
    },
}

#[derive(Args)]
pub(super) struct Whom {
    /// Id (`usr_…`, `sa_…`) or name
    principal: String,
    /// Id or name of the org, where several have a principal of that name
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    installation: Installation,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    User,
    Service,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleName {
    Member,
    Auditor,
    Admin,
}

fn role(kind: Kind, role: RoleName, scopes: Option<ScopeSet>) -> Result<Role, Failure> {
    match (kind, role, scopes) {
        (Kind::Service, _, Some(scopes)) => Ok(Role::Service(scopes)),
        (Kind::Service, _, None) => {
            Err("a service account needs `--scopes`: it may do what is listed, nothing else".into())
        }
        (Kind::User, _, Some(_)) => Err("a user has a `--role`, no scopes of its own".into()),
        (Kind::User, RoleName::Member, None) => Ok(Role::Member),
        (Kind::User, RoleName::Auditor, None) => Ok(Role::Auditor),
        (Kind::User, RoleName::Admin, None) => Ok(Role::Admin),
    }
}

/// The role after a change: nothing is taken for granted, for a default would take rights away.
fn changed_role(
    kind: PrincipalKind,
    named: Option<RoleName>,
    scopes: Option<ScopeSet>,
) -> Result<Role, Failure> {
    match (kind, named, scopes) {
        (PrincipalKind::User, Some(named), scopes) => role(Kind::User, named, scopes),
        (PrincipalKind::User, None, _) => Err("say which `--role` the user has from now on".into()),
        (PrincipalKind::Service, None, scopes) => role(Kind::Service, RoleName::Member, scopes),
        (PrincipalKind::Service, Some(_), _) => {
            Err("a service account has `--scopes`, no role of its own".into())
        }
    }
}

impl Principals {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create { name, org, kind, role: named, scopes, installation } => {
                let role = role(kind, named, scopes)?;
                let kind = match kind {
                    Kind::User => PrincipalKind::User,
                    Kind::Service => PrincipalKind::Service,
                };
                let groups = BTreeSet::new();
                let new = NewPrincipal { name: name.clone(), kind, role, groups };
                let of = OfOrg { org, installation };
                let principal = create(new, &of).await?;
                let text = format!("made {} ({name}, role {})", principal.id, role.name());
                of.installation.output().record(&record(&principal), &text)
            }
            Self::SetRole { whom, role: named, scopes } => {
                let patch = |id: PrincipalId| {
                    let role = Some(changed_role(id.kind(), named, scopes)?);
                    Ok(PrincipalPatch { role, ..PrincipalPatch::default() })
                };
                let text = |Principal { id, role, .. }: &Principal| {
                    format!("{id} has the role {} now: {}", role.name(), role.scopes())
                };
                whom.change(patch, text).await
            }
            Self::SetGroups { whom, groups, none: _ } => {
                let groups = Some(groups.into_iter().collect());
                let patch = PrincipalPatch { groups, ..PrincipalPatch::default() };
                whom.change(|_| Ok(patch), in_groups).await
            }
            Self::Disable { whom } => {
                let patch = PrincipalPatch { disabled: Some(true), ..PrincipalPatch::default() };
                let text =
                    |it: &Principal| format!("disabled {}: none of its tokens is accepted", it.id);
                whom.change(|_| Ok(patch), text).await
            }
            Self::Enable { whom } => {
                let patch = PrincipalPatch { disabled: Some(false), ..PrincipalPatch::default() };
                let text =
                    |it: &Principal| format!("enabled {}: its tokens are accepted again", it.id);
                whom.change(|_| Ok(patch), text).await
            }
            Self::Key(keys) => keys.run().await,
            Self::List { search, of } => list(&search, &of).await,
        }
    }
}

async fn create(new: NewPrincipal, of: &OfOrg) -> Result<Principal, Failure> {
    if let Some(gateway) = of.gateway().await? {
        let (role, scopes) = role_members(new.role);
        let kind = new.kind.as_str();
        let request = json!({ "name": new.name, "kind": kind, "role": role, "scopes": scopes });
        let made = gateway.post("/v1/principals", &body(request)).await?;
        return principal_of(&made, gateway.org_id().await?);
    }
    of.here(async |node, org| Ok(node.shell.create_principal(org.id, new).await?)).await
}

/// A role as the API takes it: the role of a user, or the scopes of a service account.
fn role_members(role: Role) -> (Option<&'static str>, Option<ScopeSet>) {
    match role {
        Role::Member | Role::Auditor | Role::Admin => (Some(role.name()), None),
        Role::Service(scopes) => (None, Some(scopes)),
    }
}

/// A change as the API takes it (RFC 7396).
fn patch_body(patch: PrincipalPatch) -> Value {
    let (role, scopes) = patch.role.map(role_members).unwrap_or_default();
    let PrincipalPatch { groups, disabled, .. } = patch;
    body(json!({ "role": role, "scopes": scopes, "groups": groups, "disabled": disabled }))
}

async fn list(search: &Search, of: &OfOrg) -> Result<(), Failure> {
    let remotely = async |gateway: &RemoteGateway| {
        let org = gateway.org_id().await?;
        let answer = gateway.list("/v1/principals", search.parameter().as_slice()).await?;
        answer.iter().map(|answer| principal_of(answer, org)).collect::<Result<Vec<_>, _>>()
    };
    let here = async |node: &OfflineNode, org: Org| {
        Ok(node.shell.principals(org.id, search.text()).await?)
    };
    let records: Vec<Value> = of.act(remotely, here).await?.iter().map(record).collect();
    let columns = ["id", "name", "role", "scopes", "groups", "disabled_at"];
    of.installation.output().table(&records, &columns)
}

impl Whom {
    /// Does something with the principal in the shell.
    async fn with<T>(
        &self,
        act: impl AsyncFnOnce(&Shell, PrincipalId) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let act = async |node: &OfflineNode| {
            let found = node.shell.principal_of(self.org.as_deref(), &self.principal).await?;
            act(&node.shell, found.id).await
        };
        self.installation.with_offline_node(act).await
    }

    /// Makes the change to the principal, and tells of it.
    async fn change(
        self,
        patch: impl FnOnce(PrincipalId) -> Result<PrincipalPatch, Failure>,
        text: impl FnOnce(&Principal) -> String,
    ) -> Result<(), Failure> {
        let changed = if let Some(gateway) = self.installation.gateway(self.org.as_deref()).await? {
            let id = gateway.principal(&self.principal).await?.id;
            gateway.change_principal(id, &patch_body(patch(id)?)).await?
        } else {
            let change =
                async |shell: &Shell, id| Ok(shell.change_principal(id, patch(id)?).await?);
            self.with(change).await?
        };
        self.installation.output().record(&record(&changed), &text(&changed))
    }
}

fn in_groups(Principal { id, groups, .. }: &Principal) -> String {
    let names: Vec<&str> = groups.iter().map(String::as_str).collect();
    if names.is_empty() {
        format!("{id} is in no group but those that its logins name")
    } else {
        format!(
            "{id} is in these groups now, besides those that its logins name: {}",
            names.join(", ")
        )
    }
}

fn record(principal: &Principal) -> Value {
    json!({
        "id": principal.id,
        "org_id": principal.org_id,
        "name": principal.name,
        "role": principal.role.name(),
        "scopes": principal.role.scopes(),
        "groups": principal.groups,
        "created_at": principal.created_at,
        "disabled_at": principal.disabled_at,
    })
}
