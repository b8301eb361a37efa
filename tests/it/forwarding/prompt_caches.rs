//! Of issue 17, item 9: accounts do not share what an upstream has cached, so that nobody learns what another one asks.

use serde_json::{Value, json};

use super::{Folder, Process, listening, question};
use stint_types::tenant::hash_key;

/// A server in front of a vLLM and an engine of OpenAI's kind, with two accounts, and the second key of one of them.
fn serve(base: &str, sharing: &str, keys: &str) -> (Folder, Process) {
    let backend = |name: &str, kind: &str| {
        format!(
            "[[backend]]\nname = '{name}'\nkind = '{kind}'\nbase_url = '{base}'\n{sharing}\n[[backend.model]]\n\
             name = '{name}'\nprice_input = '1'\nprice_output = '1'\nthinking_max = 0\ncontext = 100000\n"
        )
    };
    let folder = Folder::new(&format!(
        "[engine]\nembedded = false\n{}{}{keys}",
        backend("salted", "sglang"),
        backend("keyed", "openai"),
    ));
    let process = folder.serve();
    (folder, process)
}

fn keys() -> String {
    let key =
        |name: &str| format!("[[key]]\nname = '{name}'\nhash = '{}'\n", hash_key(&format!("sk-{name}")));
    key("acme") + &key("rival")
}

fn asked(model: &str, more: &Value) -> Value {
    let mut body = question(&json!("x"));
    body["model"] = json!(model);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// AU-15: no account finds what another's prompts left in a cache.
#[tokio::test]
async fn accounts_are_kept_apart_in_an_upstreams_prompt_cache() {
    let (base, heard) = listening();
    let (_folder, process) = serve(&base, "", &keys());
    let sent = async |key: &str, model: &str, more: Value| {
        process.ask(key, &asked(model, &more)).await.chunks();
        let request = heard.lock().unwrap().pop().unwrap();
        serde_json::from_str::<Value>(request.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let salt = async |key: &str, more: Value| {
        sent(key, "salted", more).await["cache_salt"].as_str().unwrap().to_owned()
    };
    let own = salt("sk-acme", json!({})).await;
    assert_eq!(own, salt("sk-acme", json!({})).await, "an account shares with itself");
    assert_ne!(own, salt("sk-rival", json!({})).await);
    let (stated, other) = (json!({ "cache_salt": "pepper" }), json!({ "cache_salt": own }));
    assert_ne!(salt("sk-acme", stated.clone()).await, salt("sk-rival", stated).await);
    assert_ne!(own, salt("sk-rival", other).await, "nobody can name another's");
    let key = json!({ "prompt_cache_key": "k" });
    let of = async |name: &str| sent(name, "keyed", key.clone()).await["prompt_cache_key"].clone();
    let (one, two) = (of("sk-acme").await, of("sk-rival").await);
    assert!(one.is_string() && one != two && one != "k", "{one} {two}");
    // Who may refuse the member is not sent it unasked.
    assert_eq!(sent("sk-acme", "keyed", json!({})).await.get("prompt_cache_key"), None);
}

#[tokio::test]
async fn what_callers_say_of_a_cache_goes_on_as_it_is_where_the_operator_shares_it_or_nobody_has_a_key() {
    for (sharing, keys) in [("prompt_cache = 'shared'", keys()), ("", String::new())] {
        let (base, heard) = listening();
        let (_folder, process) = serve(&base, sharing, &keys);
        for more in [json!({}), json!({ "cache_salt": "pepper", "prompt_cache_key": "k" })] {
            process.ask("sk-acme", &asked("salted", &more)).await.chunks();
            let request = heard.lock().unwrap().pop().unwrap();
            let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
            for name in ["cache_salt", "prompt_cache_key"] {
                assert_eq!(body.get(name), more.get(name), "{sharing}");
            }
        }
    }
}
