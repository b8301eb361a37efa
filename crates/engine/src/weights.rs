//! Matrices on the device: tensors packed into as few buffers as its binding limit allows.
//!
//! Tensors that are multiplied by the same rows (queries, keys and values; gate and up) are stacked
//! into one matrix, so that one run does them all; a tensor larger than the limit (the vocabulary's
//! embedding, often) is split by rows. Both are the same packing.

use stint_gguf::{Gguf, Tensor, TensorType};

use super::error::EngineError;
use super::gpu::{Gpu, Plane, PlaneStorage, PlaneUnit, ReductionStrategy};
use super::repack::{number_bytes, repack, scale_bytes};

/// Some rows of a matrix, in one buffer or texture for each plane.
pub(crate) struct MatrixPart {
    pub(crate) kind: TensorType,
    /// The first of its rows, counted in the whole matrix.
    pub(crate) first: u32,
    pub(crate) rows: u32,
    /// The numbers, without what they are scaled with.
    numbers: Plane,
    /// Scales, minimums and further bits; of floats, nothing.
    scales: Plane,
}

impl MatrixPart {
    /// Its planes, as kernels bind them.
    pub(crate) fn planes(&self) -> [&Plane; 2] {
        [&self.numbers, &self.scales]
    }
}

/// A matrix of `rows` rows of `columns` numbers.
pub(crate) struct WeightMatrix {
    pub(crate) columns: u32,
    pub(crate) rows: u32,
    pub(crate) parts: Vec<MatrixPart>,
    /// Bytes on the device.
    pub(crate) bytes: u64,
}

/// One dispatch reaches so many rows at least, whatever the subgroup size.
const ROWS_MAX: usize = 65_535 * 2;

/// Bytes handed to the queue before waiting for it; each write keeps a copy until it is done, and the copies' memory stays with
/// the process.
const STAGED_MAX: usize = 16 << 20;

/// Bytes of the file that are repacked at once.
const REPACKED_MAX: usize = 1 << 20;

/// So many rows lie interleaved, block by block, for the kernel that works by lanes: what its subgroup of eight lanes reads at once
/// lies together. Other kernels read along a row.
pub(crate) fn interleaved_rows(strategy: ReductionStrategy, kind: TensorType) -> u32 {
    if strategy == ReductionStrategy::PerLane && has_blocks(kind) { 32 } else { 1 }
}

/// Where weights of this kind lie.
pub(crate) fn weight_storage(gpu: &Gpu, kind: TensorType) -> PlaneStorage {
    if has_blocks(kind) { gpu.plane_storage() } else { PlaneStorage::Buffers }
}

/// Whether its rows are of whole blocks of 32 numbers, as the kernel that works by lanes wants them.
pub(crate) fn has_blocks(kind: TensorType) -> bool {
    kind.block_numbers() >= 32
}

/// Rows `first..first + rows` of tensor `tensor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TensorSlice {
    pub(crate) tensor: usize,
    pub(crate) first: usize,
    pub(crate) rows: usize,
}

/// Groups the rows of tensors, in order, into parts of one kind and at most `limit` bytes.
fn pack(
    tensors: &[(TensorType, usize)],
    row_bytes: impl Fn(TensorType) -> usize,
    limit: usize,
) -> Vec<(TensorType, Vec<TensorSlice>)> {
    let mut parts: Vec<(TensorType, Vec<TensorSlice>)> = Vec::new();
    for (tensor, &(kind, rows)) in tensors.iter().enumerate() {
        let most = (limit / row_bytes(kind).max(1)).clamp(1, ROWS_MAX);
        let mut first = 0;
        while first < rows {
            let fits = parts.last().is_some_and(|(last, pieces)| *last == kind && total_rows(pieces) < most);
            if !fits {
                parts.push((kind, Vec::new()));
            }
            let Some((_, pieces)) = parts.last_mut() else { break };
            let piece = TensorSlice { tensor, first, rows: (rows - first).min(most - total_rows(pieces)) };
            first += piece.rows;
            pieces.push(piece);
        }
    }
    parts
}

fn total_rows(pieces: &[TensorSlice]) -> usize {
    pieces.iter().map(|piece| piece.rows).sum()
}

impl WeightMatrix {
    /// Uploads tensors, stacked.
    pub(crate) fn load(gpu: &Gpu, gguf: &Gguf, names: &[String], columns: u32) -> Result<Self, EngineError> {
        Self::load_within(gpu, gguf, names, columns, gpu.binding_max)
    }

    /// Uploads tensors that have so many rows together.
    pub(crate) fn load_rows(
        gpu: &Gpu,
        gguf: &Gguf,
        names: &[String],
        columns: u32,
        rows: u32,
    ) -> Result<Self, EngineError> {
        let matrix = Self::load(gpu, gguf, names, columns)?;
        let fits = matrix.rows == rows;
        fits.then_some(matrix).ok_or_else(|| EngineError::Model(format!("{names:?} have not {rows} rows")))
    }

    /// Uploads tensors, stacked, no part larger than so many bytes.
    pub(crate) fn load_within(
        gpu: &Gpu,
        gguf: &Gguf,
        names: &[String],
        columns: u32,
        part_max: u64,
    ) -> Result<Self, EngineError> {
        let tensors = names.iter().map(|name| Self::tensor(gguf, name, columns));
        Self::upload(gpu, &tensors.collect::<Result<Vec<_>, _>>()?, columns, part_max)
    }

    /// A tensor whose rows are of so many numbers, and can be read on the device.
    pub(crate) fn tensor<'g>(gguf: &'g Gguf, name: &str, columns: u32) -> Result<Tensor<'g>, EngineError> {
        let tensor = gguf.tensor(name)?;
        // Weights are read 16 bytes at a time.
        let half = matches!(tensor.kind, TensorType::F16 | TensorType::Bf16);
        if tensor.columns != columns as usize || half && !tensor.columns.is_multiple_of(8) {
            let message = format!("tensor `{name}` has rows of {} numbers, which do not fit", tensor.columns);
            return Err(EngineError::Model(message));
        }
        Ok(tensor)
    }

    pub(crate) fn upload(
        gpu: &Gpu,
        tensors: &[Tensor<'_>],
        columns: u32,
        part_max: u64,
    ) -> Result<Self, EngineError> {
        let limit = usize::try_from(part_max).unwrap_or(usize::MAX);
        let kinds: Vec<_> = tensors.iter().map(|tensor| (tensor.kind, tensor.rows)).collect();
        let parts = pack(&kinds, |kind| number_bytes(kind, columns as usize), limit);
        Self::upload_parts(gpu, tensors, columns, parts)
    }

    /// Uploads these slices of tensors, each list of them into a part of its own.
    pub(crate) fn upload_parts(
        gpu: &Gpu,
        tensors: &[Tensor<'_>],
        columns: u32,
        parts: impl IntoIterator<Item = (TensorType, Vec<TensorSlice>)>,
    ) -> Result<Self, EngineError> {
        let mut matrix = Self { columns, rows: 0, parts: Vec::new(), bytes: 0 };
        for (kind, pieces) in parts {
            matrix.add(gpu, kind, &pieces, tensors)?;
        }
        Ok(matrix)
    }

    fn add(
        &mut self,
        gpu: &Gpu,
        kind: TensorType,
        pieces: &[TensorSlice],
        tensors: &[Tensor<'_>],
    ) -> Result<(), EngineError> {
        let (rows, columns) = (total_rows(pieces), self.columns as usize);
        let storage = weight_storage(gpu, kind);
        let plane = |label, unit, row: usize| {
            PlaneUpload::new(Plane::new(gpu, label, storage, unit, (rows * row) as u64))
        };
        let mut upload = WeightUpload {
            gpu,
            numbers: plane("weights", PlaneUnit::Vector, number_bytes(kind, columns)),
            scales: plane("scales", PlaneUnit::Word, scale_bytes(kind, columns)),
            kind,
            group: interleaved_rows(gpu.mode.reduction(), kind) as usize,
            row: kind.row_bytes(columns).unwrap_or(0).max(1),
            waiting: Vec::new(),
            staged: 0,
        };
        for piece in pieces {
            upload.upload_slice(&tensors[piece.tensor], piece)?;
        }
        upload.flush();
        let (numbers, scales) = (upload.numbers.finish(gpu), upload.scales.finish(gpu));
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        self.bytes += numbers.bytes() + scales.bytes();
        self.parts.push(MatrixPart { kind, first: self.rows, rows, numbers, scales });
        self.rows += rows;
        // Without it the copies of all small matrices would wait for the first step, as large as the model.
        gpu.queue.submit([]);
        gpu.wait()
    }
}

struct WeightUpload<'a> {
    gpu: &'a Gpu,
    numbers: PlaneUpload,
    scales: PlaneUpload,
    kind: TensorType,
    /// Rows that lie interleaved.
    group: usize,
    /// The bytes of a row in the file.
    row: usize,
    /// Rows that do not make a whole group yet.
    waiting: Vec<u8>,
    staged: usize,
}

impl WeightUpload<'_> {
    fn upload_slice(&mut self, tensor: &Tensor<'_>, piece: &TensorSlice) -> Result<(), EngineError> {
        let end = (piece.first + piece.rows) * self.row;
        let chunk = (REPACKED_MAX / self.row).max(1) * self.row;
        for at in (piece.first * self.row..end).step_by(chunk) {
            let waiting = self.waiting.len();
            self.waiting.resize(waiting + chunk.min(end - at), 0);
            tensor.read_at(at, &mut self.waiting[waiting..])?;
            let group = self.group * self.row;
            let rest = self.waiting.split_off(self.waiting.len() / group * group);
            self.flush();
            self.waiting = rest;
            if self.staged >= STAGED_MAX {
                self.staged = 0;
                self.gpu.queue.submit([]);
                self.gpu.wait()?;
            }
        }
        Ok(())
    }

    /// Uploads the rows that wait.
    fn flush(&mut self) {
        let rows = std::mem::take(&mut self.waiting);
        let groups = rows.chunks(self.group * self.row);
        let planes = if self.group == 1 {
            repack(self.kind, &rows)
        } else {
            repack(self.kind, &groups.flat_map(|rows| self.interleave(rows)).collect::<Vec<_>>())
        };
        self.numbers.write(self.gpu, &planes.numbers);
        self.scales.write(self.gpu, &planes.scales);
        self.staged += planes.numbers.len() + planes.scales.len();
    }

    /// The first block of each row, then the second of each, and so on.
    fn interleave(&self, rows: &[u8]) -> Vec<u8> {
        let block = self.kind.block_bytes();
        let starts = (0..self.row).step_by(block);
        let blocks = starts.flat_map(|at| rows.chunks(self.row).map(move |row| &row[at..at + block]));
        blocks.collect::<Vec<_>>().concat()
    }
}

/// A plane that is filled from its beginning on.
struct PlaneUpload {
    plane: Plane,
    at: u64,
    /// What is too little to be written yet.
    rest: Vec<u8>,
}

impl PlaneUpload {
    fn new(plane: Plane) -> Self {
        Self { plane, at: 0, rest: Vec::new() }
    }

    fn write(&mut self, gpu: &Gpu, bytes: &[u8]) {
        let joined;
        let bytes = if self.rest.is_empty() {
            bytes
        } else {
            self.rest.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.rest);
            &joined
        };
        let unit = self.plane.write_unit();
        let (whole, rest) = bytes.split_at(bytes.len() / unit * unit);
        self.plane.write(gpu, self.at, whole);
        self.at += whole.len() as u64;
        self.rest = rest.to_vec();
    }

    fn finish(mut self, gpu: &Gpu) -> Plane {
        let missing = self.rest.len().next_multiple_of(self.plane.write_unit()) - self.rest.len();
        self.write(gpu, &vec![0; missing]);
        self.plane
    }
}

/// A tensor of one row, as plain floats: a norm's weights, or a bias.
pub(crate) fn vector(gguf: &Gguf, name: &str, length: u32) -> Result<Vec<f32>, EngineError> {
    let tensor = gguf.tensor(name)?;
    if tensor.kind != TensorType::F32 || tensor.columns != length as usize || tensor.rows != 1 {
        return Err(EngineError::Model(format!("tensor `{name}` is not {length} numbers of F32")));
    }
    Ok(tensor.read()?.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tensors: &[(TensorType, usize)], limit: usize, expected: &str) {
        let parts = pack(tensors, |kind| number_bytes(kind, 32), limit);
        let piece = |piece: &TensorSlice| format!("{}:{}+{}", piece.tensor, piece.first, piece.rows);
        let part = |(_, pieces): &(TensorType, Vec<TensorSlice>)| {
            pieces.iter().map(piece).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(parts.iter().map(part).collect::<Vec<_>>().join(" | "), expected);
    }

    #[test]
    fn tensors_are_stacked_while_they_fit_and_split_where_they_do_not() {
        let (f32, q8) = (TensorType::F32, TensorType::Q8_0);
        check(&[(f32, 8), (f32, 4), (f32, 4)], 1 << 20, "0:0+8 1:0+4 2:0+4");
        check(&[(f32, 8), (f32, 4)], 128 * 10, "0:0+8 1:0+2 | 1:2+2");
        check(&[(f32, 25)], 128 * 10, "0:0+10 | 0:10+10 | 0:20+5");
        check(&[(f32, 2), (q8, 2), (q8, 1)], 1 << 20, "0:0+2 | 1:0+2 2:0+1");
        check(&[(q8, ROWS_MAX + 1)], 1 << 30, &format!("0:0+{ROWS_MAX} | 0:{ROWS_MAX}+1"));
    }
}
