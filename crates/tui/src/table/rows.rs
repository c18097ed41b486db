//! The rows of a table. Only the visible page is sorted.

use std::cmp::Ordering;
use std::ops::Range;

use super::Row;
use super::filter::RowFilter;
use super::order::{Order, Rank, Settled};

/// The most rows from the top that are found by comparing every row with the last of them.
const FIRST_ROWS_MAX: usize = 256;

/// Rows, those that pass the filter, and their order.
#[derive(Clone, Debug)]
pub(crate) struct Rows<R: Row> {
    all: Vec<R>,
    /// The rows that pass, in no order beyond what the last page needed.
    ranks: Vec<Rank>,
    order: Order,
    filter: RowFilter<R>,
    /// By what each row is ordered; empty if that is what it has at the moment.
    settled: Vec<Settled>,
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            ranks: Vec::new(),
            order: Order::by::<R>(0),
            filter: RowFilter::default(),
            settled: Vec::new(),
        }
    }
}

impl<R: Row> Rows<R> {
    /// Changes rows, and ranks all of them.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Vec<R>)) {
        change(&mut self.all);
        self.settled.clear();
        self.rank();
    }

    /// Changes rows without taking their places in the list from them, and ranks all of them by figures that have moved
    /// noticeably.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut Vec<R>)) {
        change(&mut self.all);
        let Self { all, settled, order, .. } = self;
        settled.truncate(all.len());
        for (at, row) in all.iter().enumerate() {
            let now = Settled::of(*order, row);
            match settled.get_mut(at) {
                Some(settled) => settled.follow(now),
                None => settled.push(now),
            }
        }
        self.rank();
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
        let Self { all, ranks, order, filter, settled } = self;
        let settled = |at: usize| settled.get(at).copied();
        ranks.clear();
        let ranked = all.iter().enumerate();
        if filter.is_empty() {
            ranks.extend(ranked.map(|(at, row)| Rank::of(*order, row, at, settled(at))));
        } else {
            let passing = ranked.filter(|(_, row)| filter.passes(row));
            ranks.extend(passing.map(|(at, row)| Rank::of(*order, row, at, settled(at))));
        }
    }

    /// The number of rows that pass the filter.
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// All rows, unordered.
    pub(crate) fn all(&self) -> &[R] {
        &self.all
    }

    /// Returns how many rows come before this one; `None` if it is gone, or the filter hides it.
    pub(crate) fn place(&self, id: R::Id) -> Option<usize> {
        let at = self.all.iter().position(|row| row.id() == id)?;
        let row = self.all.get(at).filter(|row| self.filter.passes(row))?;
        let rank = Rank::of(self.order, row, at, self.settled.get(at).copied());
        let before = |other: &&Rank| other.compare(rank, self.order, &self.all).is_lt();
        Some(self.ranks.iter().filter(before).count())
    }

    /// Returns the rows at these places of the order, as far as there are any.
    pub(crate) fn page(&mut self, places: Range<usize>) -> impl Iterator<Item = &R> {
        let end = places.end.min(self.ranks.len());
        let start = places.start.min(end);
        let Self { ranks, all: rows, order, .. } = self;
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
