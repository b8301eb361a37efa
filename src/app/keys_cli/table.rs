//! Keys and accounts as tables, from the JSON of the admin API.

use serde_json::Value;

use crate::app::output::align_columns;

/// Every key, a line each.
pub(super) fn key_list(list: &[Value]) -> String {
    let mut rows =
        vec![["ID", "KEY", "STATE", "FROM", "PRIORITY", "MAY NAME", "EXPIRES", "LIMITS"].map(str::to_owned)];
    rows.extend(list.iter().map(|key| {
        [
            text(&key["id"]),
            text(&key["path"]),
            text(&key["state"]),
            text(&key["source"]),
            text(&key["priority"]),
            scopes(key),
            text(&key["expires_at"]),
            limits(&key["limits"]),
        ]
    }));
    align_columns(&rows, 8)
}

/// One key or account, a line for each thing known of it.
pub(super) fn details(value: &Value) -> String {
    let mut rows = Vec::new();
    let known = [
        "id",
        "path",
        "state",
        "source",
        "priority",
        "created_at",
        "expires_at",
        "revoked_at",
        "old_secret_until",
    ];
    for name in known {
        if let Some(known) = value.get(name).filter(|known| !known.is_null()) {
            rows.push([name.replace('_', " "), text(known)]);
        }
    }
    if value.get("models").is_some() {
        rows.push(["may name".to_owned(), scopes(value)]);
    }
    rows.push(["limits".to_owned(), limits(&value["limits"])]);
    rows.push(["time zone".to_owned(), text(&value["time_zone"])]);
    rows.push(["warn at".to_owned(), format!("{} %", text(&value["warn_at"]))]);
    for line in value["standing"].as_array().into_iter().flatten() {
        let figures = ["spent", "reserved", "left"].map(|name| format!("{name} {}", text(&line[name])));
        let resets = line["resets_at"].as_str().map(|at| format!(", resets {at}")).unwrap_or_default();
        let used = format!("{} of {}{resets}", figures.join(", "), text(&line["max"]));
        rows.push([text(&line["limit"]), used]);
    }
    align_columns(&rows, 2)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn scopes(key: &Value) -> String {
    let names = |list: &Value| -> Vec<String> { list.as_array().into_iter().flatten().map(text).collect() };
    let mut words = [names(&key["models"]), names(&key["routes"])].concat();
    if words.is_empty() {
        words.push("everything".to_owned());
    }
    if let Some(role) = key["role"].as_str() {
        words.push(if role == "all" { "+ admin API".to_owned() } else { format!("+ admin API ({role})") });
    }
    words.join(" ")
}

/// As they are written on the command line.
pub(super) fn limits(list: &Value) -> String {
    let one = |limit: &Value| {
        let members = limit.as_object()?;
        let (unit, max) = members.iter().next()?;
        let mut written = format!("{unit}={}", text(max));
        for (word, value) in members.iter().skip(1) {
            match word.as_str() {
                "per" => written = format!("{written}/{}", text(value)),
                _ => written = format!("{written},{word}={}", text(value)),
            }
        }
        Some(written)
    };
    let limits: Vec<String> = list.as_array().into_iter().flatten().filter_map(one).collect();
    if limits.is_empty() { "none".to_owned() } else { limits.join(" ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_one_line() {
        let key = json!({
            "id": "key_1", "path": "acme/alice", "state": "active", "source": "store", "priority": "batch", "models": ["m"], "routes": [],
            "admin": false, "expires_at": null,
            "limits": [{ "money": "20", "per": "month" }, { "requests": 6, "per": "day", "each": "user" }],
        });
        let expected = "ID     KEY         STATE   FROM   PRIORITY  MAY NAME  EXPIRES  LIMITS\n\
                        key_1  acme/alice  active  store  batch     m         -        money=20/month requests=6/day,each=user";
        assert_eq!(key_list(&[key]), expected);
    }
}
