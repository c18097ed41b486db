//! Percentiles: the listed ones, and others by name.

pub(super) mod interval;

/// A percentile that is listed somewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// Its label in tables, such as `p99.9`.
    pub label: &'static str,
    /// The share of samples that do not exceed it.
    pub q: f64,
}

impl Percentile {
    pub const P50: Self = Self { label: "p50", q: 0.5 };
    pub const P90: Self = Self { label: "p90", q: 0.9 };
    pub const P99: Self = Self { label: "p99", q: 0.99 };
    pub const P999: Self = Self { label: "p99.9", q: 0.999 };
    const P75: Self = Self { label: "p75", q: 0.75 };
    pub const P95: Self = Self { label: "p95", q: 0.95 };
    const P9999: Self = Self { label: "p99.99", q: 0.9999 };

    /// The percentiles of a latency class in tables, on the screen and in reports.
    pub const TABLE: [Self; 5] = [Self::P50, Self::P90, Self::P99, Self::P999, Self::P9999];
    /// The percentiles of a column of the timeline.
    pub const TIMELINE: [Self; 4] = [Self::P50, Self::P90, Self::P99, Self::P999];
    /// The percentiles of an interval in JSON and CSV.
    pub const INTERVAL: [Self; 3] = [Self::P50, Self::P90, Self::P99];
    /// The percentiles among a run's figures by default.
    pub const LISTED: [Self; 6] = [Self::P50, Self::P75, Self::P90, Self::P95, Self::P99, Self::P999];

    /// Its name in JSON and CSV, such as `p999`.
    pub fn key(self) -> String {
        self.label.replace('.', "")
    }
}

/// The share of a percentile's name: `p50`, `p99.9`, or `p999`, in which digits after the second are decimals. `None`
/// unless it lies between 0 and 1.
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
    fn a_listed_percentile_is_found_by_its_label_and_its_key() {
        for Percentile { label, q } in Percentile::TABLE.into_iter().chain(Percentile::LISTED) {
            assert_eq!(parse_percentile(label), Some(q));
            assert_eq!(parse_percentile(&label.replace('.', "")), Some(q));
        }
    }

    #[test]
    fn percentile_digits_are_decimals_and_bad_shares_are_refused() {
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
