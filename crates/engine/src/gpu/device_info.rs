//! What a device is.

/// What a device is, for logs and the status page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
    /// Its driver and the driver's version.
    pub driver: String,
    /// What it is.
    pub kind: DeviceKind,
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A GPU passed through to a virtual machine, or one that does not say what it is.
    Virtual,
    /// A software driver.
    Cpu,
}
