//! The matrices of a layer's experts on the device. A part of them holds whole experts, so that one dispatch multiplies with any
//! of a part's.

use stint_gguf::{Gguf, Tensor};

use super::error::EngineError;
use super::gpu::Gpu;
use super::repack::number_bytes;
use super::weights::{TensorSlice, WeightMatrix};

/// Tensors that are multiplied by the same rows and are of one format: of each expert its rows of all of them, then the next expert's.
pub(crate) struct ExpertMatrix {
    pub(crate) matrix: WeightMatrix,
    /// Of one expert.
    pub(crate) rows: u32,
    /// How many results stand before those of these tensors.
    pub(crate) first: u32,
}

/// How large tensors of experts are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpertTensorSize {
    pub(crate) experts: u32,
    /// Of one expert.
    pub(crate) rows: u32,
    pub(crate) columns: u32,
}

impl ExpertMatrix {
    /// Uploads tensors of this size. Neighbours of one format become one matrix.
    pub(crate) fn load(
        gpu: &Gpu,
        gguf: &Gguf,
        names: &[String],
        size: ExpertTensorSize,
        part_max: u64,
    ) -> Result<Vec<Self>, EngineError> {
        let tensors = names
            .iter()
            .map(|name| WeightMatrix::tensor(gguf, name, size.columns))
            .collect::<Result<Vec<_>, _>>()?;
        let wanted = size.experts as usize * size.rows as usize;
        if let Some((name, _)) = names.iter().zip(&tensors).find(|(_, tensor)| tensor.rows != wanted) {
            let ExpertTensorSize { experts, rows, .. } = size;
            return Err(EngineError::Model(format!(
                "tensor `{name}` has not {rows} rows for {experts} experts"
            )));
        }
        let mut first = 0;
        let load = |tensors: &[Tensor<'_>]| {
            let loaded = Self::upload(gpu, tensors, first, size, part_max)?;
            first += loaded.rows;
            Ok(loaded)
        };
        tensors.chunk_by(|a, b| a.kind == b.kind).map(load).collect()
    }

    fn upload(
        gpu: &Gpu,
        tensors: &[Tensor<'_>],
        first: u32,
        size: ExpertTensorSize,
        part_max: u64,
    ) -> Result<Self, EngineError> {
        let Some(kind) = tensors.first().map(|tensor| tensor.kind) else {
            return Err(EngineError::Model("a layer of it has no experts".into()));
        };
        let rows = size.rows * u32::try_from(tensors.len()).unwrap_or(u32::MAX);
        let expert = number_bytes(kind, size.columns as usize) as u64 * u64::from(rows);
        if expert > part_max {
            return Err(EngineError::Model("one of its experts is too large for this device".into()));
        }
        let together = usize::try_from(part_max / expert.max(1)).unwrap_or(usize::MAX);
        let each = size.rows as usize;
        let slices = |expert: u32| {
            let slice = move |tensor| TensorSlice { tensor, first: expert as usize * each, rows: each };
            (0..tensors.len()).map(slice)
        };
        let experts: Vec<_> = (0..size.experts).collect();
        let parts = experts
            .chunks(together)
            .map(|experts| (kind, experts.iter().flat_map(|expert| slices(*expert)).collect::<Vec<_>>()));
        let matrix = WeightMatrix::upload_parts(gpu, tensors, size.columns, parts)?;
        Ok(Self { matrix, rows, first })
    }
}
