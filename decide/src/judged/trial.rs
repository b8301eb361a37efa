//! One pair of models in one world: what was judged, and what is measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use stint_decide::estimate::estimate;
use stint_decide::learn::{BeliefStore, OutcomeSample, Settings};
use stint_types::catalog::{
    AbilityLevel, Calibration, Demand, ModelAbility, SolutionStopReason, ThinkingStopReason,
};
use stint_types::chat::{Message, Request, Role};
use stint_types::units::{Chance, SeededRng, Tokens};

use crate::measure::mean;

use super::world::World;

/// A judged answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judgement {
    /// The question.
    pub(super) row: usize,
    /// Which of the models answered.
    pub(super) model: usize,
    /// Whether it was right.
    pub(super) right: f64,
}

/// Whose answers to a judged question are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judging {
    /// Each model's.
    All,
    /// One model's, drawn at random.
    One,
}

/// What is believed of a model's answer to a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct BelievedAnswer {
    /// The chance that it is right.
    pub(super) chance: f64,
    /// How many tokens are read and written for it.
    pub(super) tokens: f64,
}

/// English has about four characters in a token.
const CHARACTERS: f64 = 4.0;
/// How able the two models of GSM8K are on MMLU-Pro, where published accuracies say it: what an operator would state. What they
/// reach on GSM8K itself is not told. Mixtral's is that of the data, GPT-4's GPT-4 Turbo's of the benchmark's paper.
const PUBLISHED: [(&str, f64); 2] = [("mixtral-8x7b", 0.419), ("gpt-4", 0.637)];

/// Some models in a world.
pub(super) struct Trial<'a> {
    /// The world.
    pub(super) world: &'a World,
    /// The models by their names in the data, the weakest first.
    pub(super) models: &'a [&'a str],
    calibration: Calibration,
    names: Vec<Arc<str>>,
}

impl<'a> Trial<'a> {
    /// These models, each told by its accuracy on MMLU-Pro: over all questions, where those are asked, or as published.
    pub(super) fn of(world: &'a World, models: &'a [&'a str]) -> Trial<'a> {
        let names: Vec<Arc<str>> = (0..models.len()).map(|at| format!("model {at}").into()).collect();
        let ability = |model: &&str| {
            let asked = world.pool.rows.iter().filter_map(|row| row.correct.get(*model));
            let published = PUBLISHED.iter().find(|(name, _)| name == model).map(|(_, share)| *share);
            let measured = || mean(&asked.map(|&right| f64::from(right)).collect::<Vec<_>>());
            ModelAbility::same(AbilityLevel::from_share(published.unwrap_or_else(measured), 0.2))
        };
        let abilities = names.iter().cloned().zip(models.iter().map(ability)).collect();
        Trial { world, models, calibration: Calibration { abilities, ..world.calibration.clone() }, names }
    }

    /// Whether a model was right; none where it was not asked.
    pub(super) fn right(&self, row: usize, model: usize) -> Option<f64> {
        self.world.pool.rows[row].correct.get(self.models[model]).map(|&right| f64::from(right))
    }

    /// The questions of the world's measured ones that all models answered.
    pub(super) fn measured(&self) -> Vec<usize> {
        self.answered(&self.world.measured)
    }

    fn answered(&self, rows: &[usize]) -> Vec<usize> {
        let all = |row: &&usize| (0..self.models.len()).all(|model| self.right(**row, model).is_some());
        rows.iter().filter(all).copied().collect()
    }

    /// What is judged of the first so many questions.
    pub(super) fn judgements(&self, judging: Judging, questions: usize) -> Vec<Judgement> {
        let mut dice = SeededRng::new(401);
        let mut judgements = Vec::new();
        for row in self.answered(&self.world.judged).into_iter().take(questions) {
            let drawn = dice.below(self.models.len());
            let is_judged = |model: &usize| judging == Judging::All || *model == drawn;
            for model in (0..self.models.len()).filter(is_judged) {
                let right = self.right(row, model).unwrap_or_default();
                judgements.push(Judgement { row, model, right });
            }
        }
        judgements
    }

    /// What the store believes of each model's success on these questions, after these judgements.
    pub(super) fn believed(&self, judgements: &[Judgement], rows: &[usize]) -> Vec<Vec<f64>> {
        let chances =
            |answers: Vec<BelievedAnswer>| answers.into_iter().map(|answer| answer.chance).collect();
        self.believed_answers(judgements, rows).into_iter().map(chances).collect()
    }

    /// The same, with the tokens that each answer is believed to take: its question's own, and as many as are foretold of it.
    pub(super) fn believed_answers(
        &self,
        judgements: &[Judgement],
        rows: &[usize],
    ) -> Vec<Vec<BelievedAnswer>> {
        let mut store = BeliefStore::new(Settings::default());
        judgements.iter().for_each(|judgement| store.observe(&self.sample(judgement)));
        let answers = |&row: &usize| {
            let mut demand = self.demand(row);
            store.adjust(&mut demand);
            let answer = |name: &Arc<str>| {
                let model = &demand.models[name];
                let tokens = (model.prompt + model.solution).as_f64();
                BelievedAnswer { chance: model.done.get(), tokens }
            };
            self.names.iter().map(answer).collect()
        };
        rows.iter().map(answers).collect()
    }

    fn demand(&self, row: usize) -> Demand {
        let text = &self.world.pool.texts[row];
        let prompt = Tokens::round(text.len() as f64 / CHARACTERS);
        let prompts: BTreeMap<Arc<str>, Tokens> =
            self.names.iter().map(|name| (name.clone(), prompt)).collect();
        let request = Request::new("auto", vec![Message::text(Role::User, text)]);
        estimate(&request, &prompts, &self.calibration)
    }

    fn sample(&self, judgement: &Judgement) -> OutcomeSample {
        let (demand, name) = (self.demand(judgement.row), &self.names[judgement.model]);
        let written = self.world.pool.rows[judgement.row].out_chars.get(self.models[judgement.model]);
        OutcomeSample {
            model: name.clone(),
            class: demand.class,
            predicted: demand.models[name].clone(),
            request: demand.request,
            budget: Tokens::ZERO,
            effort: 1.0,
            thinking: Tokens::ZERO,
            ended: ThinkingStopReason::Closed,
            solution: Tokens::round(written.map_or(0.0, |characters| characters / CHARACTERS)),
            solution_ended: SolutionStopReason::Stop,
            success: Some(Chance::new(judgement.right)),
            weight: 1.0,
            alarm: 1.0,
        }
    }
}
