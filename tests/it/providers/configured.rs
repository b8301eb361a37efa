//! The real binary, as an operator configures it for each provider.

use serde_json::{Value, json};

use crate::harness::emulators::anthropic::Anthropic;
use crate::harness::emulators::gemini::Gemini;
use crate::harness::emulators::responses::Responses;
use crate::harness::emulators::{Emulator, KEY, Turn};
use crate::harness::{Answer, Folder, Process};

/// A backend of that kind, and its models.
fn backend(kind: &str, emulator: &Emulator, models: &str) -> String {
    format!(
        "[[backend]]\nkind = \"{kind}\"\nbase_url = \"{}\"\napi_key_file = \"key\"\n{models}\n",
        emulator.base
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn each_provider_is_a_kind_of_backend_whose_models_are_known_by_name() {
    let turn = || vec![Turn::answers(2000, "it is 51")];
    let claude = Emulator::start(Anthropic::default(), [turn(), turn()].concat());
    let (gemini, gpt) = (Emulator::start(Gemini, turn()), Emulator::start(Responses, turn()));
    let efforts = "efforts = [{ word = \"low\", usual = 50 }, { word = \"high\", usual = 500 }]";
    let toml = [
        "[engine]\nembedded = false\n".to_owned(),
        backend(
            "anthropic",
            &claude,
            "models = [\"claude-sonnet-4-5\"]\n[[backend.model]]\nname = \"newer\"\n\
                 upstream = \"claude-adaptive\"\nthinking = \"adaptive\"\nsampling = false\n\
                 thinking_max = 8000\nefforts = [{ word = \"medium\", usual = 100 }]",
        ),
        backend("gemini", &gemini, "models = [\"gemini-2.5-flash\"]"),
        backend(
            "responses",
            &gpt,
            &format!("[[backend.model]]\nname = \"gpt\"\nthinking_max = 1000\n{efforts}"),
        ),
    ];
    let folder = Folder::new(&toml.concat());
    std::fs::write(folder.path().join("key"), KEY).unwrap();
    let process = folder.serve();
    assert_eq!(ask(&process, "claude-sonnet-4-5").await, ("native".to_owned(), 1200));
    assert_eq!(ask(&process, "newer").await, ("effort".to_owned(), 100));
    assert_eq!(ask(&process, "gemini-2.5-flash").await, ("native".to_owned(), 1260));
    assert_eq!(ask(&process, "gpt").await, ("effort".to_owned(), 500));
    for emulator in [claude, gemini, gpt] {
        assert_eq!(emulator.refused(), []);
    }
}

/// How its thinking was held, and how much it thought.
async fn ask(process: &Process, model: &str) -> (String, u64) {
    let body = json!({
        "model": model,
        "messages": [{ "role": "user", "content": "What is 12+34+5?" }],
        "temperature": 0.5,
        "budget": { "thinking_tokens": 1200, "solution_tokens": 64 },
    });
    let answer = process.ask("", &body).await.good();
    assert_eq!(answer["choices"][0]["message"]["content"], "it is 51 ");
    let budget = &answer["budget"];
    (budget["enforced"].as_str().unwrap().to_owned(), budget["thinking"]["used"].as_u64().unwrap())
}

/// A run's money, and what a caller says of its task, are told in the provider's own words to the models that know them.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_s_budget_is_told_in_its_provider_s_own_words_and_stays_the_same() {
    let turns = (0..5).map(|_| Turn::answers(20, "it is 51")).collect();
    let claude = Emulator::start(Anthropic::default(), turns);
    let toml = format!(
        "[engine]\nembedded = false\n[agents]\ntask_budget = true\n{}",
        backend(
            "anthropic",
            &claude,
            "models = [\"claude-sonnet-4-5\"]\n\
             [[backend.model]]\nname = \"claude-opus-5-5-bound\"\nprice_input = \"5\"\nprice_output = \"25\"",
        )
    );
    let folder = Folder::new(&toml);
    std::fs::write(folder.path().join("key"), KEY).unwrap();
    let process = folder.serve();
    let tools = json!([{ "name": "look", "input_schema": { "type": "object" } }]);
    let ask = async |model: &str, more: Value| {
        let mut body = json!({ "model": model, "max_tokens": 2000, "tools": tools,
            "messages": [{ "role": "user", "content": "What is 12+34+5?" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let said = serde_json::to_string(&body).unwrap();
        let request = process.client.post(format!("{}/v1/messages", process.base));
        Answer::of(request.header("content-type", "application/json").body(said)).await
    };
    let run =
        |cost: &str| json!({ "budget": { "episode": { "id": format!("run-{cost}"), "cost_usd": cost } } });
    let own = json!({ "output_config": { "task_budget": { "type": "tokens", "total": 64_000, "remaining": 30_000 } } });
    for (model, more) in [
        ("claude-opus-5-5-bound", run("3")),
        ("claude-opus-5-5-bound", run("3")),
        ("claude-opus-5-5-bound", run("0.4")),
        ("claude-opus-5-5-bound", own.clone()),
        ("claude-sonnet-4-5", own),
    ] {
        ask(model, more).await.good();
    }
    let told: Vec<Value> =
        claude.asked().iter().map(|body| body["output_config"]["task_budget"].clone()).collect();
    let tokens = |total: u64| json!({ "type": "tokens", "total": total });
    let callers = json!({ "type": "tokens", "total": 64_000, "remaining": 30_000 });
    assert_eq!(told, [tokens(120_000), tokens(120_000), Value::Null, callers, Value::Null]);
    assert_eq!(claude.refused(), []);
    let small = json!({ "output_config": { "task_budget": { "type": "tokens", "total": 19_999 } } });
    let refused = ask("claude-opus-5-5-bound", small).await;
    assert_eq!((refused.status, &refused.error()["param"]), (400, &json!("output_config.task_budget.total")));
}
