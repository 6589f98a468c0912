//! `portcullis org`: the orgs as only the operator sees and changes them; `show` over the API is of the token's org and
//! tells what it used.

use std::num::NonZeroU32;

use axum::http::Method;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::{
    api::{Api, OfOrg, Orgs as About, Shape, text, word},
    installation::Installation,
    output::{Failure, visible},
};

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
    /// The plan in the body of a request, with the name of a new org.
    fn body(&self, name: Option<&str>) -> Value {
        json!({
            "name": name,
            "plan": word(&self.plan),
            "requests_per_minute": self.requests_per_minute,
            "invocations_per_minute": self.invocations_per_minute,
        })
    }
}

const COLUMNS: [&str; 6] =
    ["id", "name", "plan", "requests_per_minute", "invocations_per_minute", "disabled_at"];

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
        Api::Own(_) => api.get("/operator/org").await,
    };
    of.installation.output().members(&of.ask(find).await?)
}

impl Orgs {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create { name, plan, installation } => {
                let body = plan.body(Some(&name));
                let create = async |api: &Api<'_>| api.post("/operator/orgs", body).await;
                let org = installation.operate(About::Installation, create).await?;
                let [id, plan] = ["id", "plan"].map(|member| text(&org, member));
                let told = format!("made the org {id} ({}, plan {plan})", visible(&name));
                installation.output().record(&org, &told)
            }
            Self::List { installation } => {
                let list = async |api: &Api<'_>| api.list("/operator/orgs", &[]).await;
                let orgs = installation.operate(About::Installation, list).await?;
                installation.output().table(&orgs, &COLUMNS)
            }
            Self::Show { named, mut of } => {
                of.org = named.or(of.org.take());
                show(&of).await
            }
            Self::Disable { org, installation } => {
                let told =
                    |id: &str, _: &str| format!("disabled {id}: none of its tokens is accepted");
                change(&org, &installation, json!({ "disabled": true }), told).await
            }
            Self::Enable { org, installation } => {
                let told =
                    |id: &str, _: &str| format!("enabled {id}: its tokens are accepted again");
                change(&org, &installation, json!({ "disabled": false }), told).await
            }
            Self::SetPlan { org, plan, installation } => {
                let told = |id: &str, plan: &str| format!("{id} has the plan {plan} now");
                change(&org, &installation, plan.body(None), told).await
            }
        }
    }
}

/// Changes an org. What is told of it follows from its id and its plan.
async fn change(
    named: &str,
    installation: &Installation,
    body: Value,
    told: fn(&str, &str) -> String,
) -> Result<(), Failure> {
    let change = async |api: &Api<'_>| api.send(Method::PATCH, "/operator/org", Some(&body)).await;
    let org = installation.operate(About::One(Some(named)), change).await?;
    installation.output().record(&org, &told(text(&org, "id"), text(&org, "plan")))
}
