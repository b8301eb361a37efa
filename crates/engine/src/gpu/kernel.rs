//! A compute shader ready to run: its pipeline, and how its bindings look.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use super::{DeviceCounts, DispatchTimes, Gpu, PlaneUnit};

/// What a kernel does with one of its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferAccess {
    Read,
    Write,
    /// Reads it, and it is a texture of such units.
    ReadTexture(PlaneUnit),
    /// Writes it, and it is a texture of vectors.
    WriteTexture,
}

/// What a kernel is made of. Its WGSL has one entry point, `main`, and its bindings in group 0.
pub(crate) struct KernelSource<'a> {
    pub(crate) label: &'a str,
    pub(crate) wgsl: &'a str,
    /// Values of the shader's `override` constants.
    pub(crate) constants: &'a [(&'a str, f64)],
    pub(crate) bindings: &'a [BufferAccess],
    /// Words in the shader's `var<immediate>`.
    pub(crate) immediates: u32,
}

pub(crate) struct Kernel {
    counts: Arc<DeviceCounts>,
    times: Arc<OnceLock<DispatchTimes>>,
    label: String,
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

impl Kernel {
    pub(crate) fn new(gpu: &Gpu, source: &KernelSource<'_>) -> Self {
        let entries: Vec<_> = (0u32..).zip(source.bindings).map(|(at, access)| entry(at, *access)).collect();
        let layout = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(source.label),
            entries: &entries,
        });
        let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(source.label),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: source.immediates * 4,
        });
        let module = module(gpu, source);
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(source.label),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: source.constants,
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        Self {
            counts: Arc::clone(&gpu.counts),
            times: Arc::clone(&gpu.times),
            label: source.label.to_owned(),
            pipeline,
            layout,
        }
    }

    /// Ties buffers to the kernel's bindings, in their order. Kernels with equal bindings can share the result.
    pub(crate) fn bind(&self, gpu: &Gpu, buffers: &[&wgpu::Buffer]) -> wgpu::BindGroup {
        self.bind_resources(gpu, buffers.iter().map(|buffer| buffer.as_entire_binding()))
    }

    /// The same, where some are planes.
    pub(crate) fn bind_resources<'a>(
        &self,
        gpu: &Gpu,
        resources: impl IntoIterator<Item = wgpu::BindingResource<'a>>,
    ) -> wgpu::BindGroup {
        let entries: Vec<_> = (0u32..)
            .zip(resources)
            .map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource })
            .collect();
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(&self.label),
            layout: &self.layout,
            entries: &entries,
        })
    }

    /// Adds one run of the kernel to a pass.
    pub(crate) fn run(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        bound: &wgpu::BindGroup,
        immediates: &[u32],
        grid: (u32, u32),
    ) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, bound, &[]);
        if !immediates.is_empty() {
            pass.set_immediates(0, bytemuck::cast_slice(immediates));
        }
        self.counts.dispatches.fetch_add(1, Ordering::Relaxed);
        pass.dispatch_workgroups(grid.0, grid.1, 1);
        if let Some(times) = self.times.get() {
            times.end(pass, &self.label);
        }
    }
}

fn entry(binding: u32, access: BufferAccess) -> wgpu::BindGroupLayoutEntry {
    let buffer = |read_only| wgpu::BindingType::Buffer {
        ty: wgpu::BufferBindingType::Storage { read_only },
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let texture = |access, unit: PlaneUnit| wgpu::BindingType::StorageTexture {
        access,
        format: unit.format(),
        view_dimension: wgpu::TextureViewDimension::D2,
    };
    let ty = match access {
        BufferAccess::Read => buffer(true),
        BufferAccess::Write => buffer(false),
        BufferAccess::ReadTexture(unit) => texture(wgpu::StorageTextureAccess::ReadOnly, unit),
        BufferAccess::WriteTexture => texture(wgpu::StorageTextureAccess::WriteOnly, PlaneUnit::Vector),
    };
    wgpu::BindGroupLayoutEntry { binding, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None }
}

fn module(gpu: &Gpu, source: &KernelSource<'_>) -> wgpu::ShaderModule {
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: Some(source.label),
        source: wgpu::ShaderSource::Wgsl(source.wgsl.into()),
    };
    if gpu.checks {
        return gpu.device.create_shader_module(descriptor);
    }
    // SAFETY: the shaders are ours, every loop in them is bounded and every index is checked against
    // the shape by the op that dispatches them; the op tests run with the checks on.
    unsafe { gpu.device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
}

/// Submits one pass: what the ops' tests need.
#[cfg(test)]
pub(crate) fn submit(gpu: &Gpu, record: impl FnOnce(&mut wgpu::ComputePass<'_>)) {
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    record(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()));
    gpu.submit(encoder.finish());
}
