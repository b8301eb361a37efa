//! What is learned of an answer, and when.

use crate::learn::Lesson;
use crate::simulate::agenda::Happening;
use crate::simulate::flight::Flight;
use crate::simulate::work::Work;
use crate::units::Chance;

use super::World;

impl World<'_> {
    /// Learns at once how long it took, and later how good it was where somebody says so.
    pub(super) fn learn(&mut self, flight: &Flight, work: &Work, right: bool) {
        let (population, feedback) = (&self.setting.population, self.setting.scenario.feedback);
        let mut dice = population.dice(&flight.request, 0xfeed, 0);
        let (is_judged, is_wrong) = (dice.share() < feedback.share, dice.share() < feedback.wrong);
        let lesson = Lesson {
            model: flight.offer.model.clone(),
            class: population.task(&flight.request),
            predicted: population.told(&flight.request, flight.model),
            context: flight.context,
            budget: flight.offer.thinking,
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
        let place = self.words.put(lesson);
        self.agenda.enter(self.now.after(feedback.delay), Happening::Word(place));
    }

    /// Somebody says how good an answer was.
    pub(super) fn hear(&mut self, place: usize) {
        if let Some(lesson) = self.words.take(place) {
            self.learner.observe(&lesson);
        }
    }
}
