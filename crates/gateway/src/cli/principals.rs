//! `portcullis principal`.

use clap::{Subcommand, ValueEnum};
use portcullis_core::{
    id::{PrincipalId, PrincipalKind},
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
        /// Id or name of the org
        #[arg(long)]
        org: String,
        /// A person, or a program
        #[arg(long = "type", value_enum, default_value_t = Kind::User)]
        kind: Kind,
        /// What a user is
        #[arg(long, value_enum, default_value_t = RoleName::Member)]
        role: RoleName,
        /// What a service account may do, such as "mcps:read mcps:invoke"
        #[arg(long, value_name = "SCOPES", value_parser = super::scopes)]
        scopes: Option<ScopeSet>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Give a principal another role, or a service account other scopes; running nodes follow
    /// within 5 seconds
    SetRole {
        /// `usr_…` or `sa_…`
        principal: PrincipalId,
        /// What a user is from now on
        #[arg(long, value_enum)]
        role: Option<RoleName>,
        /// What a service account may do from now on
        #[arg(long, value_name = "SCOPES", value_parser = super::scopes)]
        scopes: Option<ScopeSet>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Accept none of a principal's tokens any more; running nodes follow within 5 seconds
    Disable {
        /// `usr_…` or `sa_…`
        principal: PrincipalId,
        #[command(flatten)]
        installation: Installation,
    },
    /// Accept a principal's tokens again
    Enable {
        /// `usr_…` or `sa_…`
        principal: PrincipalId,
        #[command(flatten)]
        installation: Installation,
    },
    /// List everybody in an org
    List {
        /// Id or name of the org
        #[arg(long)]
        org: String,
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
                    let org = office.shell.org(&org).await?;
                    office.shell.create_principal(org.id, &name, kind, role).await
                };
                let created = created.await;
                office.close().await;
                let principal = created?;
                let text = format!("made {} ({name}, role {})", principal.id, role.name());
                installation.output().record(&record(&principal), &text)
            }
            Self::SetRole { principal, role: named, scopes, installation } => {
                let role = changed_role(principal.kind(), named, scopes)?;
                let office = installation.office().await?;
                let changed = office.shell.set_role(principal, role).await;
                office.close().await;
                let changed = changed?;
                let may = changed.role.scopes();
                let text = format!("{principal} has the role {} now: {may}", role.name());
                installation.output().record(&record(&changed), &text)
            }
            Self::Disable { principal, installation } => {
                let office = installation.office().await?;
                let disabled = office.shell.disable_principal(principal).await;
                office.close().await;
                let text = format!("disabled {principal}: none of its tokens is accepted");
                installation.output().record(&record(&disabled?), &text)
            }
            Self::Enable { principal, installation } => {
                let office = installation.office().await?;
                let enabled = office.shell.enable_principal(principal).await;
                office.close().await;
                let text = format!("enabled {principal}: its tokens are accepted again");
                installation.output().record(&record(&enabled?), &text)
            }
            Self::List { org, installation } => {
                let office = installation.office().await?;
                let listed = async {
                    let org = office.shell.org(&org).await?;
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
