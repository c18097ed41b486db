//! The columns of `JMeter`'s summary report.

use records::text::table::{Align, TextTable};

use super::run_view::{LatencyStats, RunView, mean, or_dash, ratio};
use super::units::ms;

pub(super) fn text(view: &RunView<'_>) -> String {
    let load = &view.load;
    let request = view.request();
    let times = LatencyStats(request);
    let failed = (view.requests() - load.requests.ok.min(view.requests())) as f64;
    let bytes = mean(load.bytes.out as f64, view.answered() as f64);
    let cells = [
        ("Label", view.setting("load.target")),
        ("# Samples", view.requests().to_string()),
        ("Average", or_dash(times.mean(), ms)),
        ("Min", or_dash(times.min(), ms)),
        ("Max", or_dash(times.max(), ms)),
        ("Std. Dev.", or_dash(times.sd(), ms)),
        ("Error %", format!("{:.3}", ratio(failed, view.requests() as f64) * 100.0)),
        ("Throughput", format!("{:.5}", view.per_second(view.answered()))),
        ("Received KB/sec", format!("{:.2}", view.per_second(load.bytes.out) / 1024.0)),
        ("Sent KB/sec", format!("{:.2}", view.per_second(load.bytes.r#in) / 1024.0)),
        ("Avg. Bytes", or_dash(bytes, |bytes| format!("{bytes:.1}"))),
    ];
    let mut table = TextTable::default();
    for (name, value) in cells {
        table.column(Align::Right, name, [value]);
    }
    format!("{}# times in ms: {}; n {}\n", table.text(), view.request_name(), request.count())
}
