//! What kind of device kernels are chosen for.

/// What kind of device kernels are chosen for. It decides over a result's last bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceMode {
    /// A GPU.
    Gpu,
    /// A GPU that multiplies floats alone: the reference for the bytes.
    GpuFloats,
    /// A software driver with subgroups of 8 lanes or more.
    SoftwareByLanes,
    /// One with smaller subgroups.
    SoftwareInTeams,
}

/// How a device likes a sum to be shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReductionStrategy {
    /// Among the lanes of a subgroup or the threads of a workgroup, which meet at barriers.
    Cooperative,
    /// Not at all: a lane does its own sum. For software drivers, where a barrier stops and restarts every
    /// thread, and a reduction goes through the lanes one by one.
    PerLane,
}

/// What activations are multiplied as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActivationFormat {
    /// As they are computed: the reference.
    F32,
    /// In bytes, 32 numbers with a scale in common: a GPU multiplies four of them at once, and reads a quarter. Weights of four to
    /// eight bits are as coarse.
    Int8,
}

impl DeviceMode {
    /// That of a device with subgroups of so many lanes at least.
    pub(super) fn of(is_software: bool, subgroup_min: u32) -> Self {
        match (is_software, subgroup_min) {
            (false, _) => Self::Gpu,
            (true, 8..) => Self::SoftwareByLanes,
            (true, _) => Self::SoftwareInTeams,
        }
    }

    /// Whether kernels run on a processor. Memory that threads share is no nearer there than any other, and a barrier is dear.
    pub(crate) fn is_software(self) -> bool {
        matches!(self, Self::SoftwareByLanes | Self::SoftwareInTeams)
    }

    pub(crate) fn reduction(self) -> ReductionStrategy {
        if self == Self::SoftwareByLanes {
            ReductionStrategy::PerLane
        } else {
            ReductionStrategy::Cooperative
        }
    }

    /// What activations are when they meet weights of whole blocks.
    pub(crate) fn activations(self) -> ActivationFormat {
        if self == Self::Gpu { ActivationFormat::Int8 } else { ActivationFormat::F32 }
    }
}
