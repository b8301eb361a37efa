//! The models and routes that a key may name, and whether it may use the admin API.

use std::sync::Arc;

use super::AdminRole;

/// A key's scopes. The usual ones let it name everything and keep it away from the admin API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyAccess {
    /// The models that serve it, and that it may name. All where this is empty; but where only routes are listed,
    /// a key names these routes and no model.
    pub models: Vec<Arc<str>>,
    /// The routes that it may name, all where this is empty. They choose among its models alone.
    pub routes: Vec<Arc<str>>,
    /// What it may on the admin API; nothing where this is absent.
    pub role: Option<AdminRole>,
}

impl KeyAccess {
    /// True if the model may be asked for by its name.
    pub fn can_name_model(&self, model: &str) -> bool {
        let listed = self.models.iter().any(|name| **name == *model);
        listed || (self.models.is_empty() && self.routes.is_empty())
    }

    /// True if the route may be asked for by its name.
    pub fn can_name_route(&self, route: &str) -> bool {
        self.routes.is_empty() || self.routes.iter().any(|name| **name == *route)
    }

    /// True if the model may serve it, by whatever name it was asked for.
    pub fn can_use_model(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|name| **name == *model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_everything_unless_only_routes_are_listed() {
        let access = |models: &[&str], routes: &[&str]| KeyAccess {
            models: models.iter().map(|&name| name.into()).collect(),
            routes: routes.iter().map(|&name| name.into()).collect(),
            role: None,
        };
        let check = |access: KeyAccess, names_model, names_route, uses| {
            let allowed = (access.can_name_model("m"), access.can_name_route("r"), access.can_use_model("m"));
            assert_eq!(allowed, (names_model, names_route, uses), "{access:?}");
        };
        check(KeyAccess::default(), true, true, true);
        check(access(&["m"], &[]), true, true, true);
        check(access(&["n"], &[]), false, true, false);
        check(access(&[], &["r"]), false, true, true);
        check(access(&["m"], &["s"]), true, false, true);
    }
}
