//! How long each dispatch of a pass takes by the device's own clock: what the benchmark shows of a step.

use std::sync::{Mutex, PoisonError};

use super::Gpu;
use crate::error::EngineError;

/// The most dispatches that are timed.
const DISPATCHES_MAX: u32 = 4095;

/// What timing needs of a device.
pub(super) const FEATURES: wgpu::Features =
    wgpu::Features::TIMESTAMP_QUERY.union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES);

/// The dispatches since the beginning of a pass, in their order.
pub(crate) struct DispatchTimes {
    queries: wgpu::QuerySet,
    labels: Mutex<Vec<String>>,
}

impl DispatchTimes {
    /// Nothing where the device has no such clock.
    pub(crate) fn new(gpu: &Gpu) -> Option<Self> {
        gpu.device.features().contains(FEATURES).then(|| Self {
            queries: gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("dispatches"),
                ty: wgpu::QueryType::Timestamp,
                count: DISPATCHES_MAX + 1,
            }),
            labels: Mutex::default(),
        })
    }

    /// Comes before the first dispatch.
    pub(crate) fn begin(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner).clear();
        pass.write_timestamp(&self.queries, 0);
    }

    /// Comes after each. What is too many is not timed.
    pub(super) fn end(&self, pass: &mut wgpu::ComputePass<'_>, label: &str) {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        labels.push(label.to_owned());
        if let Ok(at @ ..=DISPATCHES_MAX) = u32::try_from(labels.len()) {
            pass.write_timestamp(&self.queries, at);
        }
    }

    /// Submits what was recorded, and tells the kernels' names and seconds.
    ///
    /// # Errors
    /// There were more than can be timed, or the device failed.
    pub(crate) fn submit(
        &self,
        gpu: &Gpu,
        mut encoder: wgpu::CommandEncoder,
    ) -> Result<Vec<(String, f64)>, EngineError> {
        let labels = std::mem::take(&mut *self.labels.lock().unwrap_or_else(PoisonError::into_inner));
        let count = u32::try_from(labels.len()).unwrap_or(u32::MAX);
        if count > DISPATCHES_MAX {
            let message = format!("a step of {count} dispatches cannot be timed, {DISPATCHES_MAX} can");
            return Err(EngineError::Settings(message));
        }
        let count = count + 1;
        let resolved = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("dispatches"),
            size: u64::from(count) * 8,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        encoder.resolve_query_set(&self.queries, 0..count, &resolved, 0);
        gpu.submit(encoder.finish());
        let ticks: Vec<u64> = gpu.read(&resolved, count as usize)?;
        let period = f64::from(gpu.queue.get_timestamp_period()) * 1e-9;
        let times = ticks.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 * period);
        Ok(labels.into_iter().zip(times).collect())
    }
}
