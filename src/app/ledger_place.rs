//! Whether the ledger's file can be where the configuration has it, for `stint check`: without its lock, and nothing is made or changed.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use stint_storage::Settings;

/// What every database of `SQLite` begins with: <https://sqlite.org/fileformat.html>.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Why the start would refuse the place, and what to do; nothing where that cannot be told from outside.
pub(super) fn problem(settings: &Settings) -> Option<String> {
    let Settings::Sqlite(settings) = settings else { return None };
    let (path, remedy) = (settings.path.display(), "name another path in [ledger], or in STINT_LEDGER");
    what_is_wrong(&settings.path).map(|what| format!("the ledger cannot be at {path}, {what}; {remedy}"))
}

fn what_is_wrong(path: &Path) -> Option<&'static str> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Some("which is a folder"),
        Ok(found) => (found.is_file() && is_other_file(path)).then_some("which is no database of stint's"),
        Err(_) => {
            let parent = path.ancestors().skip(1).find(|parent| parent.exists())?;
            (!parent.is_dir()).then_some("which is below a file")
        }
    }
}

/// True if there is anything in it that is no database. What may not be read here may be right.
fn is_other_file(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut head));
    read.is_ok() && !head.is_empty() && head != MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_where_no_database_can_be_is_found_without_touching_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("notes"), "milk, bread").unwrap();
        std::fs::write(path("empty"), "").unwrap();
        std::fs::write(path("books"), b"SQLite format 3\0 and so on").unwrap();
        for (name, expected) in [
            ("notes", Some("which is no database of stint's")),
            ("notes/ledger.db", Some("which is below a file")),
            ("", Some("which is a folder")),
            ("empty", None),
            ("books", None),
            ("new/folder/ledger.db", None),
        ] {
            assert_eq!(what_is_wrong(&path(name)), expected, "{name}");
        }
        assert!(!path("new").exists());
    }
}
