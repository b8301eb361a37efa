//! Rows of activations: as floats, and where a device multiplies bytes as bytes too.

use crate::gpu::{
    ActivationFormat, BufferAccess, Gpu, Kernel, KernelSource, Plane, PlaneStorage, PlaneUnit, WORKGROUP,
};

/// Numbers that have a scale in common.
pub(crate) const INT8_BLOCK: u32 = 32;

/// Rows of activations on the device.
pub(crate) struct ActivationRows {
    pub(crate) floats: Plane,
    /// The same rows in bytes, where the device multiplies those and they are of whole blocks.
    pub(crate) int8: Option<Int8Rows>,
}

/// Rows in bytes, as `quantise.wgsl` has them: within 1/254 of the largest number of each block of 32.
pub(crate) struct Int8Rows {
    pub(crate) numbers: wgpu::Buffer,
    pub(crate) scales: wgpu::Buffer,
}

/// Bytes that so many numbers take, beside their floats.
pub(crate) fn int8_bytes(numbers: u64) -> u64 {
    numbers + numbers / u64::from(INT8_BLOCK) * 8
}

/// Whether rows of so many numbers are had in bytes as well.
pub(super) fn has_int8(gpu: &Gpu, columns: u32) -> bool {
    gpu.mode.activations() == ActivationFormat::Int8 && columns.is_multiple_of(INT8_BLOCK)
}

impl ActivationRows {
    /// Room for so many rows of so many numbers.
    pub(crate) fn new(gpu: &Gpu, label: &str, rows: u32, columns: u32) -> Self {
        let numbers = u64::from(rows) * u64::from(columns);
        let int8 = has_int8(gpu, columns).then(|| Int8Rows {
            numbers: gpu.buffer(label, numbers),
            scales: gpu.buffer(label, numbers / u64::from(INT8_BLOCK) * 8),
        });
        Self { floats: float_rows(gpu, label, rows, columns), int8 }
    }

    /// What a kernel writes that makes such rows.
    pub(super) fn written(&self) -> impl Iterator<Item = wgpu::BindingResource<'_>> {
        let int8 = self.int8.iter().flat_map(|rows| [&rows.numbers, &rows.scales]);
        std::iter::once(self.floats.binding()).chain(int8.map(wgpu::Buffer::as_entire_binding))
    }
}

/// Room for so many rows of floats.
pub(super) fn float_rows(gpu: &Gpu, label: &str, rows: u32, columns: u32) -> Plane {
    Plane::grid(gpu, label, gpu.plane_storage(), columns.div_ceil(4), rows)
}

/// A kernel that makes rows writes floats, and bytes as well where there are such.
pub(super) fn writes(gpu: &Gpu, int8: bool) -> Vec<BufferAccess> {
    use BufferAccess::{Write, WriteTexture};
    match gpu.plane_storage() {
        PlaneStorage::Buffers if int8 => vec![Write; 3],
        PlaneStorage::Buffers => vec![Write],
        PlaneStorage::Textures => vec![WriteTexture],
    }
}

/// The part of a shader that writes rows of floats: `write_four(row, n, width, numbers)`, the n-th of `width` fours.
pub(super) fn floats_writer(gpu: &Gpu, binding: u32) -> String {
    match gpu.plane_storage() {
        PlaneStorage::Buffers => format!(
            "@group(0) @binding({binding}) var<storage, read_write> y: array<vec4<f32>>;\n{}",
            include_str!("rows/write_buffer.wgsl")
        ),
        PlaneStorage::Textures => format!(
            "@group(0) @binding({binding}) var y: texture_storage_2d<rgba32uint, write>;\n{}",
            include_str!("rows/write_texture.wgsl")
        ),
    }
}

/// How a kernel reads rows of floats.
pub(super) fn reads_floats(gpu: &Gpu) -> BufferAccess {
    match gpu.plane_storage() {
        PlaneStorage::Buffers => BufferAccess::Read,
        PlaneStorage::Textures => BufferAccess::ReadTexture(PlaneUnit::Vector),
    }
}

/// The part of a shader that does: `read_four(row, n, width)`.
pub(super) fn floats_reader(gpu: &Gpu, binding: u32) -> String {
    match gpu.plane_storage() {
        PlaneStorage::Buffers => format!(
            "@group(0) @binding({binding}) var<storage, read> x: array<vec4<f32>>;\n{}",
            include_str!("rows/read_buffer.wgsl")
        ),
        PlaneStorage::Textures => format!(
            "@group(0) @binding({binding}) var x: texture_storage_2d<rgba32uint, read>;\n{}",
            include_str!("rows/read_texture.wgsl")
        ),
    }
}

/// Makes bytes of rows that were made as floats.
pub(crate) struct QuantiseRows {
    /// None where no bytes are wanted.
    kernel: Option<Kernel>,
    columns: u32,
}

impl QuantiseRows {
    pub(crate) fn new(gpu: &Gpu, columns: u32) -> Self {
        use BufferAccess::{Read, Write};
        let source = KernelSource {
            label: "quantise",
            wgsl: &[include_str!("quantise.wgsl"), include_str!("quantise_rows.wgsl")].join("\n"),
            constants: &[("COLUMNS", f64::from(columns))],
            bindings: &[Read, Write, Write],
            immediates: 1,
        };
        Self { kernel: has_int8(gpu, columns).then(|| Kernel::new(gpu, &source)), columns }
    }

    /// Nothing where there is nothing to do.
    pub(crate) fn bind(&self, gpu: &Gpu, rows: &ActivationRows) -> Option<wgpu::BindGroup> {
        let int8 = rows.int8.as_ref()?;
        let bytes = [&int8.numbers, &int8.scales].map(wgpu::Buffer::as_entire_binding);
        let resources = std::iter::once(rows.floats.binding()).chain(bytes);
        Some(self.kernel.as_ref()?.bind_resources(gpu, resources))
    }

    pub(crate) fn run(&self, pass: &mut wgpu::ComputePass<'_>, bound: Option<&wgpu::BindGroup>, rows: u32) {
        if let (Some(kernel), Some(bound)) = (&self.kernel, bound) {
            kernel.run(pass, bound, &[rows], ((self.columns / INT8_BLOCK).div_ceil(WORKGROUP), rows));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::in_every_mode;
    use crate::ops::testing::{close_in_bytes, numbers, read_int8, rows_with};

    const SIZES: [f32; 5] = [1e-4, 1.0, 1e4, 0.03, 70.0];

    #[test]
    fn bytes_are_within_half_a_step_of_the_numbers_and_know_their_sums() {
        for (rows, columns) in [(1, 32), (3, 96), (5, 2176)] {
            let mut x = numbers(3, rows * columns);
            // A block of zeros, one of a single number, and sizes that differ.
            x[..32].fill(0.0);
            x.chunks_mut(32)
                .enumerate()
                .for_each(|(n, block)| block.iter_mut().for_each(|v| *v *= SIZES[n % SIZES.len()]));
            x[32 % (rows * columns) as usize] = 5.0;
            in_every_mode(|gpu| {
                let made = rows_with(gpu, &x, columns);
                assert_eq!(made.int8.is_some(), gpu.mode.activations() == ActivationFormat::Int8);
                if let Some(bytes) = read_int8(gpu, &made, rows, columns) {
                    close_in_bytes(&bytes, &x);
                }
            });
        }
    }

    #[test]
    fn a_block_with_a_number_that_is_none_or_infinite_stands_for_none() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = numbers(3, 96);
            x[37] = bad;
            in_every_mode(|gpu| {
                let made = rows_with(gpu, &x, 96);
                if let Some(bytes) = read_int8(gpu, &made, 1, 96) {
                    assert!(bytes[32..64].iter().all(|number| number.is_nan()), "{bad}");
                    close_in_bytes(&bytes[..32], &x[..32]);
                    close_in_bytes(&bytes[64..], &x[64..]);
                }
            });
        }
    }

    #[test]
    fn rows_that_are_not_of_whole_blocks_stay_floats() {
        in_every_mode(|gpu| assert!(rows_with(gpu, &numbers(3, 72), 36).int8.is_none()));
    }
}
