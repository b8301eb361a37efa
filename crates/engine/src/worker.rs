//! The thread that owns the model: takes orders in, runs step after step, hands tokens out.
//!
//! It never waits for a reader, and looks for readers that left before every step: what they held is
//! free before the next step begins. It counts its turns, by which others see that it is not stuck.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::block_pool::BlockPool;
use super::error::EngineError;
use super::forward::{DrawOptions, DrawnTokens, EngineModel};
use super::generation::{DrawRules, LastWord, RunningGeneration};
use super::messages::{AcceptedJob, WorkerMessage, WorkerStatus};
use super::ops::{LogitChange, PickMask, SampledToken};
use super::penalties::LogitChanges;
use super::scheduler::{BatchPlan, Scheduler};
use super::step_pace::StepPace;

/// How long a worker without work waits until it counts a turn.
pub(crate) const IDLE_TURN: Duration = Duration::from_millis(500);

/// After so many turns without work the worker looks whether its device is still there.
const PROBE_TURNS: u32 = 10;

pub(crate) struct EngineWorker {
    model: EngineModel,
    scheduler: Scheduler<RunningGeneration>,
    pace: StepPace,
    messages: Receiver<WorkerMessage>,
    shared: Arc<WorkerStatus>,
    /// Turns in a row without work.
    idle_turns: u32,
}

impl EngineWorker {
    pub(crate) fn new(
        model: EngineModel,
        blocks: BlockPool,
        pace: StepPace,
        messages: Receiver<WorkerMessage>,
        shared: Arc<WorkerStatus>,
    ) -> Self {
        let scheduler = Scheduler::new(model.capacity().slots, blocks);
        Self { model, scheduler, pace, messages, shared, idle_turns: 0 }
    }

    /// Until it is stopped, the device fails, or nobody holds a handle and all is done.
    pub(crate) fn run(mut self) {
        match catch_unwind(AssertUnwindSafe(|| self.work())) {
            Ok(reason) => self.fail(&reason),
            // What it was changing may be half changed: nothing of it is used again.
            Err(panic) => self.shared.end(&EngineError::Panicked(panic_message(&*panic))),
        }
    }

    fn work(&mut self) -> EngineError {
        loop {
            self.shared.turns.fetch_add(1, Ordering::Relaxed);
            if let Err(reason) = self.receive() {
                return reason;
            }
            self.release_finished();
            self.admit();
            if self.scheduler.running_count() == 0 {
                continue;
            }
            if let Err(reason) = self.step() {
                return reason;
            }
            self.release_finished();
        }
    }

    /// Takes in what has come; waits only when there is nothing to do. An error when it is time to end.
    fn receive(&mut self) -> Result<(), EngineError> {
        if self.scheduler.is_idle() {
            match self.messages.recv_timeout(IDLE_TURN) {
                Ok(message) => self.take_message(message),
                Err(RecvTimeoutError::Timeout) => self.count_idle_turn()?,
                Err(RecvTimeoutError::Disconnected) => return Err(EngineError::Stopped),
            }
        }
        while let Ok(message) = self.messages.try_recv() {
            self.take_message(message);
        }
        if self.shared.stopping.load(Ordering::Acquire) { Err(EngineError::Stopped) } else { Ok(()) }
    }

    /// Nothing came. A device that is lost meanwhile is noticed before somebody needs it.
    fn count_idle_turn(&mut self) -> Result<(), EngineError> {
        self.idle_turns += 1;
        if self.idle_turns < PROBE_TURNS {
            return Ok(());
        }
        self.idle_turns = 0;
        self.model.probe()
    }

    fn take_message(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Job(job) => self.take_job(*job),
            WorkerMessage::Wake => {}
            #[cfg(any(test, feature = "faults"))]
            WorkerMessage::Fault(fault) => fault.happen(&self.model),
        }
    }

    fn take_job(&mut self, job: AcceptedJob) {
        let AcceptedJob { mut prompt, penalties, machine, scope, priority, out, .. } = job;
        let rules = DrawRules {
            sampling: job.sampling,
            changes: LogitChanges::new(penalties, &prompt),
            constraint: job.constraint,
            logprobs: job.logprobs,
        };
        let mut generation = RunningGeneration::new(machine, rules, out);
        prompt.extend(generation.force());
        self.scheduler.add(generation, prompt, scope, priority);
    }

    /// Lets go of all that is over or that nobody reads any more. Last words are said at the end: who
    /// hears one may count on its place being free.
    fn release_finished(&mut self) {
        self.take_finished().into_iter().for_each(LastWord::say);
    }

    /// Frees the places of all that is over or that nobody reads any more; what is to be said to whom.
    fn take_finished(&mut self) -> Vec<LastWord> {
        let gone = self.scheduler.remove(RunningGeneration::is_over);
        self.shared.accepted.fetch_sub(gone.len(), Ordering::AcqRel);
        self.publish();
        gone.into_iter().filter_map(RunningGeneration::into_last_word).collect()
    }

    fn publish(&self) {
        self.shared.running.store(self.scheduler.running_count(), Ordering::Release);
        self.shared.blocks_free.store(self.scheduler.blocks_available(), Ordering::Release);
        self.shared.preempted.store(self.scheduler.preemptions(), Ordering::Relaxed);
    }

    fn admit(&mut self) {
        let model = &self.model;
        self.scheduler.admit(|slot, generation| model.init_slot(slot, &generation.slot_words()));
        self.publish();
    }

    fn step(&mut self) -> Result<(), EngineError> {
        let decoding = self.scheduler.decoding_count();
        let plan = self.scheduler.plan(self.pace.prefill_rows(decoding));
        for (generation, rows) in self.scheduler.readers() {
            generation.record_reading(rows, plan.prefill_rows);
        }
        for update in &plan.tables {
            self.model.update_table(update.slot, update.first, &update.blocks);
        }
        let wishes = self.wishes(&plan);
        let began = Instant::now();
        let drawn = self.draw(&plan, &wishes)?;
        self.pace.record(&plan, began.elapsed());
        self.fail_not_numbers(&plan, &drawn.tokens)?;
        let read = self.scheduler.finish_step();
        self.shared.prefilled.fetch_add(read as u64, Ordering::Relaxed);
        self.accept(&plan, &wishes, drawn);
        Ok(())
    }

    /// What the texts want whose next token is drawn.
    fn wishes(&mut self, plan: &BatchPlan) -> DrawWishes {
        let mut wishes = DrawWishes::default();
        for (pick, generation) in picked(&mut self.scheduler, plan) {
            wishes.changes.extend(generation.logit_changes(pick));
            wishes.constrained |= generation.is_constrained();
            if generation.wants_logits() {
                wishes.reported.push(pick);
            }
        }
        wishes
    }

    fn draw(&mut self, plan: &BatchPlan, wishes: &DrawWishes) -> Result<DrawnTokens, EngineError> {
        if wishes.are_plain() {
            let tokens = self.model.step(&plan.batch, &wishes.changes)?;
            return Ok(DrawnTokens { tokens, logits: Vec::new() });
        }
        self.model.begin(&plan.batch);
        // Found out while the device computes.
        let masks = self.masks(plan);
        let DrawWishes { changes, reported, .. } = wishes;
        self.model.draw(plan.batch.picks.len(), &DrawOptions { changes, masks: &masks, reported })
    }

    /// Ends the texts whose logits are not numbers: what is drawn from those may look like an end. The sampler passes over NaN and
    /// takes token 0 where there is nothing else, so only where that was drawn the logits are read.
    fn fail_not_numbers(&mut self, plan: &BatchPlan, drawn: &[SampledToken]) -> Result<(), EngineError> {
        let suspects = (0u32..).zip(drawn).filter(|(_, token)| token.sampled == 0);
        let suspects: Vec<u32> = suspects.map(|(pick, _)| pick).collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let options = DrawOptions { reported: &suspects, ..DrawOptions::default() };
        let logits = self.model.draw(0, &options)?.logits;
        let broken = suspects.iter().zip(&logits).filter(|(_, logits)| logits.iter().any(|it| it.is_nan()));
        let broken: Vec<u32> = broken.map(|(pick, _)| *pick).collect();
        picked(&mut self.scheduler, plan)
            .filter(|(pick, _)| broken.contains(pick))
            .for_each(|(_, generation)| generation.fail(EngineError::NotANumber));
        Ok(())
    }

    /// The tokens that may be drawn for each pick, where not all may. A text of which that cannot be said ends.
    fn masks(&mut self, plan: &BatchPlan) -> Vec<PickMask> {
        let vocab = self.model.vocab();
        let mut masks = Vec::new();
        for (pick, generation) in picked(&mut self.scheduler, plan) {
            match generation.allowed(vocab) {
                Some(Ok(allowed)) => masks.push(PickMask { pick, allowed }),
                Some(Err(error)) => generation.fail(error.into()),
                None => {}
            }
        }
        masks
    }

    /// Hands on what was drawn for the picks of a step.
    fn accept(&mut self, plan: &BatchPlan, wishes: &DrawWishes, drawn: DrawnTokens) {
        let mut logits = wishes.reported.iter().zip(&drawn.logits).peekable();
        let mut drawn = (0u32..).zip(plan.slots_picked()).zip(drawn.tokens).peekable();
        let (mut decoded, mut reused) = (0, 0);
        // Picks are in the order of what runs.
        for running in self.scheduler.running() {
            let is_own = |(_, slot): (u32, Option<u32>)| slot == Some(running.slot);
            let Some(((pick, _), drawn)) = drawn.next_if(|(picked, _)| is_own(*picked)) else { continue };
            let logits = logits.next_if(|(reported, _)| **reported == pick);
            let (sequence, slot) = (&mut running.sequence, running.slot);
            let found = u32::try_from(sequence.reused()).unwrap_or(u32::MAX);
            if sequence.job.tell_read(found) {
                reused += u64::from(found);
            }
            sequence.job.accept(drawn, logits.map(|(_, logits)| &**logits));
            sequence.push(drawn.id);
            sequence.job.force().into_iter().for_each(|id| sequence.push(id));
            decoded += sequence.job.take_sent();
            if let Some(words) = sequence.job.changed_slot_words() {
                self.model.init_slot(slot, &words);
            }
        }
        self.shared.decoded.fetch_add(decoded, Ordering::Relaxed);
        self.shared.reused.fetch_add(reused, Ordering::Relaxed);
    }

    /// Ends all there is. That the engine failed is known before anybody hears of it: who asks then is told the same.
    fn fail(&mut self, reason: &EngineError) {
        while let Ok(message) = self.messages.try_recv() {
            self.take_message(message);
        }
        self.scheduler.jobs().for_each(|generation| generation.fail(reason.clone()));
        let last_words = self.take_finished();
        self.shared.end(reason);
        last_words.into_iter().for_each(LastWord::say);
    }
}

/// What the texts of a step want of its draws.
#[derive(Debug, Default)]
struct DrawWishes {
    changes: Vec<LogitChange>,
    /// Of some pick only some tokens may be drawn.
    constrained: bool,
    /// The picks whose logits are wanted.
    reported: Vec<u32>,
}

impl DrawWishes {
    /// Whether nothing is to be done on the host between logits and draws.
    fn are_plain(&self) -> bool {
        !self.constrained && self.reported.is_empty()
    }
}

/// The texts whose next token is drawn in a step, each with its pick's number. Picks are in the order of what runs.
fn picked<'s>(
    scheduler: &'s mut Scheduler<RunningGeneration>,
    plan: &BatchPlan,
) -> impl Iterator<Item = (u32, &'s mut RunningGeneration)> {
    let mut picks = (0u32..).zip(plan.slots_picked()).peekable();
    scheduler.running().filter_map(move |running| {
        let (pick, _) = picks.next_if(|(_, slot)| *slot == Some(running.slot))?;
        Some((pick, &mut running.sequence.job))
    })
}

/// What a panic said, as far as that is text.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it said nothing").to_owned()
}
