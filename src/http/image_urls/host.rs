//! Whether an address leads to a host that anybody can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Names that no public host has, and what they end in.
const PRIVATE_ENDINGS: [&str; 13] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "svc",
    "cluster",
    "consul",
    "home.arpa",
];
/// Networks of IPv4 that are nobody's in public: the first address, and how many of its bits count (RFC 6890), and where Azure
/// tells machines about themselves.
const PRIVATE_IPV4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Whether it does, as far as it says itself. Programs differ in how they read strange addresses, so only plain ones do.
pub(super) fn is_public(url: &str) -> bool {
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
    if !is_plain || !is_plain_host || host.is_empty() {
        return false;
    }
    let url = Url::parse(url).ok();
    let Some(host) = url.as_ref().and_then(Url::host_str) else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse() {
        Ok(IpAddr::V4(address)) => is_public_ipv4(address),
        Ok(IpAddr::V6(address)) => is_public_ipv6(address),
        Err(_) => is_public_name(host),
    }
}

/// A name of one word is one of this network.
fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_private = |ending: &str| {
        name.strip_suffix(ending).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    name.contains('.') && !PRIVATE_ENDINGS.iter().any(|ending| is_private(ending))
}

fn is_public_ipv4(address: Ipv4Addr) -> bool {
    let is_in = |(network, bits): &([u8; 4], u32)| {
        let differs = address.to_bits() ^ Ipv4Addr::from(*network).to_bits();
        differs.leading_zeros() >= *bits
    };
    !PRIVATE_IPV4.iter().any(is_in)
}

/// Only what is given to networks (`2000::/3`), and of that nothing that holds another address or is for examples.
fn is_public_ipv6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002 | 0x3ffe, ..] => false,
        [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: bool, hosts: &[&str]) {
        for host in hosts {
            assert_eq!(is_public(&format!("https://{host}/a.png")), expected, "{host}");
        }
    }

    #[test]
    fn public_hosts_are() {
        check(
            true,
            &[
                "example.com",
                "example.com.",
                "a-b.example.co.uk:8443",
                "8.8.8.8",
                "[2606:4700::1111]",
                "localhost.example.com",
            ],
        );
    }

    #[test]
    fn hosts_of_this_network_are_not() {
        check(
            false,
            &[
                "localhost",
                "LOCALHOST",
                "localhost.",
                "a.localhost",
                "printer.local",
                "metadata.google.internal.",
                "metadata",
                "redis",
                "kubernetes.default.svc",
                "api.default.svc.cluster",
                "db.service.consul",
            ],
        );
        check(
            false,
            &[
                "127.0.0.1",
                "127.1",
                "0",
                "0.0.0.0",
                "2130706433",
                "0x7f000001",
                "017700000001",
                "0x7f.1",
                "127.0.0.1.",
            ],
        );
        check(
            false,
            &[
                "10.1.2.3",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "169.254.169.254",
                "0xa9fea9fe",
                "2852039166",
                "168.63.129.16",
                "100.100.100.200",
            ],
        );
        check(
            false,
            &[
                "[::1]",
                "[::]",
                "[::ffff:169.254.169.254]",
                "[::ffff:a9fe:a9fe]",
                "[64:ff9b::a9fe:a9fe]",
                "[fe80::1]",
                "[fd00:ec2::254]",
                "[2002:7f00:1::]",
                "[::7f00:1]",
            ],
        );
        check(true, &["172.32.0.1", "100.128.0.1", "169.253.0.1"]);
    }

    #[test]
    fn what_is_not_written_plainly_is_not() {
        check(
            false,
            &[
                "example.com@127.0.0.1",
                "a:b@example.com",
                "127%2e0.0.1",
                "127。0。0。1",
                "１２７.0.0.1",
                "exa mple.com",
                "example.com\\@127.0.0.1",
                "1.2.3.4.5",
                "",
                "example.com:99999",
                "[::1%25eth0]",
            ],
        );
        check(false, &["127.0.0.1\t", "\n127.0.0.1"]);
    }
}
