//! `[[route]]`: the operator's own names for a choice among models.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::backend::ModelMap;
use crate::config::reader::Section;
use stint_types::catalog::{Route, TrialBounds};
use stint_types::units::Chance;

use super::known_model::unknown_model;
use super::{ineffective, opinion, recipe, rollout};

/// All routes; `auto` is always among them. Where nobody wrote it, it may explore a little.
pub(in crate::config) fn routes(
    root: &Section<'_>,
    models: &ModelMap,
    auto_explores: bool,
) -> BTreeMap<Arc<str>, Route> {
    let mut routes = BTreeMap::new();
    let sections = root.sections("route");
    for section in &sections {
        let Some(name) =
            section.require::<String>("name", "write the name that callers use in place of a model's")
        else {
            continue;
        };
        if models.contains_key(name.as_str()) {
            section.reject("name", format!("\"{name}\" is a model"), "give the route a name of its own");
        }
        let route = recipe::expanded(section, route(section, &name, models), models);
        ineffective::warn_ineffective(section, &route, models);
        if routes.insert(route.name.clone(), route).is_some() {
            section.reject("name", format!("a second route \"{name}\""), "give it another name");
        }
    }
    routes.entry("auto".into()).or_insert_with(|| Route {
        trials: auto_explores.then(TrialBounds::usual),
        ..Route::with_defaults("auto")
    });
    rollout::check(&sections, &routes);
    routes
}

fn route(section: &Section<'_>, name: &str, models: &ModelMap) -> Route {
    let usual = Route::with_defaults(name);
    Route {
        models: route_models(section, models),
        recipe: recipe::read(section),
        success_floor: section.within("success_floor", 0.0..=1.0).map_or(usual.success_floor, Chance::new),
        worth: section.get_or("worth", usual.worth),
        worth_by_task: !section.has("worth"),
        cost_per_second: section.get_or("second", usual.cost_per_second),
        success_target: section.within("success_target", 0.01..=0.99).map(Chance::new),
        enforce: rollout::enforce(section),
        traffic_splits: rollout::shares(section),
        explore: section.within("explore", 0.0..=1.0).map_or(usual.explore, Chance::new),
        uncapped: section.within("uncapped", 0.0..=1.0).map_or(usual.uncapped, Chance::new),
        cascade: section.get_or("cascade", usual.cascade),
        buffers_streams: section.get_or("holds_streams", usual.buffers_streams),
        verifier: opinion::verifier(section),
        judge: opinion::judge(section, models),
        probe: opinion::probe(section, models),
        tracker: section.get_or("tracker", usual.tracker),
        turns: section.get_or("turns", usual.turns),
        ..usual
    }
}

fn route_models(section: &Section<'_>, models: &ModelMap) -> Vec<Arc<str>> {
    let mut chosen: Vec<Arc<str>> = Vec::new();
    for name in section.get_or("models", Vec::<String>::new()) {
        match models.get_key_value(name.as_str()) {
            Some((known, _)) if chosen.contains(known) => {
                section.reject("models", format!("\"{name}\" stands twice"), "write it once");
            }
            Some((known, _)) => chosen.push(known.clone()),
            None => section.reject_value("models", unknown_model(&name, models)),
        }
    }
    chosen
}
