//! What is found of a local model before it is loaded, without a device.

/// What is found of a local model before it is loaded.
#[derive(Debug, Default)]
pub(super) struct LocalModelReport {
    /// What its operator should know, each in a line.
    pub(super) notes: Vec<String>,
    /// Bytes of the device's memory that it takes at least.
    pub(super) memory: u64,
}
