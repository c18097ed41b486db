//! As `wrk --latency` prints it.

use std::fmt::Write as _;

use super::units::{binary, wrk};
use super::{View, ratio};

pub(super) fn text(view: &View<'_>) -> String {
    let load = &view.load;
    let request = view.request();
    let (threads, connections) = (load.generator.threads, view.number("load.connections"));
    let (mean, sd) = (request.mean_ns().unwrap_or(0.0), request.stdev_ns().unwrap_or(0.0));
    let within = request.share_within((mean - sd).max(0.0) as u64, (mean + sd) as u64).unwrap_or(0.0);
    let per_thread = ratio(view.per_second(view.answered()), threads as f64);
    let mut out = String::new();
    let seconds = load.spans_s.measured;
    let _ = writeln!(out, "Running {seconds:.0}s test @ {}", view.setting("load.target"));
    let _ = writeln!(out, "  {threads} threads and {connections} connections");
    let _ = writeln!(out, "  Thread Stats   Avg      Stdev     Max   +/- Stdev");
    let _ = writeln!(
        out,
        "    Latency {:>9} {:>9} {:>9} {:>8.2}%",
        wrk(mean),
        wrk(sd),
        wrk(request.max_ns() as f64),
        within * 100.0
    );
    let _ = writeln!(out, "    Req/Sec {per_thread:>9.2} {:>9} {:>9} {:>9}", "-", "-", "-");
    let _ = writeln!(out, "  Latency Distribution");
    for percent in [50.0, 75.0, 90.0, 99.0] {
        let at = request.quantile_ns(percent / 100.0).unwrap_or(0);
        let _ = writeln!(out, "     {percent}% {:>9}", wrk(at as f64));
    }
    let read = binary(load.bytes.out as f64);
    let _ = writeln!(out, "  {} requests in {seconds:.2}s, {read} read", view.answered());
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
    let _ = writeln!(out, "Requests/sec: {:>10.2}", view.per_second(view.answered()));
    let _ = writeln!(out, "Transfer/sec: {:>10}", binary(view.per_second(load.bytes.out)));
    let _ = writeln!(out, "# latency: {}; n {}", view.request_name(), request.count());
    out
}
