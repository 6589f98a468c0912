//! One provider's misery is not another's, and no call gets another's answer.

use std::cell::Cell;

use crate::prelude::*;

/// A child that meets every call as `$1` says. It speaks the era of the handshake.
const CHILD: &str = r#"
while read -r line; do
  [[ $line =~ \"id\":([0-9]+) ]] || continue
  id=${BASH_REMATCH[1]}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"0"}}' ;;
    *'"method":"tools/list"'*)
      result='{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
      case $0 in
        dies) exit 7 ;;
        hangs) continue ;;
        floods) while :; do echo '{"jsonrpc":"2.0","method":"notifications/message"}'; done ;;
        chatters) while :; do printf 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; done ;;
      esac ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_in_misery_takes_no_other_down() {
    let children = ["dies", "hangs", "floods", "chatters"];
    let more = "protocol = \"legacy\"\ntimeout_seconds = 3";
    let scene = scene_with(vec![tool("echo", Script::Echo)], "", |builder| {
        children.iter().fold(builder.sample(), |builder, behaviour| {
            builder.stdio(behaviour, &["bash", "-c", CHILD, behaviour], more)
        })
    })
    .await;
    let gateway = &scene.gateway;
    let who = &scene.who;
    let acts = children.map(|child| format!("{child}:act"));
    let wretched = acts.each_ref().map(|act| gateway.invoke(who, act, json!({})));
    let ended = Cell::new(false);
    let wretched = async {
        let answers = join_all(wretched).await;
        ended.set(true);
        answers
    };
    let healthy = async {
        let mut answered = 0;
        while !ended.get() {
            for tool in ["up:echo", "sample:list_items"] {
                gateway.invoke(who, tool, json!({"limit": 1})).await.ok();
                answered += usize::from(!ended.get());
            }
        }
        answered
    };

    let (wretched, answered) = tokio::join!(wretched, healthy);

    assert!(answered >= 4, "{answered} healthy calls were answered before the wretched ones");
    for (child, answer) in children.iter().zip(&wretched) {
        let ending = if *child == "dies" || answer.status == 502 { FAILED } else { TIMED_OUT };
        let too_large = answer.at("/error/details/reason") == "response_too_large";
        let executed = if too_large { "yes" } else { "unknown" };
        check(gateway, who, answer, Ending { executed, ..ending }).await;
    }
    // A child that died is started again for the next call.
    has!(gateway.invoke(who, "dies:act", json!({})).await, 502);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_over_one_child_get_their_own_answers() {
    let (gateway, who) = serve_as("mcps:invoke", gateway().sample());
    let calls = (0..64).map(|number: u32| {
        let seconds = f64::from((63 - number) % 8) / 50.0;
        let input = json!({"seconds": seconds, "text": format!("call {number}")});
        gateway.invoke(&who, "sample:slow_echo", input)
    });

    let answers = join_all(calls).await;

    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.at("/result/text"), &json!(format!("call {number}")), "{}", answer.text);
    }
    check(&gateway, &who, &answers[63], SUCCESS).await;
}
