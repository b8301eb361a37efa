//! The real binary, as an operator configures it for each provider.

use serde_json::json;

use crate::harness::emulators::anthropic::Anthropic;
use crate::harness::emulators::gemini::Gemini;
use crate::harness::emulators::responses::Responses;
use crate::harness::emulators::{Emulator, KEY, Turn};
use crate::harness::{Folder, Process};

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
