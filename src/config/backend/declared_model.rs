//! A model while its configuration is read: each stage here corrects it.

use stint_types::catalog::Model;

use super::kind::BackendKind;
use super::model_config::ModelConfig;

/// A model as its backend declares it.
#[derive(Debug, Clone)]
pub(super) struct DeclaredModel {
    pub(super) kind: BackendKind,
    pub(super) config: ModelConfig,
    pub(super) model: Model,
    /// Whether it is configured how it thinks, in the section itself or in a catalogue entry.
    pub(super) is_thinking_known: bool,
    /// Whether the catalogue has a price under its name, at any host.
    pub(super) is_price_listed: bool,
    /// Where; none for the embedded one.
    pub(super) line: Option<usize>,
}
