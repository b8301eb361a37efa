//! `docs/reference/errors.md`: every code of an error, by its status.

use std::fmt::Write;

use stint::http::ERROR_CODES;

use crate::watching::is_up_to_date;

use super::cell;

const HEAD: &str = "# Errors\n\n\
Every `code` that an error of the API can have. This page is made from the server's own list.\n\n\
An error is in the form of the API that was called. On `/v1/messages` the `code` stands in `details.error_code`. Everywhere `param` names\n\
the member that is wrong, where there is one. A 400 without a `code` has one member with a wrong value, and the message says what it must\n\
be. [The API](../api.md#what-is-refused) says how retries and streams go with errors.\n\n\
| `type` | comes with |\n|---|---|\n\
| `invalid_request_error` | 400 to 422, but for those below |\n\
| `permission_error` | 403 |\n\
| `idempotency_error` | 409 and 422 of an idempotency key |\n\
| `insufficient_quota`, `rate_limit_error` | 429 |\n\
| `server_error` | 500 to 504 |\n\n\
| status | `code` | when | what to do |\n|---|---|---|---|\n";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for code in ERROR_CODES {
        let (when, remedy) = (cell(code.when), cell(code.remedy));
        writeln!(page, "| {} | `{}` | {when} | {remedy} |", code.status, code.word).unwrap();
    }
    page
}

/// IN-22: every code is described.
#[test]
fn the_reference_page_names_every_code_of_an_error() {
    is_up_to_date("docs/reference/errors.md", &page());
}

#[test]
fn what_the_parts_below_the_wire_name_is_listed_too() {
    let read = |path: &str| {
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
    };
    let refusals = read("crates/decide/src/plan/refusal.rs");
    let of_refusals = refusals.split("pub fn code(").nth(1).unwrap().split("    }\n\n").next().unwrap();
    let failures = read("crates/backend/src/failure.rs");
    let of_failures: String = failures.lines().filter(|line| line.contains(": &str = \"")).collect();
    let codes = of_refusals.split('"').skip(1).step_by(2).chain(of_failures.split('"').skip(1).step_by(2));
    let codes: Vec<&str> = codes.collect();
    assert!(codes.len() > 8, "{codes:?}");
    for code in codes {
        assert!(ERROR_CODES.iter().any(|known| known.word == code), "{code}");
    }
}
