//! Which of the machine's devices to use.

use crate::error::EngineError;

use super::device_info::{DeviceInfo, DeviceKind};

/// The best device whose name contains the text; a software one only if allowed.
pub(super) fn choose(
    name: Option<&str>,
    allow_cpu: bool,
) -> Result<(wgpu::Adapter, DeviceInfo), EngineError> {
    let backends = wgpu::Backends::PRIMARY;
    let descriptor =
        wgpu::InstanceDescriptor { backends, ..wgpu::InstanceDescriptor::new_without_display_handle() };
    let adapters = pollster::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(backends));
    let found: Vec<_> =
        adapters.into_iter().map(|adapter| (describe(&adapter.get_info()), adapter)).collect();
    if found.is_empty() {
        return Err(EngineError::NoDevice);
    }
    let names = found.iter().map(|(info, _)| format!("{} ({:?})", info.name, info.kind));
    let names = names.collect::<Vec<_>>().join(", ");
    let infos: Vec<_> = found.iter().map(|(info, _)| info.clone()).collect();
    match pick(&infos, name, allow_cpu) {
        Ok(index) => {
            let chosen = found.into_iter().nth(index).map(|(info, adapter)| (adapter, info));
            chosen.ok_or(EngineError::NoDevice)
        }
        Err(remedy) => Err(EngineError::NoUsableDevice { found: names, remedy }),
    }
}

/// The index of the best device, or what to change.
fn pick(found: &[DeviceInfo], name: Option<&str>, allow_cpu: bool) -> Result<usize, String> {
    let wanted = name.map(str::to_lowercase);
    let named =
        |info: &DeviceInfo| wanted.as_ref().is_none_or(|name| info.name.to_lowercase().contains(name));
    let best = (0..found.len()).filter(|&i| named(&found[i])).min_by_key(|&i| found[i].kind);
    match best {
        None => Err(format!("none is called `{}`: change `adapter`", name.unwrap_or_default())),
        Some(i) if found[i].kind == DeviceKind::Cpu && !allow_cpu => {
            Err("a software driver takes minutes for large models: set `allow_cpu` if that is meant"
                .to_owned())
        }
        Some(i) => Ok(i),
    }
}

fn describe(info: &wgpu::AdapterInfo) -> DeviceInfo {
    let kind = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => DeviceKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => DeviceKind::Integrated,
        wgpu::DeviceType::Cpu => DeviceKind::Cpu,
        wgpu::DeviceType::VirtualGpu | wgpu::DeviceType::Other => DeviceKind::Virtual,
    };
    let driver = format!("{} {}", info.driver, info.driver_info);
    DeviceInfo { name: info.name.clone(), driver: driver.trim().to_owned(), kind }
}

/// Nine tenths of the memory that a device has, the rest being for others; nothing where its driver does not tell.
#[cfg(not(target_vendor = "apple"))]
pub(super) fn memory(adapter: &wgpu::Adapter) -> Option<u64> {
    // `VK_MEMORY_HEAP_DEVICE_LOCAL_BIT`.
    const DEVICE_LOCAL: u32 = 1;
    // SAFETY: the adapter is only asked, and outlives the answer.
    let vulkan = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let instance = vulkan.shared_instance().raw_instance();
    // SAFETY: the device is the adapter's own, of this instance.
    let found = unsafe { instance.get_physical_device_memory_properties(vulkan.raw_physical_device()) };
    let heaps = found.memory_heaps.iter().take(found.memory_heap_count as usize);
    let own = heaps.filter(|heap| heap.flags.as_raw() & DEVICE_LOCAL != 0).map(|heap| heap.size).max()?;
    Some(own / 10 * 9)
}

/// Not asked there: memory is shared with the system.
#[cfg(target_vendor = "apple")]
pub(super) fn memory(_: &wgpu::Adapter) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: Option<&str>, allow_cpu: bool, expected: Option<usize>) {
        let device = |name: &str, kind| DeviceInfo { name: name.into(), driver: String::new(), kind };
        let found = [
            device("llvmpipe (LLVM 15)", DeviceKind::Cpu),
            device("Intel UHD", DeviceKind::Integrated),
            device("NVIDIA H200", DeviceKind::Discrete),
        ];
        assert_eq!(pick(&found, name, allow_cpu).ok(), expected);
    }

    #[test]
    fn a_discrete_device_comes_first_and_a_name_decides() {
        check(None, false, Some(2));
        check(Some("intel"), false, Some(1));
        check(Some("LLVM"), true, Some(0));
        check(Some("LLVM"), false, None);
        check(Some("radeon"), true, None);
    }
}
