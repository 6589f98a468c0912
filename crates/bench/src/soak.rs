//! Calls at half of what is possible for a long time, while something fails every few seconds: memory,
//! descriptors, threads and children must be at the end what they were after the beginning, and the
//! log must hold every call that was answered.

use std::{fs, net::SocketAddr, time::Duration};

use http::StatusCode;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use crate::{
    Failure, Verdict,
    args::SoakArgs,
    audit::{self, Counted},
    client::{Connection, Template, governed_call, post},
    gateway::{self, Installation, Running, Setup},
    load::{self, exact},
    payload,
    process::{self, Held},
    say, say_aside,
    upstream::Upstream,
};

/// Interval between faults.
const BETWEEN_FAULTS: Duration = Duration::from_secs(7);
/// Duration of a fault.
const FAULT: Duration = Duration::from_secs(2);
/// Duration of the trial that finds the possible rate.
const TRIAL: Duration = Duration::from_secs(10);
/// Rest before the final look.
const REST: Duration = Duration::from_secs(20);
/// Callers who hang up, and connections that come and go, at a time.
const MANY: usize = 200;
/// Memory may grow by this factor from the second quarter of the time to the last.
const FLAT: f64 = 1.1;
/// Descriptors and threads that may be there at the end and were not at the beginning.
const SLACK: usize = 8;

/// Runs it, prints a line a minute and what is left at the end; `Broken` when something leaked or a
/// call that was answered is not in the log.
pub(crate) async fn run(args: &SoakArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let address = upstream.address;
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let own = std::env::current_exe()?;
    let program = json!([own.to_string_lossy(), "serve-program"]);
    let more = format!("\n[[providers]]\nslug = \"program\"\ncommand = {program}\n");
    let setup = Setup { more, ..Setup::default() };
    let installation = Installation::set_up(binary, address, &setup).await?;
    let running = installation.start().await?;
    let arguments = payload::of_size(args.payload);
    let call = governed_call(running.address, &installation.token, &arguments)?;
    let possible = load::run(running.address, &call, args.connections, TRIAL).await?;
    sleep(REST).await;
    let before = Held::by(running.pid)?;
    say(&format!("possible: {:.0} calls/s; half of it from now on\n", possible.rate()));
    let scene = Scene {
        running: &running,
        installation: &installation,
        arguments: &arguments,
        upstream: Some(upstream),
        address,
        fault: 0,
    };
    let (seen, samples) = scene.soak(args, &call, possible.rate() / 2.0).await?;
    sleep(REST).await;
    let after = Held::by(running.pid)?;
    let counted = audit::count(running.address, &installation.token).await?;
    running.stop().await?;
    let fault = installation.verify().await?;
    let answered = possible.answered + seen.answered;
    let left = Left { seen, answered, before, after, growth: growth(&samples), counted, fault };
    say(&left.told());
    Ok(if left.holds() { Verdict::Holds } else { Verdict::Broken })
}

/// State at the end.
struct Left {
    seen: Seen,
    /// Calls answered with 200, those of the trial included.
    answered: u64,
    before: Held,
    after: Held,
    growth: f64,
    counted: Counted,
    /// Fault that the verifier of the whole log found.
    fault: Option<String>,
}

impl Left {
    fn told(&self) -> String {
        let Self { seen, answered, before, after, growth, counted, fault } = self;
        let mib = |held: &Held| exact(held.resident_kib) / 1_024.0;
        format!(
            "answered {}, answered 502 to 504: {}, cut off: {}, answered otherwise: {}\n\
             memory: {:.1} MiB at the beginning, {:.1} at the end; last quarter against the second: \
             {growth:.2}\n\
             descriptors {} → {}, threads {} → {}, children {} → {}\n\
             events of success {} (calls answered {answered}), gaps {}, open {}, verified: {}\n",
            seen.answered,
            seen.refused,
            seen.lost,
            seen.wrong,
            mib(before),
            mib(after),
            before.descriptors,
            after.descriptors,
            before.threads,
            after.threads,
            before.children,
            after.children,
            counted.success,
            counted.gaps,
            counted.open,
            fault.as_deref().unwrap_or("the whole log"),
        )
    }

    fn holds(&self) -> bool {
        let Self { seen, answered, before, after, growth, counted, fault } = self;
        let tight = after.descriptors <= before.descriptors + SLACK
            && after.threads <= before.threads + SLACK
            && after.children <= before.children;
        // Those who hung up were answered too.
        let whole = counted.success >= *answered && counted.gaps == 0 && counted.open == 0;
        // Faults fill less than a seventh of the time, and what they bring down comes up again.
        let mended = seen.refused <= seen.answered / 3;
        *growth <= FLAT && tight && whole && mended && fault.is_none() && seen.wrong == 0
    }
}

/// The most memory in the last quarter against the most in the second.
fn growth(samples: &[Held]) -> f64 {
    let quarter = samples.len() / 4;
    let most = |samples: &[Held]| samples.iter().map(|it| it.resident_kib).max().unwrap_or(0);
    let second = samples.get(quarter..2 * quarter).unwrap_or_default();
    let last = samples.get(3 * quarter..).unwrap_or_default();
    exact(most(last)) / exact(most(second).max(1))
}

/// Observations of callers.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    answered: u64,
    refused: u64,
    lost: u64,
    /// Answers that no fault explains.
    wrong: u64,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.refused += other.refused;
        self.lost += other.lost;
        self.wrong += other.wrong;
    }
}

struct Scene<'a> {
    running: &'a Running,
    installation: &'a Installation,
    arguments: &'a Value,
    upstream: Option<Upstream>,
    address: SocketAddr,
    fault: usize,
}

impl Scene<'_> {
    async fn soak(
        mut self,
        args: &SoakArgs,
        call: &Template,
        rate: f64,
    ) -> Result<(Seen, Vec<Held>), Failure> {
        let (stop, stopped) = watch::channel(false);
        let mut callers = JoinSet::new();
        let pause = Duration::from_secs_f64(exact(args.connections.try_into()?) / rate.max(1.0));
        for _ in 0..args.connections {
            let call = call.clone();
            callers.spawn(call_on(self.running.address, call, pause, stopped.clone()));
        }
        let pid = self.running.pid;
        let mut sampling = JoinSet::new();
        sampling.spawn(sample(pid, stopped));
        let end = Instant::now() + Duration::from_mins(u64::from(args.minutes));
        while Instant::now() < end {
            sleep(BETWEEN_FAULTS).await;
            self.fail().await?;
        }
        stop.send_replace(true);
        let mut seen = Seen::default();
        while let Some(part) = callers.join_next().await {
            seen.add(part?);
        }
        let samples = sampling.join_next().await.ok_or("nobody looked")???;
        Ok((seen, samples))
    }

    /// Lets the next thing fail, and mends it.
    async fn fail(&mut self) -> Result<(), Failure> {
        self.fault += 1;
        match self.fault % 6 {
            0 => {
                say_aside("the upstream dies\n");
                if let Some(upstream) = self.upstream.take() {
                    upstream.kill().await?;
                }
                sleep(FAULT).await;
                self.upstream = Some(Upstream::start_at(self.address).await?);
            }
            1 => {
                say_aside("the upstream hangs\n");
                let pid = self.upstream.as_ref().and_then(Upstream::pid);
                let pid = pid.ok_or("the upstream has ended")?;
                signal(pid, Signal::STOP)?;
                sleep(FAULT).await;
                signal(pid, Signal::CONT)?;
            }
            2 => {
                say_aside("callers hang up\n");
                self.hang_up().await?;
            }
            3 => {
                say_aside("policies are broken, and mended\n");
                let file = self.installation.folder().join("policies/another.cedar");
                fs::write(&file, "permit (principal")?;
                sleep(FAULT).await;
                fs::write(
                    &file,
                    "@id(\"another\") @reason(\"x\") forbid (principal is Mcp::User, \
                                  action, resource);",
                )?;
            }
            4 => {
                say_aside("connections come and go\n");
                let mut open = Vec::new();
                for _ in 0..MANY {
                    open.push(Connection::open(self.running.address).await?);
                }
                sleep(FAULT).await;
            }
            _ => {
                say_aside("a program dies\n");
                self.program().await?;
                for child in process::children(self.running.pid)? {
                    signal(child, Signal::KILL)?;
                }
                sleep(FAULT).await;
                self.program().await?;
            }
        }
        Ok(())
    }

    /// Calls whose callers are gone before the answer is there.
    async fn hang_up(&self) -> Result<(), Failure> {
        let (address, token) = (self.running.address, &self.installation.token);
        let mut callers = JoinSet::new();
        for number in 0..MANY {
            let call = governed_call(address, token, self.arguments)?;
            callers.spawn(async move {
                let mut connection = Connection::open(address).await?;
                let soon = Duration::from_micros(u64::try_from(number)? * 20);
                let _ = tokio::time::timeout(soon, connection.send(call)).await;
                Ok::<_, Failure>(())
            });
        }
        while let Some(hung_up) = callers.join_next().await {
            hung_up??;
        }
        Ok(())
    }

    /// Calls the program, whatever comes of it.
    async fn program(&self) -> Result<(), Failure> {
        let (address, token) = (self.running.address, &self.installation.token);
        let body = json!({ "input": self.arguments });
        let call = post(address, token, "/v1/mcps/program:echo/invoke", &body)?;
        Connection::open(address).await?.send(call).await?;
        Ok(())
    }
}

fn signal(pid: u32, signal: Signal) -> Result<(), Failure> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process id")?;
    Ok(kill_process(pid, signal)?)
}

/// Calls at a pace until it is over.
async fn call_on(
    address: SocketAddr,
    call: Template,
    pause: Duration,
    stopped: watch::Receiver<bool>,
) -> Seen {
    let mut seen = Seen::default();
    let mut pace = interval(pause);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !*stopped.borrow() {
        let Ok(mut connection) = Connection::open(address).await else {
            seen.lost += 1;
            continue;
        };
        while !*stopped.borrow() {
            pace.tick().await;
            match connection.send(call.clone()).await.map(|answer| answer.status) {
                Ok(StatusCode::OK) => seen.answered += 1,
                Ok(
                    StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT,
                ) => seen.refused += 1,
                Ok(_) => seen.wrong += 1,
                Err(_) => {
                    seen.lost += 1;
                    break;
                }
            }
        }
    }
    seen
}

/// Looks every second what the gateway holds, and prints it every minute.
async fn sample(pid: u32, stopped: watch::Receiver<bool>) -> Result<Vec<Held>, Failure> {
    let mut samples = Vec::new();
    while !*stopped.borrow() {
        sleep(Duration::from_secs(1)).await;
        let held = Held::by(pid)?;
        samples.push(held);
        if samples.len() % 60 == 1 {
            say(&format!(
                "{:>4} min  {:>6.1} MiB  {:>4} descriptors  {:>3} threads  {:>2} children\n",
                samples.len() / 60,
                exact(held.resident_kib) / 1_024.0,
                held.descriptors,
                held.threads,
                held.children,
            ));
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(resident_kib: u64) -> Held {
        Held { resident_kib, ..Held::default() }
    }

    #[test]
    fn memory_is_compared_after_the_first_quarter_only() {
        let samples = [10, 20, 40, 40, 40, 40, 42, 44].map(held);

        assert!((growth(&samples) - 1.1).abs() < 1e-9);
    }
}
