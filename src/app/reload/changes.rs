//! What is other in a new configuration, for those who put it in force.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::config::{ModelConfig, Settings};

/// In words, each like `model "m" is new`; nothing where all is as it was.
pub(super) fn changes(before: &Settings, after: &Settings) -> Vec<String> {
    let mut said = Vec::new();
    let pair = (before, after);
    compare(&mut said, "model", pair, |settings| {
        let served = served(settings);
        let models = settings.catalog.models.iter();
        models
            .map(|(name, model)| (name.clone(), (model.clone(), served.get(&**name).copied().cloned())))
            .collect()
    });
    compare(&mut said, "route", pair, |settings| settings.catalog.routes.clone());
    compare(&mut said, "account", pair, |settings| {
        settings.terms.iter().map(|terms| (terms.account.clone(), terms.clone())).collect()
    });
    compare(&mut said, "key", pair, |settings| {
        settings.tenants.iter().map(|tenant| (tenant.account.clone(), tenant.clone())).collect()
    });
    said.extend(sections(before, after).into_iter().map(|section| format!("[{section}] is other")));
    said
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
        ("agents", before.agents == after.agents),
        ("resilience", before.resilience == after.resilience),
        ("engine", before.engine == after.engine && before.skips_unusable == after.skips_unusable),
        ("alerts", before.webhook == after.webhook),
        ("admin", before.admin == after.admin),
        ("keys", before.keys_required == after.keys_required && before.first_key == after.first_key),
        ("log", before.log == after.log),
    ];
    same.into_iter().filter(|(_, is_same)| !is_same).map(|(section, _)| section).collect()
}

fn without_efforts(settings: &Settings) -> crate::http::Settings {
    crate::http::Settings { efforts: BTreeMap::new(), ..settings.http.clone() }
}

fn compare<N: Ord + Display, T: PartialEq>(
    said: &mut Vec<String>,
    noun: &str,
    (before, after): (&Settings, &Settings),
    list: impl Fn(&Settings) -> BTreeMap<N, T>,
) {
    let (before, after) = (list(before), list(after));
    for (name, new) in &after {
        match before.get(name) {
            None => said.push(format!("{noun} \"{name}\" is new")),
            Some(old) if old != new => said.push(format!("{noun} \"{name}\" is other")),
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    said.extend(gone.map(|name| format!("{noun} \"{name}\" is gone")));
}
