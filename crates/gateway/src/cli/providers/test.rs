//! `portcullis provider test`.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use portcullis_app::{
    Answered, Conversation, Ctx, Fallback, Invocation, Origin, PresentedToken, Purpose, Stages,
    View, tool_named,
};
use portcullis_core::{
    call::Aim,
    id::{Ids, RequestId},
    json::{Bounds, Document},
    secret::Secret,
};
use serde_json::{Value, json};

use crate::{
    boot::{Mode, Node, SystemClock, SystemRandom},
    cli::{
        installation::Installation,
        output::{Failure, visible},
    },
};

/// Variable with the token that a call is made with.
const TOKEN: &str = "PORTCULLIS_TOKEN";

/// Reach a provider as the gateway would and list its tools
#[derive(Args)]
#[command(
    after_help = "Examples:\n  portcullis provider test github\n  PORTCULLIS_TOKEN=svc_live_… portcullis provider \
                  test github --call get_me\n\nThe call is a governed one, by the bearer of PORTCULLIS_TOKEN: under \
                  policies and limits, and recorded. Of the tool its server has to say that it only reads."
)]
pub(in crate::cli) struct Test {
    /// Slug of the provider
    #[arg(value_name = "SLUG")]
    slug: String,
    /// A tool of it to call
    #[arg(long, value_name = "TOOL")]
    call: Option<String>,
    /// The arguments of the call, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "call")]
    input: String,
    #[command(flatten)]
    installation: Installation,
}

impl Test {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let input = Document::parse(self.input.as_bytes(), Bounds::REQUEST)
            .map_err(|error| format!("`--input`: {error}"))?;
        if !input.root().is_object() {
            return Err("`--input` has to be a JSON object".into());
        }
        let node = Node::assemble(&config, Fallback::Nothing, Mode::Check).await?;
        let patience = config.server.command_patience();
        self.installation.output().note(&format!(
            "asking `{}` for its tools, for at most {} s (`server.provider_patience_seconds`)",
            self.slug,
            patience.as_secs()
        ));
        let done = self.report(&node, patience, input).await;
        node.store.close().await;
        let (shown, text) = done?;
        self.installation.output().record(&shown, &text)
    }

    async fn report(
        &self,
        node: &Node,
        patience: Duration,
        input: Document,
    ) -> Result<(Value, String), Failure> {
        let tools = node.app.nodes.tools_of(&self.slug, patience).await?;
        let names: Vec<&str> = tools.iter().map(|tool| tool.definition.name.as_str()).collect();
        let mut text = format!("{} tools: {}", names.len(), visible(&names.join(", ")));
        let mut shown = json!({ "slug": self.slug, "tools": names });
        let Some(name) = &self.call else { return Ok((shown, text)) };
        let tool = tools.iter().find(|tool| tool.definition.name.as_str() == name);
        let tool = tool.ok_or_else(|| format!("`{}` has no tool `{name}`", self.slug))?;
        if tool.definition.hint("readOnlyHint") != Some(true) {
            return Err(format!(
                "its server does not say of `{name}` that it only reads (`readOnlyHint`), so it is not called \
                 for a test"
            )
            .into());
        }
        let result = call_tool(node, tool.id.as_str(), input).await?;
        text = format!("{text}\n{name}: {}", visible(&result.root().line()));
        if let Some(members) = shown.as_object_mut() {
            members.insert("result".to_owned(), result.root().to_value());
        }
        Ok((shown, text))
    }
}

/// The result of a governed call by the bearer of the token in the environment.
async fn call_tool(node: &Node, tool: &str, input: Document) -> Result<Document, Failure> {
    let token = std::env::var(TOKEN).map(Secret::new);
    let token = token.map_err(|_| format!("put the token to call with into {TOKEN}"))?;
    let origin = Origin {
        request_id: RequestId::new(Ids { clock: &SystemClock, random: &SystemRandom }),
        arrived: crate::boot::now(),
        source_ip: IpAddr::from(Ipv4Addr::LOCALHOST),
        user_agent: None,
        traceparent: None,
        tracestate: None,
        stages: Stages::untraced(),
        is_internal: false,
    };
    let token = PresentedToken::bearer(Some(token.expose()));
    let session = node.app.access.authenticate(token, Purpose::Access, &origin);
    let session = session.await.map_err(|refused| refused.refusal.to_string())?;
    let ctx = Ctx { origin: Arc::new(origin), session, attendance: None };
    let bytes = input.root().raw().len();
    let invocation = Invocation {
        tool: tool_named(tool),
        aim: Aim::Use,
        view: Ok(View::Mcp),
        key: Ok(None),
        body: Ok((input, u64::try_from(bytes).unwrap_or(u64::MAX))),
        conversation: Conversation::default(),
        task: None,
    };
    match node.app.calls.invoke(ctx, bytes, move || invocation).await {
        Ok(Answered::Invoked(invoked)) => Ok(invoked.result),
        // Without a key nothing is repeated.
        Ok(Answered::Replayed(_)) => Err("the call was made before".into()),
        Err(stopped) => Err(stopped.refusal.to_string().into()),
    }
}
