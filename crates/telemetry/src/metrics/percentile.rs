//! Percentiles by their names.

/// The share that a percentile's name stands for: `p50`, `p99.9`, or `p999`, in which digits after the second are
/// decimals. `None` unless it lies between 0 and 1.
pub fn parse_percentile(name: &str) -> Option<f64> {
    let digits = name.strip_prefix('p')?;
    if !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let percent = match digits.split_at_checked(2) {
        Some((whole, decimals)) if !decimals.is_empty() && !digits.contains('.') && digits != "100" => {
            format!("{whole}.{decimals}")
        }
        _ => digits.to_owned(),
    };
    // Read as hundredths, since a division would not give the nearest number.
    let q: f64 = format!("{percent}e-2").parse().ok()?;
    (q > 0.0 && q < 1.0).then_some(q)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_after_the_second_are_decimals_and_what_is_no_share_is_refused() {
        for (name, percent) in [("p50", 50.0), ("p5", 5.0), ("p99.9", 99.9), ("p999", 99.9), ("p9999", 99.99)]
        {
            let q = parse_percentile(name).unwrap();
            assert!((q * 100.0 - percent).abs() < 1e-9, "{name} {q}");
        }
        for name in ["", "p", "p0", "p00", "p100", "p100.0", "50", "p-1", "p1e1", "pNaN", "p9 9", "p1.2.3"] {
            assert_eq!(parse_percentile(name), None, "{name}");
        }
    }
}
