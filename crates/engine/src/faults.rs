//! Faults that tests inject into an engine that runs, to see what becomes of it and of its callers.

use std::time::Duration;

use super::forward::EngineModel;

/// What is to happen to an engine, before its next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// Its device is lost.
    LoseDevice,
    /// Its thread panics.
    Panic,
    /// Its thread does nothing for so long.
    Hang(Duration),
}

impl InjectedFault {
    /// It happens now, on the engine's thread.
    #[expect(clippy::panic, reason = "a panic is what the test asks for")]
    pub(crate) fn happen(self, model: &EngineModel) {
        match self {
            InjectedFault::LoseDevice => model.lose_device(),
            InjectedFault::Panic => panic!("a test wants a panic"),
            InjectedFault::Hang(time) => std::thread::sleep(time),
        }
    }
}
