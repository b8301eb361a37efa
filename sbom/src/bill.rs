//! Writes the bill.

use serde_json::{Map, Value, json};

use crate::SbomError;
use crate::checksums::Checksums;
use crate::tree::{CrateFacts, CrateId, CrateTree};

/// The bill of what is linked; what ran besides while it was built is there too, marked as not in the binary.
pub(crate) fn write(
    linked: &CrateTree,
    built: &CrateTree,
    checksums: &Checksums,
) -> Result<Value, SbomError> {
    let mut components = Vec::new();
    for (id, facts) in built.crates.iter().filter(|(id, _)| **id != built.root) {
        let linked = linked.crates.get(id);
        let mut component = component(id, linked.unwrap_or(facts), "library");
        component.insert("scope".to_owned(), if linked.is_some() { "required" } else { "excluded" }.into());
        if !facts.is_own {
            let key = (id.name.clone(), id.version.clone());
            let checksum = checksums.get(&key).ok_or_else(|| SbomError::NoChecksum(reference(id)))?;
            component.insert("hashes".to_owned(), json!([{"alg": "SHA-256", "content": checksum}]));
            component.insert("purl".to_owned(), format!("pkg:cargo/{}@{}", id.name, id.version).into());
        }
        components.push(component);
    }
    let dependencies: Vec<Value> = built
        .crates
        .iter()
        .map(|(id, facts)| {
            let uses: Vec<String> = facts.uses.iter().map(reference).collect();
            json!({"ref": reference(id), "dependsOn": uses})
        })
        .collect();
    let binary = linked.crates.get(&linked.root).map(|facts| component(&linked.root, facts, "application"));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": binary},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(id: &CrateId, facts: &CrateFacts, kind: &str) -> Map<String, Value> {
    let features = facts.features.iter().cloned().collect::<Vec<_>>().join(",");
    let component = json!({
        "type": kind,
        "bom-ref": reference(id),
        "name": id.name,
        "version": id.version,
        "licenses": [{"expression": expression(&facts.licence)}],
        "properties": [{"name": "cargo:features", "value": features}],
    });
    if let Value::Object(component) = component { component } else { Map::new() }
}

fn reference(id: &CrateId) -> String {
    format!("{}@{}", id.name, id.version)
}

/// A licence as SPDX writes it: older crates part those that one may choose from by a slash.
fn expression(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn what_is_linked_is_required_and_what_only_builds_it_is_not() {
        let root = "0\tstint v0.1.0 (/x)\tApache-2.0\tlocal\n1\ta v1.0.0\tMIT / Zlib\tstd\n";
        let linked = tree::read(root).unwrap();
        let built = tree::read(&format!("{root}1\tb v2.0.0 (proc-macro)\tMIT\t\n")).unwrap();
        let key = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let mut checksums =
            Checksums::from([(key("a", "1.0.0"), "aa".to_owned()), (key("b", "2.0.0"), "bb".to_owned())]);
        let bill = write(&linked, &built, &checksums).unwrap();
        assert_eq!(bill["metadata"]["component"]["properties"][0]["value"], "local");
        assert_eq!(bill["components"][0]["scope"], "required");
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Zlib");
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "aa");
        assert_eq!(bill["components"][1]["scope"], "excluded");
        assert_eq!(bill["dependencies"][2]["dependsOn"], json!(["a@1.0.0", "b@2.0.0"]));
        checksums.clear();
        assert!(matches!(write(&linked, &built, &checksums), Err(SbomError::NoChecksum(_))));
    }
}
