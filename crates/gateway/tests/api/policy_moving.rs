//! `docs/policies-from-agentcore.md`: every policy, case and command of the page, in its order.

use crate::{
    policy_guide::{Block, blocks},
    prelude::*,
};

const PAGE: &str = include_str!("../../../../docs/policies-from-agentcore.md");

async fn portcullis(gateway: &Gateway, arguments: &[&str]) -> (Option<i32>, String) {
    let tools = gateway.folder().join("tools.json");
    let tools = tools.to_string_lossy();
    let command: Vec<&str> = arguments.iter().copied().chain(["--tools", &tools]).collect();
    let output = run(gateway, &command).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    (output.status.code(), text)
}

/// Installation that the page assumes: a shop with two tools.
fn shop() -> Gateway {
    let gateway = gateway().policies("").prepare();
    fs::remove_file(gateway.folder().join("policies/test.cedar")).unwrap();
    let text = json!({ "type": "string" });
    let refund = json!({ "amount": { "type": "integer" }, "currency": text });
    let tools = json!({ "items": [
        {
            "id": "shop:process_refund",
            "input_schema": {
                "type": "object", "properties": refund, "required": ["amount"],
            },
        },
        { "id": "shop:read_order", "annotations": { "readOnlyHint": true } },
    ]});
    fs::write(gateway.folder().join("tools.json"), tools.to_string()).unwrap();
    gateway
}

/// A policy of `AgentCore` is Cedar, and no policy of ours.
async fn theirs(gateway: &Gateway, block: &Block) {
    let folder = gateway.folder().join("theirs");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("policy.cedar"), &block.text).unwrap();

    let folder = folder.to_string_lossy();
    let (code, text) = portcullis(gateway, &["policy", "validate", "--policies", &folder]).await;

    assert_eq!(code, Some(1), "line {}: {text}", block.line);
    assert!(text.contains("`@id("), "line {}: {text}", block.line);
    let syntax = text.contains("unexpected") || text.contains("syntax");
    assert!(!syntax, "line {}: {text}", block.line);
}

async fn command(gateway: &Gateway, block: &Block) {
    let exit = block.words.get("exit").map_or(0, |code| code.parse().unwrap());
    let (commands, shown): (Vec<&str>, Vec<&str>) =
        block.text.lines().partition(|line| line.starts_with("$ "));
    let [command] = commands.as_slice() else { panic!("line {}: one command", block.line) };
    let arguments: Vec<&str> = command.split_whitespace().skip(2).collect();

    let (code, text) = portcullis(gateway, &arguments).await;

    assert_eq!(code, Some(exit), "line {}: {text}", block.line);
    for line in shown {
        assert!(text.contains(line), "line {}: no `{line}` in\n{text}", block.line);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_moves_over_as_the_page_says_has_policies_that_hold() {
    let gateway = shop();
    let mut theirs_seen = 0;

    for block in blocks(PAGE) {
        match (block.language.as_str(), block.words.get("file")) {
            ("cedar", None) if block.words.contains_key("theirs") => {
                theirs(&gateway, &block).await;
                theirs_seen += 1;
            }
            ("cedar" | "yaml", Some(file)) => {
                let path = gateway.folder().join("policies").join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, &block.text).unwrap();
            }
            ("console", None) => command(&gateway, &block).await,
            other => panic!("line {}: nobody runs {other:?}", block.line),
        }
    }

    assert_eq!(theirs_seen, 3);
}
