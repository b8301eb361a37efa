//! Corrected descriptions of models that do not behave as configured. If a model's own thinking budget did not hold, the
//! model is offered with the next strongest enforcement class. If a model thinks although its configuration does not say
//! so, it is offered with room for the thought.
//!
//! What one account's calls show changes nothing for others, until a second account's show it too.
//!
//! A provider's budget is trusted only while the counted tokens agree with it: engines drop the parameter silently when a
//! flag, a parser or a model changes. A demotion lasts until the gateway restarts, or until the configuration of the model
//! changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;

use stint_backend::ShownBy;
use stint_backend::fleet::FlowId;
use stint_types::catalog::{Catalog, EnforcementClass, HandOff, Model};
use stint_types::units::Tokens;

/// The room for the thoughts of a model that is known to think, and nothing more.
const THINKING_HEADROOM: Tokens = Tokens(2048);

/// The corrected models, by name.
#[derive(Debug, Default)]
pub(crate) struct Demotions {
    models: DashMap<Arc<str>, Arc<Model>>,
    /// Models as one account's calls alone have shown them: a caller may have asked for a text that looks like a thought. They hold for
    /// that account, and for all once a second one's calls show the same.
    of_one: DashMap<Arc<str>, AccountCorrection>,
    /// True once there is one, which stays. Every request asks, and to ask the map goes through all of its locks.
    any: AtomicBool,
}

/// A model as the calls of one account have shown it.
#[derive(Debug, Clone)]
struct AccountCorrection {
    shown_by: ShownBy<FlowId>,
    model: Arc<Model>,
}

/// For whose requests a correction holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CorrectedFor {
    /// Those of the account whose call showed it.
    Account,
    /// All.
    All,
}

impl CorrectedFor {
    /// For the log.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            CorrectedFor::Account => "the account that called",
            CorrectedFor::All => "all accounts",
        }
    }
}

impl Demotions {
    /// The model as it may be offered to this account now.
    pub(crate) fn apply(&self, model: &Arc<Model>, flow: FlowId) -> Arc<Model> {
        if !self.any.load(Ordering::Acquire) {
            return model.clone();
        }
        self.known(&model.name, flow).unwrap_or_else(|| model.clone())
    }

    /// What was found out about models that are the same in both catalogues.
    pub(crate) fn carry_over(&self, before: &Catalog, after: &Catalog) -> Demotions {
        let is_same = |name: &str| before.models.get(name) == after.models.get(name);
        let (models, of_one) = (kept(&self.models, is_same), kept(&self.of_one, is_same));
        Demotions { any: AtomicBool::new(!models.is_empty() || !of_one.is_empty()), models, of_one }
    }

    /// The corrected model as it is for this account, if it was corrected.
    fn known(&self, name: &Arc<str>, flow: FlowId) -> Option<Arc<Model>> {
        let own = self.of_one.get(name).filter(|own| own.shown_by.holds_for(&flow));
        own.map(|own| own.model.clone()).or_else(|| self.models.get(name).map(|model| model.clone()))
    }

    /// Corrects a model for all; true if it was not corrected for all before.
    fn insert(&self, name: &Arc<str>, corrected: Model) -> bool {
        let is_new = self.models.insert(name.clone(), Arc::new(corrected)).is_none();
        self.of_one.remove(name);
        self.any.store(true, Ordering::Release);
        is_new
    }

    /// Corrects a model for the account whose call has shown it; for all, if another account's has before, or if it was a call of our
    /// own.
    fn correct(&self, name: &Arc<str>, flow: Option<FlowId>, corrected: Model) -> CorrectedFor {
        let mut shown_by = self.of_one.get(name).map(|own| own.shown_by).unwrap_or_default();
        shown_by.record(flow);
        if shown_by.holds_for_all() {
            self.insert(name, corrected);
            return CorrectedFor::All;
        }
        self.of_one.insert(name.clone(), AccountCorrection { shown_by, model: Arc::new(corrected) });
        self.any.store(true, Ordering::Release);
        CorrectedFor::Account
    }

    /// The native budget of a model did not hold, in a call of this account or in one of our own. The class that holds it from now on,
    /// and for whom, where this is news and there is another class.
    pub(crate) fn demote(
        &self,
        model: &Model,
        flow: Option<FlowId>,
    ) -> Option<(EnforcementClass, CorrectedFor)> {
        let own = self.of_one.get(&model.name).map(|own| own.shown_by).unwrap_or_default();
        if self.models.contains_key(&model.name) || flow.is_some_and(|flow| own.holds_for(&flow)) {
            return None;
        }
        let classes: Vec<EnforcementClass> =
            model.classes.iter().copied().filter(|class| *class != EnforcementClass::Native).collect();
        let next = *classes.first()?;
        Some((next, self.correct(&model.name, flow, Model { classes, ..model.clone() })))
    }

    /// The chat template of a model knows of no thoughts: it is offered as one that has none from now on. True if this is
    /// news.
    pub(crate) fn mark_non_thinking(&self, model: &Model) -> bool {
        if model.thinking_max == Tokens::ZERO || self.models.contains_key(&model.name) {
            return false;
        }
        let mut classes = model.classes.clone();
        if classes.iter().any(|class| *class != EnforcementClass::Continue) {
            classes.retain(|class| *class != EnforcementClass::Continue);
        }
        let hand_off =
            HandOff { text: String::new(), overhead: Tokens::ZERO, overhead_without_thought: Tokens::ZERO };
        let plain = Model { thinking_max: Tokens::ZERO, classes, hand_off, ..model.clone() };
        self.insert(&model.name, plain)
    }

    /// A model that was not known to think thinks, in a call of this account. If this is new, so much is reserved for its thoughts from
    /// now on, and for whom.
    pub(crate) fn mark_thinking(
        &self,
        model: &Model,
        flow: FlowId,
        used: Tokens,
    ) -> Option<(Tokens, CorrectedFor)> {
        let found = self.known(&model.name, flow);
        let known = found.as_deref().unwrap_or(model);
        if known.thinking_max > Tokens::ZERO || model.never_thinks {
            return None;
        }
        // Of the thoughts of two accounts the shorter counts for all: a caller can have one made as long as it likes.
        let other = self.of_one.get(&model.name).map_or(Tokens(u64::MAX), |own| own.model.thinking_max);
        let thinking_max = (used * 2).max(THINKING_HEADROOM).min(other);
        let mut classes = known.classes.clone();
        if found.is_some() && classes.contains(&EnforcementClass::Turn) {
            // A server whose template has no words for a thought does not hold one.
            classes.retain(|class| *class != EnforcementClass::Native);
        }
        let hand_off = model.hand_off.clone();
        let discovered = Model { thinking_max, classes, hand_off, ..known.clone() };
        Some((thinking_max, self.correct(&model.name, Some(flow), discovered)))
    }
}

/// The entries of models that are the same.
fn kept<T: Clone>(of: &DashMap<Arc<str>, T>, is_same: impl Fn(&str) -> bool) -> DashMap<Arc<str>, T> {
    let same = of.iter().filter(|entry| is_same(entry.key()));
    same.map(|entry| (entry.key().clone(), entry.value().clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::{ConversationRules, GoesOn, MemberRules};

    const ONE: FlowId = FlowId(1);
    const OTHER: FlowId = FlowId(2);
    const THIRD: FlowId = FlowId(3);

    fn hand_off() -> HandOff {
        HandOff { text: String::new(), overhead: Tokens::ZERO, overhead_without_thought: Tokens::ZERO }
    }

    fn model(thinking_max: u64) -> Arc<Model> {
        Arc::new(Model {
            name: "m".into(),
            tariff: None,
            reference: None,
            ability_guess: None,
            specialty: None,
            context: Tokens(4096),
            context_limited_by: None,
            classes: vec![EnforcementClass::Native, EnforcementClass::Effort],
            thinking_min: Tokens::ZERO,
            thinks_always: false,
            thinking_max: Tokens(thinking_max),
            never_thinks: false,
            thinking_ruled_out: None,
            thinking_usual: None,
            solution_max: None,
            output_max: None,
            output_min: Tokens(1),
            hand_off: hand_off(),
            services: Vec::new(),
            capabilities: Vec::new(),
            efforts: Vec::new(),
            members: MemberRules::default(),
            resumes_tools: false,
            goes_on: GoesOn::Never,
            stops_billing: false,
            conversation: ConversationRules::default(),
        })
    }

    /// What the model may think for each account.
    fn rooms(demotions: &Demotions, model: &Arc<Model>) -> [u64; 3] {
        [ONE, OTHER, THIRD].map(|flow| demotions.apply(model, flow).thinking_max.0)
    }

    #[test]
    fn a_thought_of_one_account_gives_room_to_it_alone_and_one_of_a_second_to_all() {
        let (demotions, plain) = (Demotions::default(), model(0));
        assert_eq!(rooms(&demotions, &plain), [0, 0, 0]);
        let marked = demotions.mark_thinking(&plain, ONE, Tokens(24_006));
        assert_eq!(marked, Some((Tokens(48_012), CorrectedFor::Account)));
        assert_eq!(demotions.mark_thinking(&plain, ONE, Tokens(99_000)), None, "it is known there");
        assert_eq!(rooms(&demotions, &plain), [48_012, 0, 0]);
        let marked = demotions.mark_thinking(&plain, OTHER, Tokens(1_500));
        assert_eq!(marked, Some((Tokens(3_000), CorrectedFor::All)), "no more than both have shown");
        assert_eq!(rooms(&demotions, &plain), [3_000, 3_000, 3_000]);
        assert_eq!(demotions.mark_thinking(&plain, THIRD, Tokens(9_000)), None);
    }

    #[test]
    fn a_long_thought_of_a_second_account_gives_no_more_room_than_the_first_one_s() {
        let (demotions, plain) = (Demotions::default(), model(0));
        demotions.mark_thinking(&plain, ONE, Tokens(100));
        demotions.mark_thinking(&plain, OTHER, Tokens(24_006));
        assert_eq!(rooms(&demotions, &plain), [2048, 2048, 2048]);
    }

    #[test]
    fn a_model_that_its_operator_says_not_to_think_stays_so() {
        let (demotions, stated) = (Demotions::default(), Model { never_thinks: true, ..(*model(0)).clone() });
        for flow in [ONE, OTHER, THIRD] {
            assert_eq!(demotions.mark_thinking(&stated, flow, Tokens(100)), None);
        }
        assert_eq!(rooms(&demotions, &Arc::new(stated)), [0, 0, 0]);
    }

    #[test]
    fn a_budget_is_given_up_for_the_account_in_whose_call_it_did_not_hold_and_for_all_after_a_second() {
        let (demotions, thinking) = (Demotions::default(), model(1024));
        let native = || {
            let is_native = |model: Arc<Model>| model.classes.contains(&EnforcementClass::Native);
            [ONE, OTHER, THIRD].map(|flow| is_native(demotions.apply(&thinking, flow)))
        };
        let demoted = |accounts| Some((EnforcementClass::Effort, accounts));
        assert_eq!(demotions.demote(&thinking, Some(ONE)), demoted(CorrectedFor::Account));
        assert_eq!(demotions.demote(&thinking, Some(ONE)), None);
        assert_eq!(native(), [false, true, true]);
        assert_eq!(demotions.demote(&thinking, Some(OTHER)), demoted(CorrectedFor::All));
        assert_eq!(native(), [false, false, false]);
        assert_eq!(demotions.demote(&thinking, Some(THIRD)), None);
    }

    #[test]
    fn a_call_of_our_own_and_a_server_s_own_word_count_for_all_at_once() {
        let (demotions, thinking) = (Demotions::default(), model(1024));
        assert_eq!(demotions.demote(&thinking, None), Some((EnforcementClass::Effort, CorrectedFor::All)));
        let demotions = Demotions::default();
        demotions.demote(&thinking, Some(ONE));
        assert!(demotions.mark_non_thinking(&thinking));
        assert_eq!(rooms(&demotions, &thinking), [0, 0, 0], "what one account showed before is over");
    }

    #[test]
    fn what_is_known_of_a_model_that_stays_as_it_is_outlives_a_reload() {
        let (demotions, plain) = (Demotions::default(), model(0));
        demotions.mark_thinking(&plain, ONE, Tokens(100));
        let catalog = |model: &Arc<Model>| {
            let models = [(model.name.clone(), model.clone())].into_iter().collect();
            Catalog { models, ..Catalog::default() }
        };
        let kept = demotions.carry_over(&catalog(&plain), &catalog(&plain));
        assert_eq!(rooms(&kept, &plain), [2048, 0, 0]);
        let changed = Arc::new(Model { context: Tokens(9), ..(*plain).clone() });
        let lost = demotions.carry_over(&catalog(&plain), &catalog(&changed));
        assert_eq!(rooms(&lost, &changed), [0, 0, 0]);
    }
}
