//! The rows of a table. Only the visible page is sorted.

use std::cmp::Ordering;
use std::ops::Range;

use super::filter::RowFilter;
use super::order::{Order, Rank, Settled};
use super::{Column, ColumnUnit, Row};

/// The most rows from the top that are found by comparing every row with the last of them.
const FIRST_ROWS_MAX: usize = 256;

/// Rows, those that pass the filter, and their order.
#[derive(Clone, Debug)]
pub(crate) struct Rows<R: Row> {
    all: Vec<R>,
    /// By what each row is ordered; empty if that is what it has at the moment.
    settled: Vec<Settled>,
    /// The rank of each row.
    ranks: Vec<Rank>,
    /// Those of the rows that pass, in no order beyond what the last page needed.
    passing: Vec<Rank>,
    order: Order,
    filter: RowFilter<R>,
    /// The columns that may be blank in which a row has had a value.
    filled_columns: Vec<usize>,
}

/// The rows that may have changed.
#[derive(Debug)]
pub(crate) enum ChangedRows {
    All,
    /// Those at these places, and new ones.
    At(Vec<usize>),
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            settled: Vec::new(),
            ranks: Vec::new(),
            passing: Vec::new(),
            order: Order::by::<R>(0),
            filter: RowFilter::default(),
            filled_columns: Vec::new(),
        }
    }
}

impl<R: Row> Rows<R> {
    /// Changes rows, and ranks all of them.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Vec<R>)) {
        change(&mut self.all);
        self.settled.clear();
        self.filled_columns.clear();
        let every: Vec<usize> = (0..self.all.len()).collect();
        self.find_values(&every);
        self.rank();
    }

    /// Changes rows without taking their places in the list from them, and ranks all by figures that have moved noticeably.
    /// The change tells which rows may have moved.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut Vec<R>) -> ChangedRows) {
        let changed = change(&mut self.all);
        let known = self.settled.len();
        let places: Vec<usize> = match changed {
            ChangedRows::All => (0..self.all.len()).collect(),
            ChangedRows::At(places) => {
                places.into_iter().filter(|at| *at < known).chain(known..self.all.len()).collect()
            }
        };
        self.find_values(&places);
        let Self { all, settled, ranks, order, .. } = self;
        for at in places {
            let now = Settled::of(*order, &all[at]);
            match settled.get_mut(at) {
                Some(settled) => settled.follow(now),
                None => settled.push(now),
            }
            let rank = Rank::of(*order, &all[at], at, Some(settled[at]));
            match ranks.get_mut(at) {
                Some(known) => *known = rank,
                None => ranks.push(rank),
            }
        }
        self.filter();
    }

    /// Takes another order and another filter.
    pub(crate) fn put_in(&mut self, order: Order, filter: &RowFilter<R>) {
        if self.order != order || self.filter.text() != filter.text() {
            if self.order.column != order.column {
                self.settled.clear();
            }
            (self.order, self.filter) = (order, filter.clone());
            self.rank();
        }
    }

    fn rank(&mut self) {
        let Self { all, settled, ranks, order, .. } = self;
        ranks.clear();
        let rank = |(at, row)| Rank::of(*order, row, at, settled.get(at).copied());
        ranks.extend(all.iter().enumerate().map(rank));
        self.filter();
    }

    fn filter(&mut self) {
        let Self { all, ranks, passing, filter, .. } = self;
        passing.clear();
        let passes = |rank: &&Rank| filter.is_empty() || filter.passes(&all[rank.row as usize]);
        passing.extend(ranks.iter().filter(passes));
    }

    /// Looks for values in rows, in columns without any so far.
    fn find_values(&mut self, places: &[usize]) {
        let Self { all, filled_columns: known, .. } = self;
        for (at, column) in R::columns().iter().enumerate() {
            let has_value = |place: &usize| !(column.value)(&all[*place]).is_blank();
            if may_be_blank(column) && !known.contains(&at) && places.iter().any(has_value) {
                known.push(at);
            }
        }
    }

    /// Returns whether a usual column that may be blank has been so in every row so far.
    pub(crate) fn is_blank(&self, column: usize) -> bool {
        may_be_blank(&R::columns()[column]) && !self.filled_columns.contains(&column)
    }

    /// The number of rows that pass the filter.
    pub(crate) fn len(&self) -> usize {
        self.passing.len()
    }

    /// All rows, unordered.
    pub(crate) fn all(&self) -> &[R] {
        &self.all
    }

    /// Returns how many rows come before this one; `None` if it is gone, or the filter hides it.
    pub(crate) fn place(&self, id: R::Id) -> Option<usize> {
        let at = self.all.iter().position(|row| row.id() == id)?;
        self.filter.passes(&self.all[at]).then_some(())?;
        let rank = self.ranks[at];
        let before = |other: &&Rank| other.compare(rank, self.order, &self.all).is_lt();
        Some(self.passing.iter().filter(before).count())
    }

    /// Returns the rows at these places of the order, as far as there are any.
    pub(crate) fn page(&mut self, places: Range<usize>) -> impl Iterator<Item = &R> {
        let end = places.end.min(self.passing.len());
        let start = places.start.min(end);
        let Self { passing: ranks, all: rows, order, .. } = self;
        let compare = |a: &Rank, b: &Rank| a.compare(*b, *order, rows);
        if end <= FIRST_ROWS_MAX {
            order_first(ranks, end, compare);
        } else if end > start {
            if end < ranks.len() {
                ranks.select_nth_unstable_by(end, compare);
            }
            ranks[..end].select_nth_unstable_by(start, compare);
            ranks[start..end].sort_unstable_by(compare);
        }
        let page = &ranks[start..end];
        page.iter().map(|rank| &rows[rank.row as usize])
    }
}

/// Returns whether a column is left out without a value. One that a person has chosen is not.
fn may_be_blank<R: Row>(column: &Column<R>) -> bool {
    column.is_usual && (column.is_of_some || column.unit == ColumnUnit::Text)
}

/// Puts the first `n` to the front, in order. Few rows displace one of those, so that most cost a single comparison.
fn order_first(ranks: &mut [Rank], n: usize, compare: impl Fn(&Rank, &Rank) -> Ordering) {
    let (first, rest) = ranks.split_at_mut(n);
    first.sort_unstable_by(&compare);
    for rank in rest {
        let Some(last) = first.last_mut() else { return };
        if compare(rank, last).is_ge() {
            continue;
        }
        std::mem::swap(rank, last);
        let place = first[..n - 1].partition_point(|other| compare(other, &first[n - 1]).is_lt());
        first[place..].rotate_right(1);
    }
}
