//! `[admin]`: the listener of those who manage keys and accounts.

use std::net::SocketAddr;

use crate::http::AdminSettings;
use stint_types::tenant::SecretToken;

use super::reader::{Section, secret};
use super::tls;

/// A shorter token could be guessed.
const TOKEN_MIN: usize = 16;

const TOKEN_KEYS: secret::SecretKeys =
    secret::SecretKeys { text: "token", variable: "token_env", file: "token_file", is_for_servers: true };

/// `[admin]`; none where the section is absent, or nobody serves and its token is not there.
pub(super) fn admin(root: &Section<'_>, others: &[SocketAddr]) -> Option<AdminSettings> {
    if !root.has("admin") {
        return None;
    }
    let admin = root.section("admin");
    let listen = admin.get_or("listen", SocketAddr::from(([127, 0, 0, 1], 8090)));
    let hosts = admin.get_or("hosts", Vec::<String>::new());
    if others.contains(&listen) && listen.port() != 0 {
        let remedy = "give it a port of its own: who reaches the API need not reach this";
        admin.reject("listen", "the address of another listener", remedy);
    }
    if !listen.ip().is_loopback() && hosts.is_empty() {
        let remedy = "write the names by which it is called, like hosts = [\"stint.internal\"], or listen on 127.0.0.1";
        admin.reject("hosts", "missing for an address that others reach", remedy);
    }
    let tls = tls::tls(&admin);
    Some(AdminSettings { listen, token: token(&admin)?, hosts, tls })
}

fn token(admin: &Section<'_>) -> Option<SecretToken> {
    let named = ["token", "token_env", "token_file"].into_iter().any(|key| admin.has(key));
    let token = secret::read(admin, &TOKEN_KEYS);
    if !named {
        let remedy = "name an environment variable or a file that has it (token_env or token_file); \
                      `stint keys new` makes a good one";
        admin.reject("token_env", "no token", remedy);
    }
    let short = |token: &String| token.len() < TOKEN_MIN;
    if token.as_ref().is_some_and(short) {
        let key = if admin.has("token_file") { "token_file" } else { "token_env" };
        let what = format!("a token of fewer than {TOKEN_MIN} characters");
        admin.reject(key, what, "`stint keys new` makes one that cannot be guessed");
    }
    token.map(SecretToken::new)
}
