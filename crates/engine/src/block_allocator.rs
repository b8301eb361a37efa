//! Which blocks of the cache are free. A generation takes all it can ever need before it begins, so that none
//! has to stop halfway for want of them, and gives them back together.

/// The free blocks of the cache.
#[derive(Debug)]
pub(crate) struct BlockAllocator {
    free: Vec<u32>,
    total: u32,
}

impl BlockAllocator {
    pub(crate) fn new(total: u32) -> Self {
        Self { free: (0..total).rev().collect(), total }
    }

    pub(crate) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// So many blocks, or none at all.
    pub(crate) fn allocate(&mut self, count: usize) -> Option<Vec<u32>> {
        let rest = self.free.len().checked_sub(count)?;
        Some(self.free.split_off(rest))
    }

    pub(crate) fn release(&mut self, blocks: Vec<u32>) {
        self.free.extend(blocks);
        debug_assert!(self.free.len() <= self.total as usize, "a block was given back twice");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_all_or_none_and_come_back() {
        let mut blocks = BlockAllocator::new(5);
        let first = blocks.allocate(3).unwrap();
        assert!(blocks.allocate(3).is_none());
        assert_eq!(blocks.free_count(), 2);
        let second = blocks.allocate(2).unwrap();
        let mut all = [first.clone(), second].concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        blocks.release(first);
        assert_eq!(blocks.free_count(), 3);
        assert_eq!(blocks.allocate(0), Some(vec![]));
    }
}
