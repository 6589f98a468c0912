//! `portcullis trust`.

mod verdict;

use std::{fs::File, io, io::Read, path::PathBuf};

use clap::{
    Args, Subcommand,
    builder::{StringValueParser, TypedValueParser},
};
use portcullis_core::{secret::Secret, trust::MAX_JWT_BYTES};

use self::verdict::Verdict;
use super::{installation::Installation, output::Failure};
use crate::boot;

#[derive(Subcommand)]
pub(super) enum TrustCommand {
    /// Tell which trust rule a JWT matches, or which check fails, rule by rule
    ///
    /// The JWT is read from a file or from standard input, never from the command line, where
    /// others could see it, and it is never printed. Nothing is exchanged and nothing remembered.
    /// Exit code 0 means that the JWT would be accepted.
    Test(Test),
}

#[derive(Args)]
pub(super) struct Test {
    /// The file that holds the JWT; `-` is standard input
    #[arg(long, value_name = "FILE", default_value = "-")]
    jwt_file: PathBuf,
    /// Look at the rules of this org (its id or name) only, as a request with `org_id` does
    #[arg(long)]
    org: Option<String>,
    /// Takes what belongs into a file, so that it is refused without being repeated
    #[arg(hide = true, value_parser = StringValueParser::new().map(Secret::new))]
    misplaced: Option<Secret>,
    #[command(flatten)]
    installation: Installation,
}

impl TrustCommand {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Self::Test(test) = self;
        test.run().await
    }
}

impl Test {
    async fn run(self) -> Result<(), Failure> {
        if self.misplaced.is_some() {
            return Err("put the JWT into a file (`--jwt-file`) or on standard input: others can \
                        see command lines"
                .into());
        }
        let (trust, clock) = boot::trust(&self.installation.config()?).await?;
        let org = self.installation.org_id(self.org.as_deref()).await?;
        let jwt = self.jwt()?;
        let verdict = Verdict::of(jwt.trim(), org, &trust, clock.now()).await;
        self.installation.output().record(&verdict.to_json(), &verdict.to_text())?;
        match verdict.refused() {
            None => Ok(()),
            Some(why) => Err(format!("the JWT would be refused: {why}").into()),
        }
    }

    fn jwt(&self) -> Result<String, Failure> {
        let source: Box<dyn Read> = if self.jwt_file.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            let shown = self.jwt_file.display();
            Box::new(File::open(&self.jwt_file).map_err(|error| format!("`{shown}`: {error}"))?)
        };
        // One byte more than is looked at, and room for white space around it.
        let limit = u64::try_from(MAX_JWT_BYTES)? + 1024;
        let mut text = String::new();
        let read = source.take(limit).read_to_string(&mut text);
        read.map_err(|_| "the JWT cannot be read as text")?;
        Ok(text)
    }
}
