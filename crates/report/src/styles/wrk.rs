//! The format of `wrk --latency`.

use std::fmt::Write as _;

use super::run_view::{LatencyStats, RunView, or_dash, ratio};
use super::units::{percent, wrk, wrk_aligned, wrk_bytes, wrk_number};

pub(super) fn text(view: &RunView<'_>) -> String {
    let load = &view.load;
    let request = view.request();
    let (threads, connections) = (load.generator.threads, view.number("load.connections"));
    let times = LatencyStats(request);
    let mut out = String::new();
    let seconds = load.spans_s.measured;
    let _ = writeln!(out, "Running {seconds:.0}s test @ {}", view.setting("load.target"));
    let _ = writeln!(out, "  {threads} threads and {connections} connections");
    let _ = writeln!(out, "  Thread Stats   Avg      Stdev     Max   +/- Stdev");
    stats(&mut out, "Latency", [times.mean(), times.sd(), times.max(), times.within_sd()], wrk);
    stats(&mut out, "Req/Sec", rates(view, threads as f64), wrk_number);
    let _ = writeln!(out, "  Latency Distribution");
    for percent in [50.0, 75.0, 90.0, 99.0] {
        let at = or_dash(times.at(percent / 100.0), wrk);
        let _ = writeln!(out, "{percent:>7}%{}", wrk_aligned(&at, 10));
    }
    let read = wrk_bytes(load.bytes.out as f64);
    let _ = writeln!(out, "  {} requests in {}, {read} read", view.answered(), wrk(seconds * 1e9));
    let connect = view.failures(&["connect", "tls"]);
    let read = view.failures(&["reset", "short", "protocol", "body"]);
    let timeout = view.failures(&["timeout"]);
    if connect + read + timeout > 0 {
        let _ = writeln!(out, "  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}");
    }
    let bad = view.failures(&["status"]);
    if bad > 0 {
        let _ = writeln!(out, "  Non-2xx or 3xx responses: {bad}");
    }
    let _ = writeln!(out, "Requests/sec: {:>9.2}", view.per_second(view.answered()));
    let _ = writeln!(out, "Transfer/sec: {:>11}", wrk_bytes(view.per_second(load.bytes.out)));
    let _ = writeln!(out, "# latency: {}; n {}", view.request_name(), request.count());
    out
}

/// Mean, standard deviation, maximum, and the share within one standard deviation of the mean in percent.
fn stats(out: &mut String, name: &str, figures: [Option<f64>; 4], write: impl Fn(f64) -> String) {
    let [mean, sd, max, within] = figures;
    let column = |figure: Option<f64>, width| wrk_aligned(&or_dash(figure, &write), width);
    let (mean, sd, max) = (column(mean, 8), column(sd, 10), column(max, 9));
    let _ = writeln!(out, "    {name:<10}{mean}{sd}{max}{:>9}", or_dash(within, percent));
}

/// The rate of a thread: its mean over the load, and how it varied from interval to interval if several are known.
fn rates(view: &RunView<'_>, threads: f64) -> [Option<f64>; 4] {
    let mean = ratio(view.per_second(view.answered()), threads);
    let rates = view.rates();
    if rates.len() < 2 {
        return [Some(mean), None, None, None];
    }
    let n = rates.len() as f64;
    let sd = (rates.iter().map(|rate| (rate / threads - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let max = rates.iter().copied().max_by(f64::total_cmp).map(|rate| rate / threads);
    let within = rates.iter().filter(|rate| (*rate / threads - mean).abs() <= sd).count() as f64;
    [Some(mean), Some(sd), max, Some(within / n * 100.0)]
}
