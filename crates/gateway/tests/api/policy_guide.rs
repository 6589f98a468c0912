//! `docs/policies.md`: every file, command, request and answer of the guide, in its order.

use crate::prelude::*;

const GUIDE: &str = include_str!("../../../../docs/policies.md");

/// A fenced block: its language, its other words, and what it holds.
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) words: BTreeMap<String, String>,
    pub(crate) text: String,
}

pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let mut info = info.split_whitespace();
                let language = info.next().unwrap_or_default().to_owned();
                let word = |word: &str| {
                    let (name, value) = word.split_once('=').unwrap_or((word, ""));
                    (name.to_owned(), value.to_owned())
                };
                let words = info.map(word).collect();
                open = Some(Block { line: at + 1, language, words, text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block of the guide is not closed");
    found
}

/// An operator who follows the guide.
struct Reader {
    gateway: Gateway,
    who: Principal,
    answer: Value,
    /// Event of the last call.
    event: String,
}

impl Reader {
    async fn follow(&mut self, block: &Block) {
        let word = |name: &str| block.words.get(name).map(String::as_str);
        match (block.language.as_str(), word("file")) {
            ("cedar" | "yaml" | "toml", Some(file)) => self.write(file, block),
            ("console", None) => self.console(block).await,
            ("json", None) if word("simulate").is_some() => self.simulate(block).await,
            ("json", None) if word("answer").is_some() => {
                contains(&self.answer, &json(block), &format!("line {}", block.line));
            }
            ("json", None) if word("invoke").is_some() => {
                let tool = word("invoke").unwrap();
                if let Some(merged) = word("merge") {
                    let folder = self.gateway.folder();
                    copy(&folder.join(merged), &folder.join("policies"));
                    self.settled().await;
                }
                let answer = self.gateway.invoke(&self.who, tool, json(block)).await;
                let status = word("status").map_or(200, |status| status.parse().unwrap());
                assert_eq!(answer.status, status, "line {}: {}", block.line, answer.text);
                answer.event_id().clone_into(&mut self.event);
            }
            ("json", None) if word("policy").is_some() => {
                let path = format!("/v1/policies/{}", word("policy").unwrap());
                let answer = self.gateway.get(&self.who, &path).await;
                contains(answer.at("/data"), &json(block), &format!("line {}", block.line));
            }
            other => panic!("line {}: nobody runs {other:?}", block.line),
        }
    }

    /// Saves a file of the folder, or of a copy of it.
    fn write(&self, file: &str, block: &Block) {
        let folder = block.words.get("folder").map_or("policies", String::as_str);
        let path = self.gateway.folder().join(folder).join(file);
        if folder != "policies" {
            copy(&self.gateway.folder().join("policies"), &self.gateway.folder().join(folder));
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if file == "shop.cedar" {
            // The page says: move the starter away.
            fs::remove_file(path.with_file_name("starter.cedar")).unwrap();
            fs::remove_file(path.with_file_name("tests").join("starter.yaml")).unwrap();
        }
        fs::write(&path, &block.text).unwrap();
    }

    async fn console(&self, block: &Block) {
        let exit = block.words.get("exit").map_or(0, |code| code.parse().unwrap());
        let (commands, shown): (Vec<&str>, Vec<&str>) =
            block.text.lines().partition(|line| line.starts_with("$ "));
        let [command] = commands.as_slice() else { panic!("line {}: one command", block.line) };
        let copied = self.gateway.folder().join("next").to_string_lossy().into_owned();
        let word = |word| match word {
            "next" => copied.as_str(),
            "evt_…" => self.event.as_str(),
            other => other,
        };
        let command: Vec<&str> = command.split_whitespace().skip(2).map(word).collect();
        let output = run(&self.gateway, &command).await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "line {}: {text}", block.line);
        for line in shown {
            assert!(text.contains(line), "line {}: no `{line}` in\n{text}", block.line);
        }
    }

    /// Asks when the set in force is the one of the folder.
    async fn simulate(&mut self, block: &Block) {
        self.settled().await;
        let body = json(block).to_string();
        let answer = self.gateway.post(&self.who, "/v1/policies/simulate", &body).await;
        assert_eq!(answer.status, 200, "line {}: {}", block.line, answer.text);
        self.answer = answer.at("/data").clone();
    }

    /// Waits until what the folder holds is in force.
    async fn settled(&self) {
        let listed = run(&self.gateway, &["policy", "validate", "--json"]).await;
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        until(
            || self.gateway.get(&self.who, "/v1/policies"),
            |it| it.at("/data/policy_set/version") == &listed["policy_set"],
        )
        .await;
    }
}

/// Copies the files of a policy folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

fn json(block: &Block) -> Value {
    serde_json::from_str(&block.text).unwrap_or_else(|error| panic!("line {}: {error}", block.line))
}

/// Returns true if `all` has every member and item of `part`.
pub(crate) fn contains(all: &Value, part: &Value, place: &str) {
    match (all, part) {
        (Value::Object(all), Value::Object(part)) => {
            for (name, part) in part {
                let place = format!("{place}/{name}");
                contains(all.get(name).unwrap_or(&Value::Null), part, &place);
            }
        }
        (Value::Array(all), Value::Array(part)) => {
            assert_eq!(all.len(), part.len(), "{place}: {all:?}");
            for (at, (all, part)) in all.iter().zip(part).enumerate() {
                contains(all, part, &format!("{place}/{at}"));
            }
        }
        (all, part) => assert_eq!(all.to_string(), part.to_string(), "{place}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_the_guide_sees_what_it_says() {
    let nothing = "@id(\"nothing\") @mode(\"disabled\") permit (principal, action, resource);";
    let (gateway, who) = serve(gateway().sample().policies(nothing));
    fs::remove_file(gateway.folder().join("policies/test.cedar")).unwrap();
    let mut reader = Reader { gateway, who, answer: Value::Null, event: String::new() };

    for block in blocks(GUIDE) {
        let waits = ["invoke", "policy"].iter().any(|word| block.words.contains_key(*word));
        if waits {
            reader.settled().await;
        }
        reader.follow(&block).await;
    }
}
