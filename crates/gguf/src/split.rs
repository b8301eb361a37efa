//! Models in several files, as hubs have large ones: `NAME-00001-of-00003.gguf` and so on. The first file has the metadata.

use std::path::{Path, PathBuf};

use super::Gguf;
use super::error::GgufError;
use super::source::{GgufSource, ModelFile};

/// More files than any model has.
const PARTS_MAX: u32 = 999;

impl Gguf {
    /// Opens what follows the first file, and takes the tensors of all.
    pub(super) fn open_other_parts(&mut self, path: &Path) -> Result<(), GgufError> {
        let count = self.split("count").unwrap_or(1);
        if count <= 1 {
            return Ok(());
        }
        let refuse = |why: String| Err(GgufError::Split(why));
        let number = self.split("no").unwrap_or(0);
        if number != 0 || count > PARTS_MAX {
            return refuse(format!(
                "it is part {} of {count}, and the first one must be named",
                u64::from(number) + 1
            ));
        }
        for number in 1..count {
            let Some(part_path) = sibling(path, number, count) else {
                let expected = suffix(0, count);
                return refuse(format!(
                    "it is the first of {count} parts, and its name does not end in `{expected}`, so the others are not found"
                ));
            };
            let part = Self::parse(GgufSource::File(ModelFile::open(&part_path)?))?;
            if (part.split("no"), part.split("count")) != (Some(number), Some(count)) {
                // By its name alone: callers hear of it too.
                let name = part_path.file_name().unwrap_or_default().display();
                return refuse(format!("{name} is not part {} of {count} of this model", number + 1));
            }
            self.add_part(part);
        }
        let wanted = self.split("tensors.count").map(|wanted| wanted as usize);
        if wanted.is_some_and(|wanted| wanted != self.entries.len()) {
            return refuse(
                "its parts are not of one model: they have too many or too few tensors".to_owned(),
            );
        }
        Ok(())
    }

    fn add_part(&mut self, part: Self) {
        let place = self.parts.len();
        self.parts.extend(part.parts);
        self.entries.extend(part.entries.into_iter().map(|(name, mut entry)| {
            entry.part = place;
            (name, entry)
        }));
    }

    fn split(&self, name: &str) -> Option<u32> {
        self.integer(&format!("split.{name}"))
    }
}

/// The names of all files of a model in several of which one is named so, the first one first; nothing for any other name.
pub fn part_names(name: &str) -> Option<Vec<String>> {
    let (head, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (stem, number) = head.rsplit_once('-')?;
    let (number, count) = (five_digits(number)?, five_digits(count)?);
    let is_part = (1..=count).contains(&number) && (2..=PARTS_MAX).contains(&count);
    is_part.then(|| (0..count).map(|number| format!("{stem}{}", suffix(number, count))).collect())
}

fn five_digits(text: &str) -> Option<u32> {
    let is_number = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// What the name of a part ends in. Parts are counted from 0, and names from 1.
fn suffix(number: u32, count: u32) -> String {
    format!("-{:05}-of-{count:05}.gguf", number + 1)
}

/// Where another part is, beside the first.
fn sibling(first: &Path, number: u32, count: u32) -> Option<PathBuf> {
    let name = first.file_name()?.to_str()?.strip_suffix(&suffix(0, count))?;
    Some(first.with_file_name(format!("{name}{}", suffix(number, count))))
}

#[cfg(test)]
mod tests {
    use super::super::synth::SyntheticModel;
    use super::*;

    #[test]
    fn the_name_of_a_part_tells_those_of_the_others() {
        let names = part_names("a-b-00002-of-00003.gguf").unwrap();
        assert_eq!(names, ["a-b-00001-of-00003.gguf", "a-b-00002-of-00003.gguf", "a-b-00003-of-00003.gguf"]);
        for other in [
            "a.gguf",
            "a-00001-of-00001.gguf",
            "a-00000-of-00002.gguf",
            "a-00003-of-00002.gguf",
            "a-1-of-2.gguf",
            "a-00001-of-99999.gguf",
        ] {
            assert_eq!(part_names(other), None, "{other}");
        }
    }

    /// A folder of its own, gone with this value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("stint-gguf-split-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        /// Writes a part, and says where. Its tensors are those of a model of so many layers.
        fn write(&self, name: &str, number: u32, count: u32, layers: u32) -> PathBuf {
            let integers = vec![("split.no", number), ("split.count", count)];
            let path = self.0.join(name);
            std::fs::write(&path, SyntheticModel { layers, integers, ..SyntheticModel::default() }.bytes())
                .unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_parts_of_a_model_are_read_as_one() {
        let folder = Folder::new("whole");
        let first = folder.write("m-00001-of-00002.gguf", 0, 2, 1);
        let second = folder.write("m-00002-of-00002.gguf", 1, 2, 3);
        let (gguf, alone) =
            (Gguf::open(&first).unwrap(), Gguf::from_bytes(std::fs::read(&second).unwrap().into()).unwrap());
        gguf.check_tensors().unwrap();
        let name = "blk.2.ffn_down.weight";
        assert_eq!(gguf.tensor(name).unwrap().read().unwrap(), alone.tensor(name).unwrap().read().unwrap());
        assert_eq!(gguf.integer("qwen3.block_count"), Some(1), "the first has the metadata");
        gguf.check_unchanged().unwrap();
        std::fs::File::options().write(true).open(&second).unwrap().set_len(100).unwrap();
        assert!(matches!(gguf.check_unchanged(), Err(GgufError::Changed)));
    }

    #[test]
    fn a_part_that_is_missing_or_another_is_said() {
        let folder = Folder::new("missing");
        let error = |path: &Path| Gguf::open(path).unwrap_err().to_string();
        let first = folder.write("m-00001-of-00002.gguf", 0, 2, 1);
        assert!(error(&first).contains("m-00002-of-00002.gguf"), "{}", error(&first));
        let second = folder.write("m-00002-of-00002.gguf", 0, 1, 1);
        assert!(error(&first).contains("is not part 2 of 2"), "{}", error(&first));
        folder.write("m-00002-of-00002.gguf", 1, 2, 1);
        assert!(
            error(&second).contains("it is part 2 of 2, and the first one must be named"),
            "{}",
            error(&second)
        );
        let renamed = folder.write("renamed.gguf", 0, 2, 1);
        assert!(error(&renamed).contains("-00001-of-00002.gguf"), "{}", error(&renamed));
    }
}
