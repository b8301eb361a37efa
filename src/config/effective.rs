//! Every setting that holds, as text, and where it comes from.
//!
//! The defaults are those of the commented file that ships: a test holds that they are what holds without any file. What a
//! section that can stand several times says is shown as it is written, since it has no defaults of its own here.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use reqwest::Url;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::secret::is_usual_name;
use super::reader::{ConfigErrors, ConfigFiles, source};

const DEFAULTS: &str = include_str!("../../config/stint.toml");

/// What the environment overrides, as the file calls it.
const VARIABLES: [(&str, &str); 4] = [
    ("STINT_LISTEN", "server.listen"),
    ("STINT_LEDGER", "ledger.path"),
    ("STINT_FIRST_KEY", "keys.generate"),
    ("STINT_LOG", "log.filter"),
];

/// A setting that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveValue {
    /// Its whole name, like `server.listen` or `backend[0].kind`.
    pub key: String,
    /// Its value as TOML; of a key's hash only that there is one.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said otherwise.
    Default,
    /// A line of the file.
    Line(usize),
    /// An environment variable.
    Environment(&'static str),
}

impl EffectiveValue {
    /// True if somebody stated it.
    pub fn is_changed(&self) -> bool {
        self.origin != Origin::Default
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Line(line) => write!(f, "line {line}"),
            Origin::Environment(name) => f.write_str(name),
        }
    }
}

/// All settings that hold with a file, or without, in the order of their names.
///
/// # Errors
/// When the file cannot be read.
pub fn effective(
    file: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<EffectiveValue>, ConfigErrors> {
    let (text, _) = source::read(file, &ConfigFiles::default())?;
    let mut values = BTreeMap::new();
    collect(DEFAULTS, |key, value, _| drop(values.insert(key, (value, Origin::Default))));
    collect(&text, |key, value, line| drop(values.insert(key, (value, Origin::Line(line)))));
    for (name, key) in VARIABLES {
        if let Some(value) = env(name) {
            let shown = without_secrets(key, &value).unwrap_or(value);
            let value = toml::Value::from(shown).to_string();
            values.insert(key.to_owned(), (value, Origin::Environment(name)));
        }
    }
    let shown = values.into_iter().map(|(key, (value, origin))| EffectiveValue { key, value, origin });
    Ok(shown.collect())
}

/// Visits each value of a text, with its line. What is no TOML has none: loading has reported that.
fn collect(text: &str, mut tell: impl FnMut(String, String, usize)) {
    let Ok(table) = DeTable::parse(text) else { return };
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |at: usize| 1 + ends.partition_point(|end| *end < at);
    walk("", table.get_ref(), &mut |key, value| {
        let shown = match key.rsplit('.').next() {
            Some("hash") => "(a hash)".to_owned(),
            Some(name) if name.ends_with("_env") && !names_a_variable(value) => "(no usual name)".to_owned(),
            _ => shown(&key, value, text),
        };
        tell(key, shown, line(value.span().start));
    });
}

/// Whether a setting that names a variable has a usual name, and no secret that was written there in its place.
fn names_a_variable(value: &Spanned<DeValue<'_>>) -> bool {
    matches!(value.get_ref(), DeValue::String(stated) if is_usual_name(stated))
}

/// A value as it is written, but for what its addresses have of secrets.
fn shown(key: &str, value: &Spanned<DeValue<'_>>, text: &str) -> String {
    let written = || text.get(value.span()).unwrap_or_default();
    let hidden = match value.get_ref() {
        DeValue::String(stated) => {
            without_secrets(key, stated).map(|shown| toml::Value::from(shown).to_string())
        }
        DeValue::Array(items) if items.iter().any(|item| matches!(item.get_ref(), DeValue::String(_))) => {
            let items: Vec<String> = items.iter().map(|item| shown(key, item, text)).collect();
            Some(format!("[{}]", items.join(", ")))
        }
        _ => None,
    };
    hidden.unwrap_or_else(|| written().split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What is shown of an address that may have a secret in it; none where a text may be shown whole. Of a webhook and a
/// guardrail the path may be the secret.
fn without_secrets(key: &str, stated: &str) -> Option<String> {
    let address = Url::parse(stated.trim()).ok().filter(Url::has_host);
    if key == "alerts.webhook" || (key.starts_with("guardrail") && key.ends_with(".url")) {
        let host = |url: Url| Some(format!("{}://{}", url.scheme(), url.host_str()?));
        return Some(address.and_then(host).unwrap_or_else(|| "(an address)".to_owned()));
    }
    let mut address = address?;
    let has_user = !address.username().is_empty() || address.password().is_some();
    if !has_user && address.query().is_none() && address.fragment().is_none() {
        return None;
    }
    // Neither fails where there is a host.
    let _ = address.set_username("");
    let _ = address.set_password(None);
    address.set_query(None);
    address.set_fragment(None);
    Some(address.to_string())
}

fn walk<'t>(path: &str, table: &'t DeTable<'t>, tell: &mut impl FnMut(String, &'t Spanned<DeValue<'t>>)) {
    for (name, value) in table {
        let dot = if path.is_empty() { "" } else { "." };
        let name = name.get_ref();
        let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let name = if is_bare { name.to_string() } else { toml::Value::from(&**name).to_string() };
        let key = format!("{path}{dot}{name}");
        match value.get_ref() {
            DeValue::Table(below) => walk(&key, below, tell),
            DeValue::Array(items) if has_tables(items.iter()) && !key.ends_with("limits") => {
                for (place, item) in items.iter().enumerate() {
                    if let DeValue::Table(below) = item.get_ref() {
                        walk(&format!("{key}[{place}]"), below, tell);
                    }
                }
            }
            _ => tell(key, value),
        }
    }
}

fn has_tables<'t>(mut items: impl Iterator<Item = &'t Spanned<DeValue<'t>>>) -> bool {
    items.any(|item| matches!(item.get_ref(), DeValue::Table(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, env: &dyn Fn(&str) -> Option<String>) -> BTreeMap<String, (String, String)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let values = effective(Some(file.path()), env).unwrap();
        values.into_iter().map(|value| (value.key, (value.value, value.origin.to_string()))).collect()
    }

    #[test]
    fn each_setting_says_where_it_comes_from() {
        let text = "[server]\ndrain = '5s'\n[[backend]]\nkind = 'vllm'\napi_key_env = 'K'\n[[backend.model]]\nname = 'm'\n\
                    [[key]]\nname = 'a'\nhash = 'sha256:abcdef'\nlimits = [{ money = '1', per = 'day' }]\n";
        let found = shown(text, &|name| (name == "STINT_LISTEN").then(|| "0.0.0.0:1".to_owned()));
        let of = |key: &str| found.get(key).map(|(value, origin)| (value.as_str(), origin.as_str()));
        assert_eq!(of("server.drain"), Some(("'5s'", "line 2")));
        assert_eq!(of("server.head_max"), Some(("\"32KiB\"", "default")));
        assert_eq!(of("server.listen"), Some(("\"0.0.0.0:1\"", "STINT_LISTEN")));
        assert_eq!(of("backend[0].model[0].name"), Some(("'m'", "line 7")));
        assert_eq!(of("backend[0].api_key_env"), Some(("'K'", "line 5")), "a name, and no secret");
        assert_eq!(of("key[0].hash"), Some(("(a hash)", "line 10")));
        assert_eq!(of("key[0].limits"), Some(("[{ money = '1', per = 'day' }]", "line 11")));
        assert!(!format!("{found:?}").contains("abcdef"));
    }

    /// CF-06: what `stint config show` prints.
    #[test]
    fn of_addresses_nothing_is_shown_that_may_be_secret() {
        let text = "[alerts]\nwebhook = 'https://u:pw@hooks.example/services/T0/SECRET?k=SECRET'\n\
                    [traces]\nendpoint = 'http://u:SECRET@here:4318/x?k=SECRET'\n\
                    [server.cors]\norigins = [ 'https://a.example?k=SECRET', 'https://b.example' ]\n\
                    [[backend]]\nbase_url = 'http://gpu:8000/v1'\napi_key_env = 'sk-SECRET'\n";
        let found = shown(text, &|_| None);
        let of = |key: &str| found.get(key).map(|(value, _)| value.as_str());
        assert_eq!(of("alerts.webhook"), Some("\"https://hooks.example\""));
        assert_eq!(of("traces.endpoint"), Some("\"http://here:4318/x\""));
        assert_eq!(of("server.cors.origins"), Some("[\"https://a.example/\", 'https://b.example']"));
        assert_eq!(of("backend[0].base_url"), Some("'http://gpu:8000/v1'"));
        assert_eq!(of("backend[0].api_key_env"), Some("(no usual name)"));
        assert!(!format!("{found:?}").contains("SECRET"));
    }
}
