//! What is learned of an answer, and when.

use crate::simulate::event_queue::SimulationEvent;
use crate::simulate::in_flight::InFlightRequest;
use crate::simulate::simulated_attempt::SimulatedAttempt;
use stint_decide::learn::OutcomeSample;
use stint_types::catalog::RequestTraits;
use stint_types::units::Chance;

use super::Simulation;

impl Simulation<'_> {
    /// Learns at once how long it took, and later how good it was where somebody says so.
    pub(super) fn learn(&mut self, flight: &InFlightRequest, work: &SimulatedAttempt, right: bool) {
        let (population, feedback) = (&self.setup.population, self.setup.scenario.feedback);
        let mut dice = population.dice(&flight.request, 0xfeed, 0);
        let (is_judged, is_wrong) = (dice.next_f64() < feedback.share, dice.next_f64() < feedback.wrong);
        let lesson = OutcomeSample {
            model: flight.offer.model.clone(),
            class: population.task(&flight.request),
            predicted: population.predicted(&flight.request, flight.model),
            request: RequestTraits::default(),
            budget: flight.offer.thinking,
            effort: 1.0,
            thinking: work.thinking,
            ended: work.ended,
            solution: work.solution,
            solution_ended: work.solution_ended,
            success: is_judged.then(|| Chance::new(if right == is_wrong { 0.0 } else { 1.0 })),
            weight: 1.0,
            alarm: 1.0,
        };
        if lesson.success.is_none() {
            return self.learner.observe(&lesson);
        }
        let place = self.pending_feedback.insert(lesson);
        self.events.schedule(self.now.after(feedback.delay), SimulationEvent::Feedback(place));
    }

    /// Somebody says how good an answer was.
    pub(super) fn apply_feedback(&mut self, place: usize) {
        if let Some(lesson) = self.pending_feedback.remove(place) {
            self.learner.observe(&lesson);
        }
    }
}
