//! Keeps the C library's allocator from holding on to memory that load left behind: it would keep most of what was ever freed.
//!
//! The figures are from `make fairness` (docs/measured.md).

use std::fs;
use std::time::Duration;

use stint_types::tasks::Tasks;

use crate::config;

/// Buffers of at least so many bytes are the system's again when they are freed. By itself the library raises this to 32 MiB as such
/// buffers are freed. Smaller ones are used again, which saves the time that fresh pages take.
const MAPPED_MIN: i32 = 4 << 20;
/// What may stay free at the end of each of its heaps, in bytes.
const FREE_END_MAX: i32 = 16 << 20;
/// How often it is looked whether more than that is free.
const PACE: Duration = Duration::from_secs(10);
/// So much more than the least that it had may the process have before free pages are given back, in bytes.
const SLACK: u64 = 8 << 20;
/// Who sets one of these tunes the allocator by hand.
const TUNED_BY: [&str; 3] = ["GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"];

/// Bounds what the allocator keeps, where nobody tunes it by hand. Called before any thread starts.
pub(super) fn bound_free_memory() {
    if TUNED_BY.iter().any(|name| config::environment(name).is_some()) {
        return;
    }
    for (parameter, bytes) in [(libc::M_MMAP_THRESHOLD, MAPPED_MIN), (libc::M_TRIM_THRESHOLD, FREE_END_MAX)] {
        // SAFETY: it sets a number of the allocator's own, under its lock.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}

/// Gives free pages back now and then, until shutdown.
pub(super) fn release_free_memory(tasks: &Tasks) {
    let (stopping, mut least) = (tasks.stopping(), resident().unwrap_or(u64::MAX));
    tasks.spawn(async move {
        tokio::pin!(stopping);
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(PACE) => {}
            }
            // It takes milliseconds where there is much.
            least = tokio::task::spawn_blocking(move || release(least)).await.unwrap_or(least);
        }
    });
}

/// Gives free pages back where the process has much more than its least; what is its least from now on, which is more where what came
/// since is in use.
fn release(least: u64) -> u64 {
    let now = resident().unwrap_or(least);
    if now <= least.saturating_add(SLACK) {
        return least.min(now);
    }
    // SAFETY: it looks at free memory alone, under the allocator's locks.
    unsafe { libc::malloc_trim(0) };
    // What is left is in use, or was mapped meanwhile.
    resident().unwrap_or(now)
}

/// Bytes of the process in memory.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: u64 = 1 << 20;

    /// Other tests allocate at the same time, but not so much.
    #[test]
    fn what_was_freed_between_what_is_kept_is_given_back() {
        let before = resident().unwrap();
        let blocks: Vec<(Vec<u8>, Box<[u8; 64]>)> =
            (0..4096).map(|_| (vec![1; 64 << 10], Box::new([1; 64]))).collect();
        let (large, kept): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
        drop(large);
        assert!(resident().unwrap() > before + 160 * MEGABYTE, "the allocator keeps it");
        let least = release(before);
        assert!(least.max(resident().unwrap()) < before + 96 * MEGABYTE);
        drop(kept);
    }
}
