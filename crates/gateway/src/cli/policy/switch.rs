//! `portcullis policy disable` and `portcullis policy enable`: the kill switch. On a node the switch is a file, which
//! counts for every org and needs no database; over the API it is a recorded change of one org.

use std::fmt::Write as _;

use axum::http::Method;
use clap::Args;
use portcullis_app::{MAX_OVERRIDE_SECONDS, Overrides};
use serde_json::{Value, json};

use super::{Failure, Installation, read};
use crate::{
    boot,
    cli::{api::Api, remote::segment},
    config::{Config, seconds},
};

#[derive(Args)]
pub(in crate::cli) struct Disable {
    #[command(flatten)]
    installation: Installation,
    /// The policy's `@id`
    id: String,
    /// For how long, such as 30m or 1h; at most 7d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    ttl: i64,
    /// Reason, which is recorded; needed with `--url`, and goes with it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Args)]
pub(in crate::cli) struct Enable {
    #[command(flatten)]
    installation: Installation,
    /// The policy's `@id`
    id: String,
}

impl Disable {
    /// On the node it is off for every org; over the API for the org of the token, on all nodes. A gateway that runs
    /// takes it within two seconds.
    pub(super) async fn run(self) -> Result<(), Failure> {
        if self.ttl > MAX_OVERRIDE_SECONDS {
            return Err("`--ttl` is 7d at most; for longer, change the policy's file".into());
        }
        if let Some(gateway) = self.installation.gateway(None).await? {
            return self.run_at(&gateway).await;
        }
        if self.reason.is_some() {
            return Err(
                "`--reason` goes with `--url`: this switch has no event to record it in".into()
            );
        }
        let config = self.installation.config()?;
        self.is_there(&config)?;
        let now = boot::now();
        let until = now.plus_seconds(self.ttl);
        Overrides::new(config.overrides_file()).disable(&self.id, until, now)?;
        self.installation.output().line(&format!("`{}` is off until {until}", self.id))
    }

    async fn run_at(&self, gateway: &Api<'_>) -> Result<(), Failure> {
        let missing =
            "add `--reason TEXT`: a gateway that `--url` or PORTCULLIS_URL names records it";
        let reason = self.reason.as_deref().ok_or(missing)?;
        let request = json!({ "ttl": self.ttl, "reason": reason });
        let answer = gateway.send(Method::PUT, &override_of(&self.id), Some(&request)).await?;
        let until = answer.get("until").and_then(Value::as_str).unwrap_or_default();
        let text = format!("`{}` is off until {until} for the org of the token", self.id);
        self.installation.output().line(&text)
    }

    /// Fails if no policy of the folder has this name.
    fn is_there(&self, config: &Config) -> Result<(), Failure> {
        let mut wanted = String::new();
        write!(wanted, "@id({})", Value::from(self.id.as_str()))?;
        let folder = config.policy_folder();
        let files = read(&folder)?.policies;
        if files.iter().any(|file| file.text.replace(char::is_whitespace, "").contains(&wanted)) {
            return Ok(());
        }
        Err(format!("there is no policy `{}` in `{}`", self.id, folder.display()).into())
    }
}

impl Enable {
    /// Takes it back; a gateway that runs follows within two seconds.
    pub(super) async fn run(self) -> Result<(), Failure> {
        if let Some(gateway) = self.installation.gateway(None).await? {
            gateway.delete(&override_of(&self.id)).await?;
            let text = format!("`{}` is as its file says for the org of the token", self.id);
            return self.installation.output().line(&text);
        }
        let overrides = Overrides::new(self.installation.config()?.overrides_file());
        let line = if overrides.enable(&self.id, boot::now())? {
            format!("`{}` is as its file says", self.id)
        } else {
            format!("`{}` was not switched off", self.id)
        };
        self.installation.output().line(&line)
    }
}

fn override_of(id: &str) -> String {
    format!("/v1/policies/{}/override", segment(id))
}
