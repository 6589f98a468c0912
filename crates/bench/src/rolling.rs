//! Three nodes behind `HAProxy` that are restarted one after the other under load: the calls that fail meanwhile.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{
    fs,
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::{
    Failure, Verdict,
    args::RollingArgs,
    client::{Connection, governed_call},
    gateway::{Installation, Running, Setup},
    load::{self, Measured},
    payload, say, say_aside,
    upstream::Upstream,
};

const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];
/// Seconds for which a node that stops still takes calls; the balancer notices it in 200 ms.
const DRAIN: &str = "2";
/// Duration after which connections are opened anew.
const STRETCH: Duration = Duration::from_secs(1);
/// Pause before the first restart, and after each.
const PAUSE: Duration = Duration::from_secs(2);

/// Restarts each node under load; `Broken` when a call was refused or lost.
pub(crate) async fn run(args: &RollingArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let (database, redis) = (Some(args.postgres.as_str()), Some(args.redis.as_str()));
    let setup = Setup { database, redis, ..Setup::default() };
    let installation =
        Installation::set_up(args.binary.as_deref(), upstream.address, &setup).await?;
    let [key, log_key] = ["data/key", "data/audit-key"].map(|it| installation.folder().join(it));
    installation.add_config(&format!(
        "\n[keys]\nfile = '{}'\n[audit]\nsigning_key = {{ file = '{}' }}\n",
        key.display(),
        log_key.display()
    ))?;
    let mut nodes = Vec::new();
    for name in NODES {
        nodes.push(start(&installation, name, free_address()?).await?);
    }
    let address = free_address()?;
    let _balancer = balance(&args.haproxy, installation.folder(), address, &nodes).await?;
    let call = governed_call(address, &installation.token, &payload::of_size(args.payload))?;
    let over = AtomicBool::new(false);
    let restarts = async {
        let restarted = restart(&installation, &mut nodes).await;
        over.store(true, Ordering::Release);
        restarted
    };
    let load = async {
        let mut all = Measured::default();
        while !over.load(Ordering::Acquire) {
            all.add(load::run(address, &call, args.connections, STRETCH).await?);
        }
        Ok::<_, Failure>(all)
    };
    let (restarted, load) = tokio::join!(restarts, load);
    restarted?;
    let (verdict, text) = judge(&load?);
    say(&text);
    Ok(verdict)
}

/// The verdict on a load, and its figures in a line.
fn judge(load: &Measured) -> (Verdict, String) {
    let Measured { answered, refused, lost, .. } = *load;
    let holds = answered > 0 && load.errors() == 0;
    let (calls, p99) = (answered + load.errors(), load.percentile_ms(99));
    let text = format!("calls {calls}, refused {refused}, failed {lost}, p99 {p99:.1} ms\n");
    (if holds { Verdict::Holds } else { Verdict::Broken }, text)
}

/// Stops each node and starts it again at its address.
async fn restart(installation: &Installation, nodes: &mut Vec<Running>) -> Result<(), Failure> {
    sleep(PAUSE).await;
    for name in NODES {
        say_aside(&format!("restarting {name}\n"));
        let node = nodes.remove(0);
        let address = node.address;
        node.stop().await?;
        nodes.push(start(installation, name, address).await?);
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Starts a node with a name, an address and a data folder of its own.
async fn start(of: &Installation, name: &str, address: SocketAddr) -> Result<Running, Failure> {
    let data = of.folder().join(name);
    fs::create_dir_all(&data).await?;
    of.start_with(&[
        ("PORTCULLIS_DATA_DIR", &data.to_string_lossy()),
        ("PORTCULLIS_SERVER__NODE", name),
        ("PORTCULLIS_SERVER__LISTEN", &address.to_string()),
        ("PORTCULLIS_SERVER__DRAIN_LISTEN_SECONDS", DRAIN),
    ])
    .await
}

fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Starts the balancer, which sends each call once, to a node that is ready; it ends with this value.
async fn balance(
    program: &Path,
    folder: &Path,
    address: SocketAddr,
    nodes: &[Running],
) -> Result<Child, Failure> {
    let servers = nodes.iter().zip(NODES).map(|(Running { address, .. }, name)| {
        format!("    server {name} {address} check inter 200ms fall 1 rise 1\n")
    });
    let config = format!(
        "global\n    maxconn 4000\ndefaults\n    mode http\n    timeout connect 1s\n    timeout client 60s\n    \
         timeout server 60s\n    timeout check 2s\n    retries 0\nfrontend gateway\n    bind {address}\n    \
         default_backend nodes\nbackend nodes\n    balance roundrobin\n    option httpchk GET /readyz\n{}",
        servers.collect::<Vec<_>>().concat()
    );
    let file = folder.join("haproxy.cfg");
    fs::write(&file, config).await?;
    let mut command = Command::new(program);
    command.args(["-db", "-q", "-f"]).arg(&file).stdin(Stdio::null()).kill_on_drop(true);
    let failed = |error| format!("`{}` cannot be started: {error}", program.display());
    let running = command.spawn().map_err(failed)?;
    let listening = async {
        while Connection::open(address).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PAUSE * 5, listening).await.map_err(|_| "the balancer does not listen")?;
    Ok(running)
}

#[test]
fn a_run_holds_if_every_call_was_answered() {
    for (answered, refused, lost) in [(3, 0, 0), (3, 1, 0), (3, 0, 1), (0, 0, 0)] {
        let (verdict, text) = judge(&Measured { answered, refused, lost, ..Measured::default() });
        assert_eq!(verdict == Verdict::Holds, answered == 3 && refused + lost == 0, "{text}");
    }
}
