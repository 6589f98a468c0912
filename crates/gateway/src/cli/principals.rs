//! `portcullis principal`.

mod keys;

use axum::http::Method;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use portcullis_core::{
    id::{PrincipalId, PrincipalKind},
    principal::ScopeSet,
};
use serde_json::{Value, json};

use super::{
    api::{Api, OfOrg, Orgs, Search, Shape, text, word},
    installation::Installation,
    output::Failure,
};

#[derive(Subcommand)]
pub(super) enum Principals {
    /// Make a user or a service account
    Create {
        /// Its name, for people; it is recorded in every event
        name: String,
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
        of: OfOrg,
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

/// Role or scopes of a principal as the API takes them.
fn role(kind: PrincipalKind, role: RoleName, scopes: Option<ScopeSet>) -> Result<Value, Failure> {
    match (kind, scopes) {
        (PrincipalKind::Service, Some(scopes)) => Ok(json!({ "scopes": scopes })),
        (PrincipalKind::Service, None) => {
            Err("a service account needs `--scopes`: it may do what is listed, nothing else".into())
        }
        (PrincipalKind::User, Some(_)) => Err("a user has a `--role`, no scopes of its own".into()),
        (PrincipalKind::User, None) => Ok(json!({ "role": word(&role) })),
    }
}

/// The same for a change: nothing is taken for granted, for a default would take rights away.
fn changed_role(
    kind: PrincipalKind,
    named: Option<RoleName>,
    scopes: Option<ScopeSet>,
) -> Result<Value, Failure> {
    match (kind, named) {
        (PrincipalKind::User, Some(named)) => role(kind, named, scopes),
        (PrincipalKind::User, None) => Err("say which `--role` the user has from now on".into()),
        (PrincipalKind::Service, None) => role(kind, RoleName::Member, scopes),
        (PrincipalKind::Service, Some(_)) => {
            Err("a service account has `--scopes`, no role of its own".into())
        }
    }
}

const SHAPE: Shape = Shape {
    members: &["id", "org_id", "name", "role", "scopes", "groups", "created_at", "disabled_at"],
    columns: &["id", "name", "role", "scopes", "groups", "disabled_at"],
    add: |_| (),
};

impl Principals {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create { name, kind, role: named, scopes, of } => {
                let word = word(&kind);
                let kind = match kind {
                    Kind::User => PrincipalKind::User,
                    Kind::Service => PrincipalKind::Service,
                };
                let role = role(kind, named, scopes)?;
                let asked = json!({
                    "name": name, "kind": word, "role": role.get("role"), "scopes": role.get("scopes"),
                });
                let create = async |api: &Api<'_>| {
                    api.record(api.post("/v1/principals", asked).await?, &SHAPE).await
                };
                let told = |it: &Value| {
                    format!("made {} ({name}, role {})", text(it, "id"), text(it, "role"))
                };
                of.show(create, told).await
            }
            Self::SetRole { whom, role: named, scopes } => {
                let patch = |id: PrincipalId| changed_role(id.kind(), named, scopes);
                let told = |it: &Value| {
                    let [id, role, scopes] = ["id", "role", "scopes"].map(|name| text(it, name));
                    format!("{id} has the role {role} now: {scopes}")
                };
                whom.change(patch, told).await
            }
            Self::SetGroups { whom, groups, none: _ } => {
                whom.change(|_| Ok(json!({ "groups": groups })), in_groups).await
            }
            Self::Disable { whom } => {
                let told = |it: &Value| {
                    format!("disabled {}: none of its tokens is accepted", text(it, "id"))
                };
                whom.change(|_| Ok(json!({ "disabled": true })), told).await
            }
            Self::Enable { whom } => {
                let told = |it: &Value| {
                    format!("enabled {}: its tokens are accepted again", text(it, "id"))
                };
                whom.change(|_| Ok(json!({ "disabled": false })), told).await
            }
            Self::Key(keys) => keys.run().await,
            Self::List { search, of } => {
                of.list("/v1/principals", search.parameter().as_slice(), &SHAPE).await
            }
        }
    }
}

impl Whom {
    /// Asks the API about the principal.
    async fn ask<T>(
        &self,
        act: impl AsyncFnOnce(&Api<'_>, PrincipalId) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let act = async |api: &Api<'_>| act(api, api.principal(&self.principal).await?).await;
        self.installation.ask(Orgs::Any(self.org.as_deref()), act).await
    }

    /// Makes the change to the principal, and tells of it.
    async fn change(
        self,
        patch: impl FnOnce(PrincipalId) -> Result<Value, Failure>,
        told: impl FnOnce(&Value) -> String,
    ) -> Result<(), Failure> {
        let send = async |api: &Api<'_>, id| {
            let place = format!("/v1/principals/{id}");
            let answer = api.send(Method::PATCH, &place, Some(&patch(id)?)).await?;
            api.record(answer, &SHAPE).await
        };
        let changed = self.ask(send).await?;
        self.installation.output().record(&changed, &told(&changed))
    }
}

fn in_groups(changed: &Value) -> String {
    let id = text(changed, "id");
    let names = changed.get("groups").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    if names.is_empty() {
        format!("{id} is in no group but those that its logins name")
    } else {
        format!(
            "{id} is in these groups now, besides those that its logins name: {}",
            names.join(", ")
        )
    }
}
