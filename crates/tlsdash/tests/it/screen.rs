//! The dashboard on a terminal, as far as words, keys and the mouse change it.

use crate::common::{journal, until};
use crate::terminal::{BLACK, NOTHING, TestTerminal, WHITE};
use rustix::process::Signal;

/// A demo whose records go to a file in the folder.
fn demo(folder: &std::path::Path, more: &[&str]) -> TestTerminal {
    let at = format!("file:{}", journal(folder).display());
    TestTerminal::start(folder, &[&["demo", "--journal", &at], more].concat())
}

#[test]
fn keys_of_the_configuration_take_the_place_of_the_usual_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tlsdash.toml");
    std::fs::write(&file, "[keys]\nmark = [\"f5\"]\nquit = [\"shift-q\"]\n").unwrap();
    let mut terminal = demo(folder.path(), &["--config", &file.display().to_string()]);
    terminal.shows("LIVE");
    terminal.shows("Q quit");
    terminal.press("mq\x1b[15~");
    terminal.shows("note mark 1");
    assert!(!terminal.contents().contains("mark 2"), "m is no key any more");
    terminal.press("Q");
    assert_eq!(terminal.ended(), 0);
}

/// The first row, from 1, that begins so.
fn row(terminal: &TestTerminal, text: &str) -> Option<usize> {
    terminal.contents().lines().position(|line| line.starts_with(text)).map(|at| at + 1)
}

/// Presses and lets go of the left button in it, as terminals tell it (xterm's SGR mode).
fn click(terminal: &mut TestTerminal, text: &str) {
    let row = row(terminal, text).unwrap();
    terminal.press(&format!("\x1b[<0;4;{row}M\x1b[<0;4;{row}m"));
}

#[test]
fn the_mouse_selects_and_opens_a_client() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = demo(folder.path(), &[]);
    until("clients are listed", || row(&terminal, " 127.0.0.").is_some());
    click(&mut terminal, " 127.0.0.");
    terminal.shows("▶127.0.0.");
    click(&mut terminal, "▶127.0.0.");
    terminal.shows("┌ client 127.0.0.");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn without_the_mouse_a_click_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = demo(folder.path(), &["--no-mouse"]);
    terminal.shows("LIVE");
    let mode = terminal.screen.lock().unwrap().screen().mouse_protocol_mode();
    assert_eq!(mode, vt100::MouseProtocolMode::None);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn colours_suit_the_background_that_the_terminal_tells() {
    let folder = tempfile::tempdir().unwrap();
    // Those of a heading: an unknown background counts as dark.
    for (background, colour) in [(NOTHING, 80), (BLACK, 80), (WHITE, 24)] {
        let mut terminal =
            TestTerminal::with_colours(background, folder.path(), &["demo", "--journal", "auto"]);
        terminal.shows("LIVE");
        let screen = terminal.screen.lock().unwrap().screen().clone();
        let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
        let has = |colour| {
            let wanted = vt100::Color::Idx(colour);
            cells
                .clone()
                .filter_map(|(row, column)| screen.cell(row, column))
                .any(|cell| cell.fgcolor() == wanted)
        };
        assert_eq!([6, 80, 24].map(has), [6, 80, 24].map(|one| one == colour), "{background:?}");
        terminal.press("q");
        assert_eq!(terminal.ended(), 0);
    }
}

#[test]
fn plain_sentences_leave_the_terminal_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = demo(folder.path(), &["--plain"]);
    terminal.shows(concat!("tlsdash ", env!("CARGO_PKG_VERSION"), " started"));
    assert!(!terminal.screen.lock().unwrap().screen().alternate_screen());
    assert!(!terminal.screen.lock().unwrap().screen().hide_cursor());
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn a_hang_up_on_a_terminal_that_stays_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = demo(folder.path(), &[]);
    terminal.shows("LIVE +");
    terminal.signal(Signal::HUP);
    // A small screen shows the latest line of the log alone.
    terminal.shows("note reload: certificates");
    terminal.press("m");
    terminal.shows("note mark 1");
    let at = terminal.contents();
    until("frames go on", || terminal.contents() != at && terminal.contents().contains("LIVE"));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

/// The file that `W` writes, of which there is one in the folder.
fn written(terminal: &mut TestTerminal, folder: &std::path::Path) -> std::path::PathBuf {
    terminal.press("W");
    terminal.shows(".toml has the");
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "toml")).unwrap()
}

#[test]
fn the_configuration_in_force_starts_the_same_proxy() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let upstream = crate::common::upstream(first.path(), b"hello");
    let upstream = format!("unix:{}", upstream.display());
    let at = format!("file:{}", journal(first.path()).display());
    let flags = ["--listen", "127.0.0.1:0", "--upstream", &upstream, "--journal", &at, "--workers", "1"];
    let mut terminal = TestTerminal::start(first.path(), &flags);
    terminal.shows("LIVE");
    terminal.press("t");
    terminal.shows("▶proxy.workers");
    terminal.press("2\r\r");
    terminal.shows("*2");
    let file = written(&mut terminal, first.path());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nworkers = 2\n"), "{text}");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let file = file.display().to_string();
    let printed = crate::common::run(second.path(), &["--config", &file, "--print-config"]);
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), text);
    let mut terminal = TestTerminal::start(second.path(), &["--config", &file]);
    terminal.shows("LIVE");
    let again = written(&mut terminal, second.path());
    assert_eq!(std::fs::read_to_string(again).unwrap(), text);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}
