//! The verifiers of all routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::execute::verify::Verifier;
use stint_types::catalog::Catalog;

/// Verifiers by the name of their route.
#[derive(Debug, Default)]
pub(crate) struct Verifiers(BTreeMap<Arc<str>, Verifier>);

impl Verifiers {
    pub(crate) fn of(catalog: &Catalog) -> Verifiers {
        let routes = catalog.routes.values();
        let each = routes.filter_map(|route| {
            let settings = route.verifier.clone()?;
            Some((route.name.clone(), Verifier::new(settings)))
        });
        Verifiers(each.collect())
    }

    /// The verifier of a route, if it has one.
    pub(crate) fn of_route(&self, route: &str) -> Option<&Verifier> {
        self.0.get(route)
    }
}
