//! `portcullis principal`.

use clap::{Subcommand, ValueEnum};
use portcullis_core::{
    id::PrincipalKind,
    principal::{Role, ScopeSet},
};
use portcullis_store::Principal;
use serde_json::{Value, json};

use super::{Failure, Installation};

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
        #[arg(long, value_name = "SCOPES", value_parser = super::scopes)]
        scopes: Option<ScopeSet>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Give a principal another role, or a service account other scopes; running nodes follow
    /// within 5 seconds
    SetRole {
        /// Id (`usr_…`, `sa_…`) or name
        principal: String,
        /// Id or name of the org, where several have a principal of that name
        #[arg(long)]
        org: Option<String>,
        /// New role of a user
        #[arg(long, value_enum)]
        role: Option<RoleName>,
        /// New scopes of a service account
        #[arg(long, value_name = "SCOPES", value_parser = super::scopes)]
        scopes: Option<ScopeSet>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Accept none of a principal's tokens any more; running nodes follow within 5 seconds
    Disable {
        /// Id (`usr_…`, `sa_…`) or name
        principal: String,
        /// Id or name of the org, where several have a principal of that name
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Accept a principal's tokens again
    Enable {
        /// Id (`usr_…`, `sa_…`) or name
        principal: String,
        /// Id or name of the org, where several have a principal of that name
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
    /// List everybody in an org
    List {
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
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
                let office = installation.office().await?;
                let created = async {
                    let org = office.shell.org_or_only(org.as_deref()).await?;
                    office.shell.create_principal(org.id, &name, kind, role).await
                };
                let created = created.await;
                office.close().await;
                let principal = created?;
                let text = format!("made {} ({name}, role {})", principal.id, role.name());
                installation.output().record(&record(&principal), &text)
            }
            Self::SetRole { principal, org, role: named, scopes, installation } => {
                let wanted = (named, scopes);
                set_role((&principal, org.as_deref()), wanted, &installation).await
            }
            Self::Disable { principal, org, installation } => {
                disable(&principal, org.as_deref(), &installation).await
            }
            Self::Enable { principal, org, installation } => {
                enable(&principal, org.as_deref(), &installation).await
            }
            Self::List { org, installation } => {
                let office = installation.office().await?;
                let listed = async {
                    let org = office.shell.org_or_only(org.as_deref()).await?;
                    office.shell.principals(org.id).await
                };
                let listed = listed.await;
                office.close().await;
                let records: Vec<Value> = listed?.iter().map(record).collect();
                installation
                    .output()
                    .table(&records, &["id", "name", "role", "scopes", "disabled_at"])
            }
        }
    }
}

async fn set_role(
    (principal, org): (&str, Option<&str>),
    (named, scopes): (Option<RoleName>, Option<ScopeSet>),
    installation: &Installation,
) -> Result<(), Failure> {
    let office = installation.office().await?;
    let changed = async {
        let id = office.shell.principal_of(org, principal).await?.id;
        let role = changed_role(id.kind(), named, scopes)?;
        Ok::<_, Failure>(office.shell.set_role(id, role).await?)
    };
    let changed = changed.await;
    office.close().await;
    let changed = changed?;
    let (id, role) = (changed.id, changed.role);
    let text = format!("{id} has the role {} now: {}", role.name(), role.scopes());
    installation.output().record(&record(&changed), &text)
}

async fn disable(
    principal: &str,
    org: Option<&str>,
    installation: &Installation,
) -> Result<(), Failure> {
    let office = installation.office().await?;
    let disabled = async {
        let id = office.shell.principal_of(org, principal).await?.id;
        office.shell.disable_principal(id).await
    };
    let disabled = disabled.await;
    office.close().await;
    let disabled = disabled?;
    let text = format!("disabled {}: none of its tokens is accepted", disabled.id);
    installation.output().record(&record(&disabled), &text)
}

async fn enable(
    principal: &str,
    org: Option<&str>,
    installation: &Installation,
) -> Result<(), Failure> {
    let office = installation.office().await?;
    let enabled = async {
        let id = office.shell.principal_of(org, principal).await?.id;
        office.shell.enable_principal(id).await
    };
    let enabled = enabled.await;
    office.close().await;
    let enabled = enabled?;
    let text = format!("enabled {}: its tokens are accepted again", enabled.id);
    installation.output().record(&record(&enabled), &text)
}

fn record(principal: &Principal) -> Value {
    json!({
        "id": principal.id,
        "org_id": principal.org_id,
        "name": principal.name,
        "role": principal.role.name(),
        "scopes": principal.role.scopes(),
        "created_at": principal.created_at,
        "disabled_at": principal.disabled_at,
    })
}
