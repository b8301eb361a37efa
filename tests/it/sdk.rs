//! OpenAI's own SDKs, changed only in the base URL, against the real binary and its embedded model.

use serde_json::{Value, json};

use crate::harness::tools::{held_out, lines, printed, tool};
use crate::harness::{Folder, Process};

/// The thinking budget that the scripts ask for.
const CUT: u64 = 8;

/// Problems of one step, which even a half-trained model solves and thinks more than [`CUT`] tokens about.
const PROBLEMS: u32 = 5;

/// How many of them must be solved without a stated budget.
const SOLVED_MIN: usize = 4;

/// IN-22: the SDK raises the class that belongs to each status.
#[tokio::test]
async fn the_official_python_sdk_works_unchanged() {
    check_counts(PYTHON).await;
}

#[tokio::test]
async fn the_official_node_sdk_works_unchanged() {
    check_counts(NODE).await;
}

#[tokio::test]
async fn litellms_client_works_unchanged() {
    let process = Folder::new(&keys()).serve();
    let mut script = tool("../litellm/bin/python");
    script.args(["tests/python/litellm_client.py", &process.base, "sk-test", "reasoner"]);
    let facts: Value = serde_json::from_str(&printed(&mut script, "")).unwrap();
    assert_eq!(facts["whole"], facts["streamed"], "greedy, so the same twice");
    assert_eq!((&facts["whole"]["thinking"], &facts["whole"]["finish"]), (&json!(16), &json!("stop")));
    assert!(!facts["whole"]["thought"].as_str().unwrap().is_empty());
    assert!(!facts["whole"]["content"].as_str().unwrap().is_empty());
    assert_eq!(facts["missing"], "NotFoundError");
    assert_eq!(facts["unpaid"], "AuthenticationError");
}

/// Everything that the engine decoded was told to callers.
async fn check_counts(script: [&str; 2]) {
    let process = Folder::new(&keys()).serve();
    let answers = check(&process, script, "reasoner").await;
    let told: u64 = answers.iter().map(|said| said["usage"]["completion_tokens"].as_u64().unwrap()).sum();
    let metrics = process.get("sk-test", "/metrics").await.text;
    let series = format!("\nstint_engine_tokens_total{{model=\"reasoner\",phase=\"decode\"}} {told}\n");
    assert!(metrics.contains(&series), "no {series} in {metrics}");
}

pub(crate) const PYTHON: [&str; 2] = ["python", "tests/python/official_sdk.py"];
pub(crate) const NODE: [&str; 2] = ["node", "tests/node/official_sdk.mjs"];

/// The keys that the scripts use: `sk-test`, and `sk-poor`, which has less than a request may cost.
pub(crate) fn keys() -> String {
    let key = |name: &str, more: &str| {
        let hash = stint_types::tenant::hash_key(&format!("sk-{name}"));
        format!("[[key]]\nname = \"{name}\"\nhash = \"{hash}\"\n{more}\n")
    };
    key("test", "admin = true") + &key("poor", "limits = [{ money = \"0.000001\", per = \"total\" }]")
}

/// Runs one script against one model of a gateway that nobody else has asked, and judges what came of it.
/// Gives back all answers.
pub(crate) async fn check(process: &Process, [runtime, script]: [&str; 2], model: &str) -> Vec<Value> {
    let problems = held_out(PROBLEMS, "1");
    let facts = printed(tool(runtime).args([script, &process.base, model]), &problems);
    let facts: Value = serde_json::from_str(&facts).unwrap();
    assert!(facts["models"].as_array().unwrap().contains(&model.into()), "{}", facts["models"]);

    let answers = |name: &str| facts[name].as_array().unwrap().clone();
    let (plain, cut) = (answers("plain"), answers("cut"));
    solved(&lines(&problems), &plain);
    plain.iter().for_each(closed);
    cut.iter().for_each(is_cut);
    same(&plain, &answers("plain_streamed"));
    same(&cut, &answers("cut_streamed"));
    for streamed in answers("cut_streamed") {
        assert_eq!(streamed["deltas"], CUT, "one delta for each token of thought: {streamed}");
    }
    errors(&facts["errors"]);
    let metrics = process.get("sk-test", "/metrics").await.text;
    let counted =
        |series: String| assert!(metrics.contains(&format!("\n{series}\n")), "no {series} in {metrics}");
    // LB-21: an SDK that did not heed `x-should-retry: false` would have come three times; one that had met a failure
    // would have asked again and said nothing.
    counted("stint_refusals_total{limit=\"key money total\"} 1".to_owned());
    let finished = 4 * PROBLEMS;
    counted(format!(
        "stint_requests_total{{model=\"{model}\",outcome=\"finished\",route=\"{model}\"}} {finished}"
    ));
    let is_failure =
        |line: &str| line.starts_with("stint_requests_total") && line.contains("outcome=\"failed\"");
    assert!(!metrics.lines().any(is_failure), "{metrics}");
    ["plain", "cut", "plain_streamed", "cut_streamed"].into_iter().flat_map(answers).collect()
}

fn solved(problems: &[Value], answers: &[Value]) {
    let right = problems.iter().zip(answers).filter(|(problem, said)| problem["answer"] == said["answer"]);
    let right = right.count();
    assert!(right >= SOLVED_MIN, "{right} of {} are solved: {problems:?} {answers:?}", problems.len());
}

/// An answer after a thought that the model closed.
fn closed(said: &Value) {
    // The end tag and the end of text; the answer begins with a blank line, one token, which callers do not see.
    agree(said, "closed", 2, 1);
}

/// A whole answer after a thought that was cut.
fn is_cut(said: &Value) {
    assert_eq!(said["budget"]["thinking"]["used"], CUT, "{said}");
    // The hand-off, which has the blank line, and the end of text.
    agree(said, "cut", 4, 0);
}

/// The answer is whole, and what is told of it agrees with the tokens that are there: in this model's texts of
/// arithmetic one character is one token.
fn agree(said: &Value, ended: &str, overhead: u64, unseen: u64) {
    let characters = |name: &str| said[name].as_str().unwrap_or_default().chars().count() as u64;
    let (thought, answer) = (characters("thought"), characters("answer"));
    assert!(answer > 0 && said["finish"] == "stop", "{said}");
    let (budget, usage) = (&said["budget"], &said["usage"]);
    assert_eq!(budget["thinking"]["ended"], ended, "{said}");
    assert_eq!(budget["thinking"]["used"], thought, "{said}");
    assert_eq!(budget["overhead_tokens"], overhead, "{said}");
    assert_eq!(budget["solution"]["used"], unseen + answer, "{said}");
    assert_eq!(budget["estimated"], false, "{said}");
    let completion = thought + overhead + unseen + answer;
    assert_eq!(usage["completion_tokens"], completion, "{said}");
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], thought, "{said}");
    assert_eq!(usage["total_tokens"], completion + usage["prompt_tokens"].as_u64().unwrap(), "{said}");
}

/// The usage, whether or not the prompt was in the cache.
fn usage(said: &Value) -> Value {
    let mut usage = said["usage"].clone();
    let read = usage["cache_read_input_tokens"].as_u64().unwrap_or(0);
    if let Some(fresh) = usage["input_tokens"].as_u64() {
        usage["input_tokens"] = json!(fresh + read);
    }
    let members = usage.as_object_mut().expect("usage");
    for cached in ["prompt_tokens_details", "input_tokens_details", "cache_read_input_tokens"] {
        members.remove(cached);
    }
    usage
}

/// A stream says what the whole object says, at the same price. Budgets that a plan chose may differ: it weighs speeds
/// that were measured meanwhile.
fn same(whole: &[Value], streamed: &[Value]) {
    assert_eq!(whole.len(), streamed.len());
    for (whole, streamed) in whole.iter().zip(streamed) {
        for place in [
            "/thought",
            "/answer",
            "/finish",
            "/budget/thinking/used",
            "/budget/thinking/ended",
            "/budget/cost_usd",
        ] {
            assert_eq!(whole.pointer(place), streamed.pointer(place), "{place} of {streamed}");
            assert!(whole.pointer(place).is_some(), "{place} of {whole}");
        }
        assert_eq!(usage(whole), usage(streamed), "{streamed}");
    }
}

/// Each refusal is the SDK's own class for it, and says what is wrong.
fn errors(errors: &Value) {
    let expected = json!({
        "model": { "class": "NotFoundError", "status": 404, "code": "model_not_found", "param": "model", "retry": null },
        "budget": { "class": "BadRequestError", "status": 400, "code": null, "param": "budget.thinking_tokens", "retry": null },
        "key": { "class": "AuthenticationError", "status": 401, "code": "invalid_api_key", "param": null, "retry": "false" },
        "spent": { "class": "RateLimitError", "status": 429, "code": "insufficient_quota", "param": null, "retry": "false" },
    });
    assert_eq!(*errors, expected);
}
