//! `portcullis org`.

use std::num::NonZeroU32;

use clap::{Args, Subcommand, ValueEnum};
use portcullis_core::principal::Plan;
use portcullis_store::Org;
use serde_json::{Value, json};

use super::{
    api::{OfOrg, Shape},
    installation::Installation,
    output::Failure,
};
use crate::boot::OfflineNode;

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
        #[arg(value_name = "ORG", conflicts_with = "org")]
        named: Option<String>,
        #[command(flatten)]
        of: OfOrg,
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

/// The org of a token, with what it used of its limits.
const SHAPE: Shape = Shape {
    members: &[
        "id",
        "name",
        "plan",
        "requests_per_minute=/limits/requests_per_minute",
        "invocations_per_minute=/limits/invocations_per_minute",
        "created_at",
        "disabled_at",
        "used",
    ],
    columns: &[],
    add: |_| (),
};

async fn show(of: &OfOrg) -> Result<(), Failure> {
    let named = of.org.as_deref();
    let shown = if let Some(api) = of.installation.gateway(named).await? {
        api.record(api.get("/v1/org").await?, &SHAPE).await?
    } else {
        let find = async |node: &OfflineNode| Ok(node.operator.org_or_only(named).await?);
        record(&of.installation.with_offline_node(find).await?)
    };
    of.installation.output().members(&shown)
}

impl Orgs {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create { name, plan, installation } => {
                let plan = plan.plan()?;
                let create =
                    async |node: &OfflineNode| Ok(node.operator.create_org(&name, plan).await?);
                let org = installation.with_offline_node(create).await?;
                let text = format!("made the org {} ({name}, plan {})", org.id, org.plan.name());
                installation.output().record(&record(&org), &text)
            }
            Self::List { installation } => {
                let list = async |node: &OfflineNode| Ok(node.operator.orgs().await?);
                let orgs = installation.with_offline_node(list).await?;
                let records: Vec<Value> = orgs.iter().map(record).collect();
                let columns = [
                    "id", "name", "plan", "requests_per_minute", "invocations_per_minute",
                    "disabled_at",
                ];
                installation.output().table(&records, &columns)
            }
            Self::Show { named, mut of } => {
                of.org = named.or(of.org.take());
                show(&of).await
            }
            Self::Disable { org, installation } => {
                let disable = async |node: &OfflineNode, org: &Org| {
                    Ok(node.operator.disable_org(org).await?)
                };
                let org = change(&org, &installation, disable).await?;
                let text = format!("disabled {}: none of its tokens is accepted", org.id);
                installation.output().record(&record(&org), &text)
            }
            Self::Enable { org, installation } => {
                let enable =
                    async |node: &OfflineNode, org: &Org| Ok(node.operator.enable_org(org).await?);
                let org = change(&org, &installation, enable).await?;
                let text = format!("enabled {}: its tokens are accepted again", org.id);
                installation.output().record(&record(&org), &text)
            }
            Self::SetPlan { org, plan, installation } => {
                let plan = plan.plan()?;
                let set_plan = async |node: &OfflineNode, org: &Org| {
                    Ok(node.operator.set_plan(org, plan).await?)
                };
                let org = change(&org, &installation, set_plan).await?;
                let text = format!("{} has the plan {} now", org.id, plan.name());
                installation.output().record(&record(&org), &text)
            }
        }
    }
}

/// Changes an org; gives it as it is then.
async fn change(
    org: &str,
    installation: &Installation,
    change: impl AsyncFnOnce(&OfflineNode, &Org) -> Result<(), Failure>,
) -> Result<Org, Failure> {
    let changed = async |node: &OfflineNode| {
        let org = node.operator.org(org).await?;
        change(node, &org).await?;
        Ok(node.operator.org(&org.id.to_string()).await?)
    };
    installation.with_offline_node(changed).await
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
