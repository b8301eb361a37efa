//! Which rows run in the next step. Pure: sequences in, a batch out.
//!
//! Every sequence past its prompt gets one row, so nobody's answer waits for another's prompt; what
//! is left of the step goes to prompts, oldest first, as much of each as fits.

use super::forward::{BatchRow, ForwardBatch};
use super::ops::LAST_SAMPLED;

/// Where a sequence stands, as far as scheduling cares.
#[derive(Debug, Clone)]
pub(crate) struct SequenceProgress {
    pub(crate) slot: u32,
    pub(crate) prompt: Vec<u32>,
    /// Positions that are in the cache.
    pub(crate) cached: u32,
}

impl SequenceProgress {
    fn prompt_left(&self) -> &[u32] {
        self.prompt.get(self.cached as usize..).unwrap_or_default()
    }
}

/// The next batch, and for each sequence how many rows it gets.
pub(crate) fn schedule(sequences: &[&SequenceProgress], prefill_chunk: u32) -> (ForwardBatch, Vec<u32>) {
    let mut batch = ForwardBatch::default();
    let mut given = Vec::with_capacity(sequences.len());
    let mut left = prefill_chunk as usize;
    for sequence in sequences {
        let prompt = sequence.prompt_left();
        let rows = &prompt[..prompt.len().min(left)];
        left -= rows.len();
        let mut position = sequence.cached;
        let last = [LAST_SAMPLED];
        let decoding = prompt.is_empty();
        for &token in if decoding { &last[..] } else { rows } {
            batch.rows.push(BatchRow { token, slot: sequence.slot, position });
            position += 1;
        }
        if decoding || (!rows.is_empty() && rows.len() == prompt.len()) {
            batch.picks.push(count(batch.rows.len()) - 1);
        }
        given.push(position - sequence.cached);
    }
    (batch, given)
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequences as (prompt length, cached), and the batch as `slot:position` with `!` at picks.
    fn check(sequences: &[(u32, u32)], chunk: u32, expected: &str) {
        let progress = |(slot, (prompt, cached)): (u32, &(u32, u32))| SequenceProgress {
            slot,
            prompt: (0..*prompt).map(|n| n + 100).collect(),
            cached: *cached,
        };
        let sequences: Vec<_> = (0..).zip(sequences).map(progress).collect();
        let (batch, given) = schedule(&sequences.iter().collect::<Vec<_>>(), chunk);
        let row = |(at, row): (u32, &BatchRow)| {
            let pick = if batch.picks.contains(&at) { "!" } else { "" };
            let decoding = row.token == LAST_SAMPLED;
            assert_eq!(decoding, row.position as usize >= sequences[row.slot as usize].prompt.len());
            assert!(decoding || row.token == row.position + 100);
            format!("{}:{}{pick}", row.slot, row.position)
        };
        let rows: Vec<_> = (0..).zip(&batch.rows).map(row).collect();
        assert_eq!(rows.join(" "), expected);
        assert_eq!(given.iter().sum::<u32>() as usize, batch.rows.len());
    }

    #[test]
    fn a_prompt_that_fits_runs_whole_and_picks_its_last_row() {
        check(&[(3, 0)], 8, "0:0 0:1 0:2!");
        check(&[(3, 0)], 3, "0:0 0:1 0:2!");
    }

    #[test]
    fn a_long_prompt_runs_in_chunks_without_picks_before_its_end() {
        check(&[(5, 0)], 2, "0:0 0:1");
        check(&[(5, 2)], 2, "0:2 0:3");
        check(&[(5, 4)], 2, "0:4!");
    }

    #[test]
    fn those_past_their_prompts_go_on_while_others_are_prefilled() {
        check(&[(3, 3), (4, 0), (2, 7), (4, 0)], 6, "0:3! 1:0 1:1 1:2 1:3! 2:7! 3:0 3:1");
        check(&[(4, 0), (3, 5)], 2, "0:0 0:1 1:5!");
        check(&[(4, 0), (4, 0)], 4, "0:0 0:1 0:2 0:3!");
    }
}
