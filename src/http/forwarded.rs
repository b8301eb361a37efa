//! Requests that a proxy brings: whose they are.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

use super::connection_table::is_within;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Whom a proxy brings, by `X-Forwarded-For`, if it says so readably: the last address in it that is no proxy of ours. What
/// stands before that, the caller may have invented.
pub(super) fn caller_address(headers: &HeaderMap, proxies: &[IpNet]) -> Option<IpAddr> {
    let values: Vec<&[u8]> = headers.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes).collect();
    let addresses = values.iter().rev().flat_map(|value| value.rsplit(|byte| *byte == b','));
    let mut readable = addresses.map_while(|text| address(std::str::from_utf8(text).ok()?.trim()));
    readable.find(|address| !is_within(proxies, *address))
}

/// With a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let bare = || text.parse::<IpAddr>().ok();
    let bracketed = || text.strip_prefix('[')?.split(']').next()?.parse::<IpAddr>().ok();
    let with_port = || text.rsplit_once(':')?.0.parse::<IpAddr>().ok();
    bare().or_else(bracketed).or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&'static str], expected: Option<&str>) {
        let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).unwrap();
        let headers = values.iter().map(|text| (FORWARDED_FOR, value(text)));
        let proxies = ["10.0.0.0/8".parse().unwrap()];
        let found = caller_address(&headers.collect(), &proxies);
        assert_eq!(found, expected.map(|text| text.parse().unwrap()), "{values:?}");
    }

    #[test]
    fn the_last_address_that_is_no_proxy_of_ours_is_the_callers() {
        check(&["192.0.2.1"], Some("192.0.2.1"));
        check(&["192.0.2.1, 198.51.100.2, 10.1.2.3"], Some("198.51.100.2"));
        check(&["192.0.2.1", "198.51.100.2", "10.0.0.1"], Some("198.51.100.2"));
        check(&["[2001:db8::1]:443, 10.0.0.9"], Some("2001:db8::1"));
        check(&["192.0.2.1:5000"], Some("192.0.2.1"));
        check(&["192.0.2.1, unknown, 10.0.0.1"], None);
        check(&["\u{ff}, 192.0.2.1, 10.0.0.1"], Some("192.0.2.1"));
        check(&["10.0.0.1"], None);
        check(&[], None);
    }
}
