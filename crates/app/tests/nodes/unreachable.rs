//! A token on a node that has lost its store.

use std::time::Duration;

use portcullis_core::{
    refusal::{Refusal, Unavailable},
    token::{Token, TokenKind},
};
use tokio::time::{Instant, timeout};

use crate::node::{SystemRandom, node};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_store_trusts_a_known_token_for_seconds_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(folder.path(), None).await;
    let (known, unknown) = (node.token().await, Token::generate(TokenKind::User, &SystemRandom));
    assert_eq!(node.ask(&known).await, Ok(()));
    let lost = Refusal::Unavailable { reason: Unavailable::Store };

    node.store.close().await;
    let begun = Instant::now();

    assert_eq!(node.ask(unknown.secret().expose()).await, Err(lost.clone()));
    let refused = timeout(Duration::from_secs(20), async {
        loop {
            if let Err(refusal) = node.ask(&known).await {
                return refusal;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(refused.await.unwrap(), lost);
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}
