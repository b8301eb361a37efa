//! The index of Python packages, as `pip` on this machine has it configured: where a package's file is.

use std::path::PathBuf;

use reqwest::Client;

use super::download::{DownloadError, shown};

/// What `pip` uses where nothing is configured.
const PUBLIC: &str = "https://pypi.org/simple";

/// The index that is asked: the stated one, else the one in `pip`'s variable, else in its files.
pub(super) fn index(stated: Option<&str>, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let configured =
        || files(variable).iter().rev().find_map(|file| configured_in(&std::fs::read_to_string(file).ok()?));
    let index = stated.map(str::to_owned).or_else(|| variable("PIP_INDEX_URL")).or_else(configured);
    index.unwrap_or_else(|| PUBLIC.to_owned())
}

/// The files that `pip` reads; later ones win.
fn files(variable: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/pip.conf")];
    if let Some(home) = variable("HOME").map(PathBuf::from) {
        let settings = variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        files.extend([home.join(".pip/pip.conf"), settings.join("pip/pip.conf")]);
    }
    files.extend(variable("PIP_CONFIG_FILE").map(PathBuf::from));
    files
}

/// `index-url` of `[global]` or `[install]`.
fn configured_in(text: &str) -> Option<String> {
    let mut is_read = false;
    let mut index = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            is_read = matches!(section.trim_end_matches(']'), "global" | "install");
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_read)
            && matches!(key.trim(), "index-url" | "index_url")
        {
            index = Some(value.trim().to_owned());
        }
    }
    index
}

/// The address of a wheel on an index's page for its package.
pub(super) async fn wheel_address(
    client: &Client,
    index: &str,
    package: &str,
    version: &str,
) -> Result<Option<String>, DownloadError> {
    let page = format!("{}/{package}/", index.trim_end_matches('/'));
    let unreachable = |error: reqwest::Error| DownloadError::Unreachable(shown(&page), error.without_url());
    let response = client.get(&page).header("accept", "text/html").send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(DownloadError::Status(shown(&page), response.status().as_u16()));
    }
    let base = response.url().clone();
    let text = response.text().await.map_err(unreachable)?;
    let file = format!("{}-{version}-py3-none-any.whl", package.replace('-', "_"));
    let found = links(&text).find(|link| {
        let path = link.split(['?', '#']).next().unwrap_or_default();
        path.rsplit('/').next() == Some(&file)
    });
    Ok(found.and_then(|link| base.join(&link).ok()).map(|url| url.to_string()))
}

/// The targets of a page's links.
fn links(page: &str) -> impl Iterator<Item = String> {
    page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        Some(rest[1..].split(quote).next()?.replace("&amp;", "&"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_one_that_pip_uses() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("pip.conf");
        std::fs::write(
            &file,
            "[list]\nindex-url = a\n[global]\ncert = x\nindex-url = https://files.example/simple\n",
        )
        .unwrap();
        let path = file.to_str().unwrap().to_owned();
        let variable = move |name: &str| (name == "PIP_CONFIG_FILE").then(|| path.clone());
        assert_eq!(index(None, &variable), "https://files.example/simple");
        assert_eq!(index(Some("https://other.example"), &variable), "https://other.example");
        let both = |name: &str| match name {
            "PIP_INDEX_URL" => Some("https://set.example".to_owned()),
            name => variable(name),
        };
        assert_eq!(index(None, &both), "https://set.example");
    }

    #[test]
    fn links_are_found_in_a_page_however_they_are_quoted() {
        let page = "<a href=\"../a-1.whl#sha256=0\">a</a><a class=x href='b.whl?x&amp;y'>b</a><a href=c>";
        assert_eq!(links(page).collect::<Vec<_>>(), ["../a-1.whl#sha256=0", "b.whl?x&y"]);
    }
}
