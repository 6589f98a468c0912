//! The comparison: the same call directly and through the gateway, in turns.

use std::time::Duration;

use crate::{
    Failure, Verdict,
    args::CompareArgs,
    audit,
    client::{Template, direct_call, governed_call, mcp_call},
    disk,
    gateway::{Installation, Running},
    load::{self, Measured},
    payload, process,
    report::{Gateway, Report, Row, Usage},
    say, say_aside,
    upstream::Upstream,
};

const WARM_UP: Duration = Duration::from_secs(1);

/// Runs it and prints the table; `Broken` when a call failed or its event is not in the log.
pub(crate) async fn run(args: &CompareArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let arguments = payload::of_size(args.payload);
    let direct = direct_call(upstream.address, &arguments)?;
    let mut report = Report::new(args.payload, args.duration, args.rounds);
    if args.direct_only {
        for &connections in &args.connections {
            let turns = Turns { args, connections, upstream: &upstream, direct: &direct };
            report.rows.push(turns.direct_only().await?);
        }
    } else {
        let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
        let disk = disk::sync_times(installation.folder())?;
        let running = installation.start().await?;
        let idle_kib = process::resident_kib(running.pid)?;
        let call = if args.mcp { mcp_call } else { governed_call };
        let governed = call(running.address, &installation.token, &arguments)?;
        let mut answered = 0;
        for &connections in &args.connections {
            let turns = Turns { args, connections, upstream: &upstream, direct: &direct };
            report.rows.push(turns.both(&running, &governed, &mut answered).await?);
        }
        let loaded_kib = process::resident_kib(running.pid)?;
        say_aside("counting audit events\n");
        let events = audit::count(running.address, &installation.token).await?.events;
        report.gateway = Some(Gateway { idle_kib, loaded_kib, answered, events, disk });
        running.stop().await?;
    }
    say(&if args.json { report.json() } else { report.table() });
    Ok(report.verdict())
}

/// The measurements at one number of connections.
struct Turns<'a> {
    args: &'a CompareArgs,
    connections: usize,
    upstream: &'a Upstream,
    direct: &'a Template,
}

impl Turns<'_> {
    async fn direct_only(&self) -> Result<Row, Failure> {
        self.load(self.upstream.address, self.direct, WARM_UP.min(self.args.duration)).await?;
        let mut direct = Usage::default();
        for round in 1..=self.args.rounds {
            self.progress(round);
            self.measure_direct(&mut direct).await?;
        }
        Ok(Row { connections: self.connections, direct, governed: None })
    }

    async fn both(
        &self,
        running: &Running,
        governed: &Template,
        answered: &mut u64,
    ) -> Result<Row, Failure> {
        let warm_up = WARM_UP.min(self.args.duration);
        self.load(self.upstream.address, self.direct, warm_up).await?;
        *answered += self.load(running.address, governed, warm_up).await?.answered;
        let mut direct = Usage::default();
        let mut through = Usage::default();
        for round in 1..=self.args.rounds {
            self.progress(round);
            self.measure_direct(&mut direct).await?;
            let load = self.load(running.address, governed, self.args.duration);
            *answered += through.add(running.pid, load).await?;
        }
        Ok(Row { connections: self.connections, direct, governed: Some(through) })
    }

    async fn measure_direct(&self, usage: &mut Usage) -> Result<(), Failure> {
        let pid = self.upstream.pid().ok_or("the upstream has ended")?;
        usage.add(pid, self.load(self.upstream.address, self.direct, self.args.duration)).await?;
        Ok(())
    }

    async fn load(
        &self,
        address: std::net::SocketAddr,
        call: &Template,
        duration: Duration,
    ) -> Result<Measured, Failure> {
        load::run(address, call, self.connections, duration).await
    }

    fn progress(&self, round: usize) {
        let connections = self.connections;
        let rounds = self.args.rounds;
        say_aside(&format!("{connections} connections, round {round} of {rounds}\n"));
    }
}
