//! Directives of a configuration file, each with the block that it is in.

use wildmatch::WildMatch;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The file, if the text names it, as `nginx -T` does.
    pub(super) file: String,
    pub(super) line: usize,
}

/// One directive: its words without quotes, and the blocks around it, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) words: Vec<String>,
    /// The positions of the directives that open the blocks.
    pub(super) blocks: Vec<usize>,
    pub(super) place: Place,
}

impl Directive {
    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", |name| name)
    }

    pub(super) fn argument(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word)
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().skip(1).any(|other| other == word)
    }
}

/// How `nginx -T` begins each file.
const NGINX_FILE: &str = "# configuration file ";
/// The deepest include that is followed; nginx itself has a bound.
const DEPTH_MAX: usize = 16;
const DIRECTIVES_MAX: usize = 100_000;

/// The directives of nginx. The files that `nginx -T` prints are taken where they are included.
pub(super) fn of_nginx(text: &str) -> Vec<Directive> {
    let mut parts = text.split("\n# configuration file ");
    // Other output of nginx may precede its files.
    let first = parts.next().and_then(|first| first.strip_prefix(NGINX_FILE));
    let mut files: Vec<NginxFile> = first.into_iter().chain(parts).map(NginxFile::parse).collect();
    if files.is_empty() {
        files.push(NginxFile::of_text(text, ""));
    }
    let mut expansion = NginxExpansion { is_taken: vec![false; files.len()], files: &files, all: Vec::new() };
    for at in 0..files.len() {
        if !expansion.is_taken[at] {
            expansion.take(at, &[], DEPTH_MAX);
        }
    }
    expansion.all
}

/// A file of nginx's configuration. Blocks are positions within it.
#[derive(Debug)]
struct NginxFile {
    path: String,
    directives: Vec<Directive>,
}

impl NginxFile {
    /// Reads what follows the beginning of its heading.
    fn parse(text: &str) -> Self {
        let (path, text) = text.split_once('\n').unwrap_or((text, ""));
        Self::of_text(text, path.trim_end_matches(':'))
    }

    /// Reads words up to a semicolon, or up to a brace that opens a block.
    fn of_text(text: &str, path: &str) -> Self {
        let mut directives: Vec<Directive> = Vec::new();
        let mut blocks: Vec<usize> = Vec::new();
        let mut next = Directive::default();
        let mut place = Place { file: path.to_owned(), line: 1 };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '#' => rest.find('\n').unwrap_or(rest.len()),
                ';' | '{' | '}' => {
                    if !next.words.is_empty() {
                        next.blocks.clone_from(&blocks);
                        directives.push(std::mem::take(&mut next));
                        if first == '{' {
                            blocks.push(directives.len() - 1);
                        }
                    }
                    if first == '}' {
                        blocks.pop();
                    }
                    1
                }
                white if white.is_whitespace() => white.len_utf8(),
                _ => {
                    let (word, length) = word(rest, &[';', '{', '}']);
                    if next.words.is_empty() {
                        next.place.clone_from(&place);
                    }
                    next.words.push(word);
                    length
                }
            };
            place.line += rest[..length].matches('\n').count();
            rest = &rest[length..];
        }
        Self { path: path.to_owned(), directives }
    }
}

/// The directives of all files, each file where it is included.
struct NginxExpansion<'a> {
    files: &'a [NginxFile],
    is_taken: Vec<bool>,
    all: Vec<Directive>,
}

impl NginxExpansion<'_> {
    /// Takes a file that is included within these blocks.
    fn take(&mut self, file: usize, around: &[usize], depth: usize) {
        self.is_taken[file] = true;
        let mut positions = Vec::new();
        for directive in &self.files[file].directives {
            if self.all.len() == DIRECTIVES_MAX {
                return;
            }
            let own = directive.blocks.iter().map(|&at: &usize| positions[at]);
            let blocks: Vec<usize> = around.iter().copied().chain(own).collect();
            positions.push(self.all.len());
            self.all.push(Directive { blocks: blocks.clone(), ..directive.clone() });
            if directive.name() == "include" && depth > 0 {
                for included in self.included(directive.argument(1)) {
                    self.take(included, &blocks, depth - 1);
                }
            }
        }
    }

    /// The files that a pattern names; it begins in the folder of the first one.
    fn included(&self, pattern: &str) -> Vec<usize> {
        let folder = self.files[0].path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let pattern =
            if pattern.starts_with('/') { pattern.to_owned() } else { format!("{folder}/{pattern}") };
        let pattern = WildMatch::new(&pattern);
        (0..self.files.len()).filter(|&at| pattern.matches(&self.files[at].path)).collect()
    }
}

/// Words that begin a section of HAProxy.
const HAPROXY_SECTIONS: [&str; 14] = [
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "peers",
    "resolvers",
    "mailers",
    "userlist",
    "cache",
    "program",
    "ring",
    "http-errors",
    "fcgi-app",
];

/// The directives of HAProxy: a line each, in the section that began last.
pub(super) fn of_haproxy(text: &str) -> Vec<Directive> {
    let mut directives: Vec<Directive> = Vec::new();
    let mut section = None;
    for (line, number) in text.lines().zip(1..) {
        let mut words = Vec::new();
        let mut rest = line.trim_start();
        while !rest.is_empty() && !rest.starts_with('#') {
            let (word, length) = word(rest, &['#']);
            words.push(word);
            rest = rest[length..].trim_start();
        }
        let Some(first) = words.first() else { continue };
        let begins = HAPROXY_SECTIONS.contains(&first.as_str());
        let blocks = if begins { Vec::new() } else { section.into_iter().collect() };
        section = if begins { Some(directives.len()) } else { section };
        directives.push(Directive { words, blocks, place: Place { file: String::new(), line: number } });
    }
    directives
}

/// The first word without its quotes, and its length with them. It ends at a blank or at one of `ends`.
fn word(text: &str, ends: &[char]) -> (String, usize) {
    let (mut word, mut quote) = (String::new(), None);
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (c, quote) {
            // Within single quotes of HAProxy a backslash is one; the keys of our formats have none.
            ('\\', None | Some('"')) => word.extend(characters.next().map(|(_, escaped)| escaped)),
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (c, None) if c.is_whitespace() || ends.contains(&c) => return (word, at),
            (c, _) => word.push(c),
        }
    }
    (word, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_of_nginx_have_their_blocks_files_and_lines() {
        let text = "# configuration file /etc/nginx/nginx.conf:\nhttp {\n  # access_log a;\n  log_format x '{\"a;b\":\n\"c\"}';\n\
                    server { listen 443 ssl; }\n}\n# configuration file /etc/b.conf:\nstream { a \"b c\"; }\n";
        let directives = of_nginx(text);
        let shown: Vec<_> = directives
            .iter()
            .map(|d| (d.words.join("|"), d.blocks.clone(), d.place.file.as_str(), d.place.line))
            .collect();
        let (main, other) = ("/etc/nginx/nginx.conf", "/etc/b.conf");
        let expected = [
            ("http", vec![], main, 1),
            ("log_format|x|{\"a;b\":\n\"c\"}", vec![0], main, 3),
            ("server", vec![0], main, 5),
            ("listen|443|ssl", vec![0, 2], main, 5),
            ("stream", vec![], other, 1),
            ("a|b c", vec![4], other, 1),
        ];
        assert_eq!(shown, expected.map(|(words, blocks, file, line)| (words.to_owned(), blocks, file, line)));
    }

    #[test]
    fn files_of_nginx_are_taken_where_they_are_included() {
        let text = "# configuration file /etc/nginx/nginx.conf:\nhttp {\n  include conf.d/*.conf;\n  include /etc/nginx/sites/*;\n}\n\n\
                    # configuration file /etc/nginx/conf.d/log.conf:\nlog_format x y;\n\n\
                    # configuration file /etc/nginx/sites/a:\nserver { include snippets/tls; }\nserver { include snippets/tls; }\n\n\
                    # configuration file /etc/nginx/snippets/tls:\nlisten 443 ssl;\n";
        let shown: Vec<_> = of_nginx(text).into_iter().map(|d| (d.words.join("|"), d.blocks)).collect();
        let listen = "listen|443|ssl".to_owned();
        assert_eq!(shown[0], ("http".to_owned(), vec![]));
        assert_eq!(shown[2], ("log_format|x|y".to_owned(), vec![0]));
        assert_eq!((&shown[4].0[..], &shown[4].1[..]), ("server", &[0][..]));
        assert_eq!(shown[6], (listen.clone(), vec![0, 4]), "relative to the folder of nginx.conf");
        assert_eq!(shown[9], (listen, vec![0, 7]), "a file may be included twice");
        assert_eq!(shown.len(), 10);
        let circle = "# configuration file /a:\ninclude b;\ninclude b;\n# configuration file /b:\ninclude a;\ninclude a;\n";
        assert!(of_nginx(circle).len() <= DIRECTIVES_MAX);
    }

    #[test]
    fn directives_of_haproxy_are_in_the_section_that_began_last() {
        let text =
            "global\n  log a\n\nfrontend b # c\n  log-format '{\"a\": \"#\"}' # d\n  #mode http\n  x\\ y z\n";
        let shown: Vec<_> =
            of_haproxy(text).into_iter().map(|d| (d.words.join("|"), d.blocks, d.place.line)).collect();
        let expected = [
            ("global", vec![], 1),
            ("log|a", vec![0], 2),
            ("frontend|b", vec![], 4),
            ("log-format|{\"a\": \"#\"}", vec![2], 5),
            ("x y|z", vec![2], 7),
        ];
        assert_eq!(shown, expected.map(|(words, blocks, line)| (words.to_owned(), blocks, line)));
    }

    #[test]
    fn hostile_text_ends() {
        for text in ["}}}}", "{{{{", "'", "\"\\", "a 'b", "\\", "#", "http { server { a", "ä{ö;ü}"] {
            of_nginx(text);
            of_haproxy(text);
        }
    }
}
