//! One plane of packed weights, which kernels only read: a buffer, or for software drivers a texture.
//!
//! llvmpipe reads a buffer in a loop over lanes and over the words that a lane wants. It reads a storage texture at once: three times as
//! many bytes a second. A texture that could be sampled as well it reads through a function of its own, which takes the gain away.

use super::{DeviceMode, Gpu};

/// Where the planes of some weights lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightStorage {
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

pub(crate) enum WeightPlane {
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

impl WeightPlane {
    /// A plane for so many bytes.
    pub(crate) fn new(gpu: &Gpu, label: &str, storage: WeightStorage, unit: PlaneUnit, bytes: u64) -> Self {
        match storage {
            WeightStorage::Buffers => Self::Buffer(gpu.buffer(label, bytes)),
            WeightStorage::Textures => Self::texture(gpu, label, unit, bytes),
        }
    }

    fn texture(gpu: &Gpu, label: &str, unit: PlaneUnit, bytes: u64) -> Self {
        let texture = gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: Some(label),
            size: texture_size(unit, texture_rows(bytes).max(1)),
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: unit.format(),
            usage: wgpu::TextureUsages::STORAGE_BINDING | wgpu::TextureUsages::COPY_DST,
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
            Self::Texture { texture, .. } => u64::from(texture.height()) * u64::from(TEXTURE_ROW),
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
    /// Where it reads weights of whole blocks quickest. Textures have to hold as much as buffers do: a matrix has the same parts in either.
    pub(crate) fn block_storage(&self) -> WeightStorage {
        let wide = self.texture_side_max >= TEXTURE_ROW / PlaneUnit::Word.bytes();
        let high = u64::from(self.texture_side_max) * u64::from(TEXTURE_ROW) >= self.binding_max;
        match self.mode {
            DeviceMode::SoftwareByLanes if wide && high => WeightStorage::Textures,
            _ => WeightStorage::Buffers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{shared_as, shared_small_textures};

    #[test]
    fn weights_lie_in_textures_for_software_drivers_whose_textures_hold_as_much_as_their_buffers() {
        for mode in [DeviceMode::Gpu, DeviceMode::GpuFloats, DeviceMode::SoftwareInTeams] {
            assert_eq!(shared_as(mode).block_storage(), WeightStorage::Buffers);
        }
        assert_eq!(shared_small_textures().block_storage(), WeightStorage::Buffers);
        let software = |texture_side_max, binding_max| Gpu {
            texture_side_max,
            binding_max,
            ..shared_as(DeviceMode::SoftwareByLanes).altered(DeviceMode::SoftwareByLanes, true)
        };
        assert_eq!(software(4096, 64 << 20).block_storage(), WeightStorage::Textures);
        assert_eq!(software(4096, (64 << 20) + 1).block_storage(), WeightStorage::Buffers);
        assert_eq!(software(4095, 1 << 20).block_storage(), WeightStorage::Buffers);
    }

    #[test]
    fn a_plane_takes_whole_rows_of_a_texture_and_whole_vectors_of_a_buffer() {
        let gpu = shared_as(DeviceMode::SoftwareByLanes);
        for (storage, bytes, expected) in [
            (WeightStorage::Buffers, 0, 16),
            (WeightStorage::Buffers, 16_385, 16_400),
            (WeightStorage::Textures, 0, 16_384),
            (WeightStorage::Textures, 16_384, 16_384),
            (WeightStorage::Textures, 16_385, 32_768),
        ] {
            for unit in [PlaneUnit::Vector, PlaneUnit::Word] {
                assert_eq!(WeightPlane::new(&gpu, "test", storage, unit, bytes).bytes(), expected);
            }
        }
    }
}
