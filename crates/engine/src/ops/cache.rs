//! How a layer's cache lies on the device: in buffers, or for software drivers in textures.
//!
//! The cache is a list of blocks, `BLOCK` tokens each. Within a block one head's tokens lie together, of keys other than of values:
//! `cache/places.wgsl` says how in buffers, `cache/textures.wgsl` how in textures.

use crate::gpu::{BufferAccess, Gpu, Plane, PlaneStorage, PlaneUnit, TEXTURE_ROW};
use crate::kv_format::KvFormat;
use crate::shape::ModelShape;

use super::BLOCK;
use super::activation_rows::float_rows;

/// Vectors in a row of a texture.
const VECTORS: u32 = TEXTURE_ROW / 16;

/// How a cache lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheLayout {
    pub(super) storage: PlaneStorage,
    format: KvFormat,
    kv_heads: u32,
    head_dim: u32,
}

impl CacheLayout {
    pub(crate) fn new(gpu: &Gpu, shape: &ModelShape, format: KvFormat) -> Self {
        // Texels are written at once, and each half of a head is rotated with the other.
        let storage =
            if shape.head_dim.is_multiple_of(16) { gpu.plane_storage() } else { PlaneStorage::Buffers };
        Self { storage, format, kv_heads: shape.kv_heads, head_dim: shape.head_dim }
    }

    /// Bytes of a block's keys, or of its values.
    fn block_bytes(self) -> u64 {
        self.format.bytes(u64::from(BLOCK) * u64::from(self.kv_heads * self.head_dim))
    }

    /// Blocks whose vectors of one head fit into a row of a texture.
    fn blocks_beside(self) -> u32 {
        let head = self.format.bytes(u64::from(BLOCK * self.head_dim)) / 16;
        VECTORS / u32::try_from(head).unwrap_or(VECTORS).clamp(1, VECTORS)
    }

    /// The most blocks that a device can bind.
    pub(crate) fn blocks_max(self, gpu: &Gpu) -> u32 {
        let fitting = u32::try_from(gpu.binding_max / self.block_bytes()).unwrap_or(u32::MAX);
        match self.storage {
            PlaneStorage::Buffers => fitting,
            PlaneStorage::Textures => {
                fitting.min((gpu.texture_side_max / self.kv_heads).saturating_mul(self.blocks_beside()))
            }
        }
    }

    /// Room for so many blocks' keys, or their values.
    pub(crate) fn plane(self, gpu: &Gpu, label: &str, blocks: u32) -> Plane {
        match self.storage {
            PlaneStorage::Buffers => Plane::Buffer(gpu.buffer(label, self.block_bytes() * u64::from(blocks))),
            PlaneStorage::Textures => {
                let rows = blocks.div_ceil(self.blocks_beside()) * self.kv_heads;
                Plane::grid(gpu, label, self.storage, VECTORS, rows)
            }
        }
    }

    /// Room for the queries of so many rows, where kernels want them apart from what they are made of.
    pub(crate) fn queries(self, gpu: &Gpu, rows: u32, columns: u32) -> Option<Plane> {
        (self.storage == PlaneStorage::Textures).then(|| float_rows(gpu, "queries", rows, columns))
    }

    /// How attention reads queries, keys and values.
    pub(super) fn reads(self) -> BufferAccess {
        match self.storage {
            PlaneStorage::Buffers => BufferAccess::Read,
            PlaneStorage::Textures => BufferAccess::ReadTexture(PlaneUnit::Vector),
        }
    }

    /// A shader that reads or writes the cache, behind the part that differs between layouts.
    pub(super) fn shader(self, rest: &[&str]) -> String {
        let row = format!("const TEXTURE_ROW = {TEXTURE_ROW}u;");
        let textures = [&*row, include_str!("cache/textures.wgsl")].join("\n");
        let (own, places) = match (self.storage, self.format) {
            (PlaneStorage::Buffers, KvFormat::F16) => {
                (include_str!("cache/f16.wgsl"), include_str!("cache/places.wgsl"))
            }
            (PlaneStorage::Buffers, KvFormat::F32) => {
                (include_str!("cache/f32.wgsl"), include_str!("cache/places.wgsl"))
            }
            (PlaneStorage::Textures, KvFormat::F16) => (include_str!("cache/texels_f16.wgsl"), &*textures),
            (PlaneStorage::Textures, KvFormat::F32) => (include_str!("cache/texels_f32.wgsl"), &*textures),
        };
        [&[own, places], rest].concat().join("\n")
    }
}

/// What lies in a plane.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePart {
    Keys,
    Values,
}

/// Planes as tests see them: the numbers of all blocks in plain order, by block, head, position and place in the head.
#[cfg(test)]
impl CacheLayout {
    fn numbers(self, blocks: u32) -> impl Iterator<Item = [u32; 4]> {
        let (heads, size) = (self.kv_heads, self.head_dim);
        (0..blocks * heads * BLOCK * size).map(move |at| {
            [at / size / BLOCK / heads, at / size / BLOCK % heads, at / size % BLOCK, at % size]
        })
    }

    /// Where a number lies, counted in numbers.
    fn place(self, part: CachePart, [block, head, position, n]: [u32; 4]) -> usize {
        let size = self.head_dim;
        let (first, own) = match (self.storage, part) {
            // Keys of all positions by fours, values of each by 32.
            (PlaneStorage::Buffers, CachePart::Keys) => {
                ((block * self.kv_heads + head) * BLOCK * size, (n / 4 * BLOCK + position) * 4 + n % 4)
            }
            (PlaneStorage::Buffers, CachePart::Values) => {
                let part = n / 32 * 32;
                let width = (size - part).min(32);
                ((block * self.kv_heads + head) * BLOCK * size, part * BLOCK + position * width + n % 32)
            }
            // In a texture both by eights, one head's blocks side by side.
            (PlaneStorage::Textures, _) => {
                let (row, beside) =
                    (block / self.blocks_beside() * self.kv_heads + head, block % self.blocks_beside());
                let width = VECTORS * 16 / u32::try_from(self.format.bytes(1)).unwrap();
                let eight = match part {
                    CachePart::Keys => n / 8 * BLOCK + position,
                    CachePart::Values => position * (size / 8) + n / 8,
                };
                (row * width + beside * BLOCK * size, eight * 8 + n % 8)
            }
        };
        (first + own) as usize
    }

    /// A plane with these numbers, and the numbers as it keeps them.
    pub(super) fn filled(
        self,
        gpu: &Gpu,
        part: CachePart,
        blocks: u32,
        numbers: &[f32],
    ) -> (Plane, Vec<f32>) {
        let plane = self.plane(gpu, "cache", blocks);
        let bytes = usize::try_from(self.format.bytes(1)).unwrap();
        let mut all = vec![0; usize::try_from(plane.bytes()).unwrap()];
        let mut kept = Vec::new();
        for (place, number) in self.numbers(blocks).zip(numbers) {
            let half = half::f16::from_f32(*number);
            let own = &mut all[self.place(part, place) * bytes..][..bytes];
            match self.format {
                KvFormat::F16 => own.copy_from_slice(&half.to_le_bytes()),
                KvFormat::F32 => own.copy_from_slice(&number.to_le_bytes()),
            }
            kept.push(if self.format == KvFormat::F16 { half.to_f32() } else { *number });
        }
        plane.fill(gpu, &all);
        (plane, kept)
    }

    /// The numbers of a plane.
    pub(super) fn read(self, gpu: &Gpu, part: CachePart, blocks: u32, plane: &Plane) -> Vec<f32> {
        let all: Vec<u8> = plane.read(gpu, usize::try_from(plane.bytes()).unwrap());
        let number = |place| {
            let at = self.place(part, place);
            match self.format {
                KvFormat::F16 => half::f16::from_le_bytes([all[2 * at], all[2 * at + 1]]).to_f32(),
                KvFormat::F32 => bytemuck::pod_read_unaligned(&all[4 * at..][..4]),
            }
        };
        self.numbers(blocks).map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{DeviceMode, shared_as, shared_small_textures};
    use crate::ops::attend::testing::shape;

    #[test]
    fn a_cache_lies_in_textures_for_software_drivers_if_heads_have_whole_texels() {
        // As large as lavapipe's are.
        let mut software = shared_as(DeviceMode::Gpu).altered(DeviceMode::SoftwareByLanes, true);
        (software.texture_side_max, software.binding_max) = (8192, 128 << 20);
        let storage =
            |gpu: &Gpu, head_dim| CacheLayout::new(gpu, &shape(4, 2, head_dim), KvFormat::F16).storage;
        assert_eq!([16, 96, 256].map(|head_dim| storage(&software, head_dim)), [PlaneStorage::Textures; 3]);
        assert_eq!([4, 20, 72].map(|head_dim| storage(&software, head_dim)), [PlaneStorage::Buffers; 3]);
        assert_eq!(storage(&shared_small_textures(), 128), PlaneStorage::Buffers);
        assert_eq!(storage(&shared_as(DeviceMode::Gpu), 128), PlaneStorage::Buffers);
    }

    #[test]
    fn blocks_lie_side_by_side_in_a_texture_and_only_so_many_fit() {
        let mut gpu = shared_as(DeviceMode::Gpu).altered(DeviceMode::SoftwareByLanes, true);
        (gpu.texture_side_max, gpu.binding_max) = (4096, 64 << 20);
        for (head_dim, format, beside, most) in [
            (128, KvFormat::F16, 4, 4096),
            (128, KvFormat::F32, 2, 2048),
            (96, KvFormat::F16, 5, 5120),
            (256, KvFormat::F32, 1, 1024),
            (16, KvFormat::F16, 32, 32_768),
        ] {
            let layout = CacheLayout::new(&gpu, &shape(4, 4, head_dim), format);
            assert_eq!((layout.blocks_beside(), layout.blocks_max(&gpu)), (beside, most), "{head_dim}");
            let plane = layout.plane(&gpu, "cache", beside + 1);
            assert_eq!(plane.bytes(), 2 * 4 * u64::from(TEXTURE_ROW));
        }
    }
}
