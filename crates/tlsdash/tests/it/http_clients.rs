//! HTTP mode with the clients of others: curl, Go, Node, Chromium, and a WebSocket.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::not_run::say_not_run;
use crate::common::{TlsdashProcess, is_there, proxy, stderr, until};
use loadgen::{DemoUpstream, UpstreamAddr};

const GO: &str = r#"package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	for _, next := range [][]string{{"h2", "http/1.1"}, {"http/1.1"}} {
		config := &tls.Config{InsecureSkipVerify: true, NextProtos: next}
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: len(next) == 2}
		if len(next) == 1 {
			transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		client := http.Client{Transport: transport}
		var wait sync.WaitGroup
		var lock sync.Mutex
		seen := map[string]int{}
		for i := 0; i < 100; i++ {
			wait.Add(1)
			go func() {
				defer wait.Done()
				body := bytes.Repeat([]byte{byte('a' + i%26)}, 20000)
				what := "other body"
				response, err := client.Post(os.Args[1]+"/echo", "text/plain", bytes.NewReader(body))
				if err == nil {
					echo, _ := io.ReadAll(response.Body)
					response.Body.Close()
					if bytes.Equal(echo, body) {
						what = fmt.Sprint(response.Proto, " ", response.StatusCode)
					}
				} else {
					what = err.Error()
				}
				lock.Lock()
				seen[what]++
				lock.Unlock()
			}()
		}
		wait.Wait()
		fmt.Println(seen)
	}
}
"#;

const NODE: &str = r"
const [http2, https] = [require('http2'), require('https')];
const url = process.argv[1];
const body = 'x'.repeat(20000);
const session = http2.connect(url, { rejectUnauthorized: false });
const over2 = () => new Promise((done, fail) => {
  const stream = session.request({ ':path': '/echo', ':method': 'PUT' });
  let status, text = '';
  stream.on('response', (fields) => { status = fields[':status']; });
  stream.on('data', (data) => { text += data; }).on('error', fail);
  stream.on('end', () => done(text === body ? status : 'other body'));
  stream.end(body);
});
const agent = new https.Agent({ keepAlive: true, maxSockets: 10, rejectUnauthorized: false });
const over1 = () => new Promise((done, fail) => {
  const request = https.request(url + '/echo', { method: 'POST', agent }, (response) => {
    let text = '';
    response.on('data', (data) => { text += data; });
    response.on('end', () => done(text === body ? response.statusCode : 'other body'));
  });
  request.on('error', fail);
  request.write(body.slice(0, 5000));
  request.end(body.slice(5000));
});
const all = (ask) => Promise.all(Array.from({ length: 100 }, ask));
all(over2).then((two) => all(over1).then((one) => {
  console.log([...new Set(two)], two.length, [...new Set(one)], one.length);
  session.close();
  agent.destroy();
}));
";

/// An upstream that answers frames of a WebSocket with the same text, and closes when it is asked to.
const WEBSOCKET_UPSTREAM: &str = r"
const { createHash } = require('crypto');
const server = require('http').createServer((_, response) => response.end('no socket'));
server.on('upgrade', (request, socket) => {
  const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const accept = createHash('sha1').update(key).digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    'Sec-WebSocket-Accept: ' + accept + '\r\n\r\n');
  socket.on('error', () => {});
  socket.on('data', (frame) => {
    const length = frame[1] & 0x7f;
    const text = Buffer.from(frame.subarray(6, 6 + length)).map((byte, i) => byte ^ frame[2 + (i % 4)]);
    socket.write(Buffer.concat([Buffer.from([frame[0], length]), text]));
    if ((frame[0] & 0xf) === 8) socket.end();
  });
});
server.listen(process.argv[1]);
";

const WEBSOCKET: &str = r"
const socket = new WebSocket(process.argv[1] + '/chat');
const heard = [];
socket.onopen = () => socket.send('one');
socket.onmessage = ({ data }) => {
  heard.push(data);
  if (heard.length < 3) socket.send('and ' + heard.length); else socket.close(1000);
};
socket.onerror = (event) => { console.log('error', event.message || event.error); process.exit(1); };
socket.onclose = ({ code }) => { console.log(heard.join(','), code); process.exit(0); };
";

/// What a program prints. It may take a while to begin.
fn printed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// HTTP mode in front of the demo's upstream.
fn serving(folder: &Path) -> (DemoUpstream, TlsdashProcess, SocketAddr) {
    let path = folder.join("app.sock");
    let upstream = DemoUpstream::start(UpstreamAddr::Unix(path.clone())).unwrap();
    let mut running = proxy(folder, &path, &["--mode", "http"]);
    let address = running.address();
    (upstream, running, address)
}

#[test]
fn curl_learns_that_its_upload_is_refused() {
    if !is_there("curl", "--version", "curl_learns_that_its_upload_is_refused") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let _upstream = DemoUpstream::start(UpstreamAddr::Unix(path.clone())).unwrap();
    let mut running = proxy(folder.path(), &path, &["--mode", "http", "--body-max", "1MiB"]);
    let url = format!("https://{}/echo", running.address());
    let upload = folder.path().join("upload");
    std::fs::write(&upload, vec![b'x'; 3 << 20]).unwrap();
    for (protocol, expected) in [("--http1.1", "1.1 413"), ("--http2", "2 413")] {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--insecure", "--output", "/dev/null", "--max-time", "20"]);
        curl.args(["--write-out", "%{http_version} %{http_code}", protocol, "--upload-file"]);
        assert_eq!(printed(curl.arg(&upload).arg(&url)), expected);
    }
}

#[test]
fn go_gets_its_bodies_back_over_both_protocols() {
    if !is_there("go", "version", "go_gets_its_bodies_back_over_both_protocols") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_upstream, _running, address) = serving(folder.path());
    let program = folder.path().join("main.go");
    std::fs::write(&program, GO).unwrap();
    let mut go = Command::new("go");
    go.arg("run").arg(&program).arg(format!("https://{address}")).env("GO111MODULE", "off");
    assert_eq!(printed(&mut go), "map[HTTP/2.0 200:100]\nmap[HTTP/1.1 200:100]");
}

#[test]
fn node_gets_its_bodies_back_over_both_protocols() {
    if !is_there("node", "--version", "node_gets_its_bodies_back_over_both_protocols") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_upstream, _running, address) = serving(folder.path());
    let mut node = Command::new("node");
    node.args(["-e", NODE]).arg(format!("https://{address}"));
    assert_eq!(printed(&mut node), "[ 200 ] 100 [ 200 ] 100");
}

#[test]
fn chromium_shows_a_page() {
    if !is_there("chromium", "--version", "chromium_shows_a_page") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_upstream, _running, address) = serving(folder.path());
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--ignore-certificate-errors",
        "--dump-dom",
    ]);
    chromium.arg(format!("--user-data-dir={}", folder.path().join("chromium").display()));
    let page = printed(chromium.arg(format!("https://{address}/")));
    assert!(page.contains("hello from the demo upstream"), "{page}");
}

#[test]
fn a_websocket_talks_through_the_proxy() {
    const TEST: &str = "a_websocket_talks_through_the_proxy";
    if !is_there("node", "--version", TEST) {
        return;
    }
    let supported =
        Command::new("node").args(["--experimental-websocket", "-e", "new WebSocket"]).output().unwrap();
    if stderr(&supported).contains("bad option") || stderr(&supported).contains("not defined") {
        return say_not_run(TEST, "this version of node has no WebSocket");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ws.sock");
    let mut node = Command::new("node");
    node.args(["-e", WEBSOCKET_UPSTREAM]).arg(&path);
    let _upstream = TlsdashProcess::start(node);
    until("the upstream listens", || std::os::unix::net::UnixStream::connect(&path).is_ok());
    let mut running = proxy(folder.path(), &path, &["--mode", "http"]);
    let mut client = Command::new("node");
    client.args(["--experimental-websocket", "--no-warnings", "-e", WEBSOCKET]);
    client.arg(format!("wss://{}", running.address())).env("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    assert_eq!(printed(&mut client), "one,and 1,and 2 1000");
    let (code, summary) = running.end();
    assert_eq!(code, 0);
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["proxy"]["http"]["statuses"]["101"], 1, "{}", summary["proxy"]["http"]);
}
