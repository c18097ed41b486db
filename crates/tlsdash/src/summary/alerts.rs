//! Alerts that fired, in words.

use model::summary::AlertSummary;

use super::figures::line;

/// Alerts that the text lists; the JSON has them all.
const ALERTS_SHOWN: usize = 20;

pub(super) fn lines(alerts: &[AlertSummary], out: &mut String) {
    for alert in alerts.iter().take(ALERTS_SHOWN) {
        let AlertSummary { condition, worst_text, fired_s, duration_s, state, .. } = alert;
        let end = if state == "fired" { ", until the end" } else { "" };
        line(
            out,
            "alert",
            format_args!("{condition}: after {fired_s:.1} s for {duration_s:.1} s{end}, worst {worst_text}"),
        );
    }
    let more = alerts.len().saturating_sub(ALERTS_SHOWN);
    if more > 0 {
        line(out, "", format_args!("and {more} more"));
    }
    if !alerts.is_empty() {
        out.push('\n');
    }
}
