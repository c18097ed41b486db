//! Figures as each of the models writes them.

/// A duration as Go prints it: `491.133µs`, `1.5ms`, `29.98051442s`.
pub(super) fn go(ns: f64) -> String {
    let ns = ns.round();
    if ns == 0.0 {
        return "0s".to_owned();
    }
    let (scaled, digits, unit) = match ns {
        ..1e3 => (ns, 0, "ns"),
        ..1e6 => (ns / 1e3, 3, "µs"),
        ..1e9 => (ns / 1e6, 6, "ms"),
        ..60e9 => (ns / 1e9, 9, "s"),
        _ => {
            let minutes = (ns / 60e9).floor();
            return format!("{minutes}m{}", go_seconds(ns - minutes * 60e9));
        }
    };
    format!("{}{unit}", trimmed(scaled, digits))
}

fn go_seconds(ns: f64) -> String {
    format!("{}s", trimmed(ns / 1e9, 9))
}

fn trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// A duration in milliseconds, as ab and `JMeter` print it.
pub(super) fn ms(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

pub(super) fn percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

/// A duration as h2load prints it: `180us`, `9.17ms`, `1.05s`.
pub(super) fn h2load(ns: f64) -> String {
    match ns {
        ..1e6 => format!("{:.0}us", ns / 1e3),
        ..1e9 => format!("{:.2}ms", ns / 1e6),
        _ => format!("{:.2}s", ns / 1e9),
    }
}

/// A duration as wrk prints it: `635.91us`, `12.92ms`, `1.05s`.
pub(super) fn wrk(ns: f64) -> String {
    match ns {
        ..1e6 => format!("{:.2}us", ns / 1e3),
        ..1e9 => format!("{:.2}ms", ns / 1e6),
        _ => format!("{:.2}s", ns / 1e9),
    }
}

/// Bytes in units of 1,024, as h2load and wrk print them: `892.34MB`.
pub(super) fn binary(bytes: f64) -> String {
    match bytes {
        ..1024.0 => format!("{bytes:.0}B"),
        ..1_048_576.0 => format!("{:.2}KB", bytes / 1024.0),
        ..1_073_741_824.0 => format!("{:.2}MB", bytes / 1_048_576.0),
        _ => format!("{:.2}GB", bytes / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_look_as_they_do_in_go() {
        for (ns, expected) in [
            (0.0, "0s"),
            (750.0, "750ns"),
            (491_133.0, "491.133µs"),
            (1_500_000.0, "1.5ms"),
            (29_980_514_420.0, "29.98051442s"),
            (90_000_000_000.0, "1m30s"),
        ] {
            assert_eq!(go(ns), expected);
        }
    }

    #[test]
    fn durations_and_sizes_look_as_they_do_in_h2load() {
        assert_eq!([h2load(180e3), h2load(9.17e6), h2load(1.05e9)], ["180us", "9.17ms", "1.05s"]);
        assert_eq!([binary(12.0), binary(935_680_000.0)], ["12B", "892.33MB"]);
    }
}
