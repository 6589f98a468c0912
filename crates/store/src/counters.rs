//! Limits that several nodes count together, in Redis or Valkey.
//!
//! A script on the server decides by the server's clock, in one round trip, so any
//! number of nodes let pass exactly what a plan or a rate allows. All keys of an org carry its id
//! as hash tag. **Invariant:** without an answer within the patience that they are made with the
//! counters count as unreachable; nothing passes uncounted.

mod keeper;
mod scripts;

pub use self::keeper::CountersTask;

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use aws_lc_rs::digest;
use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    limits::{Resource, WINDOW_SECONDS, Window},
    policy::{Full, Rate},
};
use redis::{Client, FromRedisValue, IntoConnectionInfo, Script, aio::MultiplexedConnection};
use tokio::{sync::watch, time::timeout};

use self::keeper::Trouble;

/// The most rates that one call can take from.
const MOST_RATES: usize = 64;

/// Address of the counters: `redis://user:password@host:port/database`, or `rediss://` with TLS.
#[derive(Clone)]
pub struct CountersUrl(redis::ConnectionInfo);

/// The text is no URL of a Redis or Valkey server. Does not show it: there may be a password in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("has to be a URL such as redis://:password@host:6379/0, or rediss://… with TLS")]
pub struct CountersUrlError;

impl FromStr for CountersUrl {
    type Err = CountersUrlError;

    fn from_str(text: &str) -> Result<Self, CountersUrlError> {
        let server = text.into_connection_info().map_err(|_| CountersUrlError)?;
        // A command that waits for others to be acknowledged first is late.
        let at_once = server.tcp_settings().clone().set_nodelay(true);
        Ok(Self(server.set_tcp_settings(at_once)))
    }
}

impl fmt::Display for CountersUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.addr().fmt(f)
    }
}

impl fmt::Debug for CountersUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Failure to count, or unknown result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountersError {
    #[error("there is no connection to the counters")]
    Unreachable,
    #[error("the counters do not answer in time")]
    Slow,
    /// The server refused, or gave another answer than was expected.
    #[error("the counters cannot be used: {0}")]
    Refused(String),
}

impl CountersError {
    fn of(error: &redis::RedisError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Cost of a request in an org's plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Request,
    /// One of its requests and one of its invocations.
    Call,
}

/// Amounts to take, and the counts known so far.
#[derive(Debug, Clone, Copy)]
pub struct Charge {
    pub org: OrgId,
    /// By how many seconds its windows are shifted.
    pub offset: i64,
    pub cost: Cost,
    /// Requests allowed in a window.
    pub requests: u32,
    /// Invocations allowed in a window.
    pub invocations: u32,
    /// Counts of the last answer. A server that lost its counts, by a restart or a failover,
    /// continues from here.
    pub seen: WindowCounts,
}

/// Counts of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowCounts {
    pub window: Window,
    pub requests: u32,
    pub invocations: u32,
}

/// Result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChargeOutcome {
    /// Of what there was none left; it was not taken.
    pub exhausted: Option<Resource>,
    pub counted: WindowCounts,
    /// The time on the server.
    pub now: Timestamp,
}

/// The counters. Clones share a connection.
#[derive(Clone)]
pub struct SharedCounters {
    live: watch::Receiver<Option<Live>>,
    trouble: Arc<Trouble>,
    scripts: Arc<Scripts>,
    patience: Duration,
}

/// A connection, and which one it is since the start.
#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    number: u64,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("number", &self.number).finish_non_exhaustive()
    }
}

struct Scripts {
    charge: Script,
    rates: Script,
    give_back: Script,
}

impl fmt::Debug for SharedCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCounters").field("reachable", &self.is_reachable()).finish()
    }
}

impl SharedCounters {
    /// The counters at `url`, which have `patience` for each answer, and the task that keeps the
    /// connection, which the caller runs. Nothing is dialled before that.
    pub fn new(
        url: &CountersUrl,
        patience: Duration,
    ) -> Result<(Self, CountersTask), CountersError> {
        let client = Client::open(url.0.clone()).map_err(|error| CountersError::of(&error))?;
        let (sender, live) = watch::channel(None);
        let trouble = Arc::new(Trouble::default());
        let task = CountersTask::new(client, sender, Arc::clone(&trouble), patience);
        let scripts = Arc::new(Scripts {
            charge: Script::new(scripts::CHARGE),
            rates: Script::new(scripts::RATES),
            give_back: Script::new(scripts::GIVE_BACK),
        });
        Ok((Self { live, trouble, scripts, patience }, task))
    }

    /// Returns true if there is a connection that writes go through.
    #[must_use]
    pub fn is_reachable(&self) -> bool {
        self.live.borrow().is_some()
    }

    /// Waits until there is a connection, as long as the task runs.
    pub async fn reachable(&self) {
        let _ = self.live.clone().wait_for(Option::is_some).await;
    }

    /// Takes from an org's plan.
    pub async fn charge(&self, charge: &Charge) -> Result<ChargeOutcome, CountersError> {
        let seen = charge.seen;
        let mut asked = self.scripts.charge.prepare_invoke();
        asked
            .key(format!("portcullis:{{{}}}:limits", charge.org))
            .arg(charge.offset)
            .arg(charge.requests)
            .arg(match charge.cost {
                Cost::Request => -1,
                Cost::Call => i64::from(charge.invocations),
            })
            .arg(seen.window.number)
            .arg(seen.requests)
            .arg(seen.invocations);
        let told: [i64; 6] = fixed(self.ask(asked).await?)?;
        let [verdict, number, requests, invocations, seconds, micros] = told;
        let exhausted = match verdict {
            0 => None,
            1 => Some(Resource::Requests),
            2 => Some(Resource::Invocations),
            _ => return Err(CountersError::Refused("an answer that makes no sense".to_owned())),
        };
        let ends_at = (number + 1) * WINDOW_SECONDS + charge.offset;
        let window = Window { number, ends_at };
        let [requests, invocations] =
            [requests, invocations].map(|used| u32::try_from(used).unwrap_or(u32::MAX));
        let now = Timestamp::from_micros(seconds.saturating_mul(1_000_000).saturating_add(micros));
        Ok(ChargeOutcome {
            exhausted,
            counted: WindowCounts { window, requests, invocations },
            now,
        })
    }

    /// Takes one from each of these rates of an org, or from none: then it gives the first that is
    /// used up, and when there will be room.
    pub async fn take(
        &self,
        org: OrgId,
        rates: &[(String, Rate)],
    ) -> Result<Result<(), (usize, Full)>, CountersError> {
        if rates.len() > MOST_RATES {
            return Err(CountersError::Refused("too many rates for one call".to_owned()));
        }
        let mut asked = self.scripts.rates.prepare_invoke();
        for (key, rate) in rates {
            asked.key(rate_key(org, key)).arg(rate.interval()).arg(rate.slack());
        }
        let [place, wait] = fixed(self.ask(asked).await?)?;
        match usize::try_from(place) {
            Ok(0) => Ok(Ok(())),
            Ok(place) => Ok(Err((place - 1, Full::for_micros(wait)))),
            Err(_) => Err(CountersError::Refused("an answer that makes no sense".to_owned())),
        }
    }

    /// Gives one back to each of these rates.
    pub async fn give_back(
        &self,
        org: OrgId,
        rates: &[(String, Rate)],
    ) -> Result<(), CountersError> {
        let mut asked = self.scripts.give_back.prepare_invoke();
        for (key, rate) in rates {
            asked.key(rate_key(org, key)).arg(rate.interval());
        }
        self.ask(asked).await
    }

    async fn ask<T: FromRedisValue>(
        &self,
        asked: redis::ScriptInvocation<'_>,
    ) -> Result<T, CountersError> {
        let live = self.live.borrow().clone();
        let Live { mut connection, number } = live.ok_or(CountersError::Unreachable)?;
        let answered = timeout(self.patience, asked.invoke_async(&mut connection)).await;
        let error = match answered {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => CountersError::of(&error),
            Err(_) => CountersError::Slow,
        };
        self.trouble.with(number);
        Err(error)
    }
}

/// The key of a rate, hashed: that server need not know which calls are counted together.
fn rate_key(org: OrgId, key: &str) -> String {
    use fmt::Write;
    let digest = digest::digest(&digest::SHA256, key.as_bytes());
    let mut name = format!("portcullis:{{{org}}}:rate:");
    for byte in digest.as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn fixed<const N: usize>(told: Vec<i64>) -> Result<[i64; N], CountersError> {
    let short = |_| CountersError::Refused("an answer that makes no sense".to_owned());
    told.try_into().map_err(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let url: CountersUrl = "redis://gate:hunter2@counters.example:6380/3".parse().unwrap();

        assert_eq!(url.to_string(), "counters.example:6380");
        assert!(!format!("{url:?}").contains("hunter2"));
    }

    #[test]
    fn what_is_no_url_is_refused_without_being_shown() {
        for text in ["", "counters.example:6379", "http://:hunter2@counters.example"] {
            let refused = text.parse::<CountersUrl>().unwrap_err().to_string();

            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn the_keys_of_an_org_lie_on_one_node_of_a_cluster_and_tell_nothing() {
        let org: OrgId = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();

        let key = rate_key(org, "once\n1/60\norg_1\nprincipal\nana");

        assert!(key.starts_with("portcullis:{org_01M754BKTKX1YB8Q05NMW9TP4G}:rate:"));
        assert!(!key.contains("ana"));
    }
}
