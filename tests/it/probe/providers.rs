//! `stint probe` against emulated providers: what it finds out is what they were built to do, and holds from the next start
//! on.

use serde_json::json;
use stint_types::units::Timestamp;
use toml::Table;

use crate::harness::Folder;
use crate::harness::emulators::anthropic::Anthropic;
use crate::harness::emulators::chat::{Emulator, Kind, Script};
use crate::harness::emulators::gemini::Gemini;
use crate::harness::emulators::responses::Responses;
use crate::harness::emulators::{self, KEY, Turn};

use super::verdict;

/// How long the scripts would think: more than any class lets pass of the budget that is tried.
const THINKS: u64 = 70;

/// More turns than a probe takes.
const TURNS: usize = 40;

/// What a probe printed and wrote down.
struct Probed {
    folder: Folder,
    table: String,
    entry: Table,
}

/// Probes the model `m` of a backend; `model` is what is said of it.
async fn probe(kind: &str, base: &str, model: &str) -> Probed {
    let folder = Folder::new(&format!(
        "[engine]\nembedded = false\n[catalog]\nlearned = \"learned.toml\"\n\
         [[backend]]\nkind = \"{kind}\"\nbase_url = \"{base}\"\napi_key_file = \"key\"\n\
         [[backend.model]]\nname = \"m\"\n{model}"
    ));
    std::fs::write(folder.path().join("key"), KEY).unwrap();
    let mut command = folder.stint("probe");
    command.arg("m");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{kind}: {table}{}", String::from_utf8_lossy(&output.stderr));
    let learned = std::fs::read_to_string(folder.path().join("learned.toml")).unwrap();
    let learned: Table = learned.parse().unwrap();
    Probed { entry: learned["model"][0].as_table().unwrap().clone(), folder, table }
}

impl Probed {
    fn says(&self, class: &str, budget: &str, says: &str) {
        let line = verdict(&self.table, class, budget);
        assert!(line.contains(says), "{class} {budget}: {says}\n{}", self.table);
    }

    fn classes(&self) -> Vec<&str> {
        let classes = self.entry.get("classes").and_then(|it| it.as_array()).into_iter().flatten();
        classes.filter_map(|class| class.as_str()).collect()
    }

    /// The scale that was written, where one was.
    fn efforts(&self) -> Option<Vec<(&str, i64)>> {
        let levels = self.entry.get("efforts")?.as_array()?;
        let level = |level| -> Option<(&str, i64)> {
            let level: &Table = toml::Value::as_table(level)?;
            Some((level["word"].as_str()?, level["usual"].as_integer()?))
        };
        levels.iter().map(level).collect()
    }

    fn thinks_always(&self) -> Option<bool> {
        self.entry.get("thinks_always").and_then(toml::Value::as_bool)
    }

    /// How the thought is held from the next start on.
    async fn enforced(&self) -> String {
        let body = json!({
            "model": "m",
            "messages": [{ "role": "user", "content": "What is 12+34+5?" }],
            "budget": { "thinking_tokens": 30, "solution_tokens": 20 },
        });
        let answer = self.folder.serve().ask("", &body).await.good();
        answer["budget"]["enforced"].as_str().unwrap().to_owned()
    }
}

/// Probes a provider of chat completions.
async fn chat(word: &str, kind: Kind, script: Script, model: &str) -> (Emulator, Probed) {
    let emulator = Emulator::start(kind, script);
    let path = if kind == Kind::DeepSeek { "" } else { "/v1" };
    let probed = probe(word, &format!("{}{path}", emulator.address), model).await;
    (emulator, probed)
}

fn script() -> Script {
    Script::new(THINKS, 5)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_that_a_provider_has_is_found_to_hold_and_words_that_do_nothing_are_not_kept() {
    let all: [(&str, Kind, &[&str]); 5] = [
        ("deepseek", Kind::DeepSeek, &["continue", "turn"]),
        ("openrouter", Kind::OpenRouter, &["native", "turn"]),
        ("vllm", Kind::Vllm, &["continue", "native", "turn"]),
        ("sglang", Kind::Sglang, &["continue", "native", "turn"]),
        ("dashscope", Kind::DashScope, &["native", "turn"]),
    ];
    let all = all.map(|(word, kind, classes)| holds(word, kind, classes));
    futures_util::future::join_all(all).await;
}

/// A provider that holds what it promises in these ways.
async fn holds(word: &str, kind: Kind, classes: &[&str]) {
    let (emulator, probed) = chat(word, kind, script(), "").await;
    classes.iter().for_each(|class| probed.says(class, "24", "holds"));
    probed.says(classes[0], "0", "does not think");
    assert_eq!(probed.thinks_always(), Some(false), "{word}");
    assert_eq!(emulator.refusals(), Vec::<serde_json::Value>::new(), "{word}");
    if kind == Kind::DashScope {
        probed.says("effort", "-", "not tried: this upstream has no words for it");
        assert_eq!((probed.classes(), probed.efforts()), ([classes, &["effort"]].concat(), None));
    } else {
        assert!(probed.table.contains("its effort words change nothing"), "{word}: {}", probed.table);
        assert_eq!((probed.classes(), probed.efforts()), (classes.to_vec(), Some(Vec::new())), "{word}");
    }
    assert_eq!(probed.enforced().await, classes[0], "{word}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_is_refused_or_not_held_is_not_asked_for_from_the_next_start_on() {
    let refuses = Script { holds: false, ..script() };
    let forgets = Script { forgets: true, ..script() };
    let native = "classes = [\"native\", \"turn\"]\n";
    for (word, kind, script, budget, says, enforced) in [
        ("vllm", Kind::Vllm, refuses, "-", "refused: thinking_token_budget is set but", "continue"),
        ("vllm", Kind::Vllm, forgets, "24", "does not hold", "continue"),
        ("openrouter", Kind::OpenRouter, forgets, "24", "does not hold", "turn"),
    ] {
        let (emulator, probed) = chat(word, kind, script, "").await;
        probed.says("native", budget, says);
        assert!(!probed.classes().contains(&"native"), "{word}: {}", probed.table);
        let before = emulator.calls().len();
        assert_eq!(probed.enforced().await, enforced, "{word}");
        let later = emulator.calls().split_off(before);
        assert!(later.iter().all(|call| call.body["reasoning"]["max_tokens"].is_null()), "{later:?}");
    }
    // What stint.toml says overrides what was found out.
    let (_, probed) = chat("openrouter", Kind::OpenRouter, forgets, native).await;
    assert_eq!((probed.classes(), &*probed.enforced().await), (vec!["turn"], "native"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_had_no_room_for_a_question_is_not_taken_to_refuse_it() {
    let (_, probed) = chat("openrouter", Kind::OpenRouter, Script { busy: true, ..script() }, "").await;
    probed.says("native", "-", "failed: the upstream answered 503");
    assert_eq!(probed.classes(), ["native", "turn"], "what was known stays");
    assert!(probed.table.contains("failed: the upstream failed or was busy"), "{}", probed.table);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effort_words_that_a_provider_takes_are_measured() {
    let words = &[("none", 0), ("low", 10), ("medium", 40), ("high", 70)];
    let (_, probed) = chat("openai", Kind::OpenAi, Script { efforts: words, ..script() }, "").await;
    let expected = words.map(|(word, usual)| (word, i64::try_from(usual).unwrap()));
    assert_eq!(probed.efforts().unwrap(), expected, "{}", probed.table);
    assert_eq!((probed.classes(), probed.thinks_always()), (vec!["effort"], Some(false)));
    assert_eq!(probed.entry["thinking_max"].as_integer(), Some(2048), "it was not known to think");

    let words = &[("low", 10), ("high", 70)];
    let (_, probed) = chat("openai", Kind::OpenAi, Script { efforts: words, ..script() }, "").await;
    probed.says("none", "-", "refused");
    assert_eq!(probed.efforts().unwrap(), [("low", 10), ("high", 70)], "{}", probed.table);
    assert_eq!(probed.thinks_always(), Some(true), "{}", probed.table);

    let (_, probed) = chat("openai", Kind::OpenAi, Script::new(0, 5), "").await;
    probed.says("effort", "2048", "does not think; if it never does, say thinking_max = 0");
    assert_eq!(probed.efforts(), None, "questions that it thinks nothing about tell nothing of its words");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_of_resuming_that_a_provider_does_not_have_is_found_out() {
    let model = "budget_as = \"thinking_budget_tokens\"\nswitch_as = \"chat_template_kwargs\"\nresume_as = \"prefix\"\n";
    let (_, probed) = chat("openai", Kind::Vllm, script(), model).await;
    probed.says("continue", "-", "refused: the upstream answered 404");
    probed.says("native", "24", "does not hold");
    assert_eq!((probed.classes(), &*probed.enforced().await), (vec!["turn"], "turn"));
    // Thinking that cannot be turned off takes a way with it that the kind has.
    let (_, probed) = chat("sglang", Kind::Sglang, script(), "switch_as = \"never\"\n").await;
    assert_eq!(probed.classes(), ["continue", "native"], "{}", probed.table);
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_with_apis_of_their_own_are_found_to_do_what_they_do() {
    let turns = |thinks| vec![Turn::answers(thinks, "it is 51"); TURNS];
    let claude = emulators::Emulator::start(Anthropic::default(), turns(2000));
    let probed = probe("anthropic", &claude.base, "upstream = \"claude-sonnet-4-5\"\n").await;
    ["native", "turn"].iter().for_each(|class| probed.says(class, "1024", "holds"));
    assert_eq!((probed.classes(), probed.thinks_always()), (vec!["native", "turn"], Some(false)));
    assert_eq!(claude.refused(), []);

    let newer = emulators::Emulator::start(Anthropic::default(), turns(100));
    let model =
        "upstream = \"claude-adaptive\"\nthinking = \"adaptive\"\nsampling = false\nthinking_max = 8000\n";
    let probed = probe("anthropic", &newer.base, model).await;
    probed.says("turn", "24", "holds");
    probed.says("minimal", "-", "refused: output_config.effort");
    assert_eq!(probed.efforts().unwrap(), [("none", 0), ("low", 20), ("medium", 100)]);
    assert_eq!((probed.classes(), &*probed.enforced().await), (vec!["turn", "effort"], "turn"));

    let gemini = emulators::Emulator::start(Gemini, turns(100));
    let probed = probe("gemini", &gemini.base, "upstream = \"gemini-2.5-flash\"\n").await;
    probed.says("native", "24", "holds");
    assert_eq!((probed.classes(), probed.thinks_always()), (vec!["native"], Some(false)));
    assert_eq!((gemini.refused(), &*probed.enforced().await), (Vec::new(), "native"));

    let leveled = emulators::Emulator::start(Gemini, turns(100));
    let probed = probe("gemini", &leveled.base, "upstream = \"gemini-3-pro-preview\"\n").await;
    assert_eq!(probed.efforts().unwrap().last(), Some(&("high", 100)), "{}", probed.table);
    assert_eq!(probed.classes(), ["effort"]);

    let gpt = emulators::Emulator::start(Responses, turns(2000));
    let probed = probe("responses", &gpt.base, "").await;
    let scale = [("none", 0), ("minimal", 10), ("low", 50), ("medium", 500)];
    assert_eq!(probed.efforts().unwrap(), scale, "{}", probed.table);
    probed.says("max", "-", "refused: Unsupported value: 'max'");
    assert_eq!((probed.classes(), probed.thinks_always()), (vec!["effort"], Some(false)));
}

/// What it says that its questions cost, at prices that are a quarter outside the peak, which lies in these hours.
async fn cost(peak_hours: &[i64]) -> f64 {
    let prices = "price_input = \"100\"\nprice_output = \"400\"\n";
    let off_peak = format!("off_peak = {{ percent = 25, peak_hours = {peak_hours:?} }}\n");
    let (_, probed) = chat("openrouter", Kind::OpenRouter, script(), &format!("{prices}{off_peak}")).await;
    let said = probed.table.split(" answers, ").nth(1).and_then(|rest| rest.split(' ').next());
    said.and_then(|dollars| dollars.parse().ok()).unwrap_or_else(|| panic!("{}", probed.table))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_costs_what_the_hour_costs_in_which_it_is_made() {
    let hour = Timestamp::now().as_seconds().div_euclid(3600);
    let (far, now) = ((hour + 12).rem_euclid(24), [0, 1].map(|more| (hour + more).rem_euclid(24)));
    let (cheap, dear) = (cost(&[far]).await, cost(&now).await);
    assert!(cheap > 0.0 && (cheap * 4.0 - dear).abs() < dear / 1000.0, "{cheap} {dear}");
}
