//! The thread that owns the model: takes orders in, runs step after step, hands tokens out.
//!
//! It never waits for a reader, and looks for readers that left before every step: what they held is
//! free before the next step begins.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use tokio::sync::mpsc;

use super::blocks::Blocks;
use super::error::EngineError;
use super::forward::{Extent, Model};
use super::handle::{Event, Shared};
use super::ops::{BLOCK, Drawn, Sampling, slot_words};
use super::phases::Machine;
use super::schedule::{Progress, schedule};

/// What reaches the thread.
pub(crate) enum Message {
    Order(Box<Order>),
    /// Nothing but a reason to look up.
    Wake,
}

/// A job that was accepted.
pub(crate) struct Order {
    pub(crate) prompt: Vec<u32>,
    pub(crate) sampling: Sampling,
    pub(crate) machine: Machine,
    /// Positions that it may come to occupy.
    pub(crate) needed: usize,
    pub(crate) out: mpsc::Sender<Event>,
}

struct Running {
    progress: Progress,
    machine: Machine,
    blocks: Vec<u32>,
    out: mpsc::Sender<Event>,
    /// Its last word, once it is over.
    last: Option<Event>,
}

pub(crate) struct Worker {
    model: Model,
    blocks: Blocks,
    slots: Vec<u32>,
    prefill_chunk: u32,
    waiting: VecDeque<Box<Order>>,
    running: Vec<Running>,
    inbox: Receiver<Message>,
    shared: Arc<Shared>,
}

impl Worker {
    pub(crate) fn new(
        model: Model,
        extent: Extent,
        prefill_chunk: u32,
        inbox: Receiver<Message>,
        shared: Arc<Shared>,
    ) -> Self {
        let blocks = Blocks::new(extent.blocks);
        let slots = (0..extent.slots).rev().collect();
        let prefill_chunk = prefill_chunk.min(extent.rows - extent.slots);
        let (waiting, running) = (VecDeque::new(), Vec::new());
        Self { model, blocks, slots, prefill_chunk, waiting, running, inbox, shared }
    }

    /// Until it is stopped, the device fails, or nobody holds a handle and all is done.
    pub(crate) fn run(mut self) {
        let reason = loop {
            if !self.receive() {
                break EngineError::Stopped;
            }
            self.sweep();
            self.admit();
            if self.running.is_empty() {
                continue;
            }
            if let Err(error) = self.step() {
                break error;
            }
            self.sweep();
        };
        self.shared.stopping.store(true, Ordering::Release);
        self.fail(&reason);
    }

    /// Takes in what has come; waits only when there is nothing to do. False when it is time to end.
    fn receive(&mut self) -> bool {
        if self.running.is_empty() && self.waiting.is_empty() {
            match self.inbox.recv() {
                Ok(message) => self.accept(message),
                Err(_) => return false,
            }
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.accept(message);
        }
        !self.shared.stopping.load(Ordering::Acquire)
    }

    fn accept(&mut self, message: Message) {
        if let Message::Order(order) = message {
            self.waiting.push_back(order);
        }
    }

    /// Lets go of all that is over or that nobody reads any more. Last words are said at the end: who
    /// hears one may count on its place being free.
    fn sweep(&mut self) {
        let waiting = self.waiting.len();
        self.waiting.retain(|order| !order.out.is_closed());
        let mut gone = waiting - self.waiting.len();
        let over = |running: &mut Running| running.last.is_some() || running.out.is_closed();
        let mut last_words = Vec::new();
        for running in self.running.extract_if(.., over) {
            self.blocks.give_back(running.blocks);
            self.slots.push(running.progress.slot);
            gone += 1;
            last_words.extend(running.last.map(|last| (running.out, last)));
        }
        self.shared.held.fetch_sub(gone, Ordering::AcqRel);
        self.publish();
        for (out, last) in last_words {
            let _ = out.try_send(last);
        }
    }

    fn publish(&self) {
        self.shared.running.store(self.running.len(), Ordering::Release);
        self.shared.blocks_free.store(self.blocks.free(), Ordering::Release);
    }

    /// Begins what waits, oldest first, while there are slots and blocks. Nobody overtakes: a long
    /// job would otherwise never find enough blocks free.
    fn admit(&mut self) {
        while let Some(order) = self.waiting.front() {
            let count = order.needed.div_ceil(BLOCK as usize);
            let Some(slot) = self.slots.last().copied() else { break };
            let Some(blocks) = self.blocks.take(count) else { break };
            let Some(order) = self.waiting.pop_front() else { break };
            self.slots.pop();
            let Order { prompt, sampling, machine, out, .. } = *order;
            self.model.place(slot, &slot_words(&machine, sampling), &blocks);
            let progress = Progress { slot, prompt, cached: 0 };
            self.running.push(Running { progress, machine, blocks, out, last: None });
        }
        self.publish();
    }

    fn step(&mut self) -> Result<(), EngineError> {
        let progress: Vec<_> = self.running.iter().map(|running| &running.progress).collect();
        let (batch, given) = schedule(&progress, self.prefill_chunk);
        let drawn = self.model.step(&batch)?;
        let mut prefilled = 0;
        for (running, rows) in self.running.iter_mut().zip(given) {
            let before = running.progress.cached;
            running.progress.cached += rows;
            if (before as usize) < running.progress.prompt.len() {
                prefilled += u64::from(rows);
            }
        }
        self.shared.prefilled.fetch_add(prefilled, Ordering::Relaxed);
        self.shared.decoded.fetch_add(drawn.len() as u64, Ordering::Relaxed);
        for (pick, drawn) in batch.picks.iter().zip(drawn) {
            let slot = batch.rows.get(*pick as usize).map(|row| row.slot);
            let running = self.running.iter_mut().find(|running| Some(running.progress.slot) == slot);
            if let Some(running) = running {
                running.hand_out(drawn);
            }
        }
        Ok(())
    }

    fn fail(&mut self, reason: &EngineError) {
        while let Ok(message) = self.inbox.try_recv() {
            self.accept(message);
        }
        for running in &mut self.running {
            running.last.get_or_insert_with(|| Event::Failed(reason.clone()));
        }
        self.shared.held.fetch_sub(self.waiting.len(), Ordering::AcqRel);
        for order in self.waiting.drain(..) {
            let _ = order.out.try_send(Event::Failed(reason.clone()));
        }
        self.sweep();
    }
}

impl Running {
    /// Sends a token on. The budget's specification replays it: the device may not differ from it.
    fn hand_out(&mut self, drawn: Drawn) {
        let banned = self.machine.banned().contains(&Some(drawn.sampled));
        let Some(step) = self.machine.take(drawn.sampled) else { return };
        let agrees = step.id == drawn.id && Some(step.role) == drawn.role;
        if banned || !agrees || self.machine.phase() as u32 != drawn.phase {
            self.last = Some(Event::Failed(EngineError::Strayed));
            return;
        }
        let _ = self.out.try_send(Event::Step(step));
        self.last = self.machine.done().map(Event::Done);
    }
}
