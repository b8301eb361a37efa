//! Watches whether the machine's clock jumps. Windows of limits begin and end by it and never go backwards, so that after a jump some
//! may be spent for as long as the jump was. They are left as they are: what would free them could free them twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::units::Timestamp;

/// How often it is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(15);
/// Less than this is how clocks are set right in the ordinary way, in milliseconds.
const JUMP_MIN: i64 = 2 * 60 * 1000;

/// Logs a warning for each jump, until shutdown, and shows what they come to.
pub(super) fn watch_clock(tasks: &Tasks, metrics: Arc<Metrics>) {
    let stopping = tasks.stopping();
    let mut clock = ClockComparison::new(Timestamp::now(), Instant::now());
    tasks.spawn(async move {
        tokio::pin!(stopping);
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
            let jump = clock.jump(Timestamp::now(), Instant::now());
            if let Some(jump) = jump {
                metrics.server.clock_jumps.add(to_seconds(jump));
                warn(jump);
            }
        }
    });
}

fn warn(jump: i64) {
    let by = Duration::from_millis(jump.unsigned_abs());
    let way = if jump < 0 { "backwards" } else { "forwards" };
    tracing::warn!(
        ?by,
        way,
        "the machine's clock has jumped, or the machine slept: limits that count by the minute to the month may refuse for as long; \
         set the clock right, then restart, which frees their windows"
    );
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of centuries are exact")]
fn to_seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// The clock of the wall beside one that only goes on.
struct ClockComparison {
    wall: Timestamp,
    steady: Instant,
}

impl ClockComparison {
    fn new(wall: Timestamp, steady: Instant) -> ClockComparison {
        ClockComparison { wall, steady }
    }

    /// By how many milliseconds the wall's clock has jumped since the last look, where it has.
    fn jump(&mut self, wall: Timestamp, steady: Instant) -> Option<i64> {
        let passed = i64::try_from(steady.duration_since(self.steady).as_millis()).unwrap_or(i64::MAX);
        let jump = wall.0.saturating_sub(self.wall.0).saturating_sub(passed);
        (self.wall, self.steady) = (wall, steady);
        (jump.abs() >= JUMP_MIN).then_some(jump)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_jump_of_more_than_minutes_is_seen_once() {
        let began = Instant::now();
        let mut clock = ClockComparison::new(Timestamp(1_000_000_000), began);
        let mut check = |wall: i64, steady, expected| {
            let steady = began + Duration::from_secs(steady);
            assert_eq!(clock.jump(Timestamp(1_000_000_000 + wall * 1000), steady), expected, "{wall}");
        };
        check(15, 15, None);
        // Late, with a clock that is set right a little.
        check(160, 100, None);
        check(160 - 3_600, 100, Some(-3_600_000));
        check(175 - 3_600, 115, None);
        check(190 + 7_200, 130, Some(10_800_000));
        check(205 + 7_200, 145, None);
    }
}
