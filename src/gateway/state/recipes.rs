//! The recipes of all routes: which of them are suspended, since they turned out to be of no use, and until when.
//!
//! The requests that a recipe acted on show what it did; `stint_decide::learn` says when that is enough. A suspended
//! recipe is tried again after a number of requests of its route. All of that is kept in memory by each replica.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stint_decide::learn::{
    CanaryEvidence, CanaryWatch, RECIPE_RETRY, SamplingEvidence, SamplingWatch, SuspensionReason,
};
use stint_types::catalog::{Catalog, Recipe, Route};
use stint_types::metrics::Metrics;

/// The recipes by the name of their route.
#[derive(Debug, Default)]
pub(crate) struct Recipes(BTreeMap<Arc<str>, Arc<RecipeMonitor>>);

/// One route's recipe.
#[derive(Debug)]
struct RecipeMonitor {
    route: Route,
    recipe: Recipe,
    state: Mutex<RecipeState>,
}

#[derive(Debug, Default)]
struct RecipeState {
    sampling: SamplingWatch,
    canary: CanaryWatch,
    suspended: Option<Suspension>,
}

#[derive(Debug)]
struct Suspension {
    reason: SuspensionReason,
    /// After how many more requests of the route it is tried again.
    requests_left: u32,
}

impl Recipes {
    /// Those of a catalog, none suspended.
    pub(crate) fn of(catalog: &Catalog) -> Recipes {
        let monitor = |route: &Route| {
            let recipe = route.recipe?;
            let state = Mutex::default();
            Some((route.name.clone(), Arc::new(RecipeMonitor { route: route.clone(), recipe, state })))
        };
        Recipes(catalog.routes.values().filter_map(monitor).collect())
    }

    /// Those of a catalog, with what was found out about routes that stay as they were.
    pub(crate) fn carry_over(&self, after: &Catalog) -> Recipes {
        let mut recipes = Recipes::of(after);
        for (name, next) in &mut recipes.0 {
            if let Some(known) = self.0.get(name).filter(|known| known.route == next.route) {
                *next = known.clone();
            }
        }
        recipes
    }

    /// Sets the gauge of each, and takes away those of `before` that are none any more.
    pub(crate) fn show(&self, before: &Recipes, metrics: &Metrics) {
        let series = &metrics.votes.suspended;
        for name in before.0.keys().filter(|name| !self.0.contains_key(*name)) {
            // It is there, since it was shown before.
            let _ = series.remove_label_values(&[&**name]);
        }
        for (name, monitor) in &self.0 {
            let is_suspended = monitor.state().suspended.is_some();
            series.with_label_values(&[&**name]).set(is_suspended.into());
        }
    }

    /// Why a route's recipe is suspended now, if it is.
    pub(crate) fn suspension(&self, route: &str) -> Option<SuspensionReason> {
        let state = self.0.get(route)?.state();
        state.suspended.as_ref().map(|suspension| suspension.reason)
    }

    /// A request of that route has ended. Brings a suspended recipe nearer to its next trial.
    pub(crate) fn record_request(&self, route: &str, metrics: &Metrics) {
        let Some(monitor) = self.0.get(route) else { return };
        let mut state = monitor.state();
        let Some(suspension) = &mut state.suspended else { return };
        suspension.requests_left = suspension.requests_left.saturating_sub(1);
        if suspension.requests_left == 0 {
            state.suspended = None;
            metrics.votes.suspended.with_label_values(&[route]).set(0);
            tracing::info!(route, recipe = monitor.recipe.as_str(), "the recipe is tried again");
        }
    }

    /// Several answers were made, or one that another might have followed.
    pub(crate) fn record_sampling(&self, route: &str, evidence: SamplingEvidence, metrics: &Metrics) {
        if let Some(monitor) = self.0.get(route) {
            monitor.record(metrics, |state| state.sampling.observe(evidence));
        }
    }

    /// Something shows how the new model of a route does, or the others beside it.
    pub(crate) fn record_canary(
        &self,
        route: &str,
        of_canary: bool,
        evidence: CanaryEvidence,
        metrics: &Metrics,
    ) {
        let tries_model = |monitor: &&Arc<RecipeMonitor>| monitor.recipe == Recipe::Canary;
        if let Some(monitor) = self.0.get(route).filter(tries_model) {
            monitor.record(metrics, |state| state.canary.observe(of_canary, evidence));
        }
    }

    /// Whether any route tries a new model.
    pub(crate) fn has_canary(&self) -> bool {
        self.0.values().any(|monitor| monitor.recipe == Recipe::Canary)
    }
}

impl RecipeMonitor {
    /// What was known while another request panicked is still known.
    fn state(&self) -> MutexGuard<'_, RecipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Suspends the recipe where `observe` says so. Requests that were planned before it was suspended change nothing.
    fn record(&self, metrics: &Metrics, observe: impl FnOnce(&mut RecipeState) -> Option<SuspensionReason>) {
        let mut state = self.state();
        if state.suspended.is_some() {
            return;
        }
        let Some(reason) = observe(&mut state) else { return };
        state.suspended = Some(Suspension { reason, requests_left: RECIPE_RETRY });
        let route = &*self.route.name;
        metrics.votes.suspended.with_label_values(&[route]).set(1);
        tracing::warn!(
            route,
            recipe = self.recipe.as_str(),
            retried_after_requests = RECIPE_RETRY,
            "the recipe is suspended: {}",
            reason.as_words()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_decide::learn::RECIPE_TRIAL;

    fn catalog(worth: u64) -> Catalog {
        let route = Route {
            recipe: Some(Recipe::Vote),
            worth: stint_types::units::Money(worth),
            ..Route::with_defaults("r")
        };
        Catalog { routes: [(route.name.clone(), route)].into(), ..Catalog::default() }
    }

    /// A vote whose answers have nothing in common.
    const SCATTERED: SamplingEvidence =
        SamplingEvidence { compared: true, agreed: false, verified: None, changed: false, escalated: None };

    #[test]
    fn a_suspended_recipe_is_tried_again_after_so_many_requests() {
        let (recipes, metrics) = (Recipes::of(&catalog(1)), Metrics::new().unwrap());
        let shown = || metrics.votes.suspended.with_label_values(&["r"]).get();
        for _ in 0..RECIPE_TRIAL {
            assert_eq!((recipes.suspension("r"), shown()), (None, 0));
            recipes.record_sampling("r", SCATTERED, &metrics);
        }
        for _ in 0..RECIPE_RETRY {
            assert_eq!((recipes.suspension("r"), shown()), (Some(SuspensionReason::NeverAgreed), 1));
            recipes.record_sampling("r", SCATTERED, &metrics);
            recipes.record_request("r", &metrics);
        }
        assert_eq!((recipes.suspension("r"), shown()), (None, 0));
    }

    #[test]
    fn a_reload_that_changes_the_route_tries_its_recipe_at_once() {
        let (recipes, metrics) = (Recipes::of(&catalog(1)), Metrics::new().unwrap());
        (0..RECIPE_TRIAL).for_each(|_| recipes.record_sampling("r", SCATTERED, &metrics));
        assert!(recipes.carry_over(&catalog(1)).suspension("r").is_some());
        assert_eq!(recipes.carry_over(&catalog(2)).suspension("r"), None);
        let gone = recipes.carry_over(&Catalog::default());
        gone.show(&recipes, &metrics);
        assert!(!metrics.render().contains("recipe_suspended{"), "its gauge goes with it");
    }
}
