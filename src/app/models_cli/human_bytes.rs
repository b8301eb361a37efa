//! Bytes as people read them.

/// So many bytes, in units of a thousand.
pub(super) fn human_bytes(bytes: u64) -> String {
    let mut size = bytes as f64;
    let mut unit = "bytes";
    for larger in ["kB", "MB", "GB", "TB"] {
        if size < 1000.0 {
            break;
        }
        size /= 1000.0;
        unit = larger;
    }
    match unit {
        "bytes" => format!("{bytes} bytes"),
        _ => format!("{size:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::human_bytes;

    #[test]
    fn sizes_are_told_in_the_largest_unit_that_fits() {
        assert_eq!(human_bytes(999), "999 bytes");
        assert_eq!(human_bytes(98_362_432), "98.4 MB");
        assert_eq!(human_bytes(4_700_000_000), "4.7 GB");
    }
}
