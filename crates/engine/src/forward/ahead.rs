//! The commands of a step, recorded before it is known to come: while the device computes, the host has nothing else to do.
//!
//! Commands say how many rows run, not which: rows, blocks and tokens are in buffers that are written when the step comes. So one that
//! decodes the same number of texts as the last can be recorded beside it.

use std::cell::Cell;

use super::extent::StepExtent;

/// The step that is expected next.
#[derive(Default)]
pub(super) struct RecordedStep(Cell<Option<(StepExtent, wgpu::CommandBuffer)>>);

impl RecordedStep {
    /// Keeps the commands of such a step.
    pub(super) fn keep(&self, extent: StepExtent, commands: wgpu::CommandBuffer) {
        self.0.set(Some((extent, commands)));
    }

    /// The commands of such a step, if it is the one that was expected. Others are dropped.
    pub(super) fn take(&self, extent: StepExtent) -> Option<wgpu::CommandBuffer> {
        self.0.take().filter(|(recorded, _)| recorded.runs_like(extent)).map(|(_, commands)| commands)
    }
}
