//! `portcullis policy`: what a security team does with its policy files before they are in force.

mod cases;
mod compare;
mod explain;
mod init;
mod reload;
mod switch;
mod validate;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Subcommand};
use portcullis_app::{FolderFiles, PolicyFolder, Workbench};
use portcullis_core::policy::{PolicyError, PolicyFile, PolicySet};
use serde_json::Value;

pub(super) use self::validate::unknown_approvers;
use super::{
    installation::Installation,
    output::{Failure, Output},
};
use crate::{
    boot::{self, ToolSource},
    config::Config,
};

#[derive(Subcommand)]
pub(super) enum Policy {
    /// Load a policy folder as the gateway would, and tell every error with file, line and column
    Validate(validate::Validate),
    /// List the policies of a folder
    List(validate::List),
    /// Say what policies would say to the calls in a file (a body of POST /v1/policies/simulate)
    Simulate(cases::Simulate),
    /// Say why a recorded call was denied or allowed, and print a permit that would allow it
    Explain(explain::Explain),
    /// Run the cases in the folder's `tests`, or in files of your own
    Test(cases::Test),
    /// Tell what differs between two folders, or between what was last in force and a folder
    Diff(compare::Diff),
    /// Write a commented starter set for the tools of the providers
    Init(init::Init),
    /// Print the Cedar schema that policies are checked by, for editors: one action a tool
    ///
    /// With the facts of the folder. Its policies may have mistakes. In Cedar's syntax, or with
    /// `--json` in Cedar's JSON form.
    Schema(init::Schema),
    /// Print the tools of the providers, for `--tools` where no provider can be reached
    Tools(init::Tools),
    /// Switch a policy off for a while, whatever its file says
    Disable(switch::Disable),
    /// Take `disable` back before its time is over
    Enable(switch::Enable),
    /// Make the running gateway take the folder as it is, also when most of it is gone
    ///
    /// Waits for the result: exit code 0 if the set is in force, 1 with every error if not.
    Reload(reload::Reload),
}

impl Policy {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Validate(validate) => validate.run().await,
            Self::List(list) => list.run().await,
            Self::Simulate(simulate) => simulate.run().await,
            Self::Explain(explain) => explain.run().await,
            Self::Test(test) => test.run().await,
            Self::Diff(diff) => diff.run().await,
            Self::Init(init) => init.run().await,
            Self::Schema(schema) => schema.run().await,
            Self::Tools(tools) => tools.run().await,
            Self::Disable(disable) => disable.run().await,
            Self::Enable(enable) => enable.run().await,
            Self::Reload(reload) => reload.run().await,
        }
    }
}

/// Common inputs of these commands.
#[derive(Args)]
pub(super) struct Desk {
    #[command(flatten)]
    installation: Installation,
    /// The policy folder; without it that of the configuration
    #[arg(long, value_name = "FOLDER")]
    policies: Option<PathBuf>,
    /// Tools from a file (`portcullis policy tools`)
    ///
    /// Without it they are those that the database knows from a gateway that ran; providers of which it knows
    /// nothing are asked, and started if they are programs.
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Ask the providers for their tools although the database knows them
    #[arg(long, conflicts_with = "tools")]
    ask: bool,
}

impl Desk {
    fn output(&self) -> Output {
        self.installation.output()
    }

    /// The configuration. A gateway that the environment names does not concern the files of a folder.
    fn config(&self) -> Result<Config, Failure> {
        if self.installation.remote.url.is_some() {
            self.installation.config()?;
        }
        self.own_config()
    }

    /// The same, whatever gateway is named.
    fn own_config(&self) -> Result<Config, Failure> {
        let config = self.installation.own_config()?;
        Ok(if self.tools.is_some() { config } else { config.overlooks_none()? })
    }

    fn folder(&self, config: &Config) -> PathBuf {
        self.policies.clone().unwrap_or_else(|| config.policy_folder())
    }

    /// The tools. Told on stderr and no failure by itself: what could not be asked, and a node that decides by
    /// other policies than those of the folder.
    async fn bench(&self, config: &Config) -> Result<Workbench, Failure> {
        if self.policies.is_none() {
            self.installation.warn_if_outdated(config);
        }
        let described = match &self.tools {
            Some(file) => Some(read_json(file)?),
            None => None,
        };
        let source = match &described {
            Some(described) => ToolSource::Described(described),
            None if self.ask => ToolSource::Providers,
            None => ToolSource::Store,
        };
        let (bench, unread) = boot::workbench(config, source).await?;
        for provider in unread {
            self.output().warn(&format!("{provider}; its tools are not known here"));
        }
        Ok(bench)
    }

    /// The tools and the policies of the folder.
    async fn loaded(&self) -> Result<(Workbench, Arc<PolicySet>), Failure> {
        let config = self.config()?;
        let bench = self.bench(&config).await?;
        let folder = self.folder(&config);
        let set = load(&bench, &folder)?;
        Ok((bench, set))
    }
}

/// Every error of a folder that does not load.
#[derive(Debug, thiserror::Error)]
#[error("{}", shown.join("\n"))]
struct Broken {
    shown: Vec<String>,
}

fn load(bench: &Workbench, folder: &Path) -> Result<Arc<PolicySet>, Failure> {
    loaded(bench, folder, read(folder)?.policies)
}

fn loaded(
    bench: &Workbench,
    folder: &Path,
    files: Vec<PolicyFile>,
) -> Result<Arc<PolicySet>, Failure> {
    bench.load(files).map_err(|errors| {
        let shown = errors.iter().map(|error| line_of(folder, error)).collect();
        Broken { shown }.into()
    })
}

fn read(folder: &Path) -> Result<FolderFiles, Failure> {
    let files = PolicyFolder::new(folder.to_owned()).read();
    files.map_err(|error| format!("the policy folder `{}`: {error}", folder.display()).into())
}

/// `policies/github.cedar:7:12: message`.
fn line_of(folder: &Path, error: &PolicyError) -> String {
    let PolicyError { path, line, column, message, .. } = error;
    format!("{}:{line}:{column}: {message}", folder.join(path).display())
}

fn read_json(file: &Path) -> Result<Value, Failure> {
    let text =
        fs::read_to_string(file).map_err(|error| format!("`{}`: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("`{}`: {error}", file.display()).into())
}
