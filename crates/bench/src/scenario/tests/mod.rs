mod mistakes;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::seeds::Seed;
use crate::template::ServerTemplate;

const SMALL: &str = r#"
title = "small"
rounds = 6
baseline = "nginx"

[[target]]
name = "nginx"
template = "nginx-http"

[[target]]
name = "tlsdash"
template = "tlsdash-http"

[[case]]
name = "kept alive"
path = "/bytes/13"
connections = 16
"#;

#[expect(clippy::unnecessary_wraps, reason = "the type of a check")]
fn accept(_: &[String]) -> Result<(), String> {
    Ok(())
}

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("scenario.toml", text, &accept)
}

/// The small scenario with a text replaced.
fn with(from: &str, to: &str) -> Result<Scenario, ScenarioError> {
    assert!(SMALL.contains(from), "{from}");
    parse(&SMALL.replacen(from, to, 1))
}

fn refusal(from: &str, to: &str) -> String {
    let error = with(from, to).expect_err(to).to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

fn case(keys: &str) -> BenchCase {
    with("connections = 16", keys).unwrap().cases.remove(0)
}

fn slots<'s>(
    listen: &'s Endpoint,
    upstream: Option<&'s Endpoint>,
    tls: &'s BenchTlsConfig,
) -> PlaceholderValues<'s> {
    PlaceholderValues {
        listen,
        upstream,
        cert: Path::new("/t/cert.pem"),
        key: Path::new("/t/key.pem"),
        pem: Path::new("/t/both.pem"),
        tls,
        workers: 2,
        dir: Path::new("/t/dir"),
        build: Path::new("/t/build"),
        www: Path::new("/t/www"),
        user: "nobody",
        tlsdash: Path::new("/t/tlsdash"),
    }
}

fn tcp() -> Endpoint {
    Endpoint::Tcp((Ipv4Addr::LOCALHOST, 8443).into())
}

fn unix() -> Endpoint {
    Endpoint::Unix("/t/upstream.sock".into())
}

#[test]
fn a_small_scenario_gets_the_defaults() {
    let scenario = parse(SMALL).unwrap();
    assert_eq!((scenario.rounds, &*scenario.baseline, scenario.cpus), (6, "nginx", None));
    assert_eq!(scenario.tls, BenchTlsConfig::default());
    let target = &scenario.targets[1];
    assert_eq!(
        (&*target.name, target.line, target.workers, target.certificate),
        ("tlsdash", 10, 1, KeyKind::Ecdsa)
    );
    assert!(target.has_tls() && target.speaks_http2());
    let case = &scenario.cases[0];
    assert_eq!(
        (case.line, case.question, &*case.path, case.primary),
        (14, Question::Cost, "/bytes/13", true)
    );
    assert_eq!(case.load_flags(), ["--connections=16", "--duration=10s", "--warmup=1s"]);
    assert_eq!(case.quick, None);
}

#[test]
fn a_case_needs_targets_that_can_serve_it() {
    for (template, key, missing) in
        [("nginx-stream", "http2", "HTTP/2"), ("nginx-native", "expect-echo", "echoes")]
    {
        let text = SMALL
            .replace("nginx-http", template)
            .replace("connections", &format!("{key} = true\nconnections"));
        let error = parse(&text).unwrap_err().to_string();
        let expected = format!("case \"kept alive\" wants {missing}, which target \"nginx\" does not have");
        assert_eq!(error, format!("scenario.toml line 14: {expected}"));
    }
}

#[test]
fn what_load_refuses_is_told_at_the_line_of_the_flag() {
    let refuse = |flags: &[String]| {
        assert_eq!(flags, ["--connections=0", "--duration=10s", "--warmup=1s"]);
        Err("--connections 0: expected 1 to 100000".to_owned())
    };
    let text = SMALL.replace("connections = 16", "connections = 0");
    let error = Scenario::parse("s", &text, &refuse).unwrap_err().to_string();
    assert_eq!(error, "s line 17: connections: --connections 0: expected 1 to 100000");
}

#[test]
fn keys_of_a_case_become_flags_of_load() {
    let case = case(
        "measure = \"load\"\nkeep-alive = \"off\"\nheader = [\"A: b\", \"C: d\"]\nexpect-echo = true\nhttp2 = false\n\
         rate = 2.5\nduration = 90\nwarmup = \"0s\"",
    );
    let flags = ["--expect-echo", "--header=A: b", "--header=C: d", "--keep-alive=off", "--rate=2.5"];
    assert_eq!(case.flags, flags);
    assert_eq!((case.duration, case.warmup), (Some(Duration::from_secs(90)), Duration::ZERO));
    assert_eq!(
        (case.flag("rate"), case.flag("expect-echo"), case.flag("http2")),
        (Some("2.5"), Some(""), None)
    );
    assert_eq!(case.load_flags().last().unwrap(), "--duration=90s");
}

#[test]
fn a_replayed_log_has_its_own_length() {
    let case = case("measure = \"load\"\nreplay = \"/var/log/a.log\"\nspeed = 2");
    assert_eq!(case.load_flags(), ["--replay=/var/log/a.log", "--speed=2"]);
    assert_eq!(case.length(), None);
}

#[test]
fn a_target_without_tls_gets_no_flags_about_tls() {
    let text = SMALL
        .replace("template = \"nginx-http\"", "template = \"node-plain\"")
        .replace("connections", "resume = \"100%\"\nearly-data = true\ntls-version = \"1.3\"\nconnections");
    let scenario = parse(&text).unwrap();
    let [plain, tls] = [0, 1].map(|target| scenario.cases[0].load_flags_for(&scenario.targets[target]));
    assert_eq!(plain, ["--connections=16", "--duration=10s", "--warmup=1s"]);
    assert_eq!(tls[..4], ["--connections=16", "--early-data", "--resume=100%", "--tls-version=1.3"]);
}

#[test]
fn a_matrix_is_every_combination_in_the_order_of_the_text() {
    let matrix = "matrix = { streams = [1, 32], connections = [16, 160] }\nhttp2 = true";
    let scenario = with("connections = 16", matrix).unwrap();
    let names: Vec<&str> = scenario.cases.iter().map(|case| &*case.name).collect();
    assert_eq!(names[..2], ["kept alive streams=1 connections=16", "kept alive streams=1 connections=160"]);
    assert_eq!((names.len(), names[3]), (4, "kept alive streams=32 connections=160"));
    assert_eq!(scenario.cases[3].flags, ["--connections=160", "--http2", "--streams=32"]);
    let many = (0..200).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let many = format!("matrix = {{ threads = [{many}], connections = [{many}] }}");
    assert!(
        refusal("connections = 16", &many).contains("line 17: matrix: it has more than 10000 combinations")
    );
}

#[test]
fn the_primary_cases_are_those_that_say_so_or_else_all() {
    let two = |more: &str| {
        let text = format!("{SMALL}{more}\n[[case]]\nname = \"other\"");
        parse(&text).unwrap().cases.iter().map(|case| case.primary).collect::<Vec<_>>()
    };
    assert_eq!(two(""), [true, true]);
    assert_eq!(two("primary = true"), [true, false]);
}

#[test]
fn a_bound_is_a_percentile_and_a_limit() {
    let case = case("measure = \"capacity\"\nbound = \"p99.9 < 2.5ms\"");
    let bound = case.bound.unwrap();
    assert!((bound.percentile - 99.9).abs() < 1e-9 && bound.limit_us == 2_500, "{bound:?}");
}

#[test]
fn a_quick_case_keeps_its_rate_and_takes_its_own_time() {
    let quick =
        |keys: &str| case(&format!("measure = \"load\"\n{keys}")).for_quick().map(|case| case.load_flags());
    assert_eq!(quick("connections = 1"), None);
    assert_eq!(quick("quick = true").unwrap(), ["--duration=10s", "--warmup=1s"]);
    assert_eq!(quick("quick = \"3s\"\nrequests = 100").unwrap(), ["--duration=3s"]);
    let ramp = quick("quick = \"3s\"\nrequests = 10_000\nramp-up = \"100s\"").unwrap();
    assert_eq!(ramp, ["--rate=100", "--duration=3s"]);
    let stages = refusal("connections = 16", "measure = \"load\"\nrate = \"1..2/3s\"\nquick = \"1s\"");
    assert!(stages.contains("line 19: quick: a rate with stages cannot be shortened"), "{stages}");
    let endless = refusal("connections = 16", "measure = \"load\"\nrequests = 3\nquick = true");
    assert!(endless.contains("line 19: quick: the case has no duration"), "{endless}");
}

#[test]
fn the_length_of_a_case_is_known_if_its_schedule_is() {
    let seconds =
        |keys: &str| case(&format!("measure = \"load\"\n{keys}")).length().map(|length| length.as_secs());
    assert_eq!(seconds("connections = 1"), Some(10));
    assert_eq!(seconds("requests = 100"), None);
    assert_eq!(seconds("requests = 100\nrate = 50"), Some(2));
    assert_eq!(seconds("requests = 100\nramp-up = \"9s\""), Some(9));
    assert_eq!(seconds("rate = \"1..2/30s+2/1m\""), Some(90));
}

#[test]
fn placeholders_are_filled_in_commands_files_and_environment() {
    let server = CommandServer {
        command: vec!["{tlsdash}".to_owned(), "{listen},{port}{ port }{{port}}{}".to_owned()],
        prepare: vec!["{build}/x".to_owned()],
        environment: BTreeMap::from([("A".to_owned(), "{workers}".to_owned())]),
        files: BTreeMap::from([("f".to_owned(), "{group}\n{upstream} {pem}".to_owned())]),
        ..CommandServer::default()
    };
    let (listen, upstream, tls) = (tcp(), unix(), BenchTlsConfig::default());
    let launch = server.launch(&slots(&listen, Some(&upstream), &tls)).unwrap();
    assert_eq!(launch.argv, ["/t/tlsdash", "127.0.0.1:8443,8443{ port }{port}{}"]);
    assert_eq!(launch.prepare, ["/t/build/x"]);
    assert_eq!(launch.environment["A"], "2");
    assert_eq!(launch.files[Path::new("/t/dir/f")], "x25519\n/t/upstream.sock /t/both.pem");
    let behind = server.launch(&slots(&upstream, None, &tls)).unwrap_err().to_string();
    assert_eq!(
        behind,
        "command: {port} has no value: behind a server that wants a Unix socket, use {listen}"
    );
}

#[test]
fn a_path_with_spaces_is_an_argument_and_quoted_in_files() {
    let (listen, upstream, tls) = (tcp(), Endpoint::Unix("/a b/u.sock".into()), BenchTlsConfig::default());
    let path = |name: &str| PathBuf::from("/a b (c)").join(name);
    let [dir, cert, key, pem] = ["dir", "cert.pem", "key.pem", "both.pem"].map(path);
    let spaces = PlaceholderValues {
        dir: &dir,
        cert: &cert,
        key: &key,
        pem: &pem,
        build: &dir,
        www: &dir,
        tlsdash: &dir,
        ..slots(&listen, Some(&upstream), &tls)
    };
    for template in ServerTemplate::all() {
        let launch = template.server().unwrap().launch(&spaces);
        match template.name {
            // A value goes to the end of its line there, and cannot be quoted.
            "stunnel" => assert!(matches!(launch, Err(LaunchError::Unquoted { .. }))),
            name => assert!(launch.is_ok(), "{name}: {launch:?}"),
        }
    }
    let server = |line: &str| CommandServer {
        command: vec!["--pem={pem}".to_owned()],
        files: BTreeMap::from([("f".to_owned(), format!("\n{line}\n"))]),
        ..CommandServer::default()
    };
    let launch = server("cert \"{pem}\";").launch(&spaces).unwrap();
    assert_eq!(launch.argv, ["--pem=/a b (c)/both.pem"]);
    assert_eq!(launch.files[&dir.join("f")], "\ncert \"/a b (c)/both.pem\";\n");
    let refused = server("cert \"x\" {pem};").launch(&spaces).unwrap_err().to_string();
    assert!(refused.starts_with("file f line 2: {pem} is \"/a b (c)/both.pem\", whose "), "{refused}");
    let hostile = PlaceholderValues { pem: Path::new("/a\"b"), ..slots(&listen, None, &tls) };
    assert!(matches!(server("cert \"{pem}\";").launch(&hostile), Err(LaunchError::Unquoted { .. })));
}

#[test]
fn every_template_parses_and_every_placeholder_is_filled() {
    for template in ServerTemplate::all() {
        let server = template.server().unwrap();
        assert!(template.text.contains(&format!("name = \"{}\"", template.name)), "{}", template.name);
        let (listen, tls) = (tcp(), BenchTlsConfig::default());
        let upstream = match server.upstream {
            UpstreamKind::Unix => Some(unix()),
            UpstreamKind::Tcp => Some(tcp()),
            UpstreamKind::None => None,
        };
        let launch = server.launch(&slots(&listen, upstream.as_ref(), &tls)).unwrap();
        let words = launch.argv.iter().chain(&launch.prepare).chain(launch.environment.values());
        for text in words.chain(launch.files.values()) {
            for placeholder in
                ["{listen}", "{port}", "{upstream", "{dir}", "{cert}", "{key}", "{workers}", "{group}"]
            {
                assert!(!text.contains(placeholder), "{}: {placeholder} in {text}", template.name);
            }
        }
        let pasted = format!("{}\n[[case]]\nname = \"any\"", template.text);
        assert!(parse(&pasted).is_ok(), "{}", template.name);
    }
}

#[test]
fn every_seed_parses() {
    for seed in Seed::all() {
        let scenario =
            Scenario::parse(seed.name, seed.text, &accept).unwrap_or_else(|error| panic!("{error}"));
        assert!(scenario.cases.iter().any(|case| case.quick.is_some()), "{}", seed.name);
        assert!(scenario.rounds >= ROUNDS_MIN && scenario.targets.len() >= 2, "{}", seed.name);
    }
}

#[test]
fn the_load_offers_what_the_targets_are_configured_for() {
    let tls = BenchTlsConfig { cipher: "TLS_AES_256_GCM_SHA384".to_owned(), ..BenchTlsConfig::default() };
    let ciphers = "TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
    assert_eq!(tls.load_flags(), [format!("--ciphers={ciphers}"), "--groups=x25519,secp256r1".to_owned()]);
    assert_eq!(tls.openssl_ciphers(), "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384");
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = parse(&text);
    }

    /// Texts that get past the first lines: the small scenario with one piece of it replaced.
    #[test]
    fn no_change_of_a_scenario_panics(
        from in 0..SMALL.len(),
        len in 0..20_usize,
        piece in "([a-z]{1,8} = )?(\"[^\"\n]{0,9}\"|[0-9.e-]{1,20}|\\[.{0,9}\\]|\\{[a-z]{0,5}\\}|.{0,9})\n?",
    ) {
        let until = (from + len).min(SMALL.len());
        if SMALL.is_char_boundary(from) && SMALL.is_char_boundary(until) {
            let text = format!("{}{piece}{}", &SMALL[..from], &SMALL[until..]);
            if let Err(error) = parse(&text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

#[test]
fn relative_paths_begin_at_the_folder_of_this_process() {
    let here = std::env::current_dir().unwrap();
    let absolute = |path: &str| here.join(path).display().to_string();
    let flag = |keys: &str, name: &str| case(keys).flag(name).map(str::to_owned);
    assert_eq!(flag("body = \"b.bin\"", "body"), Some(absolute("b.bin")));
    assert_eq!(flag("targets = \"/t.txt\"", "targets").as_deref(), Some("/t.txt"));
    let server = |keys: &str| with("template = \"nginx-http\"", keys).unwrap().targets.remove(0).server;
    let program = |keys: &str| match server(keys) {
        Server::Commands(servers) => servers[0].command[0].clone(),
        Server::Address(server) => panic!("{server:?}"),
    };
    assert_eq!(program("template = \"sozu\"\nprogram = \"bin/sozu\""), absolute("bin/sozu"));
    assert_eq!(program("command = [\"bin/server\"]"), absolute("bin/server"));
    assert_eq!(program("command = [\"server\"]"), "server", "it is looked for in PATH");
    assert_eq!(program("command = [\"{build}/server\"]\nprepare = [\"cc\"]"), "{build}/server");
    let Server::Address(found) = server("address = \"https://127.0.0.1:1\"\nca = \"ca.pem\"") else {
        panic!()
    };
    assert_eq!(found.ca, Some(here.join("ca.pem")));
}
