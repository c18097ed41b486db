//! Directives of a configuration file, each with the block that it is in.

/// Where a directive is.
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

/// The directives of nginx: words up to a semicolon, or up to a brace that opens a block.
pub(super) fn of_nginx(text: &str) -> Vec<Directive> {
    let mut directives: Vec<Directive> = Vec::new();
    let mut blocks: Vec<usize> = Vec::new();
    let mut next = Directive::default();
    let mut place = Place { file: String::new(), line: 1 };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let begins_line = rest.len() == text.len() || text[..text.len() - rest.len()].ends_with('\n');
        if begins_line && let Some(file) = rest.strip_prefix(NGINX_FILE) {
            let file = file.lines().next().unwrap_or_default();
            place = Place { file: file.trim_end_matches(':').to_owned(), line: 0 };
        }
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
    directives
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
