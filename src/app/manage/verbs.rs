//! The verbs: each is asked of the admin API in its words, wherever that is, and the answer is shown.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::app::command::{fail, say};
use crate::config;

use super::arguments::{Keys, Look};
use super::reach::{Ask, ReachError, Seen, Way};
use super::{secret, table};

const JSON: &str = "application/json";
const TOML: &str = "application/toml";

/// Does it.
pub(in crate::app) fn run(verb: Keys, file: Option<&Path>) -> ExitCode {
    match verb {
        Keys::New => return secret::new(),
        Keys::Hash => return secret::hash(),
        _ => {}
    }
    let settings = match config::load_locally(file, &config::environment) {
        Ok(settings) => settings,
        Err(mistakes) => return fail(&mistakes),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    let seen = if matches!(verb, Keys::Show { .. }) { Seen::Standing } else { Seen::Terms };
    let done = runtime.block_on(async { perform(&Way::find(&settings, seen).await?, verb).await });
    match done {
        Ok(text) => {
            say(text.trim_end());
            ExitCode::SUCCESS
        }
        // Of a token that is not there, nobody has complained yet.
        Err(error @ (ReachError::NoAdmin | ReachError::InMemory)) => {
            match config::load(file, &config::environment) {
                Ok(_) => fail(&error),
                Err(mistakes) => fail(&mistakes),
            }
        }
        Err(error) => fail(&error),
    }
}

/// Does it, and says what is to be printed.
async fn perform(way: &Way, verb: Keys) -> Result<String, ReachError> {
    match verb {
        Keys::New | Keys::Hash => Ok(String::new()),
        Keys::Create { name, account, what, look } => {
            let mut body = what.members();
            body.insert("name".to_owned(), json!(name));
            body.insert("account".to_owned(), json!(account));
            said(look, &json(way, "POST", "/admin/keys".to_owned(), Some(body)).await?)
        }
        Keys::List { look } => {
            let list = list(way, "").await?;
            Ok(if look.json { json!(list).to_string() } else { table::keys(&list) })
        }
        Keys::Show { who, account, look } => {
            let path = match account {
                true => format!("/admin/accounts/{}", encoded(&who)),
                false => format!("/admin/keys/{}", id(way, &who).await?),
            };
            said(look, &json(way, "GET", path, None).await?)
        }
        Keys::Rotate { key, grace, look } => {
            let path = format!("/admin/keys/{}/rotate", id(way, &key).await?);
            let body = Map::from_iter([("grace".to_owned(), json!(grace))]);
            said(look, &json(way, "POST", path, Some(body)).await?)
        }
        Keys::Revoke { key, look } => {
            let path = format!("/admin/keys/{}", id(way, &key).await?);
            said(look, &json(way, "DELETE", path, None).await?)
        }
        Keys::Limit { who, account, unlimited, everything, what, look } => {
            let mut body = what.members();
            if unlimited {
                body.insert("limits".to_owned(), json!([]));
            }
            if everything {
                body.extend(["models", "routes"].map(|name| (name.to_owned(), json!([]))));
            }
            match account {
                true => said(look, &limit_account(way, &who, body).await?),
                false => {
                    let path = format!("/admin/keys/{}", id(way, &who).await?);
                    said(look, &json(way, "PATCH", path, Some(body)).await?)
                }
            }
        }
        Keys::Import { file, look } => import(way, &file, look).await,
        Keys::Export => ask(way, "GET", "/admin/export".to_owned(), TOML, String::new()).await,
    }
}

/// What is not named of an account's terms stays.
async fn limit_account(way: &Way, path: &str, said: Map<String, Value>) -> Result<Value, ReachError> {
    let path = format!("/admin/accounts/{}", encoded(path));
    let known = json(way, "GET", path.clone(), None).await.ok();
    let mut body = Map::new();
    for name in ["limits", "time_zone", "warn_at"] {
        let had = known.as_ref().and_then(|known| known.get(name));
        if let Some(value) = said.get(name).or(had) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    // What does not go with an account is the API's to refuse.
    body.extend(said);
    json(way, "PUT", path, Some(body)).await
}

async fn import(way: &Way, file: &Path, look: Look) -> Result<String, ReachError> {
    let text = match file == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| ReachError::File(file.display().to_string(), error))?;
    let answer = ask(way, "POST", "/admin/import".to_owned(), TOML, text).await?;
    if look.json {
        return Ok(answer);
    }
    let count = parsed(&answer)?;
    let figures = ["created", "changed", "unchanged"].map(|name| format!("{} {name}", count[name]));
    Ok(figures.join(", "))
}

/// The id of a key that is named by its id or its path.
async fn id(way: &Way, name: &str) -> Result<String, ReachError> {
    if name.parse::<crate::tenant::KeyId>().is_ok() {
        return Ok(name.to_owned());
    }
    let keys = list(way, &format!("&account={}", encoded(name))).await?;
    // Of several keys that had the account one after another, the one that lets somebody in.
    let by_state = |state: &str| keys.iter().find(|key| key["state"] == state);
    let live = by_state("active").or_else(|| by_state("expired"));
    let id = live.or(keys.first()).and_then(|key| key["id"].as_str());
    let unknown = || {
        ReachError::Refused(format!(
            "there is no key {name}; `stint keys list` shows them, and an account is named with --account"
        ))
    };
    id.map(str::to_owned).ok_or_else(unknown)
}

/// All pages of the list of keys.
async fn list(way: &Way, more: &str) -> Result<Vec<Value>, ReachError> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/admin/keys?limit=1000{after}{more}");
        let mut page = json(way, "GET", path, None).await?;
        if let Value::Array(keys) = page["data"].take() {
            all.extend(keys);
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(all),
        }
    }
}

async fn json(
    way: &Way,
    method: &str,
    path: String,
    body: Option<Map<String, Value>>,
) -> Result<Value, ReachError> {
    let body = body.map(|members| Value::Object(members).to_string()).unwrap_or_default();
    parsed(&ask(way, method, path, JSON, body).await?)
}

async fn ask(
    way: &Way,
    method: &str,
    path: String,
    kind: &'static str,
    body: String,
) -> Result<String, ReachError> {
    way.ask(Ask { method, path, kind, body }).await
}

fn parsed(text: &str) -> Result<Value, ReachError> {
    serde_json::from_str(text).map_err(|error| ReachError::Nonsense(error.to_string()))
}

fn said(look: Look, value: &Value) -> Result<String, ReachError> {
    if look.json {
        return Ok(value.to_string());
    }
    let shown = table::one(value);
    Ok(match value["secret"].as_str() {
        Some(secret) => format!("secret  {secret}   (shown this once; give it to the caller)\n{shown}"),
        None => shown,
    })
}

/// For a path or a query: all but the plainest letters as their bytes.
fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
    let one = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
