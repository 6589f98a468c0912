//! `portcullis org`.

use std::num::NonZeroU32;

use clap::{Args, Subcommand, ValueEnum};
use portcullis_core::principal::Plan;
use portcullis_store::Org;
use serde_json::{Value, json};

use super::{Failure, Installation, remote::org_record};

#[derive(Subcommand)]
pub(super) enum Orgs {
    /// Make an org
    Create {
        /// Its name, unique in this installation
        name: String,
        #[command(flatten)]
        plan: PlanArgs,
        #[command(flatten)]
        installation: Installation,
    },
    /// Show an org with its plan and limits, and over the API what it used of them
    Show {
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
    /// List every org
    List {
        #[command(flatten)]
        installation: Installation,
    },
    /// Accept none of an org's tokens any more; running nodes follow within 5 seconds
    Disable {
        /// Id or name of the org
        org: String,
        #[command(flatten)]
        installation: Installation,
    },
    /// Accept an org's tokens again
    Enable {
        /// Id or name of the org
        org: String,
        #[command(flatten)]
        installation: Installation,
    },
    /// Change an org's plan; running nodes follow within 5 seconds
    SetPlan {
        /// Id or name of the org
        org: String,
        #[command(flatten)]
        plan: PlanArgs,
        #[command(flatten)]
        installation: Installation,
    },
}

#[derive(Args)]
pub(super) struct PlanArgs {
    /// Plan of the org: free is 60 requests and 10 invocations a minute, pro 600 and 100
    #[arg(long, value_enum, default_value_t = PlanName::Free)]
    plan: PlanName,
    /// Requests a minute, for the plan enterprise
    #[arg(long, value_name = "N", required_if_eq("plan", "enterprise"))]
    requests_per_minute: Option<NonZeroU32>,
    /// Invocations a minute, for the plan enterprise
    #[arg(long, value_name = "N", required_if_eq("plan", "enterprise"))]
    invocations_per_minute: Option<NonZeroU32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum PlanName {
    Free,
    Pro,
    Enterprise,
}

impl PlanArgs {
    fn plan(&self) -> Result<Plan, Failure> {
        let numbers = (self.requests_per_minute, self.invocations_per_minute);
        match (self.plan, numbers) {
            (PlanName::Free, (None, None)) => Ok(Plan::Free),
            (PlanName::Pro, (None, None)) => Ok(Plan::Pro),
            (PlanName::Enterprise, (Some(requests), Some(invocations))) => {
                Ok(Plan::Enterprise { requests, invocations })
            }
            (PlanName::Free | PlanName::Pro | PlanName::Enterprise, _) => {
                Err("only the plan enterprise has numbers of its own, and it needs both".into())
            }
        }
    }
}

async fn show(org: Option<&str>, installation: &Installation) -> Result<(), Failure> {
    let shown = if let Some(gateway) = installation.gateway(org).await? {
        let told = gateway.get("/v1/org").await?;
        let mut shown = org_record(&told);
        if let (Value::Object(members), Some(used)) = (&mut shown, told.get("used")) {
            members.insert("used".to_owned(), used.clone());
        }
        shown
    } else {
        let office = installation.office().await?;
        let found = office.shell.org_or_only(org).await;
        office.close().await;
        record(&found?)
    };
    installation.output().members(&shown)
}

impl Orgs {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create { name, plan, installation } => {
                let plan = plan.plan()?;
                let office = installation.office().await?;
                let created = office.shell.create_org(&name, plan).await;
                office.close().await;
                let org = created?;
                let text = format!("made the org {} ({name}, plan {})", org.id, org.plan.name());
                installation.output().record(&record(&org), &text)
            }
            Self::List { installation } => {
                let office = installation.office().await?;
                let orgs = office.shell.orgs().await;
                office.close().await;
                let records: Vec<Value> = orgs?.iter().map(record).collect();
                let columns = [
                    "id",
                    "name",
                    "plan",
                    "requests_per_minute",
                    "invocations_per_minute",
                    "disabled_at",
                ];
                installation.output().table(&records, &columns)
            }
            Self::Show { org, installation } => show(org.as_deref(), &installation).await,
            Self::Disable { org, installation } => disable(&org, &installation).await,
            Self::Enable { org, installation } => enable(&org, &installation).await,
            Self::SetPlan { org, plan, installation } => {
                let plan = plan.plan()?;
                let office = installation.office().await?;
                let changed = async {
                    let org = office.shell.org(&org).await?;
                    office.shell.set_plan(&org, plan).await?;
                    Ok::<_, Failure>(Org { plan, ..org })
                };
                let changed = changed.await;
                office.close().await;
                let org = changed?;
                let text = format!("{} has the plan {} now", org.id, plan.name());
                installation.output().record(&record(&org), &text)
            }
        }
    }
}

async fn disable(org: &str, installation: &Installation) -> Result<(), Failure> {
    let office = installation.office().await?;
    let disabled = async {
        let org = office.shell.org(org).await?;
        office.shell.disable_org(&org).await?;
        office.shell.org(&org.id.to_string()).await
    };
    let disabled = disabled.await;
    office.close().await;
    let org = disabled?;
    let text = format!("disabled {}: none of its tokens is accepted", org.id);
    installation.output().record(&record(&org), &text)
}

async fn enable(org: &str, installation: &Installation) -> Result<(), Failure> {
    let office = installation.office().await?;
    let enabled = async {
        let org = office.shell.org(org).await?;
        office.shell.enable_org(&org).await?;
        office.shell.org(&org.id.to_string()).await
    };
    let enabled = enabled.await;
    office.close().await;
    let org = enabled?;
    let text = format!("enabled {}: its tokens are accepted again", org.id);
    installation.output().record(&record(&org), &text)
}

fn record(org: &Org) -> Value {
    json!({
        "id": org.id,
        "name": org.name,
        "plan": org.plan.name(),
        "requests_per_minute": org.plan.requests_per_minute(),
        "invocations_per_minute": org.plan.invocations_per_minute(),
        "created_at": org.created_at,
        "disabled_at": org.disabled_at,
    })
}
