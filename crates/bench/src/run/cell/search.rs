//! Searches for the highest rate that a target sustains.

/// A cost case runs at this share of the capacity of the slowest target.
pub(super) const SUSTAINED_SHARE: f64 = 0.65;
/// A found rate is lowered by this factor for a target that does not sustain it.
pub(super) const BACK_OFF: f64 = 0.85;
/// How much further out the next rate is while only one end of the bracket is known.
const UPWARDS: f64 = 1.3;
const DOWNWARDS: f64 = 0.7;
/// Two rates so close are the same: about the spread between two runs.
const CLOSE: f64 = 1.04;

/// The highest rate that held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Highest {
    pub(super) rate: f64,
    /// True if every tried rate held, so the highest may be higher.
    pub(super) is_lower_bound: bool,
}

/// Finds the highest rate that holds, beginning at `start`, with at most `tries` tries: outwards until one rate holds and
/// another does not, then between them. `None` if no rate held.
///
/// # Errors
/// The errors of `holds`.
pub(super) fn highest<E>(
    start: f64,
    tries: u32,
    mut holds: impl FnMut(f64) -> Result<bool, E>,
) -> Result<Option<Highest>, E> {
    let (mut low, mut high) = (None, None);
    let mut rate = start;
    for _ in 0..tries {
        if holds(rate)? {
            low = Some(rate);
        } else {
            high = Some(rate);
        }
        rate = match (low, high) {
            (Some(low), Some(high)) if high / low < CLOSE => break,
            (Some(low), Some(high)) => f64::sqrt(low * high),
            (Some(low), None) => low * UPWARDS,
            (None, _) => rate * DOWNWARDS,
        };
    }
    Ok(low.map(|rate| Highest { rate, is_lower_bound: high.is_none() }))
}

/// Lowers a rate by `factor` until it holds, at most `lowerings` times. Returns the last rate that was tried, and whether
/// it held.
///
/// # Errors
/// The errors of `holds`.
pub(super) fn lower_until<E>(
    mut rate: f64,
    factor: f64,
    lowerings: u32,
    mut holds: impl FnMut(f64) -> Result<bool, E>,
) -> Result<(f64, bool), E> {
    for _ in 0..lowerings {
        if holds(rate)? {
            return Ok((rate, true));
        }
        rate *= factor;
    }
    let is_held = holds(rate)?;
    Ok((rate, is_held))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn found(start: f64, tries: u32, limit: f64) -> (Option<Highest>, u32) {
        let mut count = 0;
        let rate = highest(start, tries, |rate| {
            count += 1;
            Ok::<_, Infallible>(rate <= limit)
        });
        (rate.unwrap(), count)
    }

    #[test]
    fn the_highest_rate_that_holds_is_found_from_below_and_above() {
        for start in [300.0, 900.0, 1_000.0, 1_100.0, 4_000.0] {
            let (rate, tries) = found(start, 12, 1_000.0);
            assert!((961.0..=1_000.0).contains(&rate.unwrap().rate), "{start}: {rate:?}");
            assert!(!rate.unwrap().is_lower_bound, "{start}: {rate:?}");
            assert!(tries <= 12);
        }
    }

    #[test]
    fn a_rate_that_was_lowered_is_tried() {
        let tried = |limit: f64| {
            let mut rates = Vec::new();
            let found = lower_until(1_000.0, 0.5, 2, |rate| {
                rates.push(rate);
                Ok::<_, Infallible>(rate <= limit)
            });
            (found.unwrap(), rates)
        };
        assert_eq!(tried(1_000.0), ((1_000.0, true), vec![1_000.0]));
        assert_eq!(tried(250.0), ((250.0, true), vec![1_000.0, 500.0, 250.0]));
        assert_eq!(tried(100.0), ((250.0, false), vec![1_000.0, 500.0, 250.0]));
    }

    #[test]
    fn a_search_ends_after_its_tries() {
        assert_eq!(found(1_000.0, 5, 0.0), (None, 5));
        assert_eq!(
            found(1_000.0, 3, f64::INFINITY),
            (Some(Highest { rate: 1_690.0, is_lower_bound: true }), 3)
        );
    }
}
