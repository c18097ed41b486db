//! The styles of `tlsdash load` beside what the original tools print of the same load.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::common::{outside, run, stderr};

const BODY: &str = "Hello, World!";

/// A server that answers the same to every request, and closes the connection if the client wants that.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer_all(&stream));
        }
    });
    address
}

fn answer_all(mut stream: &TcpStream) -> std::io::Result<()> {
    let answer = format!("HTTP/1.1 200 OK\r\nServer: test/1\r\nContent-Length: {}\r\n\r\n{BODY}", BODY.len());
    let (mut requests, mut head) = (BufReader::new(stream), String::new());
    while requests.read_line(&mut head)? > 0 {
        if !head.ends_with("\r\n\r\n") {
            continue;
        }
        stream.write_all(answer.as_bytes())?;
        let head = std::mem::take(&mut head).to_ascii_lowercase();
        if head.contains("connection: close") || head.contains("http/1.0") {
            break;
        }
    }
    Ok(())
}

/// What a tool prints of a load of `url`, from the line that begins so.
fn original(program: &str, package: &str, args: &str, url: &str, first: &str) -> Vec<String> {
    let output = outside(program, package).args(args.split(' ')).arg(url).output().unwrap();
    let mut lines = from(&String::from_utf8_lossy(&output.stdout), first);
    // ab doubts the figures of a busy machine.
    let is_doubt = |line: &str| {
        ["ERROR:", "WARNING:", "       deviation", "        These results"]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    lines.retain(|line| !is_doubt(line));
    lines
}

/// What we print in the style of the tool, without the lines that only we have.
fn ours(style: &str, args: &str, url: &str, first: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let args: Vec<&str> =
        ["load", url, "--headless", "--style", style].into_iter().chain(args.split(' ')).collect();
    let output = run(folder.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut lines = from(&String::from_utf8_lossy(&output.stdout), first);
    lines.retain(|line| !line.starts_with('#'));
    lines
}

fn from(text: &str, first: &str) -> Vec<String> {
    let lines = text.trim_end().lines().skip_while(|line| !line.starts_with(first));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// The words of a line with `#` for each number, whatever its unit of time or size.
fn shape(line: &str) -> Vec<String> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let word = |word: &str| {
        let mut shape = String::new();
        let mut rest = word;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            shape += &rest[..at];
            shape.push('#');
            rest = rest[at..].trim_start_matches(is_number);
            let unit = ["us", "ms", "KB", "MB", "GB", "k", "M", "s", "B"].into_iter();
            rest = unit.map(|unit| rest.strip_prefix(unit)).find_map(|rest| rest).unwrap_or(rest);
        }
        shape + rest
    };
    line.split_whitespace().map(word).collect()
}

/// Fails unless both have the same lines but for numbers; a dash of ours is a figure that we do not know.
fn assert_alike(original: &[String], ours: &[String]) {
    let both = format!("the original:\n{}\nours:\n{}", original.join("\n"), ours.join("\n"));
    assert_eq!(original.len(), ours.len(), "{both}");
    for (theirs, ours) in original.iter().zip(ours) {
        let (a, b) = (shape(theirs), shape(ours));
        let is_same = |(a, b): (&String, &String)| a == b || b == "-";
        assert!(a.len() == b.len() && a.iter().zip(&b).all(is_same), "{theirs:?} and {ours:?} in {both}");
    }
}

/// Fails unless the columns of the lines that begin so end at the same places.
fn assert_aligned(original: &[String], ours: &[String], begins: &[&str]) {
    for begin in begins {
        let width = |lines: &[String]| {
            let line = lines.iter().find(|line| line.trim_start().starts_with(begin)).unwrap();
            line.len()
        };
        assert_eq!(width(original), width(ours), "{begin}");
    }
}

/// Fails unless the lines that begin so are the same, numbers included.
fn assert_same(original: &[String], ours: &[String], begins: &[&str]) {
    for begin in begins {
        let line = |lines: &[String]| lines.iter().find(|line| line.starts_with(begin)).cloned();
        assert!(line(original).is_some());
        assert_eq!(line(original), line(ours));
    }
}

#[test]
fn the_style_of_h2load_has_its_lines_and_its_counts() {
    let url = format!("http://{}/small", server());
    let theirs = original("h2load", "nghttp2-client", "--h1 -n 200 -c 4", &url, "finished in");
    let ours = ours("h2load", "-n 200 -c 4", &url, "finished in");
    assert_alike(&theirs, &ours);
    assert_same(&theirs, &ours, &["requests: 200 total", "status codes: 200 2xx"]);
    assert_aligned(&theirs, &ours, &["min ", "time for request:", "time for connect:", "time to 1st byte:"]);
}

#[test]
fn the_style_of_wrk_has_its_lines() {
    let url = format!("http://{}/small", server());
    let theirs = original("wrk", "wrk", "-t1 -c2 -d1s --latency", &url, "Running");
    let ours = ours("wrk", "-t 1 -c 2 -d 1s --interval 100ms", &url, "Running");
    assert_alike(&theirs, &ours);
    assert_same(
        &theirs,
        &ours,
        &["Running 1s test @ http", "  1 threads and 2 connections", "  Thread Stats"],
    );
    assert_aligned(&theirs, &ours, &["Latency ", "Requests/sec:", "Transfer/sec:"]);
    let rates = ours.iter().find(|line| line.trim_start().starts_with("Req/Sec")).unwrap();
    assert!(!rates.contains(" - "), "{rates}");
}

#[test]
fn the_style_of_ab_has_its_lines_and_its_counts() {
    let url = format!("http://{}/small", server());
    let theirs = original("ab", "apache2-utils", "-q -n 200 -c 4", &url, "Server Software");
    let ours = ours("ab", "-n 200 -c 4 -k off", &url, "Server Software");
    assert_alike(&theirs, &ours);
    let same = [
        "Server Hostname:",
        "Server Port:",
        "Document Path:",
        "Document Length:",
        "Concurrency Level:",
        "Complete requests:      200",
        "Failed requests:        0",
        "Total transferred:",
        "HTML transferred:       2600 bytes",
        "Connection Times (ms)",
        "              min  mean[+/-sd] median   max",
    ];
    assert_same(&theirs, &ours, &same);
    assert_aligned(&theirs, &ours, &["Connect:", "Processing:", "Waiting:", "Total:"]);
}
