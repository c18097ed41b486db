//! As `wrk --latency` prints it.

use std::fmt::Write as _;

use super::units::{binary, percent, wrk};
use super::{RunView, Times, or_dash, ratio};

pub(super) fn text(view: &RunView<'_>) -> String {
    let load = &view.load;
    let request = view.request();
    let (threads, connections) = (load.generator.threads, view.number("load.connections"));
    let times = Times(request);
    let per_thread = ratio(view.per_second(view.answered()), threads as f64);
    let mut out = String::new();
    let seconds = load.spans_s.measured;
    let _ = writeln!(out, "Running {seconds:.0}s test @ {}", view.setting("load.target"));
    let _ = writeln!(out, "  {threads} threads and {connections} connections");
    let _ = writeln!(out, "  Thread Stats   Avg      Stdev     Max   +/- Stdev");
    let _ = writeln!(
        out,
        "    Latency {:>9} {:>9} {:>9} {:>9}",
        or_dash(times.mean(), wrk),
        or_dash(times.sd(), wrk),
        or_dash(times.max(), wrk),
        or_dash(times.within_sd(), percent)
    );
    let _ = writeln!(out, "    Req/Sec {per_thread:>9.2} {:>9} {:>9} {:>9}", "-", "-", "-");
    let _ = writeln!(out, "  Latency Distribution");
    for percent in [50.0, 75.0, 90.0, 99.0] {
        let _ = writeln!(out, "     {percent}% {:>9}", or_dash(times.at(percent / 100.0), wrk));
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
