//! Why a model file could not be used.

use thiserror::Error;

/// Why a model file could not be used.
#[derive(Debug, Error)]
pub enum GgufError {
    /// The file could not be opened.
    #[error("cannot open the model file {path}: check the path and its permissions")]
    Open {
        /// The path as it was given.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system could not read the file.
    #[error("cannot read the model file")]
    Read(#[source] std::io::Error),
    /// The file became shorter since it was opened.
    #[error(
        "the model file ended while it was read: something cut it short, or writes it anew; rename a whole file to its name, and \
         load it again"
    )]
    Shortened,
    /// The file was written to since it was opened, so what was read may be of both.
    #[error(
        "the model file changed while it was read: do not write to it, rename another to its name, and load it again"
    )]
    Changed,
    /// The bytes are not what the format prescribes.
    #[error("not a usable GGUF file: {0}; download or export it again")]
    Malformed(String),
    /// The model is in several files, which are not all there or not of one model.
    #[error("the model is in several files: {0}")]
    Split(String),
    /// The file holds something else than a whole model.
    #[error("the file holds {what} and no model: {remedy}")]
    NotAModel {
        /// What it holds.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A metadata key that the model needs is absent or of another type.
    #[error("the model file has no usable `{0}`: export it again with current tools")]
    MissingKey(String),
    /// A tensor that the model needs is absent.
    #[error("the model file has no tensor `{0}`: it is incomplete or of another architecture")]
    MissingTensor(String),
    /// A tensor is stored in a format that the engine does not read.
    #[error(
        "tensor `{name}` is stored as {kind}, which is not read: take a file in F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, \
         Q4_K, Q5_K, Q6_K, IQ4_NL or MXFP4 (`Q4_K_M` is the usual choice), or serve this one by llama.cpp (`kind = \"llamacpp\"`)"
    )]
    TensorType {
        /// The tensor.
        name: String,
        /// The format's name.
        kind: &'static str,
    },
}
