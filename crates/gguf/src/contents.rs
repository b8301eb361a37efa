//! What a file holds, by what it says of itself: hubs offer more than models, and under names that look like a model's.

use super::Gguf;
use super::error::GgufError;

impl Gguf {
    /// Fails where the file holds something else than a whole model.
    ///
    /// # Errors
    /// What it holds, and what to take in its place.
    pub fn check_is_model(&self) -> Result<(), GgufError> {
        let architecture = self.text("general.architecture").unwrap_or_default();
        let refuse = |what, remedy| Err(GgufError::NotAModel { what, remedy });
        match (self.text("general.type").unwrap_or("model"), architecture) {
            ("adapter", _) => refuse("an adapter (LoRA)", "merge it into its model by `llama-export-lora`"),
            ("mmproj" | "clip-vision", _) | (_, "clip") => {
                refuse("the part of a model that sees or hears (mmproj)", "take the file of the model itself")
            }
            ("imatrix", _) | (_, "imatrix") => {
                refuse("a table for quantising (imatrix)", "take the file of the model itself")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::synth::SyntheticModel;
    use super::*;

    #[test]
    fn what_is_no_model_says_what_it_is() {
        let check = |architecture, kind: Option<&'static str>| {
            let texts = kind.map(|kind| ("general.type", kind)).into_iter().collect();
            let synth = SyntheticModel { architecture, texts, ..SyntheticModel::default() };
            let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
            gguf.check_is_model().map_err(|error| error.to_string())
        };
        check("qwen3", None).unwrap();
        check("qwen3", Some("model")).unwrap();
        assert!(check("llama", Some("adapter")).unwrap_err().contains("LoRA"));
        assert!(check("clip", Some("mmproj")).unwrap_err().contains("file of the model itself"));
        assert!(check("clip", None).unwrap_err().contains("mmproj"));
        assert!(check("imatrix", Some("imatrix")).unwrap_err().contains("imatrix"));
    }
}
