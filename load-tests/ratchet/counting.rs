//! An allocator that counts what the gateway's threads ask for. Threads that play its callers and its upstream are left out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts, and leaves the work to the system's allocator.
pub(crate) struct CountingAllocator;

static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

/// What has been asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocations {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl Allocations {
    /// Since the process began.
    pub(crate) fn so_far() -> Allocations {
        Allocations { count: COUNT.load(Ordering::SeqCst), bytes: BYTES.load(Ordering::SeqCst) }
    }
}

impl Sub for Allocations {
    type Output = Allocations;

    fn sub(self, before: Allocations) -> Allocations {
        Allocations { count: self.count - before.count, bytes: self.bytes - before.bytes }
    }
}

/// From here on this thread is none of the gateway's.
pub(crate) fn leave_out_this_thread() {
    IS_LEFT_OUT.set(true);
}

fn count(bytes: usize) {
    // A thread that ends has no flag any more; what it still asks for is counted.
    if !IS_LEFT_OUT.try_with(Cell::get).unwrap_or(false) {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator with what it came with; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps `alloc`'s promises, which are the same there.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: as above; the pointer came from the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
