//! The real binary with an admin API, and a model whose upstream is not there.

use std::process::{Output, Stdio};

use serde_json::Value;

use super::{Answer, Folder, Process, free_port};

/// The admin API's token.
pub(crate) const TOKEN: &str = "the-token-of-the-admin-api";

/// A folder whose server has an admin API.
#[derive(Debug)]
pub(crate) struct Managed {
    pub(crate) folder: Folder,
    /// Where the admin API is, while the server runs.
    pub(crate) admin: String,
}

impl Managed {
    /// Two models, `m` and `n`, and whatever else the configuration is to say.
    pub(crate) fn new(more: &str) -> Managed {
        let port = free_port();
        let folder = Folder::new(&format!(
            "[engine]\nembedded = false\n[admin]\nlisten = \"127.0.0.1:{port}\"\ntoken_file = \"admin.token\"\n\
             [[backend]]\nbase_url = \"http://127.0.0.1:1/v1\"\nunknown_members = \"refuse\"\n\
             [[backend.model]]\nname = \"m\"\nprice_input = \"1\"\nprice_output = \"1\"\n\
             [[backend.model]]\nname = \"n\"\nprice_input = \"1\"\nprice_output = \"1\"\n{more}"
        ));
        std::fs::write(folder.path().join("admin.token"), TOKEN).unwrap();
        Managed { folder, admin: format!("http://127.0.0.1:{port}") }
    }

    /// Asks the admin API, with this secret if any.
    pub(crate) async fn ask(&self, secret: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = client.request(method, format!("{}{path}", self.admin));
        if !secret.is_empty() {
            request = request.bearer_auth(secret);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        Answer::of(request).await
    }

    /// Makes a key by the admin API: its id and its secret.
    pub(crate) async fn key(&self, body: &Value) -> (String, String) {
        let answer = self.ask(TOKEN, "POST", "/admin/keys", Some(body)).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let key = answer.json();
        let text = |name: &str| key[name].as_str().unwrap().to_owned();
        (text("id"), text("secret"))
    }

    /// What `stint keys` ends with.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.folder.stint("keys").args(words).stdin(Stdio::null()).output().unwrap()
    }

    /// What `stint keys` prints where all goes well.
    pub(crate) fn keys(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What `stint keys` complains of.
    pub(crate) fn complaint(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(!output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn serve(&self) -> Process {
        self.folder.serve()
    }
}
