//! Numbers in the format of each imitated tool.

use records::text::quantity::trimmed;

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
    format!("{}{unit}", trimmed(&format!("{scaled:.digits$}")))
}

fn go_seconds(ns: f64) -> String {
    format!("{}s", trimmed(&format!("{:.9}", ns / 1e9)))
}

/// A duration in whole milliseconds, as ab prints it.
pub(super) fn whole_ms(ns: f64) -> String {
    format!("{:.0}", (ns / 1e6).round())
}

/// A duration in milliseconds, as `JMeter` prints it.
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
    if ns < 1e9 {
        wrk_units(ns / 1e3, 1e3, "us", &["ms"])
    } else {
        wrk_units(ns / 1e9, 60.0, "s", &["m", "h"])
    }
}

/// A number as wrk prints it: `497.50`, `17.57k`.
pub(super) fn wrk_number(number: f64) -> String {
    wrk_units(number, 1e3, "", &["k", "M", "G"])
}

/// Bytes as wrk prints them: `12.00B`, `10.72MB`.
pub(super) fn wrk_bytes(bytes: f64) -> String {
    wrk_units(bytes, 1_024.0, "", &["K", "M", "G", "T"]) + "B"
}

/// In the largest unit in which it is 0.85 or more.
fn wrk_units(number: f64, scale: f64, base: &str, units: &[&str]) -> String {
    let (mut amount, mut unit) = (number, base);
    for larger in units {
        if amount < scale * 0.85 {
            break;
        }
        (amount, unit) = (amount / scale, larger);
    }
    format!("{amount:.2}{unit}")
}

/// Aligned as in wrk: the unit takes two columns of the width, so digits are aligned.
pub(super) fn wrk_aligned(text: &str, width: usize) -> String {
    let unit = text.bytes().rev().take(2).take_while(u8::is_ascii_alphabetic).count();
    let padding = 2 - unit;
    format!("{text:>digits$}{:padding$}", "", digits = width - padding)
}

/// Bytes in units of 1,024, as h2load prints them: `892.34MB`.
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
    fn figures_look_as_they_do_in_wrk() {
        assert_eq!(
            [wrk(845.18e3), wrk(2.67e6), wrk(900e3), wrk(2.01e9)],
            ["845.18us", "2.67ms", "0.90ms", "2.01s"]
        );
        assert_eq!([wrk_number(497.5), wrk_number(17_570.0)], ["497.50", "17.57k"]);
        assert_eq!([wrk_bytes(12.0), wrk_bytes(10.72 * 1_048_576.0)], ["12.00B", "10.72MB"]);
        assert_eq!(wrk_aligned("845.18us", 8) + &wrk_aligned("12.42k", 10), "845.18us   12.42k ");
    }

    #[test]
    fn durations_and_sizes_look_as_they_do_in_h2load() {
        assert_eq!([h2load(180e3), h2load(9.17e6), h2load(1.05e9)], ["180us", "9.17ms", "1.05s"]);
        assert_eq!([binary(12.0), binary(935_680_000.0)], ["12B", "892.33MB"]);
    }
}
