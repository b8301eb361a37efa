//! All models and routes, by the names that callers use.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::models::Model;
use super::routes::Route;

/// All models and routes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// By name.
    pub models: BTreeMap<Arc<str>, Arc<Model>>,
    /// By name; `auto` is always among them.
    pub routes: BTreeMap<Arc<str>, Route>,
}

impl Catalog {
    /// The route of that name; a model's own name is a route to it alone.
    pub fn route(&self, name: &str) -> Option<Route> {
        if let Some(route) = self.routes.get(name) {
            return Some(route.clone());
        }
        let model = self.models.get(name)?;
        let auto = self.routes.get("auto")?;
        let (name, models) = (model.name.clone(), vec![model.name.clone()]);
        Some(Route { name, models, canary: None, ..auto.clone() })
    }

    /// The models that a route may choose, in the order of their names.
    pub fn candidates<'a>(&'a self, route: &'a Route) -> impl Iterator<Item = &'a Arc<Model>> {
        self.models.values().filter(|model| route.models.is_empty() || route.models.contains(&model.name))
    }
}
