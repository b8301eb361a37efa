//! `enforce` and `shares` of a route: how its decisions are brought in.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::reader::{Section, ValueError, suggest};
use stint_types::catalog::{RolloutMode, Route, TrafficSplit};
use stint_types::units::Chance;

/// As they are written.
const ENFORCE: [(&str, RolloutMode); 3] =
    [("on", RolloutMode::On), ("observe", RolloutMode::Observe), ("off", RolloutMode::Off)];

/// Whether what the route decides holds.
pub(super) fn enforce(route: &Section<'_>) -> RolloutMode {
    route.word("enforce", &ENFORCE).unwrap_or_default()
}

/// The parts of its traffic that go by other routes' rules, whose names are looked at by [`check`].
pub(super) fn shares(route: &Section<'_>) -> Vec<TrafficSplit> {
    let mut shares: Vec<TrafficSplit> = Vec::new();
    for section in route.sections("shares") {
        let remedy = "write the name of the route whose rules are to be tried";
        let Some(name) = section.require::<String>("route", remedy) else { continue };
        let Some(share) = section.within("share", 0.0..=1.0) else {
            if !section.has("share") {
                section.reject("share", "missing", "write a share of the traffic, like 0.05");
            }
            continue;
        };
        if shares.iter().any(|share| *share.route == *name) {
            section.reject("route", format!("\"{name}\" stands twice"), "write one share for both");
            continue;
        }
        shares.push(TrafficSplit { route: name.into(), fraction: Chance::new(share) });
    }
    if shares.iter().map(|share| share.fraction.get()).sum::<f64>() > 1.0 + 1e-9 {
        route.reject("shares", "more than the whole", "let the shares sum up to 1 at most");
    }
    shares
}

/// Every share must name another route, and one that shares nothing on: there is no way round in a circle then.
pub(super) fn check(sections: &[Section<'_>], routes: &BTreeMap<Arc<str>, Route>) {
    for section in sections {
        let Some(name) = section.get::<String>("name") else { continue };
        let Some(route) = routes.get(name.as_str()) else { continue };
        for share in &route.traffic_splits {
            if let Some(wrong) = share_error(route, share, routes) {
                section.reject_value("shares", wrong);
            }
        }
    }
}

fn share_error(
    route: &Route,
    share: &TrafficSplit,
    routes: &BTreeMap<Arc<str>, Route>,
) -> Option<ValueError> {
    let name = &share.route;
    match routes.get(name) {
        None => {
            let routes = routes.keys().map(AsRef::as_ref);
            let remedy = suggest(name, routes, || "declare it as a [[route]]".to_owned());
            Some(ValueError::new(format!("no route \"{name}\""), remedy))
        }
        Some(_) if *name == route.name => {
            Some(ValueError::new(format!("\"{name}\" is the route itself"), "name another one"))
        }
        Some(other) if !other.traffic_splits.is_empty() => {
            let remedy = "name one that has no shares of its own";
            Some(ValueError::new(format!("\"{name}\" shares its own traffic"), remedy))
        }
        Some(_) => None,
    }
}
