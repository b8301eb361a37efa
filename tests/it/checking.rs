//! `stint check` and what a model that cannot be loaded does to the rest.

use std::process::Output;

use serde_json::json;

use crate::harness::{Answer, Folder};

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The embedded model, and one whose file is none.
fn with_a_bad_model(more: &str) -> Folder {
    let folder = Folder::new(&format!(
        "[engine]\n{more}\n[[backend]]\nkind = \"local\"\nfile = \"bad.gguf\"\n[[backend.model]]\nname = \"bad\"\n\
         price_input = \"1\"\nprice_output = \"1\"\n"
    ));
    // One that was not downloaded whole.
    let whole = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf")).unwrap();
    std::fs::write(folder.path().join("bad.gguf"), &whole[..whole.len() - 4096]).unwrap();
    folder
}

#[test]
fn check_opens_model_files() {
    let output = with_a_bad_model("").stint("check").output().unwrap();
    assert!(!output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("but bad cannot be served: not a usable GGUF file"), "{}", text(&output));
    let output = with_a_bad_model("skip_unusable = true").stint("check").output().unwrap();
    assert!(
        output.status.success() && text(&output).contains("but bad cannot be served"),
        "{}",
        text(&output)
    );
}

/// A configuration of the embedded model's file as a model of one's own.
fn with_a_file_model(engine: &str, model: &str) -> Folder {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
    Folder::new(&format!(
        "[engine]\nembedded = false\n{engine}\n[[backend]]\nkind = \"local\"\nfile = \"{file}\"\n[[backend.model]]\n\
         name = \"own\"\nprice_input = \"1\"\nprice_output = \"1\"\n{model}\n"
    ))
}

/// Whether `stint check` takes it, and what it says of the model.
fn check_file_model(engine: &str, model: &str, is_right: bool, words: &[&str]) {
    let output = with_a_file_model(engine, model).stint("check").output().unwrap();
    assert_eq!(output.status.success(), is_right, "{}", text(&output));
    words.iter().for_each(|word| assert!(text(&output).contains(word), "{word}: {}", text(&output)));
}

#[test]
fn check_finds_tools_that_a_local_model_cannot_be_asked_for() {
    let tools = "capabilities = [\"tools\"]";
    check_file_model("", tools, false, &["but own cannot be served", "`capabilities`", "set `tool_syntax`"]);
    let stated = format!("{tools}\ntool_syntax = \"hermes\"");
    check_file_model("", &stated, true, &["but of own: its chat template tells the model of no tools"]);
}

#[test]
fn check_says_what_memory_a_local_model_needs() {
    let needed = ["but own cannot be served: it takes 0 MB of weights", "there are 1 MB", "set `memory_max`"];
    check_file_model("memory_max = \"1MiB\"", "", false, &needed);
    check_file_model("memory_max = \"1024MiB\"", "", true, &[]);
}

#[test]
fn check_says_that_the_cache_holds_less_than_the_model_s_context() {
    check_file_model(
        "kv_tokens = 256",
        "",
        true,
        &["but of own: its context is 256 tokens, though 512 are", "`kv_tokens`"],
    );
    let stated = with_a_file_model("kv_tokens = 256\ncontext = 256", "").stint("check").output().unwrap();
    assert!(!text(&stated).contains("its context is"), "{}", text(&stated));
}

#[tokio::test]
async fn a_bad_model_stops_the_start_or_is_left_out_where_that_is_allowed() {
    let folder = with_a_bad_model("");
    let output = folder.stint("serve").env("STINT_LISTEN", "127.0.0.1:0").output().unwrap();
    assert!(
        !output.status.success() && text(&output).contains("the model bad cannot be served"),
        "{}",
        text(&output)
    );
    let process = with_a_bad_model("skip_unusable = true").serve();
    process.logged("it cannot be served, and is left out").await;
    let ask = async |model: &str| -> Answer {
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": "1+1=" }] });
        process.ask("", &body).await
    };
    ask("reasoner").await.good();
    ask("auto").await.good();
    assert_eq!(ask("bad").await.status, 503);
    let model = process.get("", "/v1/models/bad").await.good();
    assert!(model["unavailable"].as_str().unwrap().contains("not a usable GGUF file"), "{model}");
}

#[test]
fn check_asks_upstreams_where_it_is_told_to() {
    let folder = Folder::new(
        "[engine]\nembedded = false\n[[backend]]\nname = \"gone\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m\"]\n",
    );
    assert!(folder.stint("check").output().unwrap().status.success());
    let output = folder.stint("check").arg("--connect").output().unwrap();
    assert!(!output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("gone at http://127.0.0.1:9/v1: cannot be used"), "{}", text(&output));
}

#[test]
fn an_upstream_without_a_configured_model_fails_the_check() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let body = "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\"}]}";
            answer(connection, body);
        }
    });
    let check = |model: &str| {
        let backend = format!("[[backend]]\nbase_url = \"http://{address}/v1\"\nmodels = [\"{model}\"]\n");
        let folder = Folder::new(&format!("[engine]\nembedded = false\n{backend}"));
        folder.stint("check").arg("--connect").output().unwrap()
    };
    let (listed, missing) = (check("m"), check("n"));
    assert!(listed.status.success(), "{}", text(&listed));
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing).contains("but does not list n"), "{}", text(&missing));
}

fn answer(mut connection: std::net::TcpStream, body: &str) {
    use std::io::{Read, Write};
    let _ = connection.read(&mut [0; 4096]);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let _ = write!(connection, "{head}content-length: {}\r\n\r\n{body}", body.len());
}

#[tokio::test]
async fn tokens_are_counted_where_a_tokenizer_is_and_guessed_as_that_elsewhere() {
    let folder = Folder::new("[[backend]]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m\"]\n");
    let process = folder.serve();
    let count = async |model: &str| {
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": "What is 12+34*2?" }] });
        let request = process.client.post(format!("{}/v1/messages/count_tokens", process.base));
        Answer::of(request.header("content-type", "application/json").body(body.to_string())).await.good()
    };
    let exact = count("reasoner").await;
    assert!(exact.get("estimated").is_none() && exact["input_tokens"].as_u64() > Some(0), "{exact}");
    let guess = count("m").await;
    assert_eq!(guess["estimated"], true, "{guess}");
    assert!((8..=20).contains(&guess["input_tokens"].as_u64().unwrap()), "{guess}");
}

#[tokio::test]
async fn a_recipe_is_told_by_check_and_at_the_start() {
    let folder = Folder::new("[[route]]\nname = \"r\"\nrecipe = \"vote\"\nvote = { compare = \"number\" }\n");
    let output = folder.stint("check").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let line = "route r: its recipe \"vote\" acts at ";
    assert!(text(&output).contains(line), "{}", text(&output));
    let process = folder.serve();
    process.logged(line).await;
}
