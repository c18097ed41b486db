//! A picture of the dashboard for the documents: `just screenshot`.
//!
//! Runs a program in a pseudo-terminal of 100 by 30 cells, presses the keys of [`SCRIPT`] and writes the last screen as an
//! SVG that needs no other file. Block and Braille characters are drawn as shapes, so that the picture does not depend on a
//! font.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use vt100::{Cell, Color, Parser, Screen};

const ROWS: u16 = 30;
const COLUMNS: u16 = 100;
/// Seconds to wait, and the key pressed then: a mark, 10 % more load.
const SCRIPT: &[(u64, &str)] = &[(45, "m"), (15, "]"), (20, "")];
/// The same over terminators that are observed, whose load is not ours to change.
const OBSERVING: &[(u64, &str)] = &[(30, "")];
/// Size of a cell in the picture, and the margin around all of them.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 14.0;
const FOREGROUND: &str = "#d4d4d4";
const BACKGROUND: &str = "#16181d";

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(picture), Some(program)) = (words.next(), words.next()) else {
        return Err("usage: screenshot PICTURE.svg PROGRAM [ARGUMENT...]".into());
    };
    let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
    let pty = native_pty_system().openpty(size)?;
    let mut command = CommandBuilder::new(program);
    let words: Vec<String> = words.collect();
    let script =
        if words.iter().any(|word| ["observe", "wire"].contains(&&**word)) { OBSERVING } else { SCRIPT };
    command.args(words);
    command.env("TERM", "xterm-256color");
    command.env("LC_ALL", "C.UTF-8");
    command.env_remove("NO_COLOR");
    let mut child = pty.slave.spawn_command(command)?;
    drop(pty.slave);
    let terminal = follow(pty.master.try_clone_reader()?)?;
    let mut keyboard = pty.master.take_writer()?;
    for (seconds, keys) in script {
        thread::sleep(Duration::from_secs(*seconds));
        keyboard.write_all(keys.as_bytes())?;
    }
    let svg = svg(terminal.lock().map_err(|_| "the terminal's thread has panicked")?.screen())?;
    keyboard.write_all(b"q")?;
    child.wait()?;
    Ok(fs::write(picture, svg)?)
}

/// Keeps a screen up to date with what the program draws.
fn follow(mut output: Box<dyn Read + Send>) -> Result<Arc<Mutex<Parser>>, Box<dyn Error>> {
    let terminal = Arc::new(Mutex::new(Parser::new(ROWS.try_into()?, COLUMNS.try_into()?, 0)));
    let shown = Arc::clone(&terminal);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = output.read(&mut buffer) {
            let Ok(mut parser) = shown.lock() else { return };
            parser.process(&buffer[..n]);
        }
    });
    Ok(terminal)
}

fn svg(screen: &Screen) -> Result<String, std::fmt::Error> {
    let width = f64::from(COLUMNS) * WIDTH + 2.0 * MARGIN;
    let height = f64::from(ROWS) * HEIGHT + 2.0 * MARGIN;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="-{MARGIN} -{MARGIN} {width} {height}"
font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">
<title>The dashboard of tlsdash demo</title>
<rect x="-{MARGIN}" y="-{MARGIN}" width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>
"#
    );
    for row in 0..ROWS {
        let cells: Vec<&Cell> = (0..COLUMNS).filter_map(|column| screen.cell(row, column)).collect();
        let mut x = 0.0;
        for run in cells.chunk_by(|a, b| style(a) == style(b)) {
            draw(&mut svg, x, f64::from(row) * HEIGHT, run)?;
            x += run.len() as f64 * WIDTH;
        }
    }
    Ok(svg + "</svg>\n")
}

/// What cells have in common that are drawn at once: colours, further attributes, and a block character.
fn style(cell: &Cell) -> (String, String, &'static str, Option<char>) {
    let (ink, paper) = (colour(cell.fgcolor(), FOREGROUND), colour(cell.bgcolor(), BACKGROUND));
    let (ink, paper) = if cell.inverse() { (paper, ink) } else { (ink, paper) };
    let more = match (cell.bold(), cell.dim()) {
        (_, true) => r#" opacity="0.65""#,
        (true, false) => r#" font-weight="bold""#,
        (false, false) => "",
    };
    (ink, paper, more, cell.contents().chars().next().filter(|c| shape(*c).is_some() || dots(*c).is_some()))
}

/// Draws cells of one style with their upper left corner at a point.
fn draw(svg: &mut String, x: f64, y: f64, cells: &[&Cell]) -> std::fmt::Result {
    let (ink, paper, more, character) = style(cells[0]);
    let width = cells.len() as f64 * WIDTH;
    let mut rectangle = |y: f64, height: f64, fill: &str, more: &str| {
        writeln!(
            svg,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"{more}/>"#
        )
    };
    if paper != BACKGROUND {
        rectangle(y, HEIGHT, &paper, "")?;
    }
    if let Some((top, height, opacity)) = character.and_then(shape) {
        let more = format!(r#"{more} fill-opacity="{opacity}""#);
        return rectangle(y + top * HEIGHT, height * HEIGHT, &ink, &more);
    }
    if let Some(dots) = character.and_then(dots) {
        for (left, top) in
            (0..cells.len()).flat_map(|at| dots.iter().map(move |dot| (at as f64 + dot.0, dot.1)))
        {
            let (x, y) = (x + left * WIDTH, y + top * HEIGHT);
            writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="1.2" fill="{ink}"{more}/>"#)?;
        }
        return Ok(());
    }
    let text: String =
        cells.iter().map(|cell| if cell.has_contents() { cell.contents() } else { " " }).collect();
    if text.trim().is_empty() {
        return Ok(());
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace(' ', "\u{a0}");
    let y = y + HEIGHT * 0.75;
    writeln!(svg, r#"<text x="{x:.1}" y="{y:.1}" textLength="{width:.1}" fill="{ink}"{more}>{text}</text>"#)
}

/// Top, height and opacity of a block character within its cell.
fn shape(character: char) -> Option<(f64, f64, f64)> {
    match character {
        '▁'..='█' => {
            let eighths = f64::from(u32::from(character) - u32::from('▁') + 1);
            Some((1.0 - eighths / 8.0, eighths / 8.0, 1.0))
        }
        '░'..='▓' => Some((0.0, 1.0, f64::from(u32::from(character) - u32::from('░') + 1) / 4.0)),
        '─' => Some((0.47, 0.06, 1.0)),
        _ => None,
    }
}

/// The middles of the dots of a Braille character, as shares of its cell.
fn dots(character: char) -> Option<Vec<(f64, f64)>> {
    /// The column and row of each bit's dot.
    const PLACES: [(f64, f64); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    let pattern = u32::from(character).checked_sub(0x2800).filter(|pattern| *pattern < 0x100)?;
    let is_set = |bit: &usize| pattern >> bit & 1 == 1;
    Some((0..8).filter(is_set).map(|bit| (0.25 + PLACES[bit].0 / 2.0, 0.125 + PLACES[bit].1 / 4.0)).collect())
}

/// A colour of `--theme dark`, which has none of the terminal's own sixteen.
fn colour(colour: Color, default: &str) -> String {
    match colour {
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        Color::Idx(i @ 16..=231) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = i - 16;
            format!("#{:02x}{:02x}{:02x}", level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        Color::Idx(i @ 232..) => format!("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (i - 232)),
        Color::Idx(_) | Color::Default => default.to_owned(),
    }
}
