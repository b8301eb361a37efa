//! The task that deletes old episodes, and learns from finished ones how many turns an episode usually takes.
//!
//! The learned numbers are not stored on their own. They are computed from the episodes in the store, which all replicas
//! share. So they are there after a start, and fade as old episodes are deleted.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::{Instant, sleep_until, timeout};

use stint_sessions::agent::{EpisodeEnding, EpisodeLength, EpisodesError, TurnObservation, TurnStatistics};
use stint_types::tasks::Tasks;
use stint_types::units::Timestamp;

use super::inner::EpisodeManagerInner;

/// How often the latest episodes are looked at, and how many of them.
const LEARN_EVERY: Duration = Duration::from_secs(30);
const LENGTHS_MAX: u32 = 2_000;
/// Episodes deleted at once: settlements may wait for it. Where there were so many, more are deleted soon.
const PURGE_MAX: u32 = 64;
const PURGE_EVERY: Duration = Duration::from_secs(60);
const PURGE_PAUSE: Duration = Duration::from_millis(50);
/// How long the store may take for either.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until all ends.
pub(super) async fn run(latest: Arc<ArcSwap<EpisodeManagerInner>>, tasks: Tasks) {
    let stopping = tasks.stopping();
    tokio::pin!(stopping);
    let (mut learn_at, mut purge_at) = (Instant::now(), Instant::now() + PURGE_EVERY);
    loop {
        tokio::select! {
            () = &mut stopping => return,
            () = sleep_until(learn_at) => {
                learn(&latest.load_full()).await;
                learn_at = Instant::now() + LEARN_EVERY;
            }
            () = sleep_until(purge_at) => purge_at = Instant::now() + purge(&latest.load_full()).await,
        }
    }
}

async fn learn(episodes: &EpisodeManagerInner) {
    match with_timeout(episodes.store.episode_lengths(LENGTHS_MAX)).await {
        Ok(courses) => episodes.turns.store(Arc::new(learn_turns(&courses))),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "how long runs took cannot be read");
        }
    }
}

/// Deletes some of what is too old; returns when to look again.
async fn purge(episodes: &EpisodeManagerInner) -> Duration {
    let before = Timestamp::now().before(episodes.settings.expires_after);
    match with_timeout(episodes.store.purge(before, PURGE_MAX)).await {
        Ok(purged) if purged >= u64::from(PURGE_MAX) => return PURGE_PAUSE,
        Ok(_) => {}
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "old runs cannot be deleted");
        }
    }
    PURGE_EVERY
}

async fn with_timeout<T>(answer: impl Future<Output = Result<T, EpisodesError>>) -> Result<T, EpisodesError> {
    let late = |_| EpisodesError::new("the store did not answer in time");
    timeout(PATIENCE, answer).await.map_err(late)?
}

/// How many turns runs take, by these, of which the latest come first. One that goes on, or was made to end, says that it takes
/// at least so many.
fn learn_turns(courses: &[EpisodeLength]) -> TurnStatistics {
    let mut turns = TurnStatistics::default();
    for course in courses.iter().rev() {
        let run =
            TurnObservation { turns: course.steps, is_complete: course.ended == EpisodeEnding::Answered };
        turns.learn(course.class, &course.model, run);
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::catalog::TaskClass;
    use stint_types::units::{Chance, Count};

    #[test]
    fn what_was_made_to_end_says_at_least_so_many() {
        let course = |steps, ended| EpisodeLength {
            class: TaskClass::Agentic,
            model: "one".into(),
            steps: Count(steps),
            ended,
        };
        let answered = (1..=40).map(|steps| course(steps, EpisodeEnding::Answered)).collect::<Vec<_>>();
        let drawn = Chance::new(0.5);
        let free = learn_turns(&answered).cap(TaskClass::Agentic, "one", drawn).unwrap();
        let capped: Vec<_> = (0..40).map(|_| course(10, EpisodeEnding::Capped)).chain(answered).collect();
        let after = learn_turns(&capped).cap(TaskClass::Agentic, "one", drawn).unwrap();
        assert!(free.usual >= Count(18) && after.usual >= free.usual, "{free:?} {after:?}");
    }
}
