//! Reads what `cargo tree` prints.

use std::collections::{BTreeMap, BTreeSet};

use crate::SbomError;

/// What each line has behind its depth: the crate, its licence and its features.
pub(crate) const FORMAT: &str = "\t{p}\t{l}\t{f}";

/// A crate: its name and version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CrateId {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// What is told of a crate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CrateFacts {
    pub(crate) licence: String,
    pub(crate) features: BTreeSet<String>,
    /// The crates that it uses.
    pub(crate) uses: BTreeSet<CrateId>,
    /// True if it is in this workspace, and not from a registry.
    pub(crate) is_own: bool,
}

/// The crates of a build, and the one that all are there for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CrateTree {
    pub(crate) root: CrateId,
    pub(crate) crates: BTreeMap<CrateId, CrateFacts>,
}

pub(crate) fn read(lines: &str) -> Result<CrateTree, SbomError> {
    let mut crates: BTreeMap<CrateId, CrateFacts> = BTreeMap::new();
    let mut way: Vec<CrateId> = Vec::new();
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let (depth, id, new) = read_line(line).ok_or_else(|| SbomError::Line(line.to_owned()))?;
        way.truncate(depth);
        if let Some(user) = way.last().and_then(|user| crates.get_mut(user)) {
            user.uses.insert(id.clone());
        }
        let facts = crates.entry(id.clone()).or_default();
        facts.features.extend(new.features);
        (facts.licence, facts.is_own) = (new.licence, new.is_own);
        way.push(id);
    }
    let root = way.into_iter().next().ok_or_else(|| SbomError::Cargo("it said nothing".to_owned()))?;
    Ok(CrateTree { root, crates })
}

/// How deep a crate stands, which it is, and what the line says of it. A star at the end means that what it uses was told before.
fn read_line(line: &str) -> Option<(usize, CrateId, CrateFacts)> {
    let line = line.strip_suffix(" (*)").unwrap_or(line);
    let mut parts = line.split('\t');
    let (depth, package, licence, features) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let is_own = words.any(|word| word.starts_with("(/"));
    let features = features.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let facts = CrateFacts { licence: licence.to_owned(), features, is_own, uses: BTreeSet::new() };
    Some((depth.parse().ok()?, CrateId { name: name.to_owned(), version: version.to_owned() }, facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_is_there_again_keeps_what_it_uses() {
        let lines = "0\tstint v0.1.0 (/a b/c)\tApache-2.0\tdefault,local\n1\ta v1.0.0\tMIT\tstd\n2\tb v2.0.0 (proc-macro)\tMIT/Apache-2.0\t\n\
                     1\tb v2.0.0 (proc-macro)\tMIT/Apache-2.0\t\n1\tc v3.0.0\tMIT\t\n2\ta v1.0.0\tMIT\tstd (*)\n";
        let tree = read(lines).unwrap();
        let names = |id: &CrateId| tree.crates[id].uses.iter().map(|id| id.name.as_str()).collect::<String>();
        let id = |name: &str| tree.crates.keys().find(|id| id.name == name).unwrap();
        assert_eq!(
            (names(&tree.root), names(id("a")), names(id("b")), names(id("c"))),
            ("abc".into(), "b".into(), String::new(), "a".into())
        );
        assert!(tree.crates[&tree.root].is_own && !tree.crates[id("b")].is_own);
        assert!(matches!(read("0 stint"), Err(SbomError::Line(_))));
    }
}
