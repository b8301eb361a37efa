//! One text in the making: its tokens, how far the cache has them, and the blocks where they are. Knows nothing of others.

use super::block_pool::{BlockPool, BlockTokens, CacheScope, Prefix};
use super::ops::BLOCK;

const BLOCK_LEN: usize = BLOCK as usize;

/// A text, and `job`, what it is made for.
#[derive(Debug)]
pub(crate) struct Sequence<T> {
    pub(crate) job: T,
    scope: CacheScope,
    /// The prompt and all that came after it.
    tokens: Vec<u32>,
    prompt: usize,
    /// Positions that are in the cache.
    cached: usize,
    /// Positions of the prompt that were found in the cache since it began.
    reused: usize,
    /// The most of its positions that were ever in the cache: found again after a preemption, they are its own work.
    reached: usize,
    /// The blocks of all its tokens, in order.
    blocks: Vec<u32>,
    /// How many of its blocks are published or were found, and the beginning that they make up.
    chained: usize,
    chain: Prefix,
    /// How many of its blocks the device knows of.
    tabled: usize,
}

impl<T> Sequence<T> {
    /// One that has not begun.
    pub(crate) fn new(job: T, prompt: Vec<u32>, scope: CacheScope) -> Self {
        Self {
            job,
            chain: Prefix::Start(scope.clone()),
            scope,
            prompt: prompt.len(),
            tokens: prompt,
            cached: 0,
            reused: 0,
            reached: 0,
            blocks: Vec::new(),
            chained: 0,
            tabled: 0,
        }
    }

    /// The tokens that are to be computed.
    pub(crate) fn pending(&self) -> &[u32] {
        self.tokens.get(self.cached..).unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn tokens_for_test(&self) -> Vec<u32> {
        self.tokens.clone()
    }

    pub(crate) fn cached(&self) -> usize {
        self.cached
    }

    /// Positions of the prompt that were found in the cache.
    pub(crate) fn reused(&self) -> usize {
        self.reused
    }

    /// Of so many rows that come next, how many are the prompt's.
    pub(crate) fn prompt_rows(&self, rows: usize) -> usize {
        rows.min(self.prompt.saturating_sub(self.cached))
    }

    /// One more token.
    pub(crate) fn push(&mut self, token: u32) {
        self.tokens.push(token);
    }

    /// How many blocks it lacks for its tokens and `more`.
    pub(crate) fn blocks_missing(&self, more: usize) -> usize {
        (self.tokens.len() + more).div_ceil(BLOCK_LEN).saturating_sub(self.blocks.len())
    }

    pub(crate) fn add_block(&mut self, block: u32) {
        self.blocks.push(block);
    }

    /// The blocks that the device does not know of yet, and the place of the first.
    pub(crate) fn take_untabled(&mut self) -> (usize, &[u32]) {
        let first = std::mem::replace(&mut self.tabled, self.blocks.len());
        (first, self.blocks.get(first..).unwrap_or_default())
    }

    /// Takes from the cache what it has of the tokens that come next. One token is always left to compute: what follows it
    /// has to be known.
    pub(crate) fn reuse(&mut self, pool: &mut BlockPool) {
        while let Some((tokens, before)) = self.next_block() {
            let Some((block, after)) = pool.find(before, tokens) else { return };
            pool.hold(block);
            match self.blocks.get_mut(self.chained) {
                Some(own) => pool.release(std::mem::replace(own, block)),
                None => self.blocks.push(block),
            }
            self.tabled = self.tabled.min(self.chained);
            if self.cached >= self.reached {
                self.reused += self.prompt_rows(BLOCK_LEN);
            }
            self.chained += 1;
            self.cached += BLOCK_LEN;
            self.reached = self.reached.max(self.cached);
            self.chain = after;
        }
    }

    /// The whole block that it computes next, and the beginning before that; none where it is inside of one, or at its last.
    fn next_block(&self) -> Option<(&BlockTokens, &Prefix)> {
        let is_at_border = self.cached == self.chained * BLOCK_LEN;
        let tokens =
            self.pending().first_chunk::<BLOCK_LEN>().filter(|_| self.pending().len() > BLOCK_LEN)?;
        is_at_border.then_some((tokens, &self.chain))
    }

    /// Whether the other computes right now what this one needs next.
    pub(crate) fn can_wait_for(&self, other: &Self) -> bool {
        let at = other.chained * BLOCK_LEN;
        let others = other.tokens.get(at..).and_then(<[u32]>::first_chunk::<BLOCK_LEN>);
        self.next_block().is_some_and(|(tokens, before)| Some(tokens) == others && *before == other.chain)
    }

    /// So many more positions are in the cache. Blocks that are full now can be found by others.
    pub(crate) fn advance(&mut self, rows: usize, pool: &mut BlockPool) {
        self.cached += rows;
        self.reached = self.reached.max(self.cached);
        while self.cached >= (self.chained + 1) * BLOCK_LEN {
            let tokens = self.tokens.get(self.chained * BLOCK_LEN..).and_then(<[u32]>::first_chunk);
            let (Some(tokens), Some(block)) = (tokens, self.blocks.get(self.chained)) else { return };
            self.chain = pool.publish(*block, &self.chain, tokens);
            self.chained += 1;
        }
    }

    /// Gives all its blocks back. What they have may be found again as long as nobody needs their room.
    pub(crate) fn release(&mut self, pool: &mut BlockPool) {
        // The end of a text goes first: a beginning is of use to more.
        self.blocks.drain(..).rev().for_each(|block| pool.release(block));
        (self.cached, self.chained, self.tabled) = (0, 0, 0);
        self.chain = Prefix::Start(self.scope.clone());
    }
}
