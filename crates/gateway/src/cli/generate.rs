//! `portcullis generate`: shell completions and man pages, for packages.

use std::{fs, path::PathBuf};

use clap::{Args, Command, ValueEnum as _};
use clap_complete::Shell;

use super::output::Failure;

#[derive(Args)]
pub(super) struct Generate {
    /// The folder to write `completions/` and `man/` to
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

impl Generate {
    /// Writes a completion file for each shell, and a man page for each command that is shown.
    pub(super) fn run(self, mut command: Command) -> Result<(), Failure> {
        let [completions, man] = ["completions", "man"].map(|name| self.out.join(name));
        fs::create_dir_all(&completions)?;
        fs::create_dir_all(&man)?;
        // First: completions add `help` commands, which need no pages.
        clap_mangen::generate_to(command.clone(), man)?;
        for shell in Shell::value_variants() {
            clap_complete::generate_to(*shell, &mut command, "portcullis", &completions)?;
        }
        Ok(())
    }
}
