//! A TCP wire that can be cut, frozen, or slow.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};
use tokio_util::{sync::DropGuard, task::TaskTracker};

use crate::serving::{listen, until_dropped};

/// Behaviour of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The wire carries.
    Whole,
    /// Every connection over it ends, and no other one is made.
    Cut,
    /// Nothing arrives, and neither end notices.
    Frozen,
    /// Everything arrives this much later.
    Late(Duration),
}

/// A wire from a port of its own to `server`.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    condition: Arc<watch::Sender<Condition>>,
    _carrying: DropGuard,
}

impl Wire {
    /// A wire to this address; it is cut when this is dropped.
    pub async fn to(server: String) -> Self {
        let (listener, address) = listen().await;
        let condition = Arc::new(watch::Sender::new(Condition::Whole));
        let carrying = until_dropped(carry_all(listener, server, condition.subscribe()));
        Self { address, condition, _carrying: carrying }
    }

    /// Address of its near end.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what it does from now on.
    pub fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }
}

async fn carry_all(listener: TcpListener, server: String, condition: watch::Receiver<Condition>) {
    let wires = TaskTracker::new();
    while let Ok((client, _)) = listener.accept().await {
        let server = server.clone();
        let mut condition = condition.clone();
        wires.spawn(async move {
            let mut cut = condition.clone();
            let carrying = async {
                let _ = condition.wait_for(|it| *it != Condition::Frozen).await;
                let Ok(server) = TcpStream::connect(server).await else { return };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::select! {
                    () = carry(from_client, to_server, condition.clone()) => {}
                    () = carry(from_server, to_client, condition.clone()) => {}
                }
            };
            tokio::select! {
                () = carrying => {}
                _ = cut.wait_for(|it| *it == Condition::Cut) => {}
            }
        });
    }
}

/// Carries what comes; what came while the wire was frozen arrives afterwards.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut condition: watch::Receiver<Condition>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let carries = match condition.wait_for(|it| *it != Condition::Frozen).await {
            Ok(condition) => *condition,
            Err(_) => return,
        };
        if let Condition::Late(by) = carries {
            tokio::time::sleep(by).await;
        }
        if to.write_all(bytes.get(..count).unwrap_or_default()).await.is_err() {
            return;
        }
    }
}
