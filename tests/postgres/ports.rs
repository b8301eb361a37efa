//! Ports that tests name before anybody listens there.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those that the system hands out by itself: another test's connection cannot take one in between.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// A port where nobody listens, and which no other test of this process gets.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    // Processes that run beside one another begin at different places.
    let begin = std::process::id().wrapping_mul(101);
    for _ in 0..COUNT {
        let given = u32::from(GIVEN.fetch_add(1, Ordering::Relaxed));
        let place = u16::try_from(begin.wrapping_add(given) % u32::from(COUNT)).unwrap_or_default();
        let port = FIRST + place;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free")
}
