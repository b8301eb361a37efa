//! What is found of a local model before it is loaded, without a device.

/// What is found of a local model before it is loaded.
#[derive(Debug, Default)]
pub(super) struct LocalModelReport {
    /// What its operator should know, each in a line.
    pub(super) notes: Vec<String>,
    /// Bytes of the device's memory that it takes at least.
    pub(super) memory: u64,
}

/// What is to be known of a model with tokens around thoughts that its chat template does not mention.
pub(super) fn tags_note([start, end]: &[String; 2]) -> String {
    format!(
        "it has the tokens {start} and {end}, and its chat template does not mention them: it is taken for a model that does not think; \
         if it does, its thoughts appear as text: state `start_tag` and `end_tag`"
    )
}
