//! The first steps of a model, before anybody waits for one: a driver compiles a kernel when it first runs, and a step is
//! timed, by which others are judged.

use std::time::{Duration, Instant};

use super::constraint::TokenSet;
use super::error::EngineError;
use super::forward::{BatchRow, DrawOptions, EngineCapacity, EngineModel, ForwardBatch};
use super::ops::{LogitChange, PickMask, SamplingParams, slot_words};
use super::phases::{PhaseBudgets, PhaseMachine};

/// Of so many steps the quickest counts: the others may have waited for the processor.
const TIMED_STEPS: usize = 3;

/// A row there attends to more than one split of positions.
const LONG_POSITION: u32 = 512;

/// Runs every kernel, and returns how long a step of one row takes. A model that computes no numbers is refused. What that leaves in
/// slots and blocks is overwritten by the jobs that get them.
pub(crate) fn warm_up(model: &EngineModel, capacity: EngineCapacity) -> Result<Duration, EngineError> {
    let machine = PhaseMachine::new(PhaseBudgets::without_thinking(1), Vec::new());
    let sampling = SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };
    let slots = capacity.slots.min(2);
    for slot in 0..slots {
        model.init_slot(slot, &slot_words(&machine, sampling));
        model.update_table(slot, 0, &[0]);
    }
    let row = |slot| BatchRow { token: 0, slot, position: 0 };
    // Other kernels than for a single row, and for one that attends to few positions.
    let long = BatchRow { position: LONG_POSITION.min(capacity.context - 1), ..row(slots - 1) };
    let several = ForwardBatch { rows: vec![row(0), long], picks: (0..slots).collect() };
    let unchanged = LogitChange { pick: 0, token: 0, divisor: 1.0, less: 0.0 };
    model.step(&several, &[unchanged])?;
    let mask = PickMask { pick: 0, allowed: TokenSet::empty(model.vocab()) };
    model.begin(&several);
    model.draw(several.picks.len(), &DrawOptions { masks: &[mask], ..DrawOptions::default() })?;
    for rows in model.rows_many().iter().filter(|rows| **rows <= capacity.rows) {
        let picks = (0..(*rows).min(capacity.slots)).collect();
        model.step(&ForwardBatch { rows: vec![row(0); *rows as usize], picks }, &[])?;
    }
    let single = ForwardBatch { rows: vec![row(0)], picks: vec![0] };
    check_numbers(model, &single)?;
    model.step(&single, &[])?;
    let mut quickest = Duration::MAX;
    for _ in 0..TIMED_STEPS {
        let began = Instant::now();
        model.step(&single, &[])?;
        quickest = quickest.min(began.elapsed());
    }
    Ok(quickest)
}

/// Refuses a model that computes no numbers. A token goes through all weights but other tokens' embeddings and other experts, so
/// most damage shows at the first.
fn check_numbers(model: &EngineModel, batch: &ForwardBatch) -> Result<(), EngineError> {
    let are_numbers = model.logits(batch)?.iter().flatten().all(|logit| logit.is_finite());
    if are_numbers { Ok(()) } else { Err(EngineError::NotANumber) }
}
