//! `portcullis audit hold`.

use clap::{Args, Subcommand};
use portcullis_app::{HoldRequest, hold_record};
use portcullis_core::{
    clock::Timestamp,
    id::{HoldId, PrincipalId},
};
use portcullis_store::Org;
use serde_json::{Value, json};

use super::{Failure, moment};
use crate::{
    boot::OfflineNode,
    cli::{installation::Installation, of_org::OfOrg, remote::body},
};

#[derive(Subcommand)]
pub(in super::super) enum Holds {
    /// Lay a hold: nothing that it covers is erased or pruned until it is lifted
    Add(Add),
    /// List the holds of an org, also those that were lifted
    List {
        #[command(flatten)]
        of: OfOrg,
    },
    /// Lift a hold
    Remove {
        /// Its id
        hold: HoldId,
        #[command(flatten)]
        of: OfOrg,
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
            Self::List { of } => {
                let holds = of.act(
                    async |gateway| gateway.list("/v1/audit/holds", &[]).await,
                    async |node, org| {
                        Ok(node.shell.holds(org.id).await?.iter().map(hold_record).collect())
                    },
                );
                let columns = ["id", "reason", "actor", "from", "to", "created_at", "released_at"];
                of.installation.output().table(&holds.await?, &columns)
            }
            Self::Remove { hold, of } => {
                let lifted = of.act(
                    async |gateway| {
                        gateway.delete(&format!("/v1/audit/holds/{hold}")).await.map(drop)
                    },
                    async |node, org| Ok(node.shell.lift_hold(org.id, hold).await?),
                );
                lifted.await?;
                let text = format!("lifted the hold {hold}");
                of.installation.output().record(&json!({ "id": hold }), &text)
            }
        }
    }
}

impl Add {
    async fn run(self) -> Result<(), Failure> {
        let Self { org, reason, actor, from, to, installation } = self;
        let of = OfOrg { org, installation };
        let hold = if let Some(gateway) = of.gateway().await? {
            let actor = match &actor {
                Some(named) if named.parse::<PrincipalId>().is_err() => {
                    Some(gateway.principal(named).await?.id.to_string())
                }
                Some(_) | None => actor,
            };
            let request = json!({ "reason": reason, "actor": actor, "from": from, "to": to });
            gateway.post("/v1/audit/holds", &body(request)).await?
        } else {
            let lay = async |node: &OfflineNode, Org { id: org, .. }: Org| {
                let actor = super::actor(node, org, actor.as_deref()).await?;
                let hold = HoldRequest { org, reason, actor, from, to };
                Ok(hold_record(&node.shell.lay_hold(hold).await?))
            };
            of.here(lay).await?
        };
        let id = hold.get("id").and_then(Value::as_str).unwrap_or_default();
        of.installation.output().record(&hold, &format!("laid the hold {id}"))
    }
}
