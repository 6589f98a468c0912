//! `portcullis approval`.

use clap::{Args, Subcommand, builder};
use portcullis_core::{
    approval::{Status, Vote},
    id::ApprovalId,
};
use serde_json::{Value, json};

use super::{
    api::{Api, OfOrg, Shape, text},
    output::Failure,
};

#[derive(Subcommand)]
pub(super) enum Approvals {
    /// List approvals of an org, the newest first
    List {
        /// Only those with this status at this moment
        #[arg(long, value_parser = builder::PossibleValuesParser::new(Status::ALL.map(described)))]
        status: Option<String>,
        #[command(flatten)]
        of: OfOrg,
    },
    /// Show one approval in full: the call that it is bound to, and what was decided
    Show {
        /// Its id: `apr_…`
        approval: ApprovalId,
        #[command(flatten)]
        of: OfOrg,
    },
    /// Say yes to the call; it runs when its caller makes it again
    ///
    /// Recorded as a decision of the operator, with the user of the operating system. The operator
    /// counts as one of the people that the policy asks for, whatever groups it names.
    Approve(Decision),
    /// Say no to the call; this request cannot be approved any more
    ///
    /// Recorded as a decision of the operator, with the user of the operating system.
    Deny(Decision),
}

#[derive(Args)]
pub(super) struct Decision {
    /// Its id: `apr_…`
    approval: ApprovalId,
    /// The reason, which is recorded and shown to requester and approvers
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    of: OfOrg,
}

fn described(status: Status) -> builder::PossibleValue {
    builder::PossibleValue::new(status.as_str()).help(match status {
        Status::Pending => "A person has to decide",
        Status::Approved => "The call may run",
        Status::Denied => "A person said no",
        Status::Expired => "Its time is over, or what it was bound to ended",
        Status::Consumed => "The call ran as often as it may",
    })
}

const SHAPE: Shape = Shape {
    members: &[
        "id",
        "status",
        "requester=/requester/principal_name",
        "requester_id=/requester/principal_id",
        "tool=/tool/id",
        "policy=/policy/id",
        "approved_by",
        "digest",
        "created_at",
        "expires_at",
    ],
    columns: &["id", "status", "requester", "tool", "policy", "approved_by", "expires_at"],
    add: |members| {
        let decisions = members.get("decisions").and_then(Value::as_array);
        let says_yes = |it: &&Value| it.get("decision") == Some(&json!(Vote::Approve));
        let yes = decisions.map_or(0, |all| all.iter().filter(says_yes).count());
        let needed = members.get("terms").and_then(|it| it.get("approvals")).cloned();
        let approved_by = format!("{yes} of {}", needed.unwrap_or_default());
        members.insert("approved_by".to_owned(), Value::from(approved_by));
    },
};

impl Approvals {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { status, of } => {
                let only = status.as_deref().map(|status| ("status", status));
                of.list("/v1/approvals", only.as_slice(), &SHAPE).await
            }
            Self::Show { approval, of } => {
                let path = format!("/v1/approvals/{approval}");
                let found = of.ask(async |api: &Api<'_>| api.get(&path).await).await?;
                of.installation.output().members(&found)
            }
            Self::Approve(decision) => decision.run(Vote::Approve).await,
            Self::Deny(decision) => decision.run(Vote::Deny).await,
        }
    }
}

impl Decision {
    async fn run(self, vote: Vote) -> Result<(), Failure> {
        let Self { approval, reason, of } = self;
        let path = format!("/v1/approvals/{approval}/decision");
        let request = json!({ "decision": vote, "comment": reason });
        let decide = async |api: &Api<'_>| api.post(&path, request).await;
        of.show(decide, |it| format!("{approval} is {}", text(it, "status"))).await
    }
}
