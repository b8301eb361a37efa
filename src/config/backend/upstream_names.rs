//! `upstream` and `upstreams` of a deployment: what the models of its backend are called there.

use crate::config::reader::Section;

use super::declared_model::DeclaredModel;

/// Takes the names that the models of a backend have at each of its deployments.
pub(super) fn apply_upstream_names(backend: &Section<'_>, models: &mut [DeclaredModel]) {
    for (place, section) in backend.sections("deployment").iter().enumerate() {
        section.allow_all();
        let own = section.get::<String>("upstream");
        if own.is_some() && models.len() != 1 {
            let remedy = "say it of each, upstreams = { some-model = \"its-name-there\" }";
            section.reject("upstream", "which of the models is it?", remedy);
        }
        let names = section.section("upstreams").entries::<String>();
        for (name, _) in &names {
            if !models.iter().any(|declared| *declared.model.name == **name) {
                let remedy = "write the name that callers use for one of this backend's models";
                section.reject("upstreams", format!("\"{name}\" is no model of this backend"), remedy);
            }
        }
        for declared in models.iter_mut() {
            let stated = names.iter().find(|(name, _)| **name == *declared.model.name);
            let stated = stated.map(|(_, upstream)| upstream.clone()).or_else(|| own.clone());
            if let Some(deployment) = declared.config.deployments.get_mut(place) {
                deployment.upstream = stated;
            }
        }
    }
}
