//! Whether a device multiplies small matrices in units of its own, of the sizes that the kernel wants. wgpu calls them
//! experimental: they are used only when the crate is built with the feature `cooperative-matrix`.

/// What a device is asked for, so that its matrix units can be used; nothing where it lacks something.
pub(super) fn features(adapter: &wgpu::Adapter) -> wgpu::Features {
    let wanted = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX | wgpu::Features::SHADER_F16;
    let info = adapter.get_info();
    let fits = cfg!(feature = "cooperative-matrix")
        && adapter.features().contains(wanted)
        && (info.subgroup_min_size, info.subgroup_max_size) == (32, 32)
        && adapter.cooperative_matrix_properties().iter().any(is_wanted);
    if fits { wanted } else { wgpu::Features::empty() }
}

/// 16 by 16 by 16 halves, added up as floats.
fn is_wanted(matrix: &wgpu::CooperativeMatrixProperties) -> bool {
    (matrix.m_size, matrix.n_size, matrix.k_size) == (16, 16, 16)
        && matrix.ab_type == wgpu::CooperativeScalarType::F16
        && matrix.cr_type == wgpu::CooperativeScalarType::F32
}

/// The consent that wgpu wants for them.
pub(super) fn consent(features: wgpu::Features) -> wgpu::ExperimentalFeatures {
    if features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
        // SAFETY: who builds with the feature takes wgpu's experiments, and their faults.
        unsafe { wgpu::ExperimentalFeatures::enabled() }
    } else {
        wgpu::ExperimentalFeatures::disabled()
    }
}
