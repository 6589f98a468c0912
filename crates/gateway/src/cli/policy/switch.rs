//! `portcullis policy disable` and `portcullis policy enable`: the kill switch.

use std::fmt::Write as _;

use clap::Args;
use portcullis_app::Overrides;

use super::{Failure, Installation, read};
use crate::{
    boot,
    config::{Config, seconds},
};

/// The longest a policy can be off: what is meant for longer belongs into its file.
const MAX_TTL: i64 = 7 * 24 * 60 * 60;

#[derive(Args)]
pub(in crate::cli) struct Disable {
    #[command(flatten)]
    installation: Installation,
    /// The policy's `@id`
    id: String,
    /// For how long, such as 30m or 1h; at most 7d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    ttl: i64,
}

#[derive(Args)]
pub(in crate::cli) struct Enable {
    #[command(flatten)]
    installation: Installation,
    /// The policy's `@id`
    id: String,
}

impl Disable {
    /// Writes it down; a gateway that runs takes it within two seconds.
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.ttl > MAX_TTL {
            return Err("`--ttl` is 7d at most; for longer, change the policy's file".into());
        }
        let config = self.installation.config()?;
        self.is_there(&config)?;
        let now = boot::now();
        let until = now.plus_seconds(self.ttl);
        Overrides::new(config.overrides_file()).disable(&self.id, until, now)?;
        self.installation.output().line(&format!("`{}` is off until {until}", self.id))
    }

    /// Fails if no policy of the folder has this name.
    fn is_there(&self, config: &Config) -> Result<(), Failure> {
        let mut wanted = String::new();
        write!(wanted, "@id({})", serde_json::Value::from(self.id.as_str()))?;
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
    pub(super) fn run(self) -> Result<(), Failure> {
        let overrides = Overrides::new(self.installation.config()?.overrides_file());
        let line = if overrides.enable(&self.id, boot::now())? {
            format!("`{}` is as its file says", self.id)
        } else {
            format!("`{}` was not switched off", self.id)
        };
        self.installation.output().line(&line)
    }
}
