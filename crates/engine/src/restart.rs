//! Starts an engine again: the same weights on the same device, on a thread of its own, since a driver may hang in that too.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};

use stint_gguf::Gguf;

use super::error::EngineError;
use super::gpu::{DeviceInfo, Gpu};
use super::handle::{Engine, Settings};
use super::restart_policy::RestartPolicy;
use super::worker_thread::WorkerThread;

/// A start may take so many times as long as the first one, and so much more.
const START_FACTOR: u32 = 4;
const START_MORE: Duration = Duration::from_secs(30);

/// So many threads may hang, each with all that its engine has of the device. Then no other is started.
const HANGING_MAX: usize = 3;

/// Opens the weights again.
pub type WeightsOpener = Box<dyn Fn() -> Result<Gguf, EngineError> + Send + Sync>;

/// All that an engine is opened with.
pub(crate) struct EngineOpener {
    pub(crate) weights: WeightsOpener,
    pub(crate) settings: Settings,
    pub(crate) device: DeviceInfo,
}

impl EngineOpener {
    /// On the device that the first engine had: another one may be too slow, or too small.
    fn open(&self) -> Result<Engine, EngineError> {
        let gguf = (self.weights)()?;
        let gpu = Gpu::open(Some(&self.device.name), self.settings.allow_cpu)?;
        if (&gpu.info.name, gpu.info.kind) != (&self.device.name, self.device.kind) {
            let (expected, found) = (self.device.name.clone(), gpu.info.name.clone());
            return Err(EngineError::OtherDevice { expected, found });
        }
        Engine::start_on(Arc::new(gpu), &gguf, &self.settings)
    }
}

/// Starts engines, and keeps count of what became of those before.
pub(crate) struct Restarter {
    opener: Arc<EngineOpener>,
    pub(crate) policy: RestartPolicy,
    pub(crate) first_start: Duration,
    /// Threads that were given up and have not left.
    hanging: Vec<WorkerThread>,
}

impl Restarter {
    /// The first start took so long.
    pub(crate) fn new(opener: EngineOpener, first_start: Duration) -> Self {
        Self { opener: Arc::new(opener), policy: RestartPolicy::default(), first_start, hanging: Vec::new() }
    }

    /// Begins a start, unless too many threads hang.
    pub(crate) fn begin(&mut self) -> Result<EngineStart, EngineError> {
        self.hanging.retain(|thread| !thread.has_left());
        if self.hanging.len() >= HANGING_MAX {
            return Err(EngineError::TooManyHang(self.hanging.len()));
        }
        let (sender, result) = channel();
        let opener = Arc::clone(&self.opener);
        let thread = WorkerThread::start("engine start", move || {
            // Nobody may want it any more: then it ends.
            let _ = sender.send(opener.open());
        })?;
        let most = self.first_start * START_FACTOR + START_MORE;
        Ok(EngineStart { result, thread, began: Instant::now(), most })
    }

    /// Remembers a thread that may hang.
    pub(crate) fn give_up(&mut self, thread: Option<WorkerThread>) {
        self.hanging.extend(thread.filter(|thread| !thread.has_left()));
    }
}

/// A start that is under way.
pub(crate) struct EngineStart {
    result: Receiver<Result<Engine, EngineError>>,
    thread: WorkerThread,
    began: Instant,
    most: Duration,
}

impl EngineStart {
    /// What has come of it; nothing while it goes on.
    pub(crate) fn poll(&self) -> Option<Result<Engine, EngineError>> {
        match self.result.try_recv() {
            Ok(opened) => Some(opened),
            Err(TryRecvError::Disconnected) => {
                Some(Err(EngineError::Panicked("while it was started".into())))
            }
            Err(TryRecvError::Empty) if self.began.elapsed() > self.most => {
                Some(Err(EngineError::StartTimeout(self.most)))
            }
            Err(TryRecvError::Empty) => None,
        }
    }

    /// The engine, if it is there in time.
    pub(crate) fn wait(self, most: Duration) -> Option<Engine> {
        match self.result.recv_timeout(most) {
            Ok(opened) => opened.ok(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    pub(crate) fn into_thread(self) -> WorkerThread {
        self.thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::DeviceKind;

    /// One whose starts fail.
    fn restarter() -> Restarter {
        let device = DeviceInfo { name: "none".into(), driver: String::new(), kind: DeviceKind::Discrete };
        let weights = Box::new(|| Err(EngineError::NoDevice));
        Restarter::new(EngineOpener { weights, settings: Settings::default(), device }, Duration::ZERO)
    }

    #[test]
    fn while_three_threads_hang_no_other_engine_is_started() {
        let mut restarter = restarter();
        let mut hanging = Vec::new();
        for count in 0..HANGING_MAX {
            assert!(restarter.begin().is_ok(), "{count} threads hang");
            let (release, released) = channel::<()>();
            let hang = move || {
                let _ = released.recv();
            };
            restarter.give_up(Some(WorkerThread::start("hangs", hang).unwrap()));
            hanging.push(release);
        }
        assert!(matches!(restarter.begin(), Err(EngineError::TooManyHang(HANGING_MAX))));
        hanging.pop();
        // A moment passes until it has left.
        while restarter.begin().is_err() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_start_that_fails_says_why() {
        let start = restarter().begin().unwrap();
        let failed = loop {
            if let Some(failed) = start.poll() {
                break failed;
            }
            std::thread::yield_now();
        };
        assert!(matches!(failed, Err(EngineError::NoDevice)));
    }
}
