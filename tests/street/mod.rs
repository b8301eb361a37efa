//! Everyday prompts with answers as long as real ones, against every way of calling providers.
//!
//! Nothing is cut that nobody limited: not with nothing stated, not below a stated total, not with a money limit that can
//! afford the answer. And the books equal the upstreams' bills.

mod lanes;
mod prompts;

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::harness::{Folder, Process};
use lanes::Lane;
use prompts::Prompt;

/// How many requests are under way at once.
const AT_ONCE: usize = 16;

/// The answers that are asked for in every way, not only in one: these and all longer ones.
const LONG: u64 = 16_000;

/// Who asks, and what is stated.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Whether the caller has a limit on money, one that affords all of it.
    limited: bool,
    /// Whether a total is stated, one that thought and answer fit in.
    total: bool,
    streamed: bool,
}

impl Way {
    /// All eight ways, as bits.
    fn of(bits: usize) -> Way {
        Way { limited: bits & 1 > 0, total: bits & 2 > 0, streamed: bits & 4 > 0 }
    }

    fn key(self) -> &'static str {
        if self.limited { "sk-limited" } else { "sk-free" }
    }
}

/// An answer as its caller has it.
struct Got {
    words: u64,
    finish: Value,
    budget: Value,
}

async fn ask(process: &Process, model: &str, prompt: Prompt, way: Way) -> Got {
    let mut body = json!({
        "model": model, "stream": way.streamed,
        "messages": [{ "role": "user", "content": prompt.asked() }],
    });
    if way.total {
        // What a caller would write: a round number that both fit in.
        let needed = prompt.answer + prompt.thought + 512;
        body["max_tokens"] = json!(needed.next_multiple_of(1024));
    }
    let answer = process.ask(way.key(), &body).await;
    let what = format!("{model}, no {}, {way:?}: {:.300}", prompt.number, answer.text);
    assert_eq!(answer.status, 200, "{what}");
    let words = |text: &str| text.split_whitespace().count() as u64;
    if way.streamed {
        let chunks = answer.chunks();
        assert!(chunks.done, "{what}");
        let finish = chunks.all.iter().find_map(|chunk| {
            let reason = &chunk["choices"][0]["finish_reason"];
            (!reason.is_null()).then(|| reason.clone())
        });
        let text = chunks.joined(0, "content");
        return Got { words: words(&text), finish: finish.unwrap(), budget: chunks.budget().clone() };
    }
    let answer = answer.json();
    let choice = &answer["choices"][0];
    let text = choice["message"]["content"].as_str().unwrap_or_default();
    Got { words: words(text), finish: choice["finish_reason"].clone(), budget: answer["budget"].clone() }
}

/// What is wrong with an answer, if anything is.
fn fault(lane: &Lane, prompt: Prompt, way: Way, got: &Got) -> Option<String> {
    let ended = &got.budget["solution"]["ended"];
    let whole = got.words == prompt.answer && got.finish == "stop" && ended == "stop";
    (!whole).then(|| {
        format!(
            "{} no {} ({} + {} tokens, {way:?}): {} words, {}, {}",
            lane.model, prompt.number, prompt.thought, prompt.answer, got.words, got.finish, got.budget
        )
    })
}

fn config(lanes: &[Lane]) -> String {
    let key = |name: &str, limits: &str| {
        let hash = stint_types::tenant::hash_key(&format!("sk-{name}"));
        format!("[[key]]\nname = \"{name}\"\nhash = \"{hash}\"\n{limits}\n")
    };
    let backends: String = lanes.iter().map(|lane| lane.toml.as_str()).collect();
    let limits = "limits = [{ money = \"1000\", per = \"day\" }]";
    format!("[engine]\nembedded = false\n{backends}{}{}", key("free", ""), key("limited", limits))
}

/// Dollars as nano-dollars.
fn nanos(dollars: &Value) -> u64 {
    let text = dollars.as_str().unwrap_or_else(|| panic!("{dollars} is no cost"));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    whole.parse::<u64>().unwrap() * 1_000_000_000 + format!("{part:0<9}").parse::<u64>().unwrap()
}

/// Asks every prompt of every lane: each in one of the eight ways, and the long ones in all.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_cut_that_nobody_limited_and_the_books_are_the_upstreams_bills() {
    let prompts = prompts::all();
    assert!(prompts.len() >= 200 && prompts.iter().any(|prompt| prompt.answer == 60_000));
    let lanes = lanes::all(&prompts);
    let folder = Folder::new(&config(&lanes));
    std::fs::write(folder.path().join("key"), lanes::key()).unwrap();
    let process = folder.serve();
    let jobs = lanes.iter().enumerate().flat_map(|(at, lane)| {
        prompts.iter().flat_map(move |prompt| {
            let one = prompt.number.wrapping_mul(5).wrapping_add(at) % 8;
            let ways = if prompt.answer >= LONG { (0..8).collect() } else { vec![one] };
            ways.into_iter().map(move |way| (lane, *prompt, Way::of(way)))
        })
    });
    let got: Vec<_> = futures_util::stream::iter(jobs)
        .map(|(lane, prompt, way)| {
            let process = &process;
            async move { (lane, prompt, way, ask(process, lane.model, prompt, way).await) }
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let faults: Vec<String> =
        got.iter().filter_map(|(lane, prompt, way, got)| fault(lane, *prompt, *way, got)).collect();
    assert!(faults.is_empty(), "{} of {} are cut:\n{}", faults.len(), got.len(), faults.join("\n"));
    for lane in &lanes {
        let own = got.iter().filter(|(other, ..)| other.model == lane.model);
        let told: u64 = own.map(|(.., got)| nanos(&got.budget["cost_usd"])).sum();
        let (read, written) = lane.billed();
        assert_eq!(lane.refusals(), Vec::<Value>::new(), "{}", lane.model);
        assert_eq!(told, 1000 * (read + 4 * written), "{}: told and billed", lane.model);
    }
    let all: u64 = got.iter().map(|(.., got)| nanos(&got.budget["cost_usd"])).sum();
    let mut booked = 0;
    for key in ["sk-free", "sk-limited"] {
        let usage = process.get(key, "/v1/usage").await.good();
        let rows = usage["data"].as_array().unwrap();
        booked += rows.iter().map(|row| nanos(&row["spent_usd"])).sum::<u64>();
    }
    assert_eq!(booked, all, "booked and told");
}

/// Where nobody limits anything, an upstream that needs no limit is sent none, but for one that holds a thought.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_needs_no_limit_is_sent_none_that_nobody_stated() {
    let prompts = prompts::all();
    let lanes = lanes::all(&prompts);
    let folder = Folder::new(&config(&lanes));
    std::fs::write(folder.path().join("key"), lanes::key()).unwrap();
    let process = folder.serve();
    // DeepSeek is told one always, since its own may be low.
    for lane in lanes.iter().filter(|lane| lane.model != "deepseek-reasoner") {
        for prompt in prompts.iter().step_by(30) {
            let got = ask(&process, lane.model, *prompt, Way::of(0)).await;
            assert_eq!(fault(lane, *prompt, Way::of(0), &got), None);
        }
        let last: Vec<Option<u64>> = lane.asked().iter().map(|body| lane.limit(body)).collect();
        let holds_thoughts = ["qwen3-8b", "qwen3-4b"].contains(&lane.model);
        // The call that answers states none; one that thinks is held by its limit.
        let unlimited = last.iter().filter(|limit| limit.is_none()).count();
        let enough = if holds_thoughts { prompts.len().div_ceil(30) } else { last.len() };
        assert!(unlimited >= enough, "{}: {last:?}", lane.model);
    }
}
