//! `portcullis org`: on a node, the orgs as only the operator sees and changes them; `show` over the API is of the
//! token's org and tells what it used.

use std::num::NonZeroU32;

use clap::{Args, Subcommand, ValueEnum};
use portcullis_app::OrgChange;
use portcullis_core::principal::Plan;
use portcullis_store::Org;
use serde_json::{Value, json};

use super::{
    api::{Api, OfOrg, Shape},
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
    let find = async |api: &Api<'_>| match api {
        Api::Remote(_) => api.record(api.get("/v1/org").await?, &SHAPE).await,
        Api::Own(own) => Ok(record(own.org()?)),
    };
    of.installation.output().members(&of.ask(find).await?)
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
                change(&org, &installation, OrgChange::Disabled).await
            }
            Self::Enable { org, installation } => {
                change(&org, &installation, OrgChange::Enabled).await
            }
            Self::SetPlan { org, plan, installation } => {
                change(&org, &installation, OrgChange::Plan(plan.plan()?)).await
            }
        }
    }
}

async fn change(named: &str, installation: &Installation, to: OrgChange) -> Result<(), Failure> {
    let change = async |node: &OfflineNode| Ok(node.operator.change_org(named, to).await?);
    let org = installation.with_offline_node(change).await?;
    let text = match to {
        OrgChange::Plan(plan) => format!("{} has the plan {} now", org.id, plan.name()),
        OrgChange::Disabled => format!("disabled {}: none of its tokens is accepted", org.id),
        OrgChange::Enabled => format!("enabled {}: its tokens are accepted again", org.id),
    };
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
