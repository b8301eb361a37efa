//! Which texts run, and which of their rows run in the next step. Pure: it has no device, and every choice is its own.
//!
//! Blocks of the cache are taken when they are needed, so that as many texts run as have room for what they are, not for what
//! they may become. When there are none left the text that began last stops: it gives its blocks back, waits before all others
//! and is computed anew when there is room. The text that began first is never stopped, and any text fits alone; so each
//! ends at last.

use std::collections::VecDeque;

use super::block_pool::{BlockPool, CacheScope};
use super::forward::{BatchRow, ForwardBatch};
use super::messages::JobPriority;
use super::prefill_share::share;
use super::sequence::Sequence;

/// A text that waits.
#[derive(Debug)]
struct WaitingSequence<T> {
    sequence: Sequence<T>,
    turn: WaitingOrder,
}

/// Who goes before whom. Among equals it is first come, first served, and nobody overtakes: a long text would otherwise never
/// find enough room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WaitingOrder {
    /// It ran, and had to stop.
    Preempted,
    /// It has not run yet.
    Fresh(JobPriority),
}

/// A text that runs, in a place of the device's.
#[derive(Debug)]
pub(crate) struct RunningSequence<T> {
    pub(crate) slot: u32,
    pub(crate) sequence: Sequence<T>,
    /// The rows that it has in the step that runs.
    rows: usize,
}

/// The texts that run or wait, and the cache's blocks.
#[derive(Debug)]
pub(crate) struct Scheduler<T> {
    pool: BlockPool,
    slots: Vec<u32>,
    waiting: VecDeque<WaitingSequence<T>>,
    /// In the order in which they began.
    running: Vec<RunningSequence<T>>,
    preemptions: u64,
}

/// Blocks that a slot's table is told of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableUpdate {
    pub(crate) slot: u32,
    /// The place of the first in the table.
    pub(crate) first: u32,
    pub(crate) blocks: Vec<u32>,
}

/// One step.
#[derive(Debug, Default)]
pub(crate) struct BatchPlan {
    pub(crate) tables: Vec<TableUpdate>,
    pub(crate) batch: ForwardBatch,
    /// Rows that are not one text's next token.
    pub(crate) prefill_rows: u32,
}

impl BatchPlan {
    /// The slots of the picks, in their order.
    pub(crate) fn slots_picked(&self) -> impl Iterator<Item = Option<u32>> {
        self.batch.picks.iter().map(|pick| self.batch.rows.get(*pick as usize).map(|row| row.slot))
    }
}

impl<T> Scheduler<T> {
    pub(crate) fn new(slots: u32, pool: BlockPool) -> Self {
        let slots = (0..slots).rev().collect();
        Self { pool, slots, waiting: VecDeque::new(), running: Vec::new(), preemptions: 0 }
    }

    /// A text that is to run, when there is a place and room for it.
    pub(crate) fn add(&mut self, job: T, prompt: Vec<u32>, scope: CacheScope, priority: JobPriority) {
        let turn = WaitingOrder::Fresh(priority);
        let at = self.waiting.partition_point(|other| other.turn <= turn);
        let sequence = Sequence::new(job, prompt, scope);
        self.waiting.insert(at, WaitingSequence { sequence, turn });
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    pub(crate) fn running(&mut self) -> impl Iterator<Item = &mut RunningSequence<T>> {
        self.running.iter_mut()
    }

    /// All jobs, whether they run or wait.
    pub(crate) fn jobs(&mut self) -> impl Iterator<Item = &mut T> {
        let running = self.running.iter_mut().map(|running| &mut running.sequence.job);
        running.chain(self.waiting.iter_mut().map(|waiting| &mut waiting.sequence.job))
    }

    /// The jobs whose texts are not in the cache yet, each with its rows in the step that was planned; nothing for one that waits for
    /// a place.
    pub(crate) fn readers(&mut self) -> impl Iterator<Item = (&mut T, Option<usize>)> {
        let reading = self.running.iter_mut().filter(|running| running.sequence.pending().len() > 1);
        let reading = reading.map(|running| (&mut running.sequence.job, Some(running.rows)));
        reading.chain(self.waiting.iter_mut().map(|waiting| (&mut waiting.sequence.job, None)))
    }

    /// Texts that run and need their next token only.
    pub(crate) fn decoding_count(&self) -> usize {
        self.running.iter().filter(|running| running.sequence.pending().len() == 1).count()
    }

    pub(crate) fn running_count(&self) -> usize {
        self.running.len()
    }

    /// Blocks that are free, or have only what nobody holds.
    pub(crate) fn blocks_available(&self) -> usize {
        self.pool.available()
    }

    /// How often a text had to stop for want of room.
    pub(crate) fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// Takes out the texts whose jobs are over. Their places and blocks are free.
    pub(crate) fn remove(&mut self, is_over: impl Fn(&T) -> bool) -> Vec<T> {
        let mut gone = Vec::new();
        for mut running in self.running.extract_if(.., |running| is_over(&running.sequence.job)) {
            running.sequence.release(&mut self.pool);
            self.slots.push(running.slot);
            gone.push(running.sequence.job);
        }
        for waiting in std::mem::take(&mut self.waiting) {
            if is_over(&waiting.sequence.job) {
                gone.push(waiting.sequence.job);
            } else {
                self.waiting.push_back(waiting);
            }
        }
        gone
    }

    /// Begins what waits, while there are places and room. `begin` is told of each and its place.
    pub(crate) fn admit(&mut self, mut begin: impl FnMut(u32, &T)) {
        while let Some(slot) = self.slots.last().copied() {
            let Some(mut waiting) = self.waiting.pop_front() else { return };
            if !self.find_room(&mut waiting.sequence) {
                return self.waiting.push_front(waiting);
            }
            self.slots.pop();
            begin(slot, &waiting.sequence.job);
            self.running.push(RunningSequence { slot, sequence: waiting.sequence, rows: 0 });
        }
    }

    /// Blocks for all of a text's tokens and the next, and one left over for each text that runs: it would otherwise have to
    /// stop again at once.
    fn find_room(&mut self, sequence: &mut Sequence<T>) -> bool {
        sequence.reuse(&mut self.pool);
        let missing = sequence.blocks_missing(1);
        if self.pool.available() < missing + self.running.len() {
            sequence.release(&mut self.pool);
            return false;
        }
        (0..missing).filter_map(|_| self.pool.allocate()).for_each(|block| sequence.add_block(block));
        true
    }

    /// The next step: a row for every text's next token, so that nobody's answer waits for another's prompt, and at most
    /// `prefill_rows` of texts that have more to compute.
    pub(crate) fn plan(&mut self, prefill_rows: u32) -> BatchPlan {
        self.make_room();
        let wanted: Vec<_> = (0..self.running.len()).map(|at| self.prefill_wanted(at)).collect();
        let mut plan = BatchPlan::default();
        for (running, given) in self.running.iter_mut().zip(share(&wanted, prefill_rows as usize)) {
            let is_decoding = running.sequence.pending().len() == 1;
            running.rows = if is_decoding { 1 } else { given };
            if !is_decoding {
                plan.prefill_rows += count(given);
            }
            running.add_to(&mut plan);
        }
        plan
    }

    /// How many rows a text has to compute beside that of its next token. None where another computes them right now.
    fn prefill_wanted(&mut self, at: usize) -> usize {
        let (earlier, rest) = self.running.split_at_mut(at);
        let Some(running) = rest.first_mut() else { return 0 };
        running.sequence.reuse(&mut self.pool);
        let pending = running.sequence.pending().len();
        let waits = pending > 1
            && self.pool.reuses()
            && earlier.iter().any(|other| running.sequence.can_wait_for(&other.sequence));
        if pending == 1 || waits { 0 } else { pending }
    }

    /// Every text that runs has blocks for its tokens, or does not run any more.
    fn make_room(&mut self) {
        let mut at = 0;
        while let Some(running) = self.running.get_mut(at) {
            if running.sequence.blocks_missing(0) == 0 {
                at += 1;
            } else if let Some(block) = self.pool.allocate() {
                running.sequence.add_block(block);
            } else {
                self.preempt_newest();
            }
        }
    }

    fn preempt_newest(&mut self) {
        let Some(mut newest) = self.running.pop() else { return };
        newest.sequence.release(&mut self.pool);
        self.slots.push(newest.slot);
        self.preemptions += 1;
        // All that were stopped before began later.
        self.waiting.push_front(WaitingSequence { sequence: newest.sequence, turn: WaitingOrder::Preempted });
    }

    /// The step that was planned has run: the cache has its rows. Returns how many of them were of prompts.
    pub(crate) fn finish_step(&mut self) -> usize {
        let mut read = 0;
        for running in &mut self.running {
            let rows = std::mem::take(&mut running.rows);
            read += running.sequence.prompt_rows(rows);
            running.sequence.advance(rows, &mut self.pool);
        }
        read
    }
}

impl<T> RunningSequence<T> {
    /// Adds its rows, and with its last one the wish for what follows.
    fn add_to(&mut self, plan: &mut BatchPlan) {
        let slot = self.slot;
        let (first, blocks) = self.sequence.take_untabled();
        if !blocks.is_empty() {
            plan.tables.push(TableUpdate { slot, first: count(first), blocks: blocks.to_vec() });
        }
        let pending = self.sequence.pending();
        let tokens = pending.iter().take(self.rows);
        let positions = count(self.sequence.cached())..;
        let rows = positions.zip(tokens).map(|(position, &token)| BatchRow { token, slot, position });
        plan.batch.rows.extend(rows);
        if self.rows > 0 && self.rows == pending.len() {
            plan.batch.picks.push(count(plan.batch.rows.len()) - 1);
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
