//! Finds the routing rules of a request, and whether they are enforced or only observed.

use std::sync::Arc;

use crate::gateway::key_scope;
use crate::gateway::request::canary_policy;
use stint_types::catalog::{Catalog, Model, RolloutMode, Route};
use stint_types::tenant::KeyAccess;
use stint_types::units::Chance;

/// The rules of one request.
#[derive(Debug, Clone)]
pub(crate) struct RoutingRules {
    /// The route by whose rules it runs.
    pub(crate) route: Route,
    /// The route by whose rules it would run, if they are only observed.
    pub(crate) observed_route: Option<Route>,
    /// The name of the route whose rules these are, and whether they are enforced: the policy in the decision log.
    pub(crate) policy: Arc<str>,
    /// The route or model that the caller named, whose traffic it is.
    pub(crate) named: Arc<str>,
    /// The new model that this conversation tries, if it is one of those.
    pub(crate) canary: Option<Arc<str>>,
}

/// The rules for a request to a name that a key may use. `share`, from 0 to below 1, is the conversation's own: it stays by
/// the same rules from turn to turn. It is computed for those routes only that ask for it. Of a route that `is_suspended` no new
/// model is tried.
pub(crate) fn rules(
    catalog: &Catalog,
    access: &KeyAccess,
    name: &str,
    share: impl Fn() -> f64,
    is_suspended: impl Fn(&str) -> bool,
) -> Option<RoutingRules> {
    let named = key_scope::route(catalog, access, name)?;
    let name = named.name.clone();
    let other = draw_share(&named, &share).and_then(|other| catalog.routes.get(other));
    // The named route decides which models may serve it; the other route's rules decide how.
    let ruled = match other {
        None => named,
        Some(other) => {
            let models = key_scope::shared(catalog, &named, other);
            Route { models, traffic_splits: Vec::new(), ..other.clone() }
        }
    };
    let (ruled, canary) = draw_canary(catalog, ruled, share, is_suspended);
    let policy = match (ruled.enforce, &canary) {
        (RolloutMode::On, None) => ruled.name.clone(),
        (RolloutMode::On, Some(_)) => canary_policy(&ruled.name).into(),
        (other, _) => format!("{}:{}", ruled.name, other.as_str()).into(),
    };
    Some(match ruled.enforce {
        RolloutMode::On => RoutingRules { route: ruled, observed_route: None, policy, named: name, canary },
        RolloutMode::Off => RoutingRules {
            route: unenforced(catalog, ruled),
            observed_route: None,
            policy,
            named: name,
            canary: None,
        },
        RolloutMode::Observe => RoutingRules {
            observed_route: Some(ruled.clone()),
            route: unenforced(catalog, ruled),
            policy,
            named: name,
            canary: None,
        },
    })
}

/// The route with the models for this conversation, and the new model if it is to be tried: the first then, and the others
/// stand by. A new model serves no other conversation, unless a key may use no other.
fn draw_canary(
    catalog: &Catalog,
    route: Route,
    share: impl Fn() -> f64,
    is_suspended: impl Fn(&str) -> bool,
) -> (Route, Option<Arc<str>>) {
    let Some(canary) = &route.canary else { return (route, None) };
    let all = catalog.candidates(&route).map(|model| model.name.clone());
    let (new, mut others): (Vec<_>, Vec<_>) = all.partition(|name| *name == canary.model);
    if new.is_empty() || others.is_empty() {
        return (route, None);
    }
    let tries = share() >= 1.0 - canary.fraction.get() && !is_suspended(&route.name);
    let tried = tries.then(|| canary.model.clone());
    others.extend(tried.clone());
    others.rotate_right(usize::from(tries));
    (Route { models: others, ..route }, tried)
}

fn draw_share(route: &Route, share: impl Fn() -> f64) -> Option<&Arc<str>> {
    if route.traffic_splits.is_empty() {
        return None;
    }
    let (share, mut from) = (share(), 0.0);
    route.traffic_splits.iter().find_map(|part| {
        let until = from + part.fraction.get();
        let is_it = (from..until).contains(&share);
        from = until;
        is_it.then_some(&part.route)
    })
}

/// The route as it would be without deciding: the models as they are listed, thinking as long as they like, one answer.
fn unenforced(catalog: &Catalog, route: Route) -> Route {
    let models =
        if route.models.is_empty() { catalog.models.keys().cloned().collect() } else { route.models };
    Route {
        models,
        uncapped: Chance::new(1.0),
        explore: Chance::new(0.0),
        trials: None,
        success_target: None,
        recipe: None,
        canary: None,
        vote: None,
        cascade: false,
        verifier: None,
        judge: None,
        probe: None,
        ..route
    }
}

impl RoutingRules {
    /// The models to plan with, of those that may serve: where nothing is decided, the first of them in the route's order
    /// that is able and well; the others when it is not. So it is with a new model that is tried.
    pub(crate) fn choose(&self, models: &[Arc<Model>], is_able: impl Fn(&Model) -> bool) -> Vec<Arc<Model>> {
        if let Some(new) = &self.canary {
            let tried = models.iter().find(|model| model.name == *new && is_able(model));
            return tried.map_or_else(|| models.to_vec(), |model| vec![model.clone()]);
        }
        if !self.is_unenforced() {
            return models.to_vec();
        }
        let find = |name: &Arc<str>| models.iter().find(|model| model.name == *name && is_able(model));
        self.route.models.iter().find_map(find).map_or_else(|| models.to_vec(), |model| vec![model.clone()])
    }

    /// The models in the route's order.
    pub(crate) fn in_order<'m>(&self, models: &'m [Arc<Model>]) -> Vec<&'m Arc<Model>> {
        let find = |name: &Arc<str>| models.iter().find(|model| model.name == *name);
        self.route.models.iter().filter_map(find).collect()
    }

    /// True if nothing is decided.
    pub(crate) fn is_unenforced(&self) -> bool {
        self.route.enforce != RolloutMode::On
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::TrafficSplit;

    fn catalog(routes: &[Route]) -> Catalog {
        let routes = routes.iter().map(|route| (route.name.clone(), route.clone()));
        Catalog { routes: routes.collect(), ..Catalog::default() }
    }

    fn check(share: f64, expected: &str) {
        let shares = [("bold", 0.1), ("shy", 0.2)]
            .map(|(route, share)| TrafficSplit { route: route.into(), fraction: Chance::new(share) });
        let auto = Route { traffic_splits: shares.into(), ..Route::with_defaults("auto") };
        let watched = Route { enforce: RolloutMode::Observe, ..Route::with_defaults("shy") };
        let catalog = catalog(&[auto, Route::with_defaults("bold"), watched]);
        let rules = rules(&catalog, &KeyAccess::default(), "auto", || share, |_| false).unwrap();
        assert_eq!(&*rules.policy, expected, "{share}");
        assert_eq!(rules.observed_route.is_some(), expected == "shy:observe");
    }

    #[test]
    fn a_share_of_the_conversations_goes_by_other_rules() {
        check(0.0, "bold");
        check(0.0999, "bold");
        check(0.1, "shy:observe");
        check(0.2999, "shy:observe");
        check(0.3001, "auto");
        check(0.9999, "auto");
    }

    #[test]
    fn what_is_watched_runs_as_if_nothing_were_decided() {
        let route = Route {
            enforce: RolloutMode::Observe,
            explore: Chance::new(0.1),
            ..Route::with_defaults("auto")
        };
        let rules =
            rules(&catalog(std::slice::from_ref(&route)), &KeyAccess::default(), "auto", || 0.5, |_| false)
                .unwrap();
        assert_eq!(rules.observed_route, Some(route));
        assert!((rules.route.uncapped.get() - 1.0).abs() < 1e-12 && rules.route.explore.get() < 1e-12);
    }
}
