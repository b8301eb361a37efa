//! `[alerts]`: the webhook that is called when a limit is nearly used up, or overrun.

use reqwest::Url;

use super::reader::Section;
use super::reader::secret::not_set;

/// `[alerts]`: the webhook, if any. Its address may be a secret of its own, so it may be kept in the environment.
pub(super) fn webhook(root: &Section<'_>) -> Option<Url> {
    let alerts = root.section("alerts");
    let written = alerts.get::<String>("webhook").map(|text| ("webhook", text));
    let named = alerts.get::<String>("webhook_env").and_then(|variable| {
        let value = (alerts.document().env)(&variable).filter(|value| !value.trim().is_empty());
        if value.is_none() {
            alerts.reject_value("webhook_env", not_set(&variable));
        }
        value.map(|text| ("webhook_env", text))
    });
    if written.is_some() && named.is_some() {
        alerts.reject("webhook_env", "a second webhook", "keep one of webhook and webhook_env");
    }
    let (key, text) = written.or(named)?;
    let url = text.trim().parse::<Url>().ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if url.is_none() {
        let remedy = "write it like \"https://alerts.example.com/stint\"";
        alerts.reject(key, "not an address that can be posted to", remedy);
    }
    url
}
