//! The verdicts of experiments, in words.

use model::summary::ExperimentSummary;

use super::figures::line;

pub(super) fn lines(experiments: &[ExperimentSummary], out: &mut String) {
    for experiment in experiments {
        let ExperimentSummary { setting, a, b, block_s, seed, .. } = experiment;
        line(
            out,
            "experiment",
            format_args!(
                "{setting}: {a} (A) against {b} (B), in pairs of blocks of {block_s} s, seed {seed}"
            ),
        );
        for (sentence, estimate) in experiment.sentences() {
            let p = estimate.map_or_else(String::new, |estimate| format!("; p {:.4}", estimate.p_value));
            line(out, "", format_args!("{sentence}{p}"));
        }
    }
    if !experiments.is_empty() {
        out.push('\n');
    }
}
