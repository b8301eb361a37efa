//! Random texts come, grow, are cut off and end; nothing is lost and nobody is forgotten.

use std::collections::HashSet;

use super::*;
use crate::ops::BLOCK;

const CHUNK: u32 = 24;

/// What a text is for: its number, and how long it is to be in the end.
#[derive(Debug, Clone)]
struct Job {
    name: u32,
    length: usize,
    made: usize,
    is_cancelled: bool,
}

/// A scheduler with a device that remembers what was written where.
struct World {
    scheduler: Scheduler<Job>,
    /// Of every slot, the table of blocks.
    tables: Vec<Vec<u32>>,
    /// Of every position of every block, the tokens of its text up to there.
    cache: Vec<Vec<u32>>,
    blocks: usize,
    rows_run: usize,
    finished: Vec<u32>,
}

/// The token that follows these: anything that depends on all of them.
fn next_token(tokens: &[u32]) -> u32 {
    tokens.iter().fold(7u32, |sum, token| sum.wrapping_mul(31).wrapping_add(*token)) % 5
}

impl World {
    fn new(slots: u32, blocks: u32, reuses: bool) -> Self {
        Self {
            scheduler: Scheduler::new(slots, BlockPool::new(blocks, reuses)),
            tables: vec![Vec::new(); slots as usize],
            cache: vec![Vec::new(); (blocks * BLOCK) as usize],
            blocks: blocks as usize,
            rows_run: 0,
            finished: Vec::new(),
        }
    }

    fn add(&mut self, name: u32, owner: &str, prompt: &[u32], more: usize) {
        let job = Job { name, length: more, made: 0, is_cancelled: false };
        self.scheduler.add(job, prompt.to_vec(), CacheScope::of(owner.into()), JobPriority::Interactive);
    }

    fn cancel(&mut self, name: u32) {
        self.scheduler.jobs().filter(|job| job.name == name).for_each(|job| job.is_cancelled = true);
    }

    /// One turn of the worker. Returns the names of those that got a token.
    fn turn(&mut self) -> Vec<u32> {
        self.scheduler.remove(|job| job.is_cancelled);
        self.scheduler.admit(|_, _| ());
        let plan = self.scheduler.plan(CHUNK);
        assert!(plan.prefill_rows <= CHUNK);
        for update in &plan.tables {
            let table = &mut self.tables[update.slot as usize];
            table.truncate(update.first as usize);
            assert_eq!(table.len(), update.first as usize, "the table has no hole");
            table.extend(&update.blocks);
        }
        self.run_rows(&plan);
        self.scheduler.finish_step();
        let picked: HashSet<u32> =
            plan.batch.picks.iter().map(|pick| plan.batch.rows[*pick as usize].slot).collect();
        let mut names = Vec::new();
        for running in self.scheduler.running().filter(|running| picked.contains(&running.slot)) {
            let token = next_token(&running.sequence.tokens_for_test());
            running.sequence.push(token);
            running.sequence.job.made += 1;
            names.push(running.sequence.job.name);
        }
        let is_done = |job: &Job| job.is_done();
        self.finished.extend(self.scheduler.remove(is_done).iter().map(|job| job.name));
        names
    }

    /// Every row writes its own cell, and finds its whole text in the cells of its table.
    fn run_rows(&mut self, plan: &BatchPlan) {
        self.rows_run += plan.batch.rows.len();
        let cell = |tables: &[Vec<u32>], slot: u32, position: u32| {
            (tables[slot as usize][(position / BLOCK) as usize] * BLOCK + position % BLOCK) as usize
        };
        for row in &plan.batch.rows {
            let mut text = match row.position {
                0 => Vec::new(),
                position => self.cache[cell(&self.tables, row.slot, position - 1)].clone(),
            };
            assert_eq!(text.len(), row.position as usize, "what is before it is its own text");
            text.push(row.token);
            let own = cell(&self.tables, row.slot, row.position);
            self.cache[own] = text;
        }
        for running in self.scheduler.running().filter(|running| running.rows > 0) {
            let done = running.sequence.cached() + running.rows;
            let tokens = running.sequence.tokens_for_test();
            let last = cell(&self.tables, running.slot, u32::try_from(done - 1).unwrap());
            assert_eq!(self.cache[last], tokens[..done], "the cache has the text and no other");
        }
    }

    fn run_to_the_end(&mut self, turns_max: usize) {
        for _ in 0..turns_max {
            if self.scheduler.is_idle() {
                break;
            }
            self.turn();
        }
        assert!(self.scheduler.is_idle(), "all end");
        assert_eq!(self.scheduler.blocks_available(), self.blocks, "no block is left behind");
    }
}

impl Job {
    fn is_done(&self) -> bool {
        self.made >= self.length
    }
}

fn prompt(seed: u32, length: u32) -> Vec<u32> {
    (0..length).map(|n| (n * 7 + seed) % 90).collect()
}

fn begun(world: &mut World, turns: usize) -> HashSet<u32> {
    (0..turns).flat_map(|_| world.turn()).collect()
}

#[test]
fn eight_chats_that_may_each_fill_the_cache_all_begin_before_any_ends() {
    let mut world = World::new(8, 64, true);
    (0..8).for_each(|n| world.add(n, "a", &prompt(n, 30), 900));
    assert_eq!(begun(&mut world, 20).len(), 8);
    assert!(world.finished.is_empty());
    world.run_to_the_end(20_000);
    assert!(world.scheduler.preemptions() > 0);
    assert_eq!(world.finished[0], 0, "who began first ends first");
}

#[test]
fn who_had_to_stop_comes_back_before_who_has_not_begun() {
    let mut world = World::new(3, 8, false);
    (0..2).for_each(|n| world.add(n, "a", &prompt(n, 20), 60));
    begun(&mut world, 20);
    world.add(9, "a", &prompt(9, 20), 20);
    world.run_to_the_end(1_000);
    assert!(world.scheduler.preemptions() > 0);
    assert_eq!(world.finished, [0, 1, 9]);
}

#[test]
fn equal_prompts_that_come_together_are_computed_once() {
    let mut world = World::new(8, 64, true);
    (0..4).for_each(|n| world.add(n, "a", &prompt(0, 100), 1));
    world.run_to_the_end(100);
    // Six whole blocks once, and of each the four tokens that fill no block.
    assert_eq!(world.rows_run, 96 + 4 * 4);
    let mut world = World::new(8, 64, true);
    (0..4).for_each(|n| world.add(n, ["a", "b", "c", "d"][n as usize], &prompt(0, 100), 1));
    world.run_to_the_end(100);
    assert_eq!(world.rows_run, 400, "accounts share nothing");
}

#[test]
fn the_next_turn_of_a_conversation_computes_what_is_new_alone() {
    let mut world = World::new(2, 64, true);
    let first = prompt(0, 64);
    world.add(0, "a", &first, 40);
    world.run_to_the_end(100);
    let before = world.rows_run;
    let mut second = first;
    while second.len() < 64 + 40 {
        second.push(next_token(&second));
    }
    second.extend(prompt(5, 10));
    world.add(1, "a", &second, 1);
    world.run_to_the_end(100);
    // Of 114 tokens, six blocks are there; the seventh was not full.
    assert_eq!(world.rows_run - before, 114 - 96);
}

#[test]
fn a_short_prompt_is_answered_while_a_long_one_before_it_is_read_and_others_write() {
    let mut world = World::new(6, 200, true);
    (0..2).for_each(|n| world.add(n, "a", &prompt(n, 4), 400));
    begun(&mut world, 2);
    world.add(2, "b", &prompt(50, 1_500), 1);
    world.turn();
    (3..5).for_each(|n| world.add(n, "c", &prompt(n, 20), 5));
    // Two turns for each, of half the rows.
    let begun = begun(&mut world, 6);
    assert!([3, 4].iter().all(|name| begun.contains(name)) && !begun.contains(&2), "{begun:?}");
    // The long one had the other half all the while.
    let turns = (0..).take_while(|_| !world.turn().contains(&2)).count();
    assert!(turns < 1_500 / (CHUNK as usize / 2), "{turns}");
    world.run_to_the_end(2_000);
}

/// Ten thousand requests of all sizes from three accounts; many are cut off.
#[test]
fn ten_thousand_mixed_requests_with_cancels_leave_no_block_behind() {
    let mut state = 12_345u64;
    let mut below = |most: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((state >> 33) % u64::from(most)).unwrap()
    };
    let mut world = World::new(6, 20, true);
    let mut next = 0;
    while next < 10_000 {
        for _ in 0..below(4) {
            let owner = ["a", "b", "c"][below(3) as usize];
            let length = 1 + below(120);
            world.add(next, owner, &prompt(below(4), length), 1 + below(60) as usize);
            next += 1;
        }
        if below(3) == 0 && next > 0 {
            world.cancel(next - 1 - below(next.min(12)));
        }
        (0..below(6)).for_each(|_| drop(world.turn()));
        // As the engine's queue does, so that the end is not one long wait.
        while world.scheduler.jobs().count() > 40 {
            world.turn();
        }
    }
    world.run_to_the_end(100_000);
    assert!(world.scheduler.preemptions() > 100);
}

proptest::proptest! {
    #[test]
    fn whoever_comes_is_served_and_what_they_held_is_free(
        slots in 1u32..6, spare in 0u32..30, reuses: bool,
        jobs in proptest::collection::vec((0u32..3, 1u32..100, 1usize..80, 0u32..8, proptest::bool::weighted(0.2)), 1..24),
    ) {
        // Every job fits alone, as the engine sees to.
        let mut world = World::new(slots, 12 + spare, reuses);
        let mut kept = Vec::new();
        for (name, (seed, length, more, turns, cancels)) in (0u32..).zip(jobs) {
            world.add(name, ["a", "b"][seed as usize % 2], &prompt(seed, length), more);
            (0..turns).for_each(|_| drop(world.turn()));
            if cancels { world.cancel(name) } else { kept.push(name) }
        }
        world.run_to_the_end(20_000);
        world.finished.sort_unstable();
        kept.retain(|name| !world.finished.contains(name));
        assert!(kept.is_empty(), "{kept:?} were forgotten");
    }
}
