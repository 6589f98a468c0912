//! Filters of events, as in the API, as options.

use clap::Args;
use portcullis_core::id::{PrincipalId, TokenId};
use portcullis_store::filters::Given;

use crate::cli::{api::Api, output::Failure};

/// Only these events; options that are given all have to fit.
#[derive(Args)]
pub(super) struct Filters {
    /// Types, such as `mcp.invocation,token.revoked`
    #[arg(long = "type", value_delimiter = ',', value_name = "TYPE")]
    kind: Vec<String>,
    /// Actor: id (`usr_…`, `sa_…`) or name of a principal, or `tok_…`
    #[arg(long)]
    actor: Option<String>,
    /// Target: a tool id, `prv_…` or a name; `github:*` stands for all that begin so
    #[arg(long)]
    target: Option<String>,
    /// `allow` or `deny`
    #[arg(long, value_delimiter = ',')]
    decision: Vec<String>,
    /// Names of the policies that decided
    #[arg(long, value_delimiter = ',')]
    policy: Vec<String>,
    /// DLP result
    #[arg(long, value_delimiter = ',', value_name = "RESULT")]
    dlp_result: Vec<String>,
    /// Outcome
    #[arg(long, value_delimiter = ',')]
    outcome: Vec<String>,
    /// The request of a given answer: `req_…`
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

impl Filters {
    /// The filters by the names of the API, which looks up the name of an actor.
    pub(super) async fn into_parameters(mut self, api: &Api<'_>) -> Result<Given, Failure> {
        let is_id = |it: &str| it.parse::<TokenId>().is_ok() || it.parse::<PrincipalId>().is_ok();
        let is_name = |it: &&str| !it.trim().is_empty() && !is_id(it);
        if let Some(named) = self.actor.as_deref().filter(is_name) {
            self.actor = Some(api.principal(named).await?.to_string());
        }
        Ok(self.parameters().collect())
    }

    fn parameters(self) -> impl Iterator<Item = (String, Vec<String>)> {
        let one = |value: Option<String>| value.into_iter().collect();
        let all: [(&str, Vec<String>); 8] = [
            ("type", self.kind),
            ("actor", one(self.actor)),
            ("target", one(self.target)),
            ("decision", self.decision),
            ("policy", self.policy),
            ("dlp_result", self.dlp_result),
            ("outcome", self.outcome),
            ("request_id", one(self.request_id)),
        ];
        let given = all.into_iter().filter(|(_, values)| !values.is_empty());
        given.map(|(name, values)| (name.to_owned(), values))
    }
}
