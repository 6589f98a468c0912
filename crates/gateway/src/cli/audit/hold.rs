//! `portcullis audit hold`.

use axum::http::Method;
use clap::{Args, Subcommand};
use portcullis_app::{HoldRequest, hold_record};
use portcullis_core::{
    clock::Timestamp,
    id::{HoldId, PrincipalId},
};
use serde_json::{Value, json};

use super::{
    super::{Installation, remote::body},
    Failure, moment,
};

#[derive(Subcommand)]
pub(in super::super) enum Holds {
    /// Lay a hold: nothing that it covers is erased or pruned until it is lifted
    Add(Add),
    /// List the holds of an org, also those that were lifted
    List {
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Lift a hold
    Remove {
        /// Its id
        hold: HoldId,
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
}

#[derive(Args)]
pub(in super::super) struct Add {
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    org: Option<String>,
    /// Reason, which is recorded
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Only what this principal (id or name) did and what was done on its behalf
    #[arg(long, value_name = "PRINCIPAL")]
    actor: Option<String>,
    /// Only what was recorded at this moment or later
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Timestamp>,
    /// Only what was recorded before this moment
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Timestamp>,
    #[command(flatten)]
    installation: Installation,
}

impl Holds {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Add(add) => add.run().await,
            Self::List { org, installation } => list(org.as_deref(), &installation).await,
            Self::Remove { hold, org, installation } => {
                remove(hold, org.as_deref(), &installation).await
            }
        }
    }
}

impl Add {
    async fn run(self) -> Result<(), Failure> {
        let Self { org, reason, actor, from, to, installation } = self;
        let hold = if let Some(gateway) = installation.gateway(org.as_deref()).await? {
            let actor = match &actor {
                Some(named) if named.parse::<PrincipalId>().is_err() => {
                    Some(gateway.principal(named).await?.id.to_string())
                }
                Some(_) | None => actor,
            };
            let asked = json!({ "reason": reason, "actor": actor, "from": from, "to": to });
            gateway.send(Method::POST, "/v1/audit/holds", Some(&body(asked))).await?
        } else {
            let office = installation.office().await?;
            let laid = async {
                let org = office.shell.org_or_only(org.as_deref()).await?.id;
                let actor = super::actor(&office, org, actor.as_deref()).await?;
                office.shell.lay_hold(HoldRequest { org, reason, actor, from, to }).await
            };
            let laid = laid.await;
            office.close().await;
            hold_record(&laid?)
        };
        let id = hold.get("id").and_then(Value::as_str).unwrap_or_default();
        installation.output().record(&hold, &format!("laid the hold {id}"))
    }
}

async fn list(org: Option<&str>, installation: &Installation) -> Result<(), Failure> {
    let records: Vec<Value> = if let Some(gateway) = installation.gateway(org).await? {
        gateway.list("/v1/audit/holds", &[]).await?
    } else {
        let office = installation.office().await?;
        let holds = async { office.shell.holds(office.shell.org_or_only(org).await?.id).await };
        let holds = holds.await;
        office.close().await;
        holds?.iter().map(hold_record).collect()
    };
    let columns = ["id", "reason", "actor", "from", "to", "created_at", "released_at"];
    installation.output().table(&records, &columns)
}

async fn remove(
    hold: HoldId,
    org: Option<&str>,
    installation: &Installation,
) -> Result<(), Failure> {
    if let Some(gateway) = installation.gateway(org).await? {
        gateway.send(Method::DELETE, &format!("/v1/audit/holds/{hold}"), None).await?;
    } else {
        let office = installation.office().await?;
        let lifted = async {
            let org = office.shell.org_or_only(org).await?.id;
            office.shell.lift_hold(org, hold).await
        };
        let lifted = lifted.await;
        office.close().await;
        lifted?;
    }
    let text = format!("lifted the hold {hold}");
    installation.output().record(&json!({ "id": hold }), &text)
}
