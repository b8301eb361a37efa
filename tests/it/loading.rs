//! Local models that are loaded when they are asked for and let go when nobody uses them, in a server as it runs.

use std::path::Path;

use serde_json::{Value, json};
use stint_engine::{EngineSize, Settings};
use stint_gguf::Gguf;

use crate::harness::{Answer, Folder, Process, patience};

/// The model that ships with the binary.
fn file() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf"))
}

/// Room for one model like that, and half of another.
fn room_for_one() -> String {
    let settings = Settings { allow_cpu: true, ..Settings::default() };
    let size = EngineSize::measure(&Gguf::open(file()).unwrap(), &settings).unwrap();
    format!("memory_max = \"{}KiB\"", size.memory * 3 / 2 / 1024)
}

/// A backend of that file with one model.
fn backend(name: &str, file: &Path, more: &str) -> String {
    format!(
        "[[backend]]\nname = \"{name}\"\nkind = \"local\"\nfile = \"{}\"\n{more}\n\
         [[backend.model]]\nname = \"{name}\"\nprice_input = \"0.01\"\nprice_output = \"0.04\"\n",
        file.display()
    )
}

const ON_DEMAND: &str = "load_on_startup = false";

fn configured(engine: &str, backends: &[String]) -> Folder {
    Folder::new(&format!("[engine]\nembedded = false\n{engine}\n{}", backends.concat()))
}

fn question(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "17*24+3=" }], "temperature": 0 })
}

async fn ask(process: &Process, model: &str) -> Answer {
    process.ask("", &question(model)).await
}

/// Whether each of the models is in memory, by what is said to callers.
async fn loaded(process: &Process, models: &[&str]) -> Vec<Option<bool>> {
    let listed = process.get("", "/v1/models").await.good();
    let of = |name: &&str| {
        let all = listed["data"].as_array().unwrap();
        all.iter().find(|model| model["id"] == *name).unwrap()["loaded"].as_bool()
    };
    models.iter().map(of).collect()
}

/// The value of a series; 0 where it is not there.
async fn series(process: &Process, wanted: &str) -> f64 {
    let metrics = process.get("", "/metrics").await.text;
    let value = metrics.lines().find_map(|line| line.strip_prefix(wanted)?.trim().parse().ok());
    value.unwrap_or_default()
}

/// Waits until a series is this.
async fn until(process: &Process, wanted: &str, value: f64) {
    let is_so = async || series(process, wanted).await.to_bits() == value.to_bits();
    patience::until(&format!("{wanted} is {value}"), is_so).await;
}

#[tokio::test]
async fn two_models_take_turns_in_the_memory_of_one() {
    let models = ["one", "two"].map(|name| backend(name, file(), ON_DEMAND));
    let process = configured(&room_for_one(), &models).serve();
    assert_eq!(process.get("", "/readyz").await.status, 200);
    assert_eq!(loaded(&process, &["one", "two"]).await, [Some(false), Some(false)]);
    assert!(process.lines("loaded").is_empty(), "{:?}", process.lines("loaded"));
    for (round, model) in ["one", "two", "one"].into_iter().enumerate() {
        let answer = ask(&process, model).await.good();
        assert_eq!(answer["choices"][0]["message"]["content"], "411", "{answer}");
        let now = loaded(&process, &["one", "two"]).await;
        assert_eq!(now, [Some(model == "one"), Some(model == "two")], "round {round}");
        assert_eq!(
            series(&process, &format!("stint_engine_loaded{{model=\"{model}\"}}")).await.to_bits(),
            1f64.to_bits()
        );
    }
    process.logged("let go: another model needs its memory").await;
    until(&process, "stint_engine_loads_total{model=\"one\",result=\"ok\"}", 2.0).await;
    until(&process, "stint_engine_unloads_total{model=\"one\",reason=\"room\"}", 1.0).await;
    until(&process, "stint_engine_memory_bytes{model=\"two\"}", 0.0).await;
    until(&process, "stint_engine_up{model=\"two\"}", 1.0).await;
    assert!(series(&process, "stint_engine_load_seconds_total{model=\"one\"}").await > 0.0);
    // Many at once, for both: each waits its turn, and none is cut.
    let asked = (0..12).map(|number| ask(&process, ["one", "two"][number % 2]));
    for answer in futures_util::future::join_all(asked).await {
        assert_eq!(answer.good()["choices"][0]["message"]["content"], "411");
    }
}

#[tokio::test]
async fn models_that_come_and_go_leave_no_memory_behind() {
    let models =
        ["one", "two"].map(|name| backend(name, file(), "load_on_startup = false\nkeep_alive = \"0s\""));
    let process = configured("", &models).serve();
    let mut least = [u64::MAX; 2];
    for round in 0..8_u32 {
        for name in ["one", "two"] {
            ask(&process, name).await.good();
            let unloads = format!("stint_engine_unloads_total{{model=\"{name}\",reason=\"idle\"}}");
            until(&process, &unloads, f64::from(round + 1)).await;
        }
        let least = &mut least[usize::from(round >= 4)];
        *least = process.resident().min(*least);
    }
    // What the allocator keeps of the last load comes and goes by a hundred megabytes, so the least of each half counts. What is
    // counted of a load is ten megabytes: the eight of a half that stayed would show.
    let growth = least[1].saturating_sub(least[0]);
    assert!(growth < 64 << 20, "{} KiB more after eight loads", growth >> 10);
}

#[tokio::test]
async fn a_choice_with_a_deadline_does_not_go_to_a_model_that_is_not_loaded() {
    let cold = backend("cold", file(), ON_DEMAND);
    let warm = backend("warm", file(), "").replace("\"0.01\"", "\"0.02\"").replace("\"0.04\"", "\"0.08\"");
    let process = configured("", &[cold, warm]).serve();
    let chosen = async |budget: Value| {
        let mut body = question("auto");
        body["budget"] = budget;
        let answer = process.ask("", &body).await;
        // Where a machine is too slow for the deadline, nothing is chosen, or nothing is answered.
        if answer.status == 200 { answer.json()["model"].clone() } else { Value::Null }
    };
    let hurried = json!({ "deadline_ms": 900, "preference": 0, "thinking_tokens": 16, "solution_tokens": 6 });
    patience::until("one that is loaded is chosen", async || chosen(hurried.clone()).await == "warm").await;
    assert_eq!(loaded(&process, &["cold", "warm"]).await, [Some(false), None]);
    ask(&process, "cold").await.good();
    let is_chosen = async || chosen(hurried.clone()).await == "cold";
    patience::until("it is chosen, which is cheaper and there now", is_chosen).await;
}

#[tokio::test]
async fn a_model_whose_file_is_away_is_refused_until_it_is_back() {
    let folder = tempfile::TempDir::new().unwrap();
    let (here, away) = (folder.path().join("model.gguf"), folder.path().join("away.gguf"));
    std::fs::copy(file(), &here).unwrap();
    let backends = [backend("one", &here, ON_DEMAND), backend("two", file(), "")];
    let process = configured("", &backends).serve();
    std::fs::rename(&here, &away).unwrap();
    let refused = ask(&process, "one").await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(refused.headers.contains_key("retry-after"), "{:?}", refused.headers);
    assert!(!refused.text.contains(folder.path().to_str().unwrap()), "{}", refused.text);
    let line = process.logged("it could not be loaded").await;
    assert!(line.contains("model=\"one\"") || line.contains("model=one"), "{line}");
    let listed = process.get("", "/v1/models/one").await.good();
    assert_eq!(listed["unavailable"], "it could not be loaded; it is tried again", "{listed}");
    ask(&process, "two").await.good();
    std::fs::rename(&away, &here).unwrap();
    patience::until("it is back", async || ask(&process, "one").await.status == 200).await;
    assert_eq!(
        series(&process, "stint_engine_loads_total{model=\"one\",result=\"failed\"}").await.to_bits(),
        1f64.to_bits()
    );
}

#[tokio::test]
async fn a_reload_changes_for_how_long_a_model_stays_and_loads_nothing_anew() {
    let short = "load_on_startup = false\nkeep_alive = \"100ms\"";
    let two = backend("two", file(), short);
    let with = |more: &str| format!("[engine]\nembedded = false\n{}{two}", backend("one", file(), more));
    let folder = Folder::new(&with("load_on_startup = false\nkeep_alive = \"1h\""));
    let process = folder.serve();
    ask(&process, "one").await.good();
    folder.write(&with(short));
    process.signal("HUP");
    until(&process, "stint_engine_unloads_total{model=\"one\",reason=\"idle\"}", 1.0).await;
    assert_eq!(
        series(&process, "stint_engine_loads_total{model=\"one\",result=\"ok\"}").await.to_bits(),
        1f64.to_bits()
    );
    folder.write(&with(""));
    process.signal("HUP");
    until(&process, "stint_engine_loads_total{model=\"one\",result=\"ok\"}", 2.0).await;
    ask(&process, "one").await.good();
    // The other was used later, and is let go where this one would have been.
    ask(&process, "two").await.good();
    until(&process, "stint_engine_unloads_total{model=\"two\",reason=\"idle\"}", 1.0).await;
    assert_eq!(loaded(&process, &["one"]).await, [None], "it stays now");
    until(&process, "stint_engine_loaded{model=\"one\"}", 1.0).await;
}

#[tokio::test]
async fn models_that_stay_are_counted_together_and_one_too_many_is_refused_at_the_start() {
    let models = ["one", "two"].map(|name| backend(name, file(), ""));
    let folder = configured(&format!("{}\ncontext = 512\nkv_tokens = 8192", room_for_one()), &models);
    let process = folder.serve();
    for model in ["one", "two"] {
        ask(&process, model).await.good();
    }
    let memory = async |model: &str| {
        series(&process, &format!("stint_engine_memory_bytes{{model=\"{model}\"}}")).await
    };
    let (first, second) = (memory("one").await, memory("two").await);
    assert!(second > 0.0 && second < first, "the second has what is left: {second} of {first}");
    drop(process);
    let third = ["one", "two", "three"].map(|name| backend(name, file(), ""));
    let refused =
        configured(&format!("{}\ncontext = 512", room_for_one()), &third).stint("serve").output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && message.contains("models that stay loaded"), "{message}");
}
