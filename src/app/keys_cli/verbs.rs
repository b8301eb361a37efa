//! The verbs: each is asked of the admin API in its words, wherever that is, and the answer is shown.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::app::command::{fail, print_line};
use crate::config;

use super::arguments::{KeysCommand, OutputArgs};
use super::reach::{AdminClient, AdminClientError, AdminRequest, DetailLevel};
use super::{secret, table};

const JSON: &str = "application/json";
const TOML: &str = "application/toml";

/// Does it.
pub(in crate::app) fn run(verb: KeysCommand, file: Option<&Path>) -> ExitCode {
    match verb {
        KeysCommand::New => return secret::new(),
        KeysCommand::Hash => return secret::hash(),
        _ => {}
    }
    let settings = match config::load_offline(file, &config::environment) {
        Ok(settings) => settings,
        Err(mistakes) => return fail(&mistakes),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    let seen =
        if matches!(verb, KeysCommand::Show { .. }) { DetailLevel::Statement } else { DetailLevel::Terms };
    let done = runtime.block_on(async { execute(&AdminClient::connect(&settings, seen).await?, verb).await });
    match done {
        Ok(text) => {
            print_line(text.trim_end());
            ExitCode::SUCCESS
        }
        // Of a token that is not there, nobody has complained yet.
        Err(error @ (AdminClientError::NoAdmin | AdminClientError::InMemory)) => {
            match config::load(file, &config::environment) {
                Ok(_) => fail(&error),
                Err(mistakes) => fail(&mistakes),
            }
        }
        Err(error) => fail(&error),
    }
}

/// Does it, and says what is to be printed.
async fn execute(way: &AdminClient, verb: KeysCommand) -> Result<String, AdminClientError> {
    match verb {
        KeysCommand::New | KeysCommand::Hash => Ok(String::new()),
        KeysCommand::Create { name, account, terms: what, output: look } => {
            let mut body = what.to_members();
            body.insert("name".to_owned(), json!(name));
            body.insert("account".to_owned(), json!(account));
            render(look, &send_json(way, "POST", "/admin/keys".to_owned(), Some(body)).await?)
        }
        KeysCommand::List { output: look } => {
            let list = list_keys(way, "").await?;
            Ok(if look.json { json!(list).to_string() } else { table::key_list(&list) })
        }
        KeysCommand::Show { who, account, output: look } => {
            let path = match account {
                true => format!("/admin/accounts/{}", percent_encode(&who)),
                false => format!("/admin/keys/{}", key_id(way, &who).await?),
            };
            render(look, &send_json(way, "GET", path, None).await?)
        }
        KeysCommand::Rotate { key, grace, output: look } => {
            let path = format!("/admin/keys/{}/rotate", key_id(way, &key).await?);
            let body = Map::from_iter([("grace".to_owned(), json!(grace))]);
            render(look, &send_json(way, "POST", path, Some(body)).await?)
        }
        KeysCommand::Revoke { key, output: look } => {
            let path = format!("/admin/keys/{}", key_id(way, &key).await?);
            render(look, &send_json(way, "DELETE", path, None).await?)
        }
        KeysCommand::Limit { who, account, unlimited, everything, terms: what, output: look } => {
            let mut body = what.to_members();
            if unlimited {
                body.insert("limits".to_owned(), json!([]));
            }
            if everything {
                body.extend(["models", "routes"].map(|name| (name.to_owned(), json!([]))));
            }
            match account {
                true => render(look, &limit_account(way, &who, body).await?),
                false => {
                    let path = format!("/admin/keys/{}", key_id(way, &who).await?);
                    render(look, &send_json(way, "PATCH", path, Some(body)).await?)
                }
            }
        }
        KeysCommand::Import { file, output: look } => import(way, &file, look).await,
        KeysCommand::Export => send(way, "GET", "/admin/export".to_owned(), TOML, String::new()).await,
    }
}

/// What is not named of an account's terms stays.
async fn limit_account(
    way: &AdminClient,
    path: &str,
    said: Map<String, Value>,
) -> Result<Value, AdminClientError> {
    let path = format!("/admin/accounts/{}", percent_encode(path));
    let known = send_json(way, "GET", path.clone(), None).await.ok();
    let mut body = Map::new();
    for name in ["limits", "time_zone", "warn_at"] {
        let had = known.as_ref().and_then(|known| known.get(name));
        if let Some(value) = said.get(name).or(had) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    // What does not go with an account is the API's to refuse.
    body.extend(said);
    send_json(way, "PUT", path, Some(body)).await
}

async fn import(way: &AdminClient, file: &Path, look: OutputArgs) -> Result<String, AdminClientError> {
    let text = match file == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| AdminClientError::File(file.display().to_string(), error))?;
    let answer = send(way, "POST", "/admin/import".to_owned(), TOML, text).await?;
    if look.json {
        return Ok(answer);
    }
    let count = parse_response(&answer)?;
    let figures = ["created", "changed", "unchanged"].map(|name| format!("{} {name}", count[name]));
    Ok(figures.join(", "))
}

/// The id of a key that is named by its id or its path.
async fn key_id(way: &AdminClient, name: &str) -> Result<String, AdminClientError> {
    if name.parse::<crate::tenant::KeyId>().is_ok() {
        return Ok(name.to_owned());
    }
    let keys = list_keys(way, &format!("&account={}", percent_encode(name))).await?;
    // Of several keys that had the account one after another, the one that lets somebody in.
    let by_state = |state: &str| keys.iter().find(|key| key["state"] == state);
    let live = by_state("active").or_else(|| by_state("expired"));
    let id = live.or(keys.first()).and_then(|key| key["id"].as_str());
    let unknown = || {
        AdminClientError::Refused(format!(
            "there is no key {name}; `stint keys list` shows them, and an account is named with --account"
        ))
    };
    id.map(str::to_owned).ok_or_else(unknown)
}

/// All pages of the list of keys.
async fn list_keys(way: &AdminClient, more: &str) -> Result<Vec<Value>, AdminClientError> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/admin/keys?limit=1000{after}{more}");
        let mut page = send_json(way, "GET", path, None).await?;
        if let Value::Array(keys) = page["data"].take() {
            all.extend(keys);
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(all),
        }
    }
}

async fn send_json(
    way: &AdminClient,
    method: &str,
    path: String,
    body: Option<Map<String, Value>>,
) -> Result<Value, AdminClientError> {
    let body = body.map(|members| Value::Object(members).to_string()).unwrap_or_default();
    parse_response(&send(way, method, path, JSON, body).await?)
}

async fn send(
    way: &AdminClient,
    method: &str,
    path: String,
    kind: &'static str,
    body: String,
) -> Result<String, AdminClientError> {
    way.send(AdminRequest { method, path, kind, body }).await
}

fn parse_response(text: &str) -> Result<Value, AdminClientError> {
    serde_json::from_str(text).map_err(|error| AdminClientError::InvalidResponse(error.to_string()))
}

fn render(look: OutputArgs, value: &Value) -> Result<String, AdminClientError> {
    if look.json {
        return Ok(value.to_string());
    }
    let shown = table::details(value);
    Ok(match value["secret"].as_str() {
        Some(secret) => format!("secret  {secret}   (shown this once; give it to the caller)\n{shown}"),
        None => shown,
    })
}

/// For a path or a query: all but the plainest letters as their bytes.
fn percent_encode(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
    let one = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
