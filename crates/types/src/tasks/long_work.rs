//! Work of the processor that may take long, such as cutting a text into tokens: it does not hold up what else its thread serves.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Work on so many bytes takes about a millisecond, and is done as it is.
const SHORT_WORK_BYTES: usize = 8 << 10;

/// Does work on so many bytes of text here. Where that takes long, another thread of the runtime serves meanwhile what this one
/// would have.
pub fn run_in_place<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > SHORT_WORK_BYTES && has_other_threads() { block_in_place(work) } else { work() }
}

/// A runtime of one thread has nobody who could step in.
fn has_other_threads() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::super::Tasks;
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn long_work_does_not_hold_up_the_other_tasks_of_its_thread() {
        let (done, is_done) = oneshot::channel();
        let tasks = Tasks::default();
        let spawner = tasks.clone();
        tasks.spawn(async move {
            let (tell, told) = mpsc::sync_channel(1);
            spawner.spawn(async move { tell.send(()).unwrap() });
            let heard = run_in_place(SHORT_WORK_BYTES + 1, || told.recv_timeout(Duration::from_secs(60)));
            done.send(heard.is_ok()).unwrap();
        });
        assert!(is_done.await.unwrap());
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_does_long_work_itself() {
        assert_eq!(run_in_place(usize::MAX, || 7), 7);
    }

    #[test]
    fn long_work_needs_no_runtime() {
        assert_eq!(run_in_place(usize::MAX, || 7), 7);
    }
}
