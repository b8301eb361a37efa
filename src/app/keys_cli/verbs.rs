//! The verbs of `stint keys`: each becomes requests to the admin API, whose answer is printed. `command` calls `run`.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::app::needed_sections::load_needed;
use crate::app::output::{VerbResult, print_line};
use crate::config::{self, ConfigErrors};

use super::arguments::{KeysCommand, OutputArgs};
use super::reach::{AdminClient, AdminClientError, AdminRequest, DetailLevel};
use super::{limit_changes, secret, table};

const JSON: &str = "application/json";
const TOML: &str = "application/toml";

/// Runs the verb.
pub(in crate::app) fn run(verb: KeysCommand, file: Option<&Path>) -> VerbResult {
    match verb {
        KeysCommand::New => return secret::new(),
        KeysCommand::Hash => return secret::hash(),
        _ => {}
    }
    let (settings, elsewhere) = load_needed(file, &["ledger", "admin"])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let seen =
        if matches!(verb, KeysCommand::Show { .. }) { DetailLevel::Statement } else { DetailLevel::Terms };
    let done = runtime.block_on(async {
        let client = AdminClient::connect(&settings, seen).await?;
        check_declared(&client, &verb, elsewhere)?;
        execute(&client, verb).await
    });
    match done {
        Ok(text) => {
            print_line(text.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            // Loading offline does not report a missing token, which may be why there is no admin API.
            if matches!(error, AdminClientError::NoAdmin | AdminClientError::InMemory) {
                config::load(file, &config::environment)?;
            }
            Err(error.into())
        }
    }
}

/// New keys are checked against those that the configuration declares: where no server does so, it must be read whole.
fn check_declared(
    client: &AdminClient,
    verb: &KeysCommand,
    elsewhere: Option<ConfigErrors>,
) -> Result<(), AdminClientError> {
    let adds = matches!(verb, KeysCommand::Create { .. } | KeysCommand::Import { .. });
    match (client, elsewhere) {
        (AdminClient::InProcess(..), Some(mistakes)) if adds => Err(mistakes.into()),
        _ => Ok(()),
    }
}

/// Runs the verb and gives back what is to be printed.
async fn execute(client: &AdminClient, verb: KeysCommand) -> Result<String, AdminClientError> {
    match verb {
        KeysCommand::New | KeysCommand::Hash => Ok(String::new()),
        KeysCommand::Create { name, account, terms, output } => {
            let mut body = terms.to_members();
            body.insert("name".to_owned(), json!(name));
            body.insert("account".to_owned(), json!(account));
            render(output, &send_json(client, "POST", "/admin/keys".to_owned(), Some(body)).await?)
        }
        KeysCommand::List { output } => {
            let list = list_keys(client, "").await?;
            Ok(if output.json { json!(list).to_string() } else { table::key_list(&list) })
        }
        KeysCommand::Show { who, account, output } => {
            let path = if account {
                format!("/admin/accounts/{}", percent_encode(&who))
            } else {
                format!("/admin/keys/{}", key_id(client, &who).await?)
            };
            render(output, &send_json(client, "GET", path, None).await?)
        }
        KeysCommand::Rotate { key, grace, output } => {
            let path = format!("/admin/keys/{}/rotate", key_id(client, &key).await?);
            let body = Map::from_iter([("grace".to_owned(), json!(grace))]);
            render(output, &send_json(client, "POST", path, Some(body)).await?)
        }
        KeysCommand::Revoke { key, output } => {
            let path = format!("/admin/keys/{}", key_id(client, &key).await?);
            render(output, &send_json(client, "DELETE", path, None).await?)
        }
        KeysCommand::Forget { who, output } => {
            let path = format!("/admin/stored/{}", percent_encode(&who));
            let deleted = send_json(client, "DELETE", path, None).await?;
            if output.json {
                return Ok(deleted.to_string());
            }
            Ok(format!(
                "deleted {} responses and {} conversations",
                deleted["responses"], deleted["conversations"]
            ))
        }
        KeysCommand::Limit { who, account, unlimited, add, everything, terms, output } => {
            let mut body = terms.to_members();
            if unlimited {
                body.insert("limits".to_owned(), json!([]));
            }
            if everything {
                body.extend(["models", "routes"].map(|name| (name.to_owned(), json!([]))));
            }
            change_terms(client, Changed { who, account, add }, body, output).await
        }
        KeysCommand::Import { file, output } => import(client, &file, output).await,
        KeysCommand::Export => send(client, "GET", "/admin/export".to_owned(), TOML, String::new()).await,
    }
}

/// Whose terms are changed, and whether limits of other kinds stay.
struct Changed {
    who: String,
    account: bool,
    add: bool,
}

/// Changes the stated terms and keeps the others; says which limits are gone.
async fn change_terms(
    client: &AdminClient,
    Changed { who, account, add }: Changed,
    mut stated: Map<String, Value>,
    output: OutputArgs,
) -> Result<String, AdminClientError> {
    let (kind, name) =
        if account { ("accounts", percent_encode(&who)) } else { ("keys", key_id(client, &who).await?) };
    let path = format!("/admin/{kind}/{name}");
    let known = send_json(client, "GET", path.clone(), None).await.ok().unwrap_or_default();
    if add && let Some(limits) = stated.get_mut("limits") {
        *limits = json!(limit_changes::added(&known["limits"], limits));
    }
    let changed = if account {
        send_json(client, "PUT", path, Some(with_known(stated, &known))).await?
    } else {
        send_json(client, "PATCH", path, Some(stated)).await?
    };
    let shown = render(output, &changed)?;
    let removed = limit_changes::removed(&known["limits"], &changed["limits"]);
    if output.json || removed.is_empty() {
        return Ok(shown);
    }
    Ok(format!("{shown}\nremoved: {}", table::limits(&json!(removed))))
}

/// All terms of an account, of which some are stated. The API refuses what does not go with an account.
fn with_known(stated: Map<String, Value>, known: &Value) -> Map<String, Value> {
    let had = |name: &str| Some((name.to_owned(), known.get(name)?.clone()));
    let mut body: Map<String, Value> =
        ["limits", "time_zone", "warn_at"].into_iter().filter_map(had).collect();
    body.extend(stated);
    body
}

async fn import(client: &AdminClient, file: &Path, output: OutputArgs) -> Result<String, AdminClientError> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| AdminClientError::File(file.display().to_string(), error))?;
    let answer = send(client, "POST", "/admin/import".to_owned(), TOML, text).await?;
    if output.json {
        return Ok(answer);
    }
    let count = parse_response(&answer)?;
    let figures = ["created", "changed", "unchanged"].map(|name| format!("{} {name}", count[name]));
    Ok(figures.join(", "))
}

/// The id of a key that is named by its id or its path.
async fn key_id(client: &AdminClient, name: &str) -> Result<String, AdminClientError> {
    if name.parse::<stint_types::tenant::KeyId>().is_ok() {
        return Ok(name.to_owned());
    }
    let mut keys = list_keys(client, &format!("&account={}", percent_encode(name))).await?;
    // Those of an account of that name are listed too.
    keys.retain(|key| key["path"] == name);
    // An account may have had several keys one after another: the one that still works counts.
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
async fn list_keys(client: &AdminClient, more: &str) -> Result<Vec<Value>, AdminClientError> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/admin/keys?limit=1000{after}{more}");
        let mut page = send_json(client, "GET", path, None).await?;
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
    client: &AdminClient,
    method: &str,
    path: String,
    body: Option<Map<String, Value>>,
) -> Result<Value, AdminClientError> {
    let body = body.map(|members| Value::Object(members).to_string()).unwrap_or_default();
    parse_response(&send(client, method, path, JSON, body).await?)
}

async fn send(
    client: &AdminClient,
    method: &str,
    path: String,
    kind: &'static str,
    body: String,
) -> Result<String, AdminClientError> {
    client.send(AdminRequest { method, path, kind, body }).await
}

fn parse_response(text: &str) -> Result<Value, AdminClientError> {
    serde_json::from_str(text).map_err(|error| AdminClientError::InvalidResponse(error.to_string()))
}

fn render(output: OutputArgs, value: &Value) -> Result<String, AdminClientError> {
    if output.json {
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
