//! The verdicts of experiments, in words.

use model::summary::ExperimentSummary;

use super::figures::line;

pub(super) fn lines(experiments: &[ExperimentSummary], out: &mut String) {
    for experiment in experiments {
        for (at, (sentence, estimate)) in experiment.sentences().iter().enumerate() {
            let p = estimate.map_or_else(String::new, |estimate| format!("; p {:.4}", estimate.p_value));
            line(out, if at == 0 { "experiment" } else { "" }, format_args!("{sentence}{p}"));
        }
        let ExperimentSummary { setting, a, b, block_s, seed, .. } = experiment;
        line(
            out,
            "",
            format_args!(
                "{setting}: {a} (A) against {b} (B), in pairs of blocks of {block_s} s, seed {seed}"
            ),
        );
    }
    if !experiments.is_empty() {
        out.push('\n');
    }
}
