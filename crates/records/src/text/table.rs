//! A table of aligned texts, no wider than a given width.

use std::ops::Range;

const GAP: &str = "  ";

/// How the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table of texts. Columns are in the order of their importance: the last ones are left out where they do not fit.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    columns: Vec<(Align, Vec<String>)>,
}

impl TextTable {
    /// A table of rows, some of whose columns are of numbers.
    pub fn of_rows<const N: usize>(
        headings: [&str; N],
        numbers: &Range<usize>,
        rows: &[[String; N]],
    ) -> Self {
        let mut table = Self::default();
        for (at, heading) in headings.into_iter().enumerate() {
            let align = if numbers.contains(&at) { Align::Right } else { Align::Left };
            table.column(align, heading, rows.iter().map(|row| row[at].clone()));
        }
        table
    }

    /// Adds a column: its heading and its cells.
    pub fn column(&mut self, align: Align, heading: &str, cells: impl IntoIterator<Item = String>) {
        let mut texts = vec![heading.to_owned()];
        texts.extend(cells);
        self.columns.push((align, texts));
    }

    /// True if it has more than the names in its first column.
    pub fn has_figures(&self) -> bool {
        self.columns.len() > 1
    }

    /// The whole table, however wide.
    pub fn text(&self) -> String {
        self.lines(usize::MAX).join("\n") + "\n"
    }

    /// The lines of the table, each at most `width` characters long.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .map(|(_, cells)| cells.iter().map(|cell| length(cell)).max().unwrap_or(0))
            .collect();
        let mut used = 0;
        let fits = |at: &usize| {
            used += widths[*at] + if *at == 0 { 0 } else { GAP.len() };
            *at == 0 || used <= width
        };
        let columns: Vec<usize> = (0..self.columns.len()).take_while(fits).collect();
        let rows = self.columns.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
        (0..rows).map(|row| self.line(row, &columns, &widths)).collect()
    }

    fn line(&self, row: usize, columns: &[usize], widths: &[usize]) -> String {
        let cell = |&at: &usize| {
            let (align, cells) = &self.columns[at];
            let (text, width) = (cells.get(row).map_or("", String::as_str), widths[at]);
            match align {
                Align::Left => format!("{text:<width$}"),
                Align::Right => format!("{text:>width$}"),
            }
        };
        columns.iter().map(cell).collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

/// The number of characters.
pub fn length(text: &str) -> usize {
    text.chars().count()
}

/// At most this many characters, the last one of which marks the truncation.
pub fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Cuts a longer name to `width` characters, in its middle, since names often differ at their ends.
pub fn cut_middle(text: &str, width: usize) -> String {
    let Some(over) = length(text).checked_sub(width).filter(|over| *over > 0) else { return text.to_owned() };
    let head = width / 2;
    let tail = text.chars().skip(head + over + 1);
    text.chars().take(head).chain(['…']).chain(tail).collect()
}

/// Breaks a text between words; lines after the first begin with `indent`. A longer word gets a separate line.
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line =
            lines.last_mut().filter(|line| line.is_empty() || length(line) + 1 + length(word) <= width);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("{indent}{word}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
        texts.map(str::to_owned).to_vec()
    }

    #[test]
    fn columns_are_aligned_and_the_last_are_left_out() {
        let mut table = TextTable::default();
        table.column(Align::Left, "name", strings(["a", "longer"]));
        table.column(Align::Right, "µs", strings(["1.0", "10.0"]));
        table.column(Align::Left, "words", strings(["x", "y"]));
        assert_eq!(table.lines(80), ["name      µs  words", "a        1.0  x", "longer  10.0  y"]);
        assert_eq!(table.lines(18), ["name      µs", "a        1.0", "longer  10.0"]);
    }

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(wrap("one two three", 8, "  "), ["one two", "  three"]);
        assert_eq!(wrap("unbreakable word", 5, ""), ["unbreakable", "word"]);
        assert_eq!((cut("abcdef", 4), cut("abcd", 4)), ("abc…".to_owned(), "abcd".to_owned()));
        assert_eq!([cut_middle("abcdef", 4), cut_middle("abcd", 4)], ["ab…f", "abcd"]);
    }
}
