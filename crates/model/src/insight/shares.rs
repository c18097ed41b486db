//! Shares in words.

use records::text::quantity::grouped;

/// A share in words, from 0 to 1: `8 %`, `0.2 %`.
pub(in crate::insight) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        ..=0.0 => "0 %".to_owned(),
        ..0.1 => "less than 0.1 %".to_owned(),
        // 9.95 and more would round to 10.0, and 99.5 and more to all of them.
        ..9.95 | 99.5..99.95 => format!("{percent:.1} %"),
        99.95..100.0 => "over 99.9 %".to_owned(),
        _ => format!("{percent:.0} %"),
    }
}

/// A part of a whole; 0 of nothing.
pub(in crate::insight) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A part of a whole in words: `799 of 10,000`.
pub(in crate::insight) fn out_of(part: u64, whole: u64) -> String {
    format!("{} of {}", grouped(part), grouped(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_digits_that_matter() {
        let told = [
            (0, 5),
            (1, 5_000),
            (2, 1_000),
            (799, 10_000),
            (996, 10_000),
            (1, 3),
            (1_992, 2_000),
            (19_999, 20_000),
        ]
        .map(|(part, whole)| percent(share(part, whole)));
        assert_eq!(
            told,
            ["0 %", "less than 0.1 %", "0.2 %", "8.0 %", "10 %", "33 %", "99.6 %", "over 99.9 %"]
        );
        assert!(share(1, 0).abs() < f64::EPSILON);
        assert_eq!(out_of(799, 10_000), "799 of 10,000");
    }
}
