//! How a layer's cache lies on the device: in buffers, or for software drivers in textures.
//!
//! The cache is a list of blocks, `BLOCK` tokens each. Within a block one head's tokens lie together, of keys other than of values:
//! `cache/places.wgsl` says how in buffers, `cache/textures.wgsl` how in textures. Behind numbers in bytes stand their scales.

use crate::gpu::{BufferAccess, Gpu, Plane, PlaneStorage, PlaneUnit, TEXTURE_ROW};
use crate::kv_format::{KvFormat, SCALED_TOGETHER};
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

    /// Bytes of what a block has of one head: of keys, or of values. A texel has scales of one position, four at most.
    fn head_bytes(self) -> u64 {
        let each = match (self.storage, self.format) {
            (PlaneStorage::Textures, KvFormat::Q8_0) => {
                u64::from(self.head_dim) + 16 * u64::from(self.head_dim.div_ceil(4 * SCALED_TOGETHER))
            }
            _ => self.format.head_bytes(self.head_dim),
        };
        u64::from(BLOCK) * each
    }

    /// Bytes of a block's keys, or of its values.
    fn block_bytes(self) -> u64 {
        u64::from(self.kv_heads) * self.head_bytes()
    }

    /// Bytes of the device's memory that a layer's keys and values of a block take, in textures with what is left of their rows.
    pub(crate) fn block_memory(self) -> u64 {
        let each = match self.storage {
            PlaneStorage::Buffers => self.block_bytes(),
            PlaneStorage::Textures => {
                let row = u64::from(self.kv_heads) * u64::from(TEXTURE_ROW);
                row.div_ceil(u64::from(self.blocks_beside()))
            }
        };
        2 * each
    }

    /// Blocks whose vectors of one head fit into a row of a texture.
    fn blocks_beside(self) -> u32 {
        VECTORS / u32::try_from(self.head_bytes() / 16).unwrap_or(VECTORS).clamp(1, VECTORS)
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

    /// Whether numbers lie in bytes, with scales behind them.
    pub(super) fn is_scaled(self) -> bool {
        self.format == KvFormat::Q8_0
    }

    /// A shader that reads or writes the cache, behind the part that differs between layouts.
    pub(super) fn shader(self, rest: &[&str]) -> String {
        let row = format!("const TEXTURE_ROW = {TEXTURE_ROW}u;");
        let (places, textures) = (include_str!("cache/places.wgsl"), include_str!("cache/textures.wgsl"));
        let (unscaled, eights) = (include_str!("cache/unscaled.wgsl"), include_str!("cache/eights.wgsl"));
        let bytes = include_str!("cache/bytes.wgsl");
        let own = match (self.storage, self.format) {
            (PlaneStorage::Buffers, KvFormat::F16) => [include_str!("cache/f16.wgsl"), unscaled, places, ""],
            (PlaneStorage::Buffers, KvFormat::F32) => [include_str!("cache/f32.wgsl"), unscaled, places, ""],
            (PlaneStorage::Buffers, KvFormat::Q8_0) => [bytes, include_str!("cache/q8.wgsl"), places, ""],
            (PlaneStorage::Textures, KvFormat::F16) => {
                [&*row, textures, eights, include_str!("cache/texels_f16.wgsl")]
            }
            (PlaneStorage::Textures, KvFormat::F32) => {
                [&*row, textures, eights, include_str!("cache/texels_f32.wgsl")]
            }
            (PlaneStorage::Textures, KvFormat::Q8_0) => {
                [&*row, textures, bytes, include_str!("cache/texels_q8.wgsl")]
            }
        };
        [&own[..], rest].concat().join("\n")
    }
}

/// What lies in a plane.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePart {
    Keys,
    Values,
}

/// A scale as [`KvFormat::Q8_0`] has it: that of the largest of these numbers, the upper half of a float, rounded up.
#[cfg(test)]
fn scale_of(numbers: &[f32]) -> f32 {
    let most = numbers.iter().fold(0f32, |most, number| most.max(number.abs()));
    f32::from_bits(((most / 127.0).to_bits() + 0xffff) & 0xffff_0000)
}

/// Planes as tests see them: the numbers of all blocks in plain order, by block, head, position and place in the head.
#[cfg(test)]
impl CacheLayout {
    /// All heads at all positions, each by its block, its head and its position.
    fn heads(self, blocks: u32) -> impl Iterator<Item = [u32; 3]> {
        let heads = self.kv_heads;
        (0..blocks * heads * BLOCK).map(move |at| [at / BLOCK / heads, at / BLOCK % heads, at % BLOCK])
    }

    /// The byte where what a block has of a head begins.
    fn origin(self, block: u32, head: u32) -> usize {
        let bytes = u32::try_from(self.head_bytes()).unwrap();
        let at = match self.storage {
            PlaneStorage::Buffers => (block * self.kv_heads + head) * bytes,
            // One head's blocks side by side.
            PlaneStorage::Textures => {
                let row = block / self.blocks_beside() * self.kv_heads + head;
                row * TEXTURE_ROW + block % self.blocks_beside() * bytes
            }
        };
        at as usize
    }

    /// The place of a head's n-th number at a position, counted in numbers from there on.
    fn number_place(self, part: CachePart, position: u32, n: u32) -> usize {
        let size = self.head_dim;
        // In a texture both by as many as two texels have of floats, and one of bytes.
        let together = if self.is_scaled() { 16 } else { 8 };
        let at = match (self.storage, part) {
            // Keys of all positions by fours, values of each by 32.
            (PlaneStorage::Buffers, CachePart::Keys) => (n / 4 * BLOCK + position) * 4 + n % 4,
            (PlaneStorage::Buffers, CachePart::Values) => {
                let part = n / 32 * 32;
                part * BLOCK + position * (size - part).min(32) + n % 32
            }
            (PlaneStorage::Textures, CachePart::Keys) => {
                (n / together * BLOCK + position) * together + n % together
            }
            (PlaneStorage::Textures, CachePart::Values) => position * size + n,
        };
        at as usize
    }

    /// The byte of the upper half of the n-th scale of a head at a position, from where its numbers begin.
    fn scale_place(self, position: u32, n: u32) -> usize {
        let at = match self.storage {
            PlaneStorage::Buffers => (n / 2 * BLOCK + position) * 4 + n % 2 * 2,
            PlaneStorage::Textures => (n / 4 * BLOCK + position) * 16 + n % 4 * 4 + 2,
        };
        (BLOCK * self.head_dim + at) as usize
    }

    /// What is added to a byte, without a carry, where textures have it moved up.
    fn moved(self, n: u32) -> u8 {
        if self.storage == PlaneStorage::Textures && n % 4 < 3 { 0x80 } else { 0 }
    }

    /// Puts a head's numbers at a position into these bytes. Returns them as they are there.
    fn put(self, all: &mut [u8], part: CachePart, at: [u32; 3], numbers: &[f32]) -> Vec<f32> {
        let [block, head, position] = at;
        let own = &mut all[self.origin(block, head)..];
        let scales: Vec<f32> = if self.is_scaled() {
            numbers.chunks(SCALED_TOGETHER as usize).map(scale_of).collect()
        } else {
            Vec::new()
        };
        let mut kept = Vec::new();
        for (n, number) in (0u32..).zip(numbers) {
            let place = self.number_place(part, position, n);
            match self.format {
                KvFormat::F16 => {
                    let half = half::f16::from_f32(*number);
                    own[2 * place..][..2].copy_from_slice(&half.to_le_bytes());
                    kept.push(half.to_f32());
                }
                KvFormat::F32 => {
                    own[4 * place..][..4].copy_from_slice(&number.to_le_bytes());
                    kept.push(*number);
                }
                KvFormat::Q8_0 => {
                    let group = n / SCALED_TOGETHER;
                    let scale = scales[group as usize];
                    let upper = self.scale_place(position, group);
                    own[upper..][..2].copy_from_slice(&scale.to_le_bytes()[2..]);
                    #[expect(clippy::cast_possible_truncation, reason = "the largest is 127")]
                    let byte = (number / scale).round_ties_even() as i8;
                    own[place] = byte.cast_unsigned() ^ self.moved(n);
                    kept.push(f32::from(byte) * scale);
                }
            }
        }
        kept
    }

    /// A head's n-th number at a position.
    fn get(self, all: &[u8], part: CachePart, [block, head, position]: [u32; 3], n: u32) -> f32 {
        let own = &all[self.origin(block, head)..];
        let place = self.number_place(part, position, n);
        match self.format {
            KvFormat::F16 => half::f16::from_le_bytes([own[2 * place], own[2 * place + 1]]).to_f32(),
            KvFormat::F32 => bytemuck::pod_read_unaligned(&own[4 * place..][..4]),
            KvFormat::Q8_0 => {
                let upper = self.scale_place(position, n / SCALED_TOGETHER);
                let scale = f32::from_le_bytes([0, 0, own[upper], own[upper + 1]]);
                f32::from((own[place] ^ self.moved(n)).cast_signed()) * scale
            }
        }
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
        let mut all = vec![0; usize::try_from(plane.bytes()).unwrap()];
        let heads = self.heads(blocks).zip(numbers.chunks(self.head_dim as usize));
        let kept = heads.flat_map(|(at, numbers)| self.put(&mut all, part, at, numbers)).collect();
        plane.fill(gpu, &all);
        (plane, kept)
    }

    /// The numbers of a plane.
    pub(super) fn read(self, gpu: &Gpu, part: CachePart, blocks: u32, plane: &Plane) -> Vec<f32> {
        let all: Vec<u8> = plane.read(gpu, usize::try_from(plane.bytes()).unwrap());
        let all = &all;
        let head = |at| (0..self.head_dim).map(move |n| self.get(all, part, at, n));
        self.heads(blocks).flat_map(head).collect()
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
            (128, KvFormat::Q8_0, 7, 7168),
            (256, KvFormat::Q8_0, 3, 3072),
            (16, KvFormat::Q8_0, 32, 32_768),
        ] {
            let layout = CacheLayout::new(&gpu, &shape(4, 4, head_dim), format);
            assert_eq!((layout.blocks_beside(), layout.blocks_max(&gpu)), (beside, most), "{head_dim}");
            let plane = layout.plane(&gpu, "cache", beside + 1);
            assert_eq!(plane.bytes(), 2 * 4 * u64::from(TEXTURE_ROW));
            // As much as keys and values of one row of blocks each.
            assert_eq!(layout.block_memory(), 2 * (plane.bytes() / 2).div_ceil(u64::from(beside)));
        }
    }
}
