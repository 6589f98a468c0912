//! The log of an installation as it is: exported into a pipe, and verified as a file would be.

use std::{io, process::ExitCode};

use portcullis_app::{ExportError, ExportRequest, LogIdentity, Progress, origin};
use portcullis_core::audit::export::Fault;
use portcullis_store::{ExportBeat, Org};

use super::{Lines, Verify};
use crate::{boot::Office, cli::Failure};

impl Verify {
    pub(super) async fn run_live(mut self, org: &str) -> Result<ExitCode, Failure> {
        let config = self.installation.config()?;
        let office = self.installation.office().await?;
        let found = async {
            let org = office.shell.org(org).await?;
            let identity = office.log_identity(&config).await?;
            Ok::<_, Failure>((org, identity))
        };
        let code = match found.await {
            Ok((org, identity)) => {
                if self.keys.is_empty() {
                    let known = identity.keys.known(&origin(&identity.host, org.id))?;
                    self.keys = known.into_iter().map(|key| key.verifier).collect();
                }
                self.through_pipe(&office, &org, identity).await
            }
            Err(error) => Err(error),
        };
        office.close().await;
        code
    }

    async fn through_pipe(
        self,
        office: &Office,
        org: &Org,
        identity: LogIdentity,
    ) -> Result<ExitCode, Failure> {
        let (reader, writer) = io::pipe()?;
        let verifying = tokio::task::spawn_blocking(move || {
            let verified = self.verify_lines(Lines::of(reader));
            (self, verified)
        });
        let request = ExportRequest::whole(office.shell.clock.now());
        let out = (Box::new(writer) as _, None);
        let written = office.shell.write_log((org, identity), &request, out, &mut Silent).await;
        let (verify, verified) = verifying.await?;
        // A verifier that says no stops reading, so what it found comes first. A log that could not
        // be read to its end looks cut off to it.
        if let (Ok(_) | Err(Fault::Incomplete(_)), Err(error)) = (&verified, written) {
            return Err(error.into());
        }
        Ok(verify.tell(verified))
    }
}

/// Nobody is told how far it is.
struct Silent;

impl Progress for Silent {
    async fn reached(&mut self, _: ExportBeat) -> Result<(), ExportError> {
        Ok(())
    }
}
