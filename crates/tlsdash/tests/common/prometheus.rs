//! A Prometheus of the test's own.
#![allow(dead_code, reason = "each test uses its part")]

use std::fmt::Display;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::common::outside;

/// Ended with the test.
pub(crate) struct Prometheus {
    child: Child,
    port: u16,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Scrapes these addresses once a second as the job `tlsdash`, and evaluates the rules of these files. The program also
    /// gets `arguments`.
    pub(crate) fn start(folder: &Path, targets: &[impl Display], rules: &[&str], arguments: &[&str]) -> Self {
        let config = folder.join("prometheus.yml");
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let text = serde_json::json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": rules,
            "scrape_configs": [{"job_name": "tlsdash", "static_configs": [{"targets": targets}]}],
        });
        // JSON is YAML.
        fs::write(&config, text.to_string()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = outside("prometheus", "prometheus");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), port }
    }

    /// The data of an answer of the API, or the error; `None` while nobody answers.
    pub(crate) fn ask(&self, path: &str, query: &str) -> Option<Result<Value, String>> {
        let url = format!("http://127.0.0.1:{}/api/v1/{path}", self.port);
        let output = outside("curl", "curl")
            .args(["-s", "-G", &url, "--data-urlencode", &format!("query={query}")])
            .output()
            .unwrap();
        let mut answer: Value = serde_json::from_slice(&output.stdout).ok()?;
        Some(if answer["status"] == "success" {
            Ok(answer["data"].take())
        } else {
            Err(answer["error"].to_string())
        })
    }

    /// The first value of an expression; `None` while there is none.
    pub(crate) fn value(&self, expression: &str) -> Option<f64> {
        let data = self.ask("query", expression)?.ok()?;
        data["result"][0]["value"][1].as_str()?.parse().ok()
    }
}
