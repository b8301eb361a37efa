//! A kernel that only reads: its bandwidth is the limit that speed is told against.

use crate::gpu::{BufferAccess, Gpu, Kernel, KernelSource, WORKGROUP};

/// Sixteen-byte words that each thread reads.
const EACH: u32 = 16;

pub(crate) struct BandwidthKernel {
    kernel: Kernel,
    bind_group: wgpu::BindGroup,
    threads: u32,
}

impl BandwidthKernel {
    /// Reads a buffer of about so many bytes.
    pub(crate) fn new(gpu: &Gpu, bytes: u64) -> Self {
        let groups = bytes / u64::from(16 * EACH * WORKGROUP);
        let threads = u32::try_from(groups.clamp(1, 65_535)).unwrap_or(1) * WORKGROUP;
        let constants = [("THREADS", f64::from(threads)), ("EACH", f64::from(EACH))];
        let source = KernelSource {
            label: "stream",
            wgsl: include_str!("stream.wgsl"),
            constants: &constants,
            bindings: &[BufferAccess::Read, BufferAccess::Write],
            immediates: 0,
        };
        let kernel = Kernel::new(gpu, &source);
        let x = gpu.buffer("stream", u64::from(threads) * u64::from(EACH) * 16);
        let group = kernel.bind(gpu, &[&x, &gpu.buffer("stream result", 4)]);
        Self { kernel, bind_group: group, threads }
    }

    /// Bytes that one run reads.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.threads) * u64::from(EACH) * 16
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>) {
        self.kernel.run(pass, &self.bind_group, &[], (self.threads / WORKGROUP, 1));
    }
}
