//! How a target was seen to treat its limits, for each account: what one account's texts alone show changes nothing for others.

use crate::{BehaviorObservation, BehaviorTracker, ShownBy, TargetBehavior};

use super::target::FlowId;

/// What the calls of all accounts have shown of one target.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ObservedBehavior {
    tracker: BehaviorTracker,
    shows_thoughts: ShownBy<FlowId>,
    breaks_limits: ShownBy<FlowId>,
    ignores_switch: ShownBy<FlowId>,
}

impl ObservedBehavior {
    /// A call of this account has shown something.
    pub(super) fn record(&mut self, flow: FlowId, observation: BehaviorObservation) {
        match observation {
            BehaviorObservation::ShowsThoughts => self.shows_thoughts.record(Some(flow)),
            BehaviorObservation::Overran { is_counted: true, .. } => self.breaks_limits.record(None),
            BehaviorObservation::Overran { .. } => self.breaks_limits.record(Some(flow)),
            BehaviorObservation::ThinkingSwitched(false) => {
                // What was seen before it was asked once more is over.
                if !self.tracker.behavior().ignores_switch {
                    self.ignores_switch = ShownBy::default();
                }
                self.ignores_switch.record(Some(flow));
            }
            BehaviorObservation::ThinkingSwitched(true) | BehaviorObservation::Counted { .. } => {}
        }
        self.tracker.record(observation);
    }

    /// What counts for the calls of this account.
    pub(super) fn behavior(&self, flow: FlowId) -> TargetBehavior {
        let seen = self.tracker.behavior();
        TargetBehavior {
            shows_thoughts: self.shows_thoughts.holds_for(&flow),
            breaks_limits: self.breaks_limits.holds_for(&flow),
            ignores_switch: seen.ignores_switch && self.ignores_switch.holds_for(&flow),
            ..seen
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::units::Tokens;

    const ONE: FlowId = FlowId(1);
    const OTHER: FlowId = FlowId(2);
    const THIRD: FlowId = FlowId(3);

    fn overran(is_counted: bool) -> BehaviorObservation {
        BehaviorObservation::Overran { written: Tokens(90), limit: Tokens(10), is_counted }
    }

    type ReadBehavior = fn(TargetBehavior) -> bool;

    /// Whether it holds for the first account, and for one that has shown nothing.
    fn holds(observed: &ObservedBehavior, what: ReadBehavior) -> (bool, bool) {
        (what(observed.behavior(ONE)), what(observed.behavior(THIRD)))
    }

    #[test]
    fn what_the_texts_of_one_account_show_changes_nothing_for_others() {
        let cases: [(BehaviorObservation, ReadBehavior); 3] = [
            (BehaviorObservation::ShowsThoughts, |seen| seen.shows_thoughts),
            (overran(false), |seen| seen.breaks_limits),
            (BehaviorObservation::ThinkingSwitched(false), |seen| seen.ignores_switch),
        ];
        for (observation, what) in cases {
            let mut observed = ObservedBehavior::default();
            assert_eq!(holds(&observed, what), (false, false));
            observed.record(ONE, observation);
            observed.record(ONE, observation);
            assert_eq!(holds(&observed, what), (true, false), "{observation:?}");
            observed.record(OTHER, observation);
            assert_eq!(holds(&observed, what), (true, true), "{observation:?}");
        }
    }

    #[test]
    fn what_a_target_counts_itself_holds_for_all_at_once() {
        let mut observed = ObservedBehavior::default();
        observed.record(ONE, overran(true));
        assert_eq!(holds(&observed, |seen| seen.breaks_limits), (true, true));
    }

    #[test]
    fn a_target_that_heeds_its_switch_again_is_asked_by_all() {
        let mut observed = ObservedBehavior::default();
        [ONE, OTHER]
            .into_iter()
            .for_each(|flow| observed.record(flow, BehaviorObservation::ThinkingSwitched(false)));
        observed.record(OTHER, BehaviorObservation::ThinkingSwitched(true));
        assert_eq!(holds(&observed, |seen| seen.ignores_switch), (false, false));
        observed.record(ONE, BehaviorObservation::ThinkingSwitched(false));
        assert_eq!(holds(&observed, |seen| seen.ignores_switch), (true, false));
    }
}
