//! A plane of numbers that no kernel reads and writes at once: a buffer, or for software drivers a texture.
//!
//! llvmpipe reads a buffer in a loop over lanes and over the words that a lane wants. It reads a storage texture at once: three times as
//! many bytes a second. A texture that could be sampled as well it reads through a function of its own, which takes the gain away.

use super::{DeviceMode, Gpu};

/// Where planes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaneStorage {
    Buffers,
    Textures,
}

/// What kernels read of a plane at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaneUnit {
    /// Four words, as a vector.
    Vector,
    Word,
}

pub(crate) enum Plane {
    Buffer(wgpu::Buffer),
    Texture { texture: wgpu::Texture, view: wgpu::TextureView },
}

/// Bytes in a row of a texture. Textures are written in whole rows.
pub(crate) const TEXTURE_ROW: u32 = 16 << 10;

impl PlaneUnit {
    fn bytes(self) -> u32 {
        match self {
            Self::Vector => 16,
            Self::Word => 4,
        }
    }

    pub(super) fn format(self) -> wgpu::TextureFormat {
        match self {
            Self::Vector => wgpu::TextureFormat::Rgba32Uint,
            Self::Word => wgpu::TextureFormat::R32Uint,
        }
    }
}

impl Plane {
    /// A plane for so many bytes.
    pub(crate) fn new(gpu: &Gpu, label: &str, storage: PlaneStorage, unit: PlaneUnit, bytes: u64) -> Self {
        match storage {
            PlaneStorage::Buffers => Self::Buffer(gpu.buffer(label, bytes)),
            PlaneStorage::Textures => {
                Self::texture(gpu, label, unit, texture_size(unit, texture_rows(bytes).max(1)))
            }
        }
    }

    /// A plane of so many rows of so many vectors, which kernels write. In a texture each is a row of its own.
    pub(crate) fn grid(gpu: &Gpu, label: &str, storage: PlaneStorage, width: u32, rows: u32) -> Self {
        let size = wgpu::Extent3d { width: width.max(1), height: rows.max(1), depth_or_array_layers: 1 };
        match storage {
            PlaneStorage::Buffers => Self::Buffer(gpu.buffer(label, u64::from(width) * u64::from(rows) * 16)),
            PlaneStorage::Textures => Self::texture(gpu, label, PlaneUnit::Vector, size),
        }
    }

    fn texture(gpu: &Gpu, label: &str, unit: PlaneUnit, size: wgpu::Extent3d) -> Self {
        let mut usage = wgpu::TextureUsages::STORAGE_BINDING | wgpu::TextureUsages::COPY_DST;
        if cfg!(test) {
            usage |= wgpu::TextureUsages::COPY_SRC;
        }
        let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: Some(label),
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: unit.format(),
            usage,
            view_formats: &[],
        });
        let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
        Self::Texture { texture, view }
    }

    /// What is written is a multiple of so many bytes, and so is its place.
    pub(crate) fn write_unit(&self) -> usize {
        match self {
            Self::Buffer(_) => 4,
            Self::Texture { .. } => TEXTURE_ROW as usize,
        }
    }

    /// Writes a multiple of [`write_unit`](Self::write_unit) from this byte on.
    pub(crate) fn write(&self, gpu: &Gpu, at: u64, bytes: &[u8]) {
        match self {
            Self::Buffer(buffer) => gpu.queue.write_buffer(buffer, at, bytes),
            Self::Texture { texture, .. } => write_rows(gpu, texture, at, bytes),
        }
    }

    pub(crate) fn binding(&self) -> wgpu::BindingResource<'_> {
        match self {
            Self::Buffer(buffer) => buffer.as_entire_binding(),
            Self::Texture { view, .. } => wgpu::BindingResource::TextureView(view),
        }
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Buffer(buffer) => buffer.size(),
            Self::Texture { texture, .. } => {
                let texel = texture.format().block_copy_size(None).unwrap_or_default();
                u64::from(texture.width()) * u64::from(texture.height()) * u64::from(texel)
            }
        }
    }
}

/// Rows of a texture that so many bytes fill, the last perhaps in part.
fn texture_rows(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(TEXTURE_ROW))).unwrap_or(u32::MAX)
}

fn texture_size(unit: PlaneUnit, rows: u32) -> wgpu::Extent3d {
    wgpu::Extent3d { width: TEXTURE_ROW / unit.bytes(), height: rows, depth_or_array_layers: 1 }
}

fn write_rows(gpu: &Gpu, texture: &wgpu::Texture, at: u64, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let mut place = texture.as_image_copy();
    place.origin.y = texture_rows(at);
    let layout =
        wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(TEXTURE_ROW), rows_per_image: None };
    let size = wgpu::Extent3d { height: texture_rows(bytes.len() as u64), ..texture.size() };
    gpu.queue.write_texture(place, bytes, layout, size);
}

impl Gpu {
    /// Where it reads planes quickest. Textures have to hold as much as buffers do: a matrix has the same parts in either.
    pub(crate) fn plane_storage(&self) -> PlaneStorage {
        let wide = self.texture_side_max >= TEXTURE_ROW / PlaneUnit::Word.bytes();
        let high = u64::from(self.texture_side_max) * u64::from(TEXTURE_ROW) >= self.binding_max;
        match self.mode {
            DeviceMode::SoftwareByLanes if wide && high => PlaneStorage::Textures,
            _ => PlaneStorage::Buffers,
        }
    }

    /// Whether a plane of so many rows of so many vectors finds room where planes lie.
    pub(crate) fn holds_grid(&self, width: u64, rows: u64) -> bool {
        match self.plane_storage() {
            PlaneStorage::Buffers => width * rows * 16 <= self.binding_max,
            PlaneStorage::Textures => width.max(rows) <= u64::from(self.texture_side_max),
        }
    }
}

/// What tests see of planes of rows.
#[cfg(test)]
impl Plane {
    /// Fills it from its beginning on with whole rows.
    pub(crate) fn fill(&self, gpu: &Gpu, bytes: &[u8]) {
        match self {
            Self::Buffer(buffer) => gpu.queue.write_buffer(buffer, 0, bytes),
            Self::Texture { texture, .. } => {
                let row = texture.width() * 16;
                let layout =
                    wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(row), rows_per_image: None };
                let height = u32::try_from(bytes.len()).unwrap() / row;
                let size = wgpu::Extent3d { height, ..texture.size() };
                gpu.queue.write_texture(texture.as_image_copy(), bytes, layout, size);
            }
        }
    }

    /// Its first numbers.
    pub(crate) fn read<T: bytemuck::Pod>(&self, gpu: &Gpu, count: usize) -> Vec<T> {
        let Self::Texture { texture, .. } = self else {
            let Self::Buffer(buffer) = self else { unreachable!("a plane is one or the other") };
            return gpu.read(buffer, count).unwrap();
        };
        let (row, height) = (texture.width() as usize * 16, texture.height() as usize);
        let padded = row.next_multiple_of(256);
        let back = gpu.buffer("read back", (padded * height) as u64);
        let bytes_per_row = u32::try_from(padded).ok();
        let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row, rows_per_image: None };
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_texture_to_buffer(
            texture.as_image_copy(),
            wgpu::TexelCopyBufferInfo { buffer: &back, layout },
            texture.size(),
        );
        gpu.submit(encoder.finish());
        let bytes: Vec<u8> = gpu.read(&back, padded * height).unwrap();
        let rows: Vec<u8> = bytes.chunks(padded).flat_map(|padded| &padded[..row]).copied().collect();
        bytemuck::pod_collect_to_vec(&rows[..count * size_of::<T>()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{shared_as, shared_small_textures};

    #[test]
    fn planes_lie_in_textures_for_software_drivers_whose_textures_hold_as_much_as_their_buffers() {
        for mode in [DeviceMode::Gpu, DeviceMode::GpuFloats, DeviceMode::SoftwareInTeams] {
            assert_eq!(shared_as(mode).plane_storage(), PlaneStorage::Buffers);
        }
        assert_eq!(shared_small_textures().plane_storage(), PlaneStorage::Buffers);
        let software = |texture_side_max, binding_max| Gpu {
            texture_side_max,
            binding_max,
            ..shared_as(DeviceMode::SoftwareByLanes).altered(DeviceMode::SoftwareByLanes, true)
        };
        assert_eq!(software(4096, 64 << 20).plane_storage(), PlaneStorage::Textures);
        assert_eq!(software(4096, (64 << 20) + 1).plane_storage(), PlaneStorage::Buffers);
        assert_eq!(software(4095, 1 << 20).plane_storage(), PlaneStorage::Buffers);
    }

    #[test]
    fn a_plane_takes_whole_rows_of_a_texture_and_whole_vectors_of_a_buffer() {
        let gpu = shared_as(DeviceMode::SoftwareByLanes);
        for (storage, bytes, expected) in [
            (PlaneStorage::Buffers, 0, 16),
            (PlaneStorage::Buffers, 16_385, 16_400),
            (PlaneStorage::Textures, 0, 16_384),
            (PlaneStorage::Textures, 16_384, 16_384),
            (PlaneStorage::Textures, 16_385, 32_768),
        ] {
            for unit in [PlaneUnit::Vector, PlaneUnit::Word] {
                assert_eq!(Plane::new(&gpu, "test", storage, unit, bytes).bytes(), expected);
            }
        }
    }
}
