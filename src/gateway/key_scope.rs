//! The models and routes that a key may name: the catalog, narrowed by the key's scopes. Every endpoint looks names up
//! here, so none can forget the check.

use std::sync::Arc;

use stint_types::catalog::{Catalog, Route};
use stint_types::tenant::KeyAccess;

/// The route of that name, with the models that may serve this key; none where it may not name it, or where no model
/// is left.
pub(super) fn route(catalog: &Catalog, access: &KeyAccess, name: &str) -> Option<Route> {
    let route = catalog.route(name)?;
    if !catalog.routes.contains_key(name) {
        return access.can_name_model(name).then_some(route);
    }
    if !access.can_name_route(name) {
        return None;
    }
    narrowed(catalog, access, route)
}

/// The models and routes that a key may name.
pub(super) fn catalog(catalog: &Catalog, access: &KeyAccess) -> Catalog {
    let models = catalog.models.iter().filter(|(name, _)| access.can_name_model(name));
    let routes = catalog.routes.values().filter(|route| access.can_name_route(&route.name));
    let routes = routes.filter_map(|route| narrowed(catalog, access, route.clone()));
    Catalog {
        models: models.map(|(name, model)| (name.clone(), model.clone())).collect(),
        routes: routes.map(|route| (route.name.clone(), route)).collect(),
    }
}

/// The models of one route that another one, which takes over a share of its traffic, may choose; its own where the other
/// has none of them.
pub(super) fn shared(catalog: &Catalog, from: &Route, by: &Route) -> Vec<Arc<str>> {
    let may = |model: &&Arc<str>| by.models.is_empty() || by.models.contains(*model);
    let common: Vec<Arc<str>> =
        catalog.candidates(from).map(|model| &model.name).filter(may).cloned().collect();
    if common.is_empty() { from.models.clone() } else { common }
}

fn narrowed(catalog: &Catalog, access: &KeyAccess, route: Route) -> Option<Route> {
    if access.models.is_empty() {
        return Some(route);
    }
    let models = catalog.candidates(&route).map(|model| model.name.clone());
    let models: Vec<_> = models.filter(|name| access.can_use_model(name)).collect();
    (!models.is_empty()).then_some(Route { models, ..route })
}
