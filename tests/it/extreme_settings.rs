//! A configuration with every number at its least, and one with every number at its most: what the ranges allow one by one is
//! allowed together, and a gateway serves with it.

use serde_json::json;

use stint::config::{self, SettingDescription, describe};

use crate::harness::{Folder, Manner, Process, Upstream};

/// An end of every range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extreme {
    Least,
    Most,
}

/// What others rule out: three shares must differ, and what is sent once at most is not sent a second time.
const RULED_OUT: [(Extreme, &str, &str); 5] = [
    (Extreme::Least, "agents", "high"),
    (Extreme::Least, "agents", "medium"),
    (Extreme::Most, "agents", "medium"),
    (Extreme::Most, "agents", "low"),
    (Extreme::Least, "resilience", "hedge_after"),
];

/// The kind of backend that is written here.
const KIND: &str = "openai";

/// The sections in which numbers are written: all that may stand alone, with what else they must have.
fn head(section: &str, upstream: &str) -> Option<String> {
    let route = |name: &str, own: &str| {
        let models = "models = ['m', 'n']";
        format!("[[route]]\nname = '{name}'\n{models}\n{own}")
    };
    Some(match section {
        "[backend]" => {
            format!("[[backend]]\nkind = '{KIND}'\nbase_url = '{upstream}'\nmodels = ['m', 'n']")
        }
        "[route]" => route("plain", ""),
        "route.vote" => route("vote", "[route.vote]"),
        "route.verifier" => route("verifier", "[route.verifier]\nurl = 'http://127.0.0.1:9'"),
        "route.probe" => route("probe", "[route.probe]\nmodel = 'm'"),
        "route.canary" => route("canary", "recipe = 'canary'\n[route.canary]"),
        "engine" => "[engine]\nembedded = false".to_owned(),
        alone if !alone.contains(['.', '[']) && !alone.is_empty() => format!("[{alone}]"),
        _ => return None,
    })
}

/// The line of a setting, where it is a number with a range that is not ruled out.
fn line(setting: &SettingDescription, end: Extreme) -> Option<String> {
    let name = setting.name.as_deref()?;
    let (least, most) = setting.kind.rsplit_once(", ")?.1.split_once(" to ")?;
    let is_of_kind = setting.kinds.is_empty() || setting.kinds.contains(&KIND);
    let is_free = is_of_kind && !RULED_OUT.contains(&(end, &*setting.section, name));
    let value = if end == Extreme::Least { least } else { most };
    is_free.then(|| format!("{name} = {value}"))
}

fn configuration(end: Extreme, upstream: &str) -> String {
    let all = describe();
    let (mut text, mut numbers) = (String::new(), 0);
    for section in all.iter().filter(|setting| setting.name.is_none()) {
        let own = all.iter().filter(|setting| setting.section == section.section);
        let lines: Vec<String> = own.filter_map(|setting| line(setting, end)).collect();
        let is_needed = !lines.is_empty() || section.section == "[backend]";
        if let Some(head) = head(&section.section, upstream).filter(|_| is_needed) {
            numbers += lines.len();
            text += &format!("{head}\n{}\n", lines.join("\n"));
        }
    }
    assert!(numbers > 70, "the ranges are not found: {text}");
    text
}

/// A gateway with such a configuration.
fn serve(end: Extreme, upstream: &Upstream) -> Process {
    let folder = Folder::new(&configuration(end, &upstream.base));
    let env = |name: &str| (name == "STINT_LEDGER").then(|| ":memory:".to_owned());
    let loaded = config::load(Some(&folder.path().join("stint.toml")), &env);
    loaded.map_or_else(|mistakes| panic!("{end:?}: {mistakes}"), drop);
    folder.serve()
}

/// The status of an answer of one token.
async fn ask(process: &Process) -> u16 {
    let message = json!({ "role": "user", "content": Manner::Tokens(1).words() });
    process.ask("", &json!({ "model": "m", "user": "u", "messages": [message] })).await.status
}

#[tokio::test]
async fn with_every_number_at_its_most_a_request_is_served() {
    let upstream = Upstream::start();
    let process = serve(Extreme::Most, &upstream);
    assert_eq!(ask(&process).await, 200);
    assert_eq!(process.get("", "/healthz").await.status, 200);
}

/// A tenth of a second may be too short for an answer, but not for being told so.
#[tokio::test]
async fn with_every_number_at_its_least_a_request_is_answered() {
    let upstream = Upstream::start();
    let process = serve(Extreme::Least, &upstream);
    let status = ask(&process).await;
    assert!([200, 502, 503, 504].contains(&status), "{status}");
    assert_eq!(process.get("", "/healthz").await.status, 200);
}
