//! Which blocks of the cache are free. A generation takes all it can ever need before it begins, so that none
//! has to stop halfway for want of them, and gives them back together.

/// The free blocks of the cache.
#[derive(Debug)]
pub(crate) struct Blocks {
    free: Vec<u32>,
    total: u32,
}

impl Blocks {
    pub(crate) fn new(total: u32) -> Self {
        Self { free: (0..total).rev().collect(), total }
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// So many blocks, or none at all.
    pub(crate) fn take(&mut self, count: usize) -> Option<Vec<u32>> {
        let rest = self.free.len().checked_sub(count)?;
        Some(self.free.split_off(rest))
    }

    pub(crate) fn give_back(&mut self, blocks: Vec<u32>) {
        self.free.extend(blocks);
        debug_assert!(self.free.len() <= self.total as usize, "a block was given back twice");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_all_or_none_and_come_back() {
        let mut blocks = Blocks::new(5);
        let first = blocks.take(3).unwrap();
        assert!(blocks.take(3).is_none());
        assert_eq!(blocks.free(), 2);
        let second = blocks.take(2).unwrap();
        let mut all = [first.clone(), second].concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        blocks.give_back(first);
        assert_eq!(blocks.free(), 3);
        assert_eq!(blocks.take(0), Some(vec![]));
    }
}
