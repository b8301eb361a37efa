//! What a model takes of a device's memory, counted before anything is loaded.

use super::error::EngineError;
use super::forward::{EngineCapacity, LOGIT_BIASES, network_numbers};
use super::ops::{BLOCK, int8_bytes, split_bytes};
use super::shape::ModelShape;

/// A cache that had to be made smaller still holds so many tokens.
const KV_TOKENS_MIN: u64 = 1024;

/// Bytes that a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryNeeds {
    pub(crate) weights: u64,
    /// What steps compute in.
    pub(crate) working: u64,
    /// The cache for one block of tokens.
    pub(crate) block: u64,
}

/// The memory of a device, as far as models may have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryRoom {
    /// The most that all of them may take; nothing where that is not known.
    pub(crate) most: Option<u64>,
    /// What others have and keep.
    pub(crate) taken: u64,
}

impl MemoryNeeds {
    /// `block` is what the cache takes for one block.
    pub(crate) fn new(shape: &ModelShape, weights: u64, block: u64, capacity: &EngineCapacity) -> Self {
        let (rows, slots) = (u64::from(capacity.rows), u64::from(capacity.slots));
        let columns = u64::from(2 * shape.hidden + shape.qkv() + shape.queries()) + network_numbers(shape);
        // What GPUs have as bytes, too.
        let networks = u64::from(shape.networks());
        let int8 =
            int8_bytes(u64::from(shape.hidden + shape.queries()) + networks * u64::from(shape.feed_forward));
        // Of each slot: its logits, what is changed of them, and its row between the halves of the last layer.
        let picked = u64::from(shape.hidden + shape.queries()) * 4 + int8_bytes(u64::from(shape.queries()));
        let slots = slots
            * (picked
                + u64::from(shape.vocab) * 4
                + u64::from(shape.vocab.min(capacity.context.saturating_add(LOGIT_BIASES))) * 16);
        let rotations = u64::from(capacity.context) * u64::from(shape.head_dim) * 4;
        let working =
            rows * (columns * 4 + int8) + split_bytes(shape, capacity.rows, u64::MAX) + slots + rotations;
        Self { weights, working, block }
    }

    /// All of it, with a cache of so many blocks.
    pub(crate) fn total(&self, blocks: u32) -> u64 {
        self.weights + self.working + self.block * u64::from(blocks)
    }

    /// How many of the blocks that are wanted a device has room for.
    ///
    /// # Errors
    /// There is room for too few; `context` are needed in any case where that is stated.
    pub(crate) fn blocks_within(
        &self,
        room: MemoryRoom,
        blocks: u32,
        context: Option<u32>,
    ) -> Result<u32, EngineError> {
        let MemoryRoom { most, taken } = room;
        let memory = most.map(|most| most.saturating_sub(taken));
        let Some(memory) = memory.filter(|memory| self.total(blocks) > *memory) else { return Ok(blocks) };
        let room = memory.saturating_sub(self.weights + self.working) / self.block.max(1);
        let least =
            context.map_or(KV_TOKENS_MIN, u64::from).div_ceil(u64::from(BLOCK)).min(u64::from(blocks));
        if room >= least {
            return Ok(u32::try_from(room).unwrap_or(blocks));
        }
        Err(EngineError::TooLargeForDevice {
            weights: self.weights,
            working: self.working,
            cache: self.block * least,
            tokens: least * u64::from(BLOCK),
            memory,
            taken,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(memory: u64, context: Option<u32>, expected: Option<u32>) {
        let needs = MemoryNeeds { weights: 1000, working: 200, block: 10 };
        for taken in [0, 5000] {
            let room = MemoryRoom { most: Some(memory + taken), taken };
            assert_eq!(
                needs.blocks_within(room, 100, context).ok(),
                expected,
                "{memory} bytes beside {taken}"
            );
        }
    }

    #[test]
    fn a_cache_has_the_blocks_that_there_is_room_for_and_too_few_are_refused() {
        check(2200, None, Some(100));
        check(2199, None, Some(99));
        check(1850, None, Some(65));
        check(1840, None, Some(64));
        check(1839, None, None);
        check(900, None, None);
        check(1360, Some(256), Some(16));
        check(1359, Some(256), None);
        check(2199, Some(16 * 200), None);
    }

    #[test]
    fn a_device_that_does_not_say_what_it_has_gets_all() {
        let needs = MemoryNeeds { weights: 1000, working: 200, block: 10 };
        assert_eq!(needs.blocks_within(MemoryRoom { most: None, taken: 7 }, 100, None).unwrap(), 100);
    }
}
