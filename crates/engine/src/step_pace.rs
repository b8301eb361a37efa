//! How many rows of prompts a step may have beside the answers that go on, by how long steps were found to take. Only computes.

use std::time::Duration;

use super::scheduler::BatchPlan;

/// A step with rows of prompts may take so many times one without.
const SLOWDOWN_MAX: f64 = 2.0;

/// No step is made shorter than this: nobody sees such a pause, and small chunks cost more for each row.
const STEP_MIN: f64 = 0.020;

/// How much the newest measurement weighs.
const WEIGHT: f64 = 0.3;

/// The kernels compute so many rows at the cost of one.
const ROWS_TOGETHER: u32 = 4;

/// What is known of the time that steps take, in seconds.
#[derive(Debug)]
pub(crate) struct StepPace {
    /// Steps of so many texts' next tokens and nothing else, by their number.
    decode: Vec<Option<f64>>,
    /// What a row of a prompt adds.
    row: f64,
    rows_max: u32,
}

impl StepPace {
    /// Where a step of a single row takes so long, and a step has room for `rows_max` rows of prompts.
    pub(crate) fn new(single: Duration, rows_max: u32) -> Self {
        let single = single.as_secs_f64();
        Self { decode: vec![None, Some(single)], row: single, rows_max }
    }

    /// The most rows of prompts beside the next tokens of so many texts. Beside none they are as many as there is room for.
    pub(crate) fn prefill_rows(&self, decoding: usize) -> u32 {
        if decoding == 0 {
            return self.rows_max;
        }
        let alone = self.decode_step(decoding);
        let spare = (alone * SLOWDOWN_MAX).max(STEP_MIN) - alone;
        let fitting = (spare / self.row.max(1e-9)).min(f64::from(self.rows_max));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to `rows_max`")]
        let fitting = fitting as u32;
        let decoding = u32::try_from(decoding).unwrap_or(u32::MAX);
        // All rows of the step together fill whole groups.
        let total = decoding.saturating_add(fitting);
        let rows = (total - total % ROWS_TOGETHER).saturating_sub(decoding);
        rows.max(ROWS_TOGETHER).min(self.rows_max)
    }

    /// A step took so long.
    pub(crate) fn record(&mut self, plan: &BatchPlan, took: Duration) {
        let (took, prefill) = (took.as_secs_f64(), plan.prefill_rows);
        let decoding = plan.batch.rows.len().saturating_sub(prefill as usize);
        if prefill > 0 {
            let alone = if decoding == 0 { 0.0 } else { self.decode_step(decoding) };
            let row = (took - alone).max(0.0) / f64::from(prefill);
            self.row += WEIGHT * (row - self.row);
        } else if decoding > 0 {
            if self.decode.len() <= decoding {
                self.decode.resize(decoding + 1, None);
            }
            let average = self.decode[decoding].get_or_insert(took);
            *average += WEIGHT * (took - *average);
        }
    }

    /// A step of so many next tokens; where there was none yet, what the nearest smaller one took.
    fn decode_step(&self, decoding: usize) -> f64 {
        let known = self.decode.iter().take(decoding + 1).rev();
        known.flatten().next().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::{BatchRow, ForwardBatch};

    const ROW: BatchRow = BatchRow { token: 0, slot: 0, position: 0 };

    fn record(pace: &mut StepPace, decoding: usize, prefill: u32, millis: f64) {
        let batch = ForwardBatch { rows: vec![ROW; decoding + prefill as usize], picks: vec![] };
        let plan = BatchPlan { batch, prefill_rows: prefill, ..BatchPlan::default() };
        (0..40).for_each(|_| pace.record(&plan, Duration::from_secs_f64(millis / 1e3)));
    }

    fn pace(single_millis: u64) -> StepPace {
        StepPace::new(Duration::from_millis(single_millis), 128)
    }

    #[test]
    fn a_prompt_beside_others_takes_as_many_rows_as_its_step_has_time_for() {
        let mut pace = pace(12);
        record(&mut pace, 4, 0, 48.0);
        record(&mut pace, 4, 8, 48.0 + 8.0 * 11.0);
        // 96 ms, of which 48 are the others': four rows, and all together in groups of four.
        assert_eq!(pace.prefill_rows(4), 4);
        record(&mut pace, 4, 8, 48.0 + 8.0 * 2.9);
        assert_eq!(pace.prefill_rows(4), 16);
    }

    #[test]
    fn a_prompt_alone_takes_all_there_is_room_for() {
        assert_eq!(pace(300).prefill_rows(0), 128);
    }

    #[test]
    fn where_rows_cost_next_to_nothing_all_there_is_room_for_goes_along() {
        let mut pace = pace(10);
        record(&mut pace, 8, 0, 10.0);
        record(&mut pace, 8, 120, 10.0);
        assert_eq!(pace.prefill_rows(8), 128);
    }

    #[test]
    fn a_prompt_goes_on_however_slow_it_is_and_short_steps_need_not_stay_short() {
        let mut slow = pace(300);
        record(&mut slow, 1, 4, 9_000.0);
        assert_eq!(slow.prefill_rows(1), 4);
        let mut quick = pace(1);
        record(&mut quick, 4, 0, 1.0);
        record(&mut quick, 4, 16, 1.0 + 16.0 * 0.2);
        assert_eq!(quick.prefill_rows(4), 92);
    }
}
