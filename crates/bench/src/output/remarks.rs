//! The remarks on a case for people: what matters most first, and what differs only in numbers as one.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

use records::kinds::ExperimentOutcome::Inconclusive;

use super::wording::verdict;
use crate::compare::{CaseComparison, RemarkWeight, TargetComparison};

/// The remarks on a case that are shown; JSON has them all.
pub const REMARKS_SHOWN: usize = 3;

/// A remark on one target of a case or on several.
#[derive(Debug)]
pub struct CaseRemark<'a> {
    pub targets: Vec<&'a str>,
    /// The rounds and the remark.
    pub text: String,
    rounds: BTreeSet<u32>,
    weight: RemarkWeight,
}

impl<'a> CaseRemark<'a> {
    /// All remarks on a case, the weightiest first, and of those the ones about the most rounds.
    pub fn all(case: &'a CaseComparison) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for found in case.targets.iter().flat_map(|target| of_target(case, target)) {
            if let Some((text, known)) = all.iter_mut().find_map(|known| Some((found.merged(known)?, known)))
            {
                known.text = text;
                known.rounds.extend(found.rounds);
                known.targets.extend(found.targets);
                known.targets.dedup();
            } else {
                all.push(found);
            }
        }
        all.sort_by_key(|remark| (remark.weight, Reverse(remark.rounds.len())));
        for remark in all.iter_mut().filter(|remark| !remark.rounds.is_empty()) {
            let rounds_run = |name: &&str| case.target(name).map_or(0, |target| target.rounds_run);
            let rounds_run = remark.targets.iter().map(rounds_run).max().unwrap_or(0);
            remark.text = format!("{}: {}", which_rounds(&remark.rounds, rounds_run), remark.text);
        }
        all
    }

    /// The text of both, if they differ only in numbers.
    fn merged(&self, known: &Self) -> Option<String> {
        let is_alike = self.weight == known.weight && self.rounds.is_empty() == known.rounds.is_empty();
        is_alike.then(|| merged(&known.text, &self.text))?
    }
}

impl fmt::Display for CaseRemark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.targets.join(", "), self.text)
    }
}

/// The remarks that are shown below a case's figures, and the number of the others.
pub(super) fn lines(case: &CaseComparison, all: &[CaseRemark<'_>]) -> Vec<String> {
    // The first is the reason why there is no usable round.
    let told = usize::from(!case.has_usable_round());
    let more = all.len().saturating_sub(REMARKS_SHOWN);
    let more = (more > 0).then(|| format!("and {more} more: see the JSON"));
    all.iter().take(REMARKS_SHOWN).skip(told).map(ToString::to_string).chain(more).collect()
}

/// Why a case has no usable round, in words; `None` if it has one.
pub fn no_usable_round(case: &CaseComparison, all: &[CaseRemark<'_>]) -> Option<String> {
    let reason = || all.first().map_or_else(|| format!("{} is unknown", case.figure), ToString::to_string);
    (!case.has_usable_round()).then(|| format!("no usable round: {}", reason()))
}

/// The remarks on a target: failures and doubts, why there is no verdict, rounds that are not used.
fn of_target<'a>(case: &CaseComparison, target: &'a TargetComparison) -> Vec<CaseRemark<'a>> {
    let remark = |weight, text, rounds: &[u32]| CaseRemark {
        targets: vec![&target.name],
        text,
        rounds: rounds.iter().copied().collect(),
        weight,
    };
    let found = target.remarks.iter().map(|found| remark(found.weight, found.text.clone(), &found.rounds));
    let withheld = || target.figure(&case.figure).and_then(|figure| figure.withheld.clone());
    let (reason, outcome) = match &target.verdict {
        Some(verdict) => (Some(verdict.reason.clone()), self::verdict(target, "")),
        None => (withheld(), "no ratio".to_owned()),
    };
    let is_told = |reason: &String| {
        let tells = |target: &TargetComparison, text: &str| {
            reason == text || *reason == format!("{}: {text}", target.name)
        };
        case.targets.iter().any(|target| target.remarks.iter().any(|remark| tells(target, &remark.text)))
    };
    let weight = match target.figure(&case.figure).and_then(|figure| figure.ratio) {
        Some(_) => RemarkWeight::Qualifies,
        None => RemarkWeight::VoidsPrimary,
    };
    let reason = reason.filter(|reason| !reason.is_empty() && !is_told(reason));
    let reason = reason.map(|reason| remark(weight, format!("{outcome}: {reason}"), &[]));
    // An inconclusive verdict says how many there are.
    let is_decided = target.verdict.as_ref().is_none_or(|verdict| verdict.outcome != Inconclusive);
    let is_partly_used = (1..target.rounds_run).contains(&target.rounds_used);
    let used = (is_decided && is_partly_used).then(|| {
        let text = format!("{} of {} rounds used", target.rounds_used, target.rounds_run);
        remark(RemarkWeight::Qualifies, text, &[])
    });
    found.chain(reason).chain(used).collect()
}

/// Both texts as one, with the ranges of the numbers in which they differ; `None` if they differ in words.
fn merged(a: &str, b: &str) -> Option<String> {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
    let word = |(a, b): (&&str, &&str)| if a == b { Some((*a).to_owned()) } else { merged_words(a, b) };
    let words: Option<Vec<String>> = a.iter().zip(&b).map(word).collect();
    words.filter(|_| a.len() == b.len()).map(|words| words.join(" "))
}

/// Two words with numbers or ranges as one, such as `(3–12)` of `(3)` and `(7–12)`.
fn merged_words(a: &str, b: &str) -> Option<String> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let parts = |word| {
        let (first, last) = (str::find(word, is_digit)?, word.rfind(is_digit)?);
        let (before, number, after) = (&word[..first], &word[first..=last], &word[last + 1..]);
        let ends = number.split_once('–').unwrap_or((number, number));
        (!before.contains(char::is_alphabetic)).then_some((before, ends, after))
    };
    let value = |number: &str| number.replace(',', "").parse::<f64>().ok();
    let ((before, (a_low, a_high), after), (b_before, (b_low, b_high), b_after)) = (parts(a)?, parts(b)?);
    let low = if value(a_low)? <= value(b_low)? { a_low } else { b_low };
    let high = if value(a_high)? >= value(b_high)? { a_high } else { b_high };
    (before == b_before && after == b_after).then(|| format!("{before}{low}–{high}{after}"))
}

/// The rounds in words, such as `rounds 1, 3–5`.
fn which_rounds(rounds: &BTreeSet<u32>, all: u32) -> String {
    let rounds: Vec<u32> = rounds.iter().copied().collect();
    if rounds.len() == all as usize && all > 1 {
        return "every round".to_owned();
    }
    let follows = |a: &u32, b: &u32| a + 1 == *b;
    let ranges: Vec<String> = rounds
        .chunk_by(follows)
        .map(|range| match range {
            [first, .., last] => format!("{first}–{last}"),
            _ => range.iter().map(ToString::to_string).collect(),
        })
        .collect();
    format!("round{} {}", if rounds.len() == 1 { "" } else { "s" }, ranges.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_follow_each_other_are_a_range() {
        let words = |rounds: &[u32], all| which_rounds(&rounds.iter().copied().collect(), all);
        assert_eq!(words(&[1, 3, 4, 5, 8], 8), "rounds 1, 3–5, 8");
        assert_eq!(words(&[2], 6), "round 2");
        assert_eq!(words(&[1, 2, 3], 3), "every round");
    }

    #[test]
    fn texts_that_differ_in_numbers_are_one_with_ranges() {
        let all = ["busy 97 % (3)", "busy 91 % (1,000)", "busy 95 % (7)"];
        let one = all[1..].iter().try_fold(all[0].to_owned(), |one, text| merged(&one, text));
        assert_eq!(one.as_deref(), Some("busy 91–97 % (3–1,000)"));
        for (a, b) in [("TLSv1.2", "TLSv1.3"), ("10.0.0.1 failed", "10.0.0.2 failed"), ("busy", "busy 3")] {
            assert_eq!(merged(a, b), None, "{a}, {b}");
        }
    }
}
