//! What an operator says of issuers of tokens.

use std::time::Duration;

use crate::oidc::Algorithm;

use super::{check, hash, load_text};

const ISSUER: &str =
    "[[issuer]]\nurl = 'https://login.example.com'\naudiences = ['stint']\naccount_prefix = 'staff'\n";
const ALL: &str = "[[issuer.profile]]\nname = 'all'\n";

#[test]
fn five_lines_take_the_tokens_of_an_issuer() {
    let settings = load_text(&format!("{ISSUER}{ALL}")).unwrap();
    let issuer = &settings.issuers[0];
    assert_eq!(issuer.algorithms, [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA]);
    assert_eq!((issuer.leeway, issuer.keys.refresh), (Duration::from_secs(30), Duration::from_secs(3_600)));
    assert_eq!((&*issuer.account_claims, issuer.accounts_max), (&["sub".to_owned()][..], 10_000));
    // Who wants a token is not open to everybody.
    let public = format!("[server]\nlisten = '0.0.0.0:8080'\n{ISSUER}{ALL}");
    assert!(load_text(&public).is_ok());
}

#[test]
fn what_would_let_anybody_in_is_refused() {
    check(
        &format!("{ISSUER}algorithms = ['HS256']\n{ALL}"),
        &["line 5: issuer.algorithms: \"HS256\" is unknown; did you mean \"ES256\"?"],
    );
    check(
        "[[issuer]]\nurl = 'http://login.example.com'\naudiences = []\naccount_prefix = 'first'\n",
        &[
            "line 1: issuer.profile: missing; write at least one [[issuer.profile]] with a name: it says what its callers may",
            "line 2: issuer.url: no address of an issuer; write it like \"https://login.example.com/realms/acme\"; with http only on \
             this machine, since anyone who could change its answers could be anybody",
            "line 3: issuer.audiences: missing; write what its tokens for this gateway have in aud: others are for other services",
        ],
    );
    let key = format!("[[key]]\nname = 'alice'\naccount = 'staff'\nhash = '{}'\n", hash("sk-alice"));
    check(
        &format!("{key}{ISSUER}{ALL}"),
        &[
            "line 8: issuer.account_prefix: the key \"staff/alice\" is in this tree; choose another name: a token must not be able to \
             take a key's account",
        ],
    );
}

#[test]
fn profiles_that_nobody_could_have_are_refused() {
    check(
        &format!(
            "{ISSUER}[[issuer.profile]]\nname = 'a'\nlimits = [{{ money = '1', per = 'day', each = 'user' }}]\n\
             [[issuer.profile]]\nname = 'b'\nwhen = ['b']\n"
        ),
        &[
            "line 7: issuer.profile.limits: a limit on some requests alone; put a limit on a model, a tag or each user on an [[account]] \
             above all of them: what an account that comes with a token spent under such a limit is not known after a restart",
            "line 8: issuer.profile: behind one that is for everybody; put the one without `when` last",
            "line 10: issuer.profile.when: without a claim to look into; name it in profile_claim of the issuer",
        ],
    );
    let second = ISSUER.replace("staff'", "staff/inner'");
    check(
        &format!("{ISSUER}{ALL}{second}{ALL}"),
        &[
            "line 8: issuer.url: a second issuer of that address; give them one section",
            "line 10: issuer.account_prefix: in the tree of another issuer, \"staff\"; give each issuer a tree of its own",
        ],
    );
}
