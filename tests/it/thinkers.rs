//! Models that think, behind a plain `openai` backend, as an operator names them. A caller that states a limit gets what
//! the model itself would give.

mod upstream;

use serde_json::{Value, json};

use crate::harness::{Answer, Folder, Process};
use upstream::{ANSWER, Habit, Thinker, Thought};

const SHOWN: Habit =
    Habit { thinks: 2_500, thinks_least: 2_500, thought: Thought::Shown, refuses_least: false };

/// The real binary before one, which has this name.
fn gateway(thinker: &Thinker, name: &str) -> Process {
    let toml = format!(
        "[engine]\nembedded = false\n[[backend]]\nkind = \"openai\"\nbase_url = \"{}\"\nmodels = [\"{name}\"]\n",
        thinker.base
    );
    Folder::new(&toml).serve()
}

async fn ask(process: &Process, name: &str, more: &Value) -> Answer {
    let mut body = json!({ "model": name, "messages": [{ "role": "user", "content": "What is 12+34+5?" }] });
    more.as_object().unwrap().iter().for_each(|(member, value)| body[member] = value.clone());
    process.ask("", &body).await
}

/// How often a word stands in a member of the message.
fn words(answer: &Value, member: &str) -> u64 {
    let text = answer["choices"][0]["message"][member].as_str().unwrap_or_default();
    text.split_whitespace().count() as u64
}

fn finish(answer: &Value) -> &str {
    answer["choices"][0]["finish_reason"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stated_limit_never_turns_the_answer_of_a_model_that_shows_its_thoughts_into_an_error() {
    for name in ["my-thinker", "kimi-k2-thinking", "glm-4.6", "qwen3-32b", "deepseek-r1-distill-llama-8b"] {
        let thinker = Thinker::start(SHOWN);
        let process = gateway(&thinker, name);
        for round in 0..3 {
            let whole = ask(&process, name, &json!({ "max_tokens": 4_000 })).await.good();
            let what = format!("{name}, round {round}: {}", whole["budget"]);
            assert_eq!((words(&whole, "content"), finish(&whole)), (ANSWER, "stop"), "{what}");
            assert_eq!(words(&whole, "reasoning_content"), 2_500, "{what}");
            let held = ask(&process, name, &json!({ "budget": { "thinking_tokens": 100 } })).await.good();
            assert_eq!((words(&held, "content"), finish(&held)), (ANSWER, "stop"), "{what}");
            let short = ask(&process, name, &json!({ "max_tokens": 200 })).await.good();
            assert_eq!((words(&short, "content"), finish(&short)), (0, "length"), "{what}");
            assert_eq!(words(&short, "reasoning_content"), 200, "{what}");
            assert_eq!(short["usage"]["completion_tokens"], 200, "{short}");
        }
        assert_eq!(thinker.log().len(), 9, "{name} is asked once for each");
        let limits: Vec<Value> =
            thinker.log().iter().map(|body| body["max_completion_tokens"].clone()).collect();
        assert_eq!(limits[..3], [json!(4_000), Value::Null, json!(200)], "{name}");
        let streamed = ask(&process, name, &json!({ "max_tokens": 200, "stream": true })).await.chunks();
        assert!(streamed.done && streamed.all.iter().all(|chunk| chunk["error"].is_null()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_a_single_token_is_passed_on_as_it_is() {
    let habit = Habit { thinks: 0, thinks_least: 0, thought: Thought::Hidden, refuses_least: false };
    for name in ["gpt-5", "gpt-5-mini", "o3", "my-thinker"] {
        let thinker = Thinker::start(Habit { thinks: 64, ..habit });
        let process = gateway(&thinker, name);
        // It is seen to think.
        ask(&process, name, &json!({})).await.good();
        thinker.becomes(habit);
        for tokens in [1, 2, 5, 16, 17, 40] {
            let answer = ask(&process, name, &json!({ "max_tokens": tokens })).await.good();
            assert_eq!((words(&answer, "content"), finish(&answer)), (tokens, "length"), "{name}: {answer}");
            assert_eq!(thinker.log().last().unwrap()["max_completion_tokens"], tokens, "{name}");
            assert_eq!(answer["budget"]["overhead_tokens"], 0, "{name}: {answer}");
        }
        assert_eq!(thinker.log().len(), 7, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_a_hidden_thought_uses_up_is_told_as_the_model_tells_it() {
    let habit = Habit { thinks: 64, thinks_least: 3, thought: Thought::Hidden, refuses_least: false };
    let thinker = Thinker::start(Habit { thinks_least: 64, ..habit });
    let process = gateway(&thinker, "gpt-5");
    for stream in [false, true] {
        let body = json!({ "max_tokens": 16, "reasoning_effort": "high", "stream": stream });
        let answer = ask(&process, "gpt-5", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(answer.text.contains(r#""finish_reason":"length""#), "{}", answer.text);
        assert!(!answer.text.contains("no_answer"), "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_answer_behind_a_cut_thought_is_refused_the_limit_has_ended_it_and_the_caller_is_not_at_fault()
 {
    let thinker = Thinker::start(Habit { thinks: 20_000, refuses_least: true, ..SHOWN });
    let process = gateway(&thinker, "gpt-5");
    for round in 0..2 {
        let answer =
            ask(&process, "gpt-5", &json!({ "max_tokens": 8_000, "reasoning_effort": "high" })).await.good();
        assert_eq!((words(&answer, "content"), finish(&answer)), (0, "length"), "round {round}: {answer}");
        assert!(words(&answer, "reasoning_content") > 500, "round {round}: {answer}");
    }
    let words: Vec<bool> = thinker.log().iter().map(|body| body["reasoning_effort"] == "minimal").collect();
    assert_eq!(words, [false, true, false], "what was refused is not asked for again");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_in_which_no_thought_is_closed_is_the_answer_whatever_the_models_name_says() {
    for (thought, shown_as_thoughts) in [(Thought::Hidden, 1), (Thought::Untold, 2), (Thought::Shown, 0)] {
        for name in ["deepseek-r1", "qwq-32b", "qwen3-4b-thinking-2507"] {
            let thinker = Thinker::start(Habit { thinks: 20, thought, ..SHOWN });
            let process = gateway(&thinker, name);
            for round in 0..4 {
                let answer = ask(&process, name, &json!({})).await.good();
                let what = format!("{name}, {thought:?}, round {round}: {answer}");
                assert_eq!((words(&answer, "content"), finish(&answer)), (ANSWER, "stop"), "{what}");
                let mistaken = words(&answer, "reasoning_content") == ANSWER;
                assert_eq!(mistaken, round < shown_as_thoughts, "{what}");
                assert_eq!(answer["usage"]["completion_tokens"], 20 + ANSWER, "{what}");
                if thought == Thought::Hidden {
                    assert_eq!(
                        answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 20,
                        "{what}"
                    );
                }
            }
            let streamed = ask(&process, name, &json!({ "stream": true })).await.chunks();
            assert_eq!(streamed.joined(0, "content").split_whitespace().count() as u64, ANSWER, "{name}");
            assert_eq!(thinker.log().len(), 5, "{name} is asked once for each");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_that_come_in_the_text_are_told_from_it_again_once_a_tag_shows_them() {
    let in_text = Habit { thinks: 20, thought: Thought::InText, ..SHOWN };
    let thinker = Thinker::start(in_text);
    let process = gateway(&thinker, "deepseek-r1");
    let thinks = async |round: &str| {
        let answer = ask(&process, "deepseek-r1", &json!({})).await.good();
        let lengths = (words(&answer, "reasoning_content"), words(&answer, "content"));
        assert_eq!(lengths, (20, ANSWER), "{round}: {answer}");
    };
    thinks("at first").await;
    let cut = ask(&process, "deepseek-r1", &json!({ "max_tokens": 10 })).await.good();
    assert_eq!((words(&cut, "reasoning_content"), finish(&cut)), (10, "length"), "{cut}");
    thinks("after a thought that a limit cut").await;
    thinker.becomes(Habit { thought: Thought::Hidden, ..in_text });
    ask(&process, "deepseek-r1", &json!({})).await.good();
    thinker.becomes(in_text);
    ask(&process, "deepseek-r1", &json!({})).await.good();
    thinks("after its server was another").await;
}
