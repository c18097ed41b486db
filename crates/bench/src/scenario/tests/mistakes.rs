//! Mistakes in a scenario, and their messages.

use super::refusal;

/// A text of the small scenario, its replacement, and a part of the error.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("rounds = 6", "round = 6", "scenario.toml line 3: there is no key \"round\"; did you mean \"rounds\"?"),
    ("rounds = 6", "rounds = 0", "scenario.toml line 3: rounds: run 1 at least, and 6 for a verdict"),
    ("rounds = 6", "rounds = 9999", "line 3: rounds: 2 targets, 1 cases and 9999 rounds are 19998 cells"),
    ("rounds = 6", "rounds = -1", "line 3: rounds: "),
    ("rounds = 6", "workers = 5000", "line 3: workers: at most 1024"),
    (
        "rounds = 6",
        "cipher = \"TLS_NULL\"",
        "line 3: cipher: there is no cipher \"TLS_NULL\"; there are TLS_AES",
    ),
    ("rounds = 6", "group = \"x448\"", "line 3: group: there is no group \"x448\"; there are x25519"),
    (
        "rounds = 6",
        "cipher = \"TLS_AES_128_GCM_SHA256\"\ngroup = \"x448\"",
        "line 4: group: there is no group \"x448\"",
    ),
    ("rounds = 6", "certificate = \"dsa\"", "line 3: certificate: unknown variant `dsa`"),
    ("rounds = 6", "cpus = { target = \"1-0\" }", "line 3: cpus: target must be a list of cores"),
    (
        "rounds = 6",
        "cpus = { load = \"0\", targt = \"1\" }",
        "line 3: cpus: there is no key \"targt\"; did you mean \"target\"?",
    ),
    ("rounds = 6", "[[asert]]", "line 3: there is no key \"asert\"; did you mean \"assert\"?"),
    (
        "baseline = \"nginx\"",
        "baseline = \"ngin\"",
        "line 4: baseline: there is no target \"ngin\"; did you mean \"nginx\"?",
    ),
    ("baseline = \"nginx\"", "baseline = [", "scenario.toml line"),
    ("name = \"nginx\"", "nam = \"nginx\"", "line 6: there is no name; give one"),
    ("name = \"tlsdash\"", "name = \"nginx\"", "line 10: there are two targets \"nginx\""),
    ("name = \"tlsdash\"", "name = \"a\\nb\"", "line 10: the name of a target must have 1 to 100 printable"),
    ("name = \"tlsdash\"", "name = \"a, b\"", "line 10: the name \"a, b\" has a comma"),
    (
        "\"nginx-http\"",
        "\"nginx-htpp\"",
        "line 8: template: there is no template \"nginx-htpp\"; did you mean \"nginx-http\"?",
    ),
    ("template = \"nginx-http\"", "", "line 6: give exactly one of template, chain, command, address"),
    (
        "template = \"nginx-http\"",
        "template = \"hitch\"\naddress = \"https://[::1]:1\"",
        "line 6: give exactly one",
    ),
    ("template = \"nginx-http\"", "template = \"hitch\"\npid = 1", "line 9: there is no key \"pid\""),
    ("template = \"nginx-http\"", "template = \"hitch\"\ndescriptors = 3", "line 9: descriptors: allow 32"),
    ("template = \"nginx-http\"", "command = []", "line 8: command: give a program"),
    (
        "template = \"nginx-http\"",
        "command = [\"x\"]\nhttp3 = true",
        "line 9: there is no key \"http3\"; did you mean \"http2\"?",
    ),
    (
        "template = \"nginx-http\"",
        "command = [\"x\"]\nfiles = { \"../x\" = \"\" }",
        "line 9: files: \"../x\" must be a file name",
    ),
    (
        "template = \"nginx-http\"",
        "command = [\n\"x\",\n\"{prot}\"]",
        "line 10: command: {prot} has no value",
    ),
    (
        "template = \"nginx-http\"",
        "command = [\"x\"]\nfiles.a = '''\n\n{upstream-port}'''",
        "line 11: file a line 2: {upstream-port} has no value: write upstream = \"tcp\"",
    ),
    ("template = \"nginx-http\"", "chain = []", "line 8: chain: name 1 to 8 templates"),
    (
        "template = \"nginx-http\"",
        "chain = [\"go-plain\", \"node-plain\"]",
        "line 8: chain: go-plain answers itself",
    ),
    ("template = \"nginx-http\"", "chain = [\"hitch\", \"hitch\"]", "line 8: chain: hitch speaks TLS"),
    (
        "template = \"nginx-http\"",
        "address = \"https://localhost\"\nworkers = 2",
        "line 9: workers: a server that runs already has its own",
    ),
    ("template = \"nginx-http\"", "address = \"localhost\"", "line 8: address: write https://HOST:PORT"),
    ("template = \"nginx-http\"", "address = \"https://localhost/x\"", "line 8: address: write"),
    (
        "connections = 16",
        "conections = 16",
        "line 17: there is no key \"conections\"; did you mean \"connections\"?",
    ),
    (
        "connections = 16",
        "mesure = \"cost\"",
        "line 17: there is no key \"mesure\"; did you mean \"measure\"?",
    ),
    ("connections = 16", "journal = \"off\"", "line 17: there is no key \"journal\""),
    ("connections = 16", "measure = \"speed\"", "line 17: measure: unknown variant `speed`"),
    ("connections = 16", "requests = 5", "line 17: requests: measure = \"cost\" needs a duration instead"),
    ("connections = 16", "replay = \"a.log\"", "line 17: replay: it has times of its own: write measure"),
    ("connections = 16", "like = \"a.journal\"", "line 17: like: it has times of its own: write measure"),
    ("connections = 16", "rate = \"1..2/3s\"", "line 17: rate: measure = \"cost\" needs one rate"),
    ("connections = 16", "measure = \"capacity\"", "line 14: measure = \"capacity\" and bound"),
    (
        "connections = 16",
        "only = [\"ngin\"]",
        "line 14: case \"kept alive\" has a wrong only: there is no target \"ngin\"",
    ),
    ("connections = 16", "only = [\"tlsdash\"]", "line 14: case \"kept alive\" needs the baseline \"nginx\""),
    ("connections = 16", "bound = \"p99 < 1ms\"", "line 14: measure = \"capacity\" and bound"),
    ("connections = 16", "bound = \"p99\"", "line 17: bound: write a percentile and its limit"),
    ("connections = 16", "duration = \"soon\"", "line 17: duration: expected a time such as"),
    ("connections = 16", "body-bytes = \"1,2\"", "line 17: body-bytes: must be one size"),
    ("connections = 16", "rate = [1, 2]", "line 17: rate: cannot be a list; write matrix = { rate"),
    ("connections = 16", "matrix = { conections = [1] }", "line 17: there is no key \"conections\""),
    ("connections = 16", "matrix = { name = [\"a\"] }", "line 17: matrix: name cannot vary"),
    ("connections = 16", "matrix = { path = [\"/\"] }", "line 17: matrix: path is also a key of the case"),
    ("connections = 16", "matrix = { rate = 1 }", "line 17: matrix: rate must be a list of values"),
    ("\"/bytes/13\"", "\"bytes 13\"", "line 16: path: write a path such as /bytes/13"),
    ("connections = 16", "[[assert]]\ntarget = \"x\"", "line 18: target: there is no target \"x\""),
    (
        "connections = 16",
        "[[assert]]\ntarget = \"nginx\"\ncase = \"kept\"",
        "line 19: case: there is no case \"kept\"; did you mean \"kept alive\"?",
    ),
    ("connections = 16", "[[assert]]\ntarget = \"nginx\"", "line 17: there is no condition; give one"),
    (
        "connections = 16",
        "[[assert]]\ntarget = \"nginx\"\ncondition = \"respnse.p99 < 5ms\"",
        "line 19: condition: respnse.p99 < 5ms: there is no figure respnse.p99",
    ),
    (
        "connections = 16",
        "[[published]]\ntarget = \"nginx\"\ncase = \"kept alive\"\nfigures = { respose.p99 = 1 }",
        "line 20: figures: ",
    ),
];

#[test]
fn every_mistake_is_told_with_its_line() {
    for (from, to, expected) in MISTAKES {
        let error = refusal(from, to);
        assert!(error.contains(expected), "{to}\n  {error}\n  expected: {expected}");
    }
}
