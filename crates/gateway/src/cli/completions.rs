//! `portcullis completions`.

use clap::{Args, Command};
use clap_complete::Shell;

use super::output::{Failure, Output};

/// Print completions for a shell
#[derive(Args)]
#[command(
    after_help = "Examples:\n  portcullis completions bash > /etc/bash_completion.d/portcullis\n  \
                  portcullis completions zsh > ~/.zfunc/_portcullis\n  \
                  portcullis completions fish > ~/.config/fish/completions/portcullis.fish"
)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, mut command: Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "portcullis", &mut script);
        Output::new(false).line(String::from_utf8_lossy(&script).trim_end())
    }
}
