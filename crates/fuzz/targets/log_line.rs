//! Reads any bytes as lines of a terminator's log: nothing panics, and what is counted stays within what was read.

#![no_main]

use std::path::Path;

use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use observe::{LineReader, LogCounter, LogKind};
use records::metrics::ProxyCounter;

const SEEDS: [&str; 8] = [
    r#"{"kind":"http","time":"1795440001.091","log":"web","line":"2","client":"127.0.0.1","number":"1","version":"TLSv1.2","cipher":"ECDHE-ECDSA-AES256-GCM-SHA384","resumed":"0","name":"localhost","alpn":"-","handshake":"2","method":"GET","path":"\/a\"b","protocol":"HTTP/1.1","upstream":"up/a","status":"200","state":"--","in":"92","out":"185","idle":"30","took":"12","response":"0"}"#,
    r#"<134>Feb  6 12:14:14 haproxy[1]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] in static/srv1 10/0/30/69/109 502 2750 - - SH-- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html?q HTTP/1.1""#,
    r#"97 <134>1 2026-02-06T12:14:14Z web haproxy 1 ID [x@1 a="b: \"c]"] @cee: {"kind":"error","line":"4"}"#,
    "Feb  6 12:14:14 web stunnel: LOG5[a]: Service [web] accepted connection from [::1]:46722",
    "10.0.1.2:33313 [06/Feb/2026:12:12:51.443] fnt bck/srv1 0/0/5007 212 cD 0/0/0/0/3 0/0",
    r#"10.0.0.7 - anna [10/Oct/2026:13:55:36 -0700] "POST /a?b HTTP/2.0" 201 2326 "-" "curl""#,
    "2026/11/23 13:00:00 [info] 12#12: *5 peer closed connection in SSL handshake while SSL handshaking, client: 10.0.0.9, server: 0.0.0.0:443",
    "2026.11.23 22:02:42 LOG5[0]: Service [web] accepted connection from 127.0.0.1:46722\n2026.11.23 22:02:43 LOG6[0]: TLS accepted: new session negotiated\n2026.11.23 22:02:43 LOG6[0]: TLSv1.3 ciphersuite: TLS_AES_256_GCM_SHA384 (256-bit encryption)\n2026.11.23 22:02:43 LOG5[0]: Connection closed: 43 byte(s) sent to TLS, 35 byte(s) sent to socket",
];

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    for (kind, _) in LogKind::ALL {
        let (mut lines, mut read) = (LineReader::default(), 0);
        let (mut counter, mut parser) = (LogCounter::default(), kind.parser());
        let mut count = |line: &[u8]| {
            read += 1;
            // A line that cannot be read is no failure.
            let _ = parser.parse(line, |event| event.iter().for_each(|event| counter.count(event)));
        };
        let mut rest = input;
        while lines.read(&mut rest, &mut count).expect("memory can be read") > 0 {}
        lines.finish(&mut count);
        counter.counted.seal();
        assert!(counter.counted.delta.counters[ProxyCounter::Accepted] <= read);
        assert!(counter.counted.delta.clients.len() as u64 <= read);
    }
});

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    for (i, seed) in SEEDS.iter().enumerate() {
        std::fs::write(folder.join(i.to_string()), seed)?;
    }
    Ok(())
}
