//! Lists what changed between two configurations, in words, for the log and for the answer of `/admin/reload`.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::config::{ModelConfig, Settings};
use stint_sessions::agent;

/// The changes in words, each like `model "m" is new`. Empty if nothing changed.
pub(super) fn changes(before: &Settings, after: &Settings) -> Vec<String> {
    let mut changes = Vec::new();
    compare(&mut changes, "model", before, after, |settings| {
        let served = served(settings);
        let models = settings.catalog.models.iter();
        models
            .map(|(name, model)| (name.clone(), (model.clone(), served.get(&**name).copied().cloned())))
            .collect()
    });
    compare(&mut changes, "route", before, after, |settings| settings.catalog.routes.clone());
    compare(&mut changes, "account", before, after, |settings| {
        settings.terms.iter().map(|terms| (terms.account.clone(), terms.clone())).collect()
    });
    compare(&mut changes, "key", before, after, |settings| {
        settings.tenants.iter().map(|tenant| (tenant.account.clone(), tenant.clone())).collect()
    });
    compare(&mut changes, "issuer", before, after, |settings| {
        settings.issuers.iter().map(|issuer| (issuer.keys.issuer.clone(), issuer.clone())).collect()
    });
    changes.extend(sections(before, after).into_iter().map(|section| format!("[{section}] changed")));
    changes
}

/// What serves each model.
fn served(settings: &Settings) -> BTreeMap<&str, &ModelConfig> {
    let models = settings.backends.iter().flat_map(|backend| &backend.models);
    models.map(|model| (&*model.name, model)).collect()
}

fn sections(before: &Settings, after: &Settings) -> Vec<&'static str> {
    let same = [
        ("server", without_efforts(before) == without_efforts(after)),
        ("thinking.efforts", before.http.efforts == after.http.efforts),
        ("gateway", before.gateway == after.gateway),
        ("agents", without_tools(before) == without_tools(after)),
        ("tools", before.agents.tools == after.agents.tools),
        ("resilience", before.resilience == after.resilience),
        ("engine", before.engine == after.engine && before.skips_unusable == after.skips_unusable),
        ("alerts", before.webhook == after.webhook),
        ("guardrail", before.guardrails == after.guardrails),
        ("admin", before.admin == after.admin),
        ("keys", before.keys_required == after.keys_required && before.first_key == after.first_key),
        ("log", before.log == after.log),
    ];
    same.into_iter().filter(|(_, is_same)| !is_same).map(|(section, _)| section).collect()
}

fn without_efforts(settings: &Settings) -> crate::http::Settings {
    crate::http::Settings { efforts: BTreeMap::new(), ..settings.http.clone() }
}

fn without_tools(settings: &Settings) -> agent::Settings {
    agent::Settings { tools: agent::Tools::default(), ..settings.agents.clone() }
}

fn compare<N: Ord + Display, T: PartialEq>(
    changes: &mut Vec<String>,
    noun: &str,
    before: &Settings,
    after: &Settings,
    list: impl Fn(&Settings) -> BTreeMap<N, T>,
) {
    let (before, after) = (list(before), list(after));
    for (name, new) in &after {
        match before.get(name) {
            None => changes.push(format!("{noun} \"{name}\" is new")),
            Some(old) if old != new => changes.push(format!("{noun} \"{name}\" changed")),
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    changes.extend(gone.map(|name| format!("{noun} \"{name}\" is gone")));
}
