//! Figures beside the targets' own logs, and beside `pidstat`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{bench, bench_command, cells, figure};
use crate::common::{self, stderr, until};

/// Real servers that log each request: path, status, bytes of the body, whether the session is resumed, the process and its
/// connection; `-` for what HAProxy does not know. `LOGS` stands for a folder that outlives them.
const TARGETS: &str = r#"
[[target]]
name = "nginx"
command = ["nginx", "-e", "stderr", "-c", "{dir}/nginx.conf"]
[target.files]
"nginx.conf" = '''
user root; daemon off; pid LOGS/nginx.pid; error_log stderr error;
events { }
http {
    client_body_temp_path LOGS/body; proxy_temp_path LOGS/proxy; fastcgi_temp_path LOGS/fastcgi;
    uwsgi_temp_path LOGS/uwsgi; scgi_temp_path LOGS/scgi;
    log_format counted "$uri $status $body_bytes_sent $ssl_session_reused $pid-$connection";
    access_log LOGS/nginx.log counted;
    server {
        listen {listen} ssl; ssl_certificate {cert}; ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve {group};
        ssl_session_tickets on; keepalive_requests 1000000;
        location / { proxy_pass http://unix:{upstream}; }
    }
}
'''

[[target]]
name = "haproxy"
command = ["sh", "-c", "exec haproxy -db -f {dir}/haproxy.cfg > LOGS/haproxy.$$.log"]
[target.files]
"haproxy.cfg" = '''
global
    log stdout format raw local0
    ssl-default-bind-curves {group}
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend clients
    bind {listen} ssl crt {pem}
    log global
    log-format "%HU %ST - %[ssl_fc_is_resumed,iif(r,.)] %pid-%cp"
    default_backend upstream
backend upstream
    server upstream unix@{upstream}
'''
"#;

/// A line of a log.
struct AccessLogLine {
    path: String,
    status: u16,
    body_bytes: Option<u64>,
    is_resumed: bool,
    connection: String,
}

impl AccessLogLine {
    fn parse(line: &str) -> Option<Self> {
        let [path, status, bytes, reused, connection] =
            line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        Some(Self {
            path: path.to_owned(),
            status: status.parse().ok()?,
            body_bytes: bytes.parse().ok(),
            is_resumed: reused == "r",
            connection: connection.to_owned(),
        })
    }
}

/// A scenario of [`TARGETS`] in a folder of its own, where they log.
fn logging(cases: &str) -> TempDir {
    common::outside("nginx", "nginx");
    common::outside("haproxy", "haproxy");
    let folder = tempfile::tempdir().unwrap();
    let targets = TARGETS.replace("LOGS", &folder.path().display().to_string());
    fs::write(folder.path().join("scenario.toml"), format!("rounds = 2\n{targets}{cases}")).unwrap();
    folder
}

/// The requests for a path in the logs of a target: one of nginx, one of each process of HAProxy.
fn logged(folder: &Path, target: &str, path: &str) -> Vec<AccessLogLine> {
    let is_log = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(target) && name.ends_with(".log")
    };
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text: String = paths.filter(is_log).map(|path| fs::read_to_string(path).unwrap()).collect();
    text.lines().filter_map(AccessLogLine::parse).filter(|request| request.path == path).collect()
}

#[test]
fn counts_equal_those_of_the_targets_own_access_logs() {
    // Each has a path of its own. The second has no warm-up, whose handshakes the figures leave out.
    let folder = logging(
        r#"
[[case]]
name = "rate"
path = "/bytes/1300"
connections = 4
keep-alive = "7"
rate = 100
duration = "1s"
warmup = "300ms"
[[case]]
name = "count"
measure = "load"
path = "/bytes/1301"
connections = 4
keep-alive = "3"
resume = "50%"
requests = 400
"#,
    );
    let output = bench(folder.path(), "--save saved");
    assert!(output.status.success(), "{}", stderr(&output));
    let cells = cells(&folder.path().join("saved"));
    for target in ["nginx", "haproxy"] {
        for (case, path) in [("rate", "/bytes/1300"), ("count", "/bytes/1301")] {
            let is_of = |cell: &&Value| cell["target"] == target && cell["case"] == case;
            let cells: Vec<&Value> = cells.iter().filter(is_of).collect();
            assert_eq!(cells.len(), 2);
            let sum = |name: &str| cells.iter().map(|cell| figure(cell, name)).sum::<f64>() as usize;
            let requests = logged(folder.path(), target, path);
            // Each target is asked once for the path before the first load of a case.
            let (measured, checks) = (sum("requests.answered") + sum("requests.warmup"), 1);
            assert!(sum("requests.answered") > 50, "{cells:?}");
            // On a busy machine some are never sent, and in no log.
            assert_eq!(sum("requests.failed") + sum("requests.unfinished"), 0, "{cells:?}");
            assert_eq!(requests.len(), measured + checks, "{target}, {case}");
            assert!(requests.iter().all(|request| request.status == 200), "{target}, {case}");
            if target == "nginx" {
                let bytes: u64 = requests.iter().filter_map(|request| request.body_bytes).sum();
                let size = path.rsplit('/').next().unwrap().parse::<usize>().unwrap();
                assert_eq!(bytes as usize, size * requests.len());
                assert_eq!(sum("body.out"), size * sum("requests.answered"));
            }
            if case == "rate" {
                continue;
            }
            let of_connection: BTreeMap<_, _> =
                requests.iter().map(|request| (&request.connection, request.is_resumed)).collect();
            let resumed = of_connection.values().filter(|is_resumed| **is_resumed).count();
            assert!(resumed > 50, "{resumed}");
            assert_eq!(sum("handshakes.resumed"), resumed, "{target}");
            assert_eq!(sum("handshakes.full") + checks, of_connection.len() - resumed, "{target}");
            assert_eq!(sum("connections") + checks, of_connection.len(), "{target}");
        }
    }
}

/// `pidstat`, a line a second for each process; it ends with this.
struct Pidstat(Child);

/// What `pidstat` says of a process in a second.
struct PidstatSample {
    /// The end of the second, since 1970.
    at_s: u64,
    cpu_percent: f64,
    resident_kib: f64,
}

impl Pidstat {
    fn start(pids: &[String], output: &Path) -> Self {
        let mut pidstat = Command::new("pidstat");
        pidstat.args(["-u", "-r", "-h", "-H", "-p", &pids.join(","), "1"]).env("LC_ALL", "C");
        pidstat.stdin(Stdio::null()).stdout(fs::File::create(output).unwrap());
        Self(pidstat.spawn().unwrap())
    }

    /// Lines such as `1700000000 0 4321 1.00 2.00 0.00 0.00 3.00 0 10.00 0.00 20000 9000 0.04 nginx` below a heading.
    fn samples(text: &str) -> Vec<PidstatSample> {
        let heading = text.lines().find(|line| line.starts_with('#')).unwrap();
        let columns: Vec<&str> = heading.trim_start_matches('#').split_whitespace().collect();
        let at = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let (time, cpu, resident) = (at("Time"), at("%CPU"), at("RSS"));
        let sample = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words.get(at)?.parse::<f64>().ok();
            Some(PidstatSample {
                at_s: number(time)? as u64,
                cpu_percent: number(cpu)?,
                resident_kib: number(resident)?,
            })
        };
        text.lines().filter_map(sample).collect()
    }
}

impl Drop for Pidstat {
    fn drop(&mut self) {
        // It may have ended with its processes.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How often it may be repeated: the load of a second differs from the next if other processes use the machine.
const ATTEMPTS: u32 = 3;

#[test]
fn cpu_time_and_memory_of_a_target_agree_with_pidstat() {
    common::outside("pidstat", "sysstat");
    let mut last = Err("not tried".to_owned());
    for _ in 0..ATTEMPTS {
        last = compare_with_pidstat();
        if last.is_ok() {
            return;
        }
    }
    last.unwrap();
}

/// Measures nginx once, beside `pidstat`.
///
/// # Errors
/// If the two differ, in words.
fn compare_with_pidstat() -> Result<(), String> {
    let folder = logging(
        "[[case]]\nname = \"handshakes\"\npath = \"/bytes/13\"\nconnections = 2\nkeep-alive = \"off\"\nrate = 200\n\
         duration = \"7s\"\nwarmup = \"500ms\"\n",
    );
    let running =
        common::TlsdashProcess::start(bench_command(folder.path(), "--save saved --only nginx --rounds 1"));
    let pid_file = folder.path().join("nginx.pid");
    let mut pids: Vec<String> = Vec::new();
    until("nginx has its worker", || {
        let main = fs::read_to_string(&pid_file).unwrap_or_default().trim().to_owned();
        let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap_or_default();
        pids = std::iter::once(main).chain(children.split_whitespace().map(str::to_owned)).collect();
        pids.len() == 2
    });
    let log = folder.path().join("pidstat");
    let pidstat = Pidstat::start(&pids, &log);
    let (code, said) = running.wait();
    drop(pidstat);
    if code != 0 {
        return Err(said);
    }
    let cell = &cells(&folder.path().join("saved"))[0];
    let usage = |name: &str| cell["target_usage"][name].as_f64().unwrap();
    // Whole seconds within the measured part, which follows the warm-up. pidstat prints the last of them within seven
    // seconds, whatever part of a second it began at.
    let from_s = cell["began_us"].as_u64().unwrap() / 1_000_000 + 1;
    let measured_s = from_s + 2..=from_s + 5;
    let text = fs::read_to_string(&log).unwrap();
    let samples: Vec<_> =
        Pidstat::samples(&text).into_iter().filter(|sample| measured_s.contains(&sample.at_s)).collect();
    if samples.len() != 2 * 4 {
        return Err(format!("not four seconds of two processes: {text}"));
    }
    let percent = samples.iter().map(|sample| sample.cpu_percent).sum::<f64>() / 4.0;
    let cpu = (usage("user_us") + usage("system_us")) / usage("wall_us") * 100.0;
    // Ticks of 10 ms, and a second more or less of a load that is the same in each.
    if (cpu / percent - 1.0).abs() > 0.15 {
        return Err(format!("{cpu} % and {percent} % by pidstat: {text}"));
    }
    let resident = |at_s: u64| {
        samples.iter().filter(|sample| sample.at_s == at_s).map(|sample| sample.resident_kib).sum::<f64>()
    };
    let resident_kib = measured_s.map(resident).fold(0.0, f64::max);
    let peak_kib = usage("rss_peak") / 1024.0;
    if (peak_kib / resident_kib - 1.0).abs() > 0.05 {
        return Err(format!("{peak_kib} and {resident_kib} KiB by pidstat: {text}"));
    }
    Ok(())
}
