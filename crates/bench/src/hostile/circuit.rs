//! One org makes a tool fail that others use as well: which of their calls are refused meanwhile.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::{POISON, install};
use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::{Connection, Template, post},
    gateway::Running,
    load::{Measured, exact},
    say,
    upstream::Upstream,
};

/// Calls with which the tool is made to fail.
const ATTACKS: usize = 29;
/// The attack ends after this time, however many of them were made.
const LONGEST: Duration = Duration::from_mins(2);
const BETWEEN_CALLS: Duration = Duration::from_millis(50);

/// Prints how many calls of the other org were answered and how many were not; none may be.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let wretch = Upstream::hostile().await?;
    let installation = install(args, &upstream, &wretch).await?;
    let other = installation.mint("other").await?;
    let running = installation.start().await?;
    let call = |token: &str, text: &str| {
        let body = json!({"input": {"text": text}});
        post(running.address, token, "/v1/mcps/hostile:wavers/invoke", &body)
    };
    let poisoned = call(&installation.token, POISON)?;
    let good = call(&other, "a")?;
    let begun = Instant::now();
    let mut beside = Measured::default();
    tokio::select! {
        ended = again_and_again(&running, &good, &mut beside) => ended?,
        attacked = timeout(LONGEST, attack(&running, &poisoned)) => attacked.unwrap_or(Ok(()))?,
    }
    let took = begun.elapsed().as_secs_f64();
    running.stop().await?;
    let Measured { answered, refused, .. } = beside;
    let share = 100.0 * exact(refused) / exact((answered + refused).max(1));
    say(&format!(
        "one org made a tool fail with up to {ATTACKS} calls, for {took:.1} s\n\
         calls of the same tool by another org: {answered} answered, {refused} not ({share:.1} %)\n"
    ));
    Ok(if refused == 0 && answered > 0 { Verdict::Holds } else { Verdict::Broken })
}

/// Each call as soon as it may reach the tool.
async fn attack(running: &Running, poisoned: &Template) -> Result<(), Failure> {
    let mut made = 0;
    while made < ATTACKS {
        // A connection that rests for as long as the circuit does is closed by the gateway.
        let mut connection = Connection::open(running.address).await?;
        let answer = connection.send(poisoned.clone()).await?;
        match answer.retry_after {
            Some(rest) => sleep(rest).await,
            None => made += 1,
        }
    }
    Ok(())
}

async fn again_and_again(
    running: &Running,
    good: &Template,
    beside: &mut Measured,
) -> Result<(), Failure> {
    let mut connection = Connection::open(running.address).await?;
    loop {
        let answer = connection.send(good.clone()).await?;
        let good = answer.status == StatusCode::OK;
        let count = if good { &mut beside.answered } else { &mut beside.refused };
        *count += 1;
        sleep(BETWEEN_CALLS).await;
    }
}
