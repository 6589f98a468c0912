//! `portcullis audit hold`.

use clap::{Args, Subcommand};
use portcullis_core::{clock::Timestamp, id::HoldId};
use serde_json::json;

use super::{Failure, moment};
use crate::cli::api::{Api, OfOrg, Shape, text};

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
    of: OfOrg,
}

const SHAPE: Shape = Shape {
    members: &[],
    columns: &["id", "reason", "actor", "from", "to", "created_at", "released_at"],
    add: |_| (),
};

impl Holds {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Add(add) => add.run().await,
            Self::List { of } => of.list("/v1/audit/holds", &[], &SHAPE).await,
            Self::Remove { hold, of } => {
                let lift = async |api: &Api<'_>| {
                    api.delete(&format!("/v1/audit/holds/{hold}")).await?;
                    Ok(json!({ "id": hold }))
                };
                of.show(lift, |_| format!("lifted the hold {hold}")).await
            }
        }
    }
}

impl Add {
    async fn run(self) -> Result<(), Failure> {
        let Self { reason, actor, from, to, of } = self;
        let lay = async |api: &Api<'_>| {
            let find = async |named: &str| api.principal(named).await;
            let actor = super::actor(actor.as_deref(), find).await?;
            let asked = json!({ "reason": reason, "actor": actor, "from": from, "to": to });
            api.post("/v1/audit/holds", asked).await
        };
        of.show(lay, |it| format!("laid the hold {}", text(it, "id"))).await
    }
}
