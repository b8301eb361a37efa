//! The blocks of the cache: which are free, who holds which, and what the others still have of texts that may come again.
//!
//! A full block is published under all the tokens up to its end, so that a text with the same beginning takes it instead of
//! computing it again. Blocks that nobody holds any more keep their contents until their room is wanted, the longest unused
//! first. A block is found by its own tokens and by the block before it, exactly: no two texts are ever taken for each other.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::ops::BLOCK;

/// The tokens of one block.
pub(crate) type BlockTokens = [u32; BLOCK as usize];

/// Whose texts share their beginnings in the cache: those of the same scope, and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CacheScope(Option<Arc<str>>);

impl CacheScope {
    /// A scope of its own for everybody of this name.
    #[must_use]
    pub fn of(owner: Arc<str>) -> CacheScope {
        CacheScope(Some(owner))
    }
}

/// All that is before a block: the beginning of a scope's texts, or a published block and what was before that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Prefix {
    Start(CacheScope),
    After(u64),
}

/// What a published block has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BlockContent {
    before: Prefix,
    tokens: BlockTokens,
}

#[derive(Debug, Default)]
struct BlockState {
    holders: u32,
    /// What it has, and the number under which it comes before others.
    content: Option<(BlockContent, u64)>,
    /// Since when nobody holds it.
    unheld_since: u64,
}

/// All blocks of the cache.
#[derive(Debug)]
pub(crate) struct BlockPool {
    blocks: Vec<BlockState>,
    /// Those that nobody holds and that have nothing.
    free: Vec<u32>,
    /// Those that nobody holds and that have something, the longest unused first.
    unheld: BTreeMap<u64, u32>,
    published: HashMap<BlockContent, u32>,
    /// Counts contents and releases.
    count: u64,
    reuses: bool,
}

impl BlockPool {
    /// Without `reuses` nothing is published.
    pub(crate) fn new(total: u32, reuses: bool) -> Self {
        Self {
            blocks: (0..total).map(|_| BlockState::default()).collect(),
            free: (0..total).rev().collect(),
            unheld: BTreeMap::new(),
            published: HashMap::new(),
            count: 0,
            reuses,
        }
    }

    /// Whether what is published is found.
    pub(crate) fn reuses(&self) -> bool {
        self.reuses
    }

    /// Blocks that can be had.
    pub(crate) fn available(&self) -> usize {
        self.free.len() + self.unheld.len()
    }

    /// One more block, held by one. What it had is forgotten.
    pub(crate) fn allocate(&mut self) -> Option<u32> {
        let block = self.free.pop().or_else(|| self.forget_oldest())?;
        self.state(block).holders = 1;
        Some(block)
    }

    fn forget_oldest(&mut self) -> Option<u32> {
        let (_, block) = self.unheld.pop_first()?;
        if let Some((content, _)) = self.state(block).content.take() {
            self.published.remove(&content);
        }
        Some(block)
    }

    /// The block that has these tokens after that beginning, and the beginning up to its end.
    pub(crate) fn find(&self, before: &Prefix, tokens: &BlockTokens) -> Option<(u32, Prefix)> {
        let content = BlockContent { before: before.clone(), tokens: *tokens };
        let block = *self.published.get(&content)?;
        let (_, number) = self.blocks.get(block as usize)?.content.as_ref()?;
        Some((block, Prefix::After(*number)))
    }

    /// One more holder of a block that was found.
    pub(crate) fn hold(&mut self, block: u32) {
        let state = self.state(block);
        state.holders += 1;
        if state.holders == 1 {
            let since = state.unheld_since;
            self.unheld.remove(&since);
        }
    }

    /// A block that its holder has filled can be found from now on. Returns the beginning up to its end. Where another block
    /// has the same already, that one stays the one that is found.
    pub(crate) fn publish(&mut self, block: u32, before: &Prefix, tokens: &BlockTokens) -> Prefix {
        if !self.reuses {
            return before.clone();
        }
        if let Some((_, prefix)) = self.find(before, tokens) {
            return prefix;
        }
        self.count += 1;
        let number = self.count;
        let content = BlockContent { before: before.clone(), tokens: *tokens };
        self.published.insert(content.clone(), block);
        self.state(block).content = Some((content, number));
        Prefix::After(number)
    }

    /// One holder less.
    pub(crate) fn release(&mut self, block: u32) {
        self.count += 1;
        let now = self.count;
        let state = self.state(block);
        debug_assert!(state.holders > 0, "a block was given back twice");
        state.holders = state.holders.saturating_sub(1);
        if state.holders > 0 {
            return;
        }
        state.unheld_since = now;
        if state.content.is_some() {
            self.unheld.insert(now, block);
        } else {
            self.free.push(block);
        }
    }

    fn state(&mut self, block: u32) -> &mut BlockState {
        // Only blocks that were handed out come back.
        &mut self.blocks[block as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(first: u32) -> BlockTokens {
        std::array::from_fn(|n| first + u32::try_from(n).unwrap())
    }

    fn start(owner: &str) -> Prefix {
        Prefix::Start(CacheScope::of(owner.into()))
    }

    #[test]
    fn blocks_are_taken_one_by_one_until_there_are_none_and_come_back() {
        let mut pool = BlockPool::new(3, true);
        let mut taken: Vec<_> = std::iter::from_fn(|| pool.allocate()).collect();
        assert_eq!((taken.len(), pool.available()), (3, 0));
        pool.release(taken[1]);
        assert_eq!(pool.allocate(), Some(taken[1]));
        taken.iter().for_each(|block| pool.release(*block));
        taken.sort_unstable();
        assert_eq!((taken, pool.available()), (vec![0, 1, 2], 3));
    }

    /// AU-15: the local engine's cache keeps accounts apart too.
    #[test]
    fn a_block_is_found_by_all_the_tokens_up_to_its_end_and_by_its_owner_alone() {
        let mut pool = BlockPool::new(4, true);
        let (first, second) = (pool.allocate().unwrap(), pool.allocate().unwrap());
        let after_first = pool.publish(first, &start("a"), &tokens(0));
        let after_second = pool.publish(second, &after_first, &tokens(50));
        assert_eq!(pool.find(&start("a"), &tokens(0)), Some((first, after_first.clone())));
        assert_eq!(pool.find(&after_first, &tokens(50)), Some((second, after_second)));
        assert_eq!(pool.find(&start("a"), &tokens(50)), None);
        assert_eq!(pool.find(&start("b"), &tokens(0)), None);
        assert_eq!(pool.find(&Prefix::Start(CacheScope::default()), &tokens(0)), None);
    }

    #[test]
    fn what_nobody_holds_stays_until_its_room_is_wanted_the_longest_unused_first() {
        let mut pool = BlockPool::new(2, true);
        let blocks = [pool.allocate().unwrap(), pool.allocate().unwrap()];
        pool.publish(blocks[0], &start("a"), &tokens(0));
        pool.publish(blocks[1], &start("a"), &tokens(100));
        pool.release(blocks[0]);
        pool.release(blocks[1]);
        assert_eq!(pool.available(), 2);
        // The first is used once more, so the second is the longest unused.
        let (again, _) = pool.find(&start("a"), &tokens(0)).unwrap();
        pool.hold(again);
        pool.release(again);
        assert_eq!(pool.allocate(), Some(blocks[1]));
        assert_eq!(pool.find(&start("a"), &tokens(100)), None);
        assert!(pool.find(&start("a"), &tokens(0)).is_some());
    }

    #[test]
    fn of_two_blocks_with_the_same_tokens_one_is_found_and_the_other_is_free_when_let_go() {
        let mut pool = BlockPool::new(2, true);
        let blocks = [pool.allocate().unwrap(), pool.allocate().unwrap()];
        let prefixes = blocks.map(|block| pool.publish(block, &start("a"), &tokens(0)));
        assert_eq!(prefixes[0], prefixes[1]);
        pool.release(blocks[1]);
        assert_eq!(pool.allocate(), Some(blocks[1]));
        assert!(pool.find(&start("a"), &tokens(0)).is_some());
    }

    #[test]
    fn without_reuse_nothing_is_found() {
        let mut pool = BlockPool::new(1, false);
        let block = pool.allocate().unwrap();
        pool.publish(block, &start("a"), &tokens(0));
        assert_eq!(pool.find(&start("a"), &tokens(0)), None);
    }
}
