//! What is believed at one moment: all that a request reads, and nothing of the sums that it follows from. A copy shares what has not
//! changed since.

use std::collections::BTreeMap;
use std::sync::Arc;

use stint_types::catalog::Demand;

use super::features::{RequestFeatures, class_index};
use super::model_belief::{ModelBelief, Shared, adjust_unseen};
use super::settings::Settings;
use super::shared_belief::SharedBelief;
use super::shared_levels::SharedLevels;

/// What is believed of all models.
#[derive(Debug, Clone, PartialEq)]
pub struct BeliefSnapshot {
    pub(super) settings: Settings,
    pub(super) models: BTreeMap<Arc<str>, Arc<ModelBelief>>,
    /// The weights that all models share.
    pub(super) success: Arc<SharedBelief>,
    /// The levels that others' outcomes tell.
    pub(super) levels: Arc<SharedLevels>,
}

impl BeliefSnapshot {
    /// The prior is believed.
    pub(super) fn new(settings: Settings) -> BeliefSnapshot {
        BeliefSnapshot {
            settings,
            models: BTreeMap::new(),
            success: Arc::new(SharedBelief::new(&settings)),
            levels: Arc::new(SharedLevels::new()),
        }
    }

    /// Turns the prior's predictions into what is believed, and sets each model's `spread`. Of a model without outcomes only what
    /// goes for all is corrected, with a spread as wide as its prior is unsure: it is worth a try. Allocates nothing.
    pub fn adjust(&self, demand: &mut Demand) {
        let Demand { class, request, models, .. } = demand;
        let (features, class) = (RequestFeatures::of(*class, request), class_index(*class));
        let shared = self.shared();
        for (name, model) in models {
            match self.models.get(name) {
                Some(believed) => believed.adjust((name, shared), &features, class, model),
                None => adjust_unseen((name, shared), &features, model, &self.settings),
            }
        }
    }

    /// What goes for all models.
    pub(super) fn shared(&self) -> Shared<'_> {
        Shared { success: &self.success, levels: &self.levels }
    }
}
