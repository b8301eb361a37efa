//! The device: choosing it, opening it, and learning of its faults.

mod adapter;
mod device_info;
mod device_mode;
mod kernel;
mod plane;
mod profile;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub use device_info::{DeviceInfo, DeviceKind};
pub(crate) use device_mode::{ActivationFormat, DeviceMode, ReductionStrategy};
#[cfg(test)]
pub(crate) use kernel::submit;
pub(crate) use kernel::{BufferAccess, Kernel, KernelSource};

pub(crate) use plane::{Plane, PlaneStorage, PlaneUnit, TEXTURE_ROW};
pub(crate) use profile::DispatchTimes;

use super::error::EngineError;

/// How long a submission may take while a model is loaded. Steps have limits of their own.
pub(crate) const DEVICE_TIMEOUT: Duration = Duration::from_secs(120);

/// An opened device.
pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) info: DeviceInfo,
    /// The most bytes that one binding may span.
    pub(crate) binding_max: u64,
    /// The most texels that a texture may have in a row, and in a column.
    pub(crate) texture_side_max: u32,
    /// The largest subgroup that the device may choose for a kernel.
    pub(crate) subgroup_max: u32,
    pub(crate) mode: DeviceMode,
    /// Bytes of its memory that a model may take, as far as its driver tells.
    pub(crate) memory: Option<u64>,
    /// Whether shaders check where they read and write.
    checks: bool,
    pub(crate) counts: Arc<DeviceCounts>,
    /// Set once a step was timed dispatch by dispatch: for the benchmark.
    pub(crate) times: Arc<OnceLock<DispatchTimes>>,
    fault: Arc<Mutex<Option<EngineError>>>,
}

/// What a device was given to do.
#[derive(Debug, Default)]
pub(crate) struct DeviceCounts {
    pub(crate) submissions: AtomicU64,
    /// Submissions whose commands were recorded while the device did the one before.
    pub(crate) recorded_ahead: AtomicU64,
    /// As recorded, those too that were recorded ahead in vain.
    pub(crate) dispatches: AtomicU64,
}

/// Threads in a workgroup of every kernel that works by subgroups.
pub(crate) const WORKGROUP: u32 = 64;

impl Gpu {
    /// Opens the best device that the settings allow.
    pub(crate) fn open(name: Option<&str>, allow_cpu: bool) -> Result<Self, EngineError> {
        let (adapter, info) = adapter::choose(name, allow_cpu)?;
        let missing = (wgpu::Features::SUBGROUP | wgpu::Features::IMMEDIATES) - adapter.features();
        let failed = |reason: String| EngineError::Open { name: info.name.clone(), reason };
        if !missing.is_empty() {
            return Err(failed(format!("it lacks {missing:?}; update its driver")));
        }
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("stint"),
            required_features: wgpu::Features::SUBGROUP
                | wgpu::Features::IMMEDIATES
                | (adapter.features() & profile::FEATURES),
            required_limits: limits.clone(),
            // Memory is had in blocks, and what is left of the last of each kind is for nobody.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..wgpu::DeviceDescriptor::default()
        };
        let opened = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) = opened.map_err(|error| failed(error.to_string()))?;
        let fault = Arc::new(Mutex::new(None));
        record_faults(&device, &fault);
        let subgroups = adapter.get_info();
        let subgroup_max = subgroups.subgroup_max_size.max(4);
        let mode = DeviceMode::of(info.kind == DeviceKind::Cpu, subgroups.subgroup_min_size);
        let memory = adapter::memory(&adapter).filter(|_| !mode.is_software());
        let binding_max = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        Ok(Self {
            device,
            queue,
            info,
            binding_max,
            texture_side_max: limits.max_texture_dimension_2d,
            subgroup_max,
            mode,
            memory,
            // Tests run with them, so that reading out of bounds is seen and not luck. Released, they would cost up to half
            // the speed of the matrix kernels.
            checks: cfg!(debug_assertions),
            counts: Arc::default(),
            times: Arc::default(),
            fault,
        })
    }

    /// The first thing that went wrong on the device, if anything did. It stays.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        match &*self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// Waits until the device has done all it was given.
    pub(crate) fn wait(&self) -> Result<(), EngineError> {
        self.wait_for(DEVICE_TIMEOUT)
    }

    /// The same, for so long at most.
    pub(crate) fn wait_for(&self, most: Duration) -> Result<(), EngineError> {
        let wait = wgpu::PollType::Wait { submission_index: None, timeout: Some(most) };
        self.device.poll(wait).map_err(|error| match error {
            wgpu::PollError::Timeout => EngineError::Stalled(most),
            wgpu::PollError::WrongSubmissionIndex(..) => EngineError::Lost(error.to_string()),
        })?;
        self.check()
    }

    /// Whether the device is still there. A device that nothing is submitted to does not report its loss.
    pub(crate) fn probe(&self, most: Duration) -> Result<(), EngineError> {
        self.queue.submit([]);
        self.wait_for(most)
    }

    /// Gives the device what was recorded.
    pub(crate) fn submit(&self, commands: wgpu::CommandBuffer) {
        self.counts.submissions.fetch_add(1, Ordering::Relaxed);
        self.queue.submit([commands]);
    }

    /// An empty buffer of so many bytes.
    pub(crate) fn buffer(&self, label: &str, bytes: u64) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes.next_multiple_of(16).max(16),
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        })
    }

    /// A buffer with these numbers.
    pub(crate) fn buffer_with<T: bytemuck::NoUninit>(&self, label: &str, numbers: &[T]) -> wgpu::Buffer {
        let bytes: &[u8] = bytemuck::cast_slice(numbers);
        let buffer = self.buffer(label, bytes.len() as u64);
        self.queue.write_buffer(&buffer, 0, bytes);
        buffer
    }

    /// Copies the first bytes of a buffer back, after all that was submitted before.
    pub(crate) fn read<T: bytemuck::Pod>(
        &self,
        buffer: &wgpu::Buffer,
        count: usize,
    ) -> Result<Vec<T>, EngineError> {
        let bytes = (count * size_of::<T>()) as u64;
        let back = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("read back"),
            size: bytes.next_multiple_of(4).max(4),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &back, 0, back.size().min(buffer.size()));
        self.submit(encoder.finish());
        self.map_read(&back, count, DEVICE_TIMEOUT)
    }

    /// The first numbers of a buffer that can be mapped, after all that was submitted before, which may take so long.
    pub(crate) fn map_read<T: bytemuck::Pod>(
        &self,
        buffer: &wgpu::Buffer,
        count: usize,
        most: Duration,
    ) -> Result<Vec<T>, EngineError> {
        let slice = buffer.slice(..);
        slice.map_async(wgpu::MapMode::Read, |_| ());
        self.wait_for(most)?;
        let lost = |error: wgpu::MapRangeError| EngineError::Lost(error.to_string());
        let view = slice.get_mapped_range().map_err(lost)?;
        let bytes = view.get(..count * size_of::<T>()).unwrap_or_default();
        let numbers = bytemuck::pod_collect_to_vec(bytes);
        drop(view);
        buffer.unmap();
        Ok(numbers)
    }

    /// Workgroups that suffice for so many subgroups, whatever subgroup size the device chooses.
    pub(crate) fn workgroups(&self, subgroups: u32) -> u32 {
        subgroups.div_ceil((WORKGROUP / self.subgroup_max).max(1))
    }
}

/// Keeps the first fault. wgpu's own handler would panic.
fn record_faults(device: &wgpu::Device, fault: &Arc<Mutex<Option<EngineError>>>) {
    let keep = |fault: &Mutex<Option<EngineError>>, error| {
        fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    };
    let errors = Arc::clone(fault);
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        let error = match error {
            wgpu::Error::OutOfMemory { .. } => EngineError::OutOfMemory,
            other => EngineError::Refused(other.to_string()),
        };
        keep(&errors, error);
    }));
    let losses = Arc::clone(fault);
    device.set_device_lost_callback(move |reason, message| {
        let message = if message.is_empty() { format!("{reason:?}") } else { message };
        keep(&losses, EngineError::Lost(message));
    });
}

#[cfg(test)]
impl Gpu {
    /// The same device, told to be of another kind than its own, and whether to check.
    pub(crate) fn altered(&self, mode: DeviceMode, checks: bool) -> Gpu {
        let (device, queue, info) = (self.device.clone(), self.queue.clone(), self.info.clone());
        let (fault, counts, times) = (Arc::clone(&self.fault), Arc::default(), Arc::default());
        Gpu { device, queue, info, mode, checks, counts, times, fault, ..*self }
    }
}

/// The tests' device, told to be of another kind than its own.
#[cfg(test)]
pub(crate) fn shared_as(mode: DeviceMode) -> Arc<Gpu> {
    let gpu = shared();
    Arc::new(gpu.altered(mode, gpu.checks))
}

/// The tests' device, told that one binding may span no more than so many bytes.
#[cfg(test)]
pub(crate) fn shared_binding(most: u64) -> Gpu {
    let gpu = shared();
    Gpu { binding_max: most, ..gpu.altered(gpu.mode, gpu.checks) }
}

/// The tests' device, as a software driver is whose textures are too small for planes.
#[cfg(test)]
pub(crate) fn shared_small_textures() -> Gpu {
    let gpu = shared();
    Gpu { texture_side_max: 2048, ..gpu.altered(DeviceMode::SoftwareByLanes, gpu.checks) }
}

/// Runs a test with the kernels of each [`ReductionStrategy`], with and without checks in the shaders.
#[cfg(test)]
pub(crate) fn in_every_grain(test: impl Fn(&Gpu)) {
    for mode in [DeviceMode::Gpu, DeviceMode::SoftwareByLanes] {
        test(&shared().altered(mode, true));
        test(&shared().altered(mode, false));
    }
}

/// The same, and with those of the two kinds of devices that are found least: for kernels that differ there.
#[cfg(test)]
pub(crate) fn in_every_mode(test: impl Fn(&Gpu)) {
    in_every_grain(&test);
    for mode in [DeviceMode::GpuFloats, DeviceMode::SoftwareInTeams] {
        test(&shared().altered(mode, true));
    }
}

/// One device for all tests: several at once would only fight for the same two cores.
#[cfg(test)]
pub(crate) fn shared() -> Arc<Gpu> {
    static GPU: std::sync::LazyLock<Arc<Gpu>> = std::sync::LazyLock::new(|| {
        Arc::new(Gpu::open(None, true).expect("a Vulkan driver, lavapipe will do"))
    });
    Arc::clone(&GPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_device_is_refused_with_the_names_of_those_present() {
        let Err(error) = Gpu::open(Some("no such device"), true) else { panic!("it opened") };
        assert!(error.to_string().contains(&shared().info.name), "{error}");
    }

    #[test]
    fn a_software_device_is_only_used_when_allowed() {
        if shared().info.kind != DeviceKind::Cpu {
            return;
        }
        let Err(error) = Gpu::open(Some(&shared().info.name), false) else { panic!("it opened") };
        assert!(error.to_string().contains("allow_cpu"), "{error}");
    }

    #[test]
    fn what_is_written_to_a_buffer_is_read_back() {
        let gpu = shared();
        let buffer = gpu.buffer_with("test", &[1u32, 2, 3]);
        assert_eq!(gpu.read::<u32>(&buffer, 3).unwrap(), [1, 2, 3]);
    }
}
