//! The connection of a call, and the tool as its server lists it now.

use portcullis_core::refusal::Refusal;

use super::Calls;
use crate::{
    base::admission::Admission, catalogue::Visible, request::Ctx, telemetry::stages::Stage,
};

impl Calls {
    /// Reads the list of the server again where it is older than a minute: the tool as it is listed
    /// now, or `None` if it is the same.
    pub(super) async fn refresh_tool(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        admission: &mut Admission,
    ) -> Result<Option<Visible>, Refusal> {
        self.enter_stage(ctx, Stage::Validate);
        self.providers.refresh_tool_list(visible, admission).await
    }

    /// Makes the connection usable, and refuses a call through one that rests after failures.
    pub(super) async fn connect(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        admission: &mut Admission,
    ) -> Result<(), Refusal> {
        self.enter_stage(ctx, Stage::Connection);
        let connection = &visible.connection;
        self.providers.ensure_credentials(connection, admission).await?;
        let resting = connection.server().check(connection.org, &visible.tool.definition.name);
        resting.map_err(|error| connection.refusal(&error))
    }
}
