//! A token on a node that has lost its store.

use std::time::Duration;

use portcullis_core::{
    refusal::{Refusal, Unavailable},
    token::{Token, TokenKind},
};
use tokio::time::Instant;

use crate::node::{SystemRandom, node};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_store_trusts_a_known_token_for_seconds_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(folder.path(), None).await;
    let known = node.token().await;
    let unknown = Token::generate(TokenKind::User, &SystemRandom);
    assert_eq!(node.ask(&known).await, Ok(()));
    let lost = Refusal::Unavailable { reason: Unavailable::Store };

    node.store.close().await;
    let begun = Instant::now();

    assert_eq!(node.ask(unknown.secret().expose()).await, Err(lost.clone()));
    let mut trusted = Duration::ZERO;
    let refused = loop {
        let asked = begun.elapsed();
        match node.ask(&known).await {
            Ok(()) => trusted = asked,
            Err(refusal) => break refusal,
        }
        assert!(asked < Duration::from_mins(1), "it is trusted for ever");
        tokio::task::yield_now().await;
    };
    assert_eq!(refused, lost);
    assert!(trusted <= Duration::from_secs(5), "{trusted:?}");
}
