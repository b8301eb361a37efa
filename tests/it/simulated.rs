//! Simulated agents in a world to search, and the official SDKs' tool loops, through the real binary.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::tools::tool;
use crate::harness::{Folder, Process};

/// The measurement's own configuration, whose models listen elsewhere here.
const CONFIGURATION: &str = include_str!("../../load-tests/agents.toml");
const UPSTREAM: &str = "http://127.0.0.1:18085/v1";

/// What the script lets a run have.
const LIMITS: [(&str, u64); 2] = [("search", 6), ("open", 4)];

#[tokio::test]
async fn no_simulated_agent_gets_more_than_its_run_may_take() {
    let mut script = tool("python");
    script.args(["load-tests/agents", "--gateway", "-", "--upstream", "0", "--only", "tight"]);
    let said = played(script.args(["--tasks", "12", "--hard-tasks", "6", "--concurrency", "8"]));
    assert_eq!(said["faults"], json!([]));
    assert_eq!(said["cells"], 19, "conditions and manners of clients");
}

#[tokio::test]
async fn the_official_sdks_run_agents_within_their_budgets() {
    let said = played(tool("python").arg("tests/python/agents_sdk.py"));
    for sdk in ["openai", "openai_streamed", "anthropic"] {
        for run in said[sdk].as_array().unwrap() {
            is_held(sdk, run);
        }
    }
    let refused = &said["refused"];
    assert_eq!(
        (&refused["class"], &refused["code"]),
        (&json!("RateLimitError"), &json!("insufficient_quota"))
    );
    assert_eq!(refused["retry"], "false", "an ended run does not begin again");
    assert!(refused["budget"]["limit"].as_str().unwrap().contains("episode"), "{refused}");
}

/// A run came to an answer, within its limits, and was told the truth about them.
fn is_held(sdk: &str, run: &Value) {
    assert!(run["answer"].as_str().unwrap().starts_with("Answer: "), "{sdk}: {run}");
    let last = run["budgets"].as_array().unwrap().last().unwrap();
    for (name, most) in LIMITS {
        let executed = run["executed"][name].as_u64().unwrap_or(0);
        assert!(executed <= most, "{sdk}: {executed} calls of {name}");
        let count = &last["episode"]["tool_calls"]["tools"][name];
        assert_eq!(count["used"], executed, "{sdk}: {last}");
        assert_eq!(count["left"], most - executed, "{sdk}: {last}");
    }
}

/// Lets a script play the models behind a gateway and the clients before it; gives back what it printed at its end.
fn played(script: &mut Command) -> Value {
    let mut script = Script::start(script);
    let folder = Folder::new(&CONFIGURATION.replace(UPSTREAM, &script.base));
    script.end(&folder.serve())
}

/// A script that has said where its models listen. It ends when this is dropped, or the test dies.
struct Script {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
    base: String,
}

impl Script {
    fn start(command: &mut Command) -> Script {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = piped.spawn().expect("the script starts");
        let (mut said, mut base) =
            (BufReader::new(child.stdout.take().expect("a piped output")), String::new());
        said.read_line(&mut base).expect("the address of its models");
        Script { child, said, base: base.trim().to_owned() }
    }

    /// Tells it where the gateway is, and waits for its last words.
    fn end(&mut self, gateway: &Process) -> Value {
        let mut input = self.child.stdin.take().expect("a piped input");
        writeln!(input, "{}", gateway.base).expect("it reads the gateway's address");
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("it prints text");
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
