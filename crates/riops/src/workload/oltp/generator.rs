//! The transactions of one session: which tables and ids, what is written, what has to come back.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::statements::Kind;
use super::texts::{self, C, PAD};
use super::{OltpDataset, OltpRun};
use crate::workload::Generator;
use crate::workload::keys::RangePicker;
use crate::workload::load::rows_of;
use crate::workload::transaction::{Effects, Outcome, Reply, Transaction};
use crate::workload::values::Values;

/// Bytes of `c` in a reply: a `char(120)` comes with its blanks.
const C_BYTES: usize = 120;

/// What the reply to one statement has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// BEGIN or COMMIT.
    Word(&'static str),
    /// So many rows, which begin with a `c` where `c` is true.
    Rows { least: u64, most: u64, c: bool },
    /// A change of so many rows, each with these effects.
    Change { least: u64, most: u64, effects: Effects },
    /// So many new rows, with these effects together.
    Insert { rows: u64, effects: Effects },
}

/// The answer of an aggregate.
const ONE_ROW: Promise = Promise::Rows { least: 1, most: 1, c: false };
/// Any number of rows: keys may be picked twice, or hit nothing.
const ANY_ROWS: Promise = Promise::Rows { least: 0, most: u64::MAX, c: false };

/// The stream of one session.
#[derive(Debug)]
pub(super) struct OltpGenerator {
    recipe: Vec<(Vec<Kind>, u32)>,
    /// The kinds of statements of a table, in the order of the session's list.
    kinds: Vec<Kind>,
    /// Statements in that list before those of the first table.
    before: usize,
    run: OltpRun,
    tables: u32,
    table_size: u64,
    ids: RangePicker,
    ranges: RangePicker,
    rng: Xoshiro256PlusPlus,
    texts: Xoshiro256PlusPlus,
    /// The next id that is made here, and by how much they go down.
    next_id: i64,
    id_step: i64,
    auto_inc: bool,
    /// Whether an id may be there twice: only a primary key keeps two sessions that replace the same row
    /// from inserting it both.
    may_double: bool,
    /// Rows that a transaction is about to touch.
    rows: u64,
    promises: Vec<Promise>,
}

/// What a session's generator is made of beside the plan.
pub(super) struct Parts {
    pub(super) recipe: Vec<(Vec<Kind>, u32)>,
    pub(super) kinds: Vec<Kind>,
    pub(super) before: usize,
    pub(super) ids: RangePicker,
    pub(super) ranges: RangePicker,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) texts: Xoshiro256PlusPlus,
    /// Ids that the client makes count down from below this one.
    pub(super) ids_below: i64,
    pub(super) session: u32,
    pub(super) sessions: u32,
}

impl OltpGenerator {
    pub(super) fn new(run: &OltpRun, dataset: &OltpDataset, parts: Parts) -> Self {
        let Parts { recipe, kinds, before, ids, ranges, rng, texts, ids_below, session, sessions } =
            parts;
        let rows = |kind: &Kind| match kind {
            Kind::SimpleRange | Kind::OrderRange | Kind::DistinctRange | Kind::Join => {
                u64::from(run.range_size)
            }
            Kind::SequentialScan => u64::from(run.range_size).min(dataset.table_size),
            Kind::InsertMany => u64::from(run.batch_insert_count),
            _ => 1,
        };
        let each = |(kinds, count): &(Vec<Kind>, u32)| {
            kinds.iter().map(rows).sum::<u64>() * u64::from(*count)
        };
        Self {
            rows: recipe.iter().map(each).sum(),
            next_id: ids_below - 1 - i64::from(session),
            id_step: i64::from(sessions),
            auto_inc: dataset.auto_inc,
            may_double: dataset.secondary,
            run: run.clone(),
            tables: dataset.tables,
            table_size: dataset.table_size,
            recipe,
            kinds,
            before,
            ids,
            ranges,
            rng,
            texts,
            promises: Vec::new(),
        }
    }

    /// Rows of `count` ids, of which `different` are told apart. Where rows are replaced statement by
    /// statement, some may be missing for a moment.
    fn by_id(&self, different: u64, count: u64) -> Promise {
        let gone = self.run.skip_trx && self.run.replaces();
        let least = if gone { 0 } else { different };
        let most = if self.may_double { u64::MAX } else { count };
        Promise::Rows { least, most, c: true }
    }

    /// A change of the row of one id, which another session may just have deleted.
    fn change(&self, or_none: bool, effects: Effects) -> Promise {
        let most = if self.may_double { u64::MAX } else { 1 };
        Promise::Change { least: u64::from(!or_none), most, effects }
    }

    fn id(&mut self) -> i32 {
        int(self.ids.pick(&mut self.rng))
    }

    fn own_id(&mut self) -> i32 {
        let id = self.next_id;
        self.next_id -= self.id_step;
        i32::try_from(id).unwrap_or(i32::MIN)
    }

    /// Appends one statement on a table, whose number is from 0; `id` is that of a row which is
    /// deleted and inserted again.
    fn statement(&mut self, tx: &mut Transaction, kind: Kind, table: u32, id: i32) -> Promise {
        let position = self.kinds.iter().position(|each| *each == kind).unwrap_or(0);
        let statement = self.before + table as usize * self.kinds.len() + position;
        match kind {
            Kind::PointSelect => {
                let id = self.id();
                tx.execute_with(statement, 1, |values| values.int(id));
                self.by_id(1, 1)
            }
            Kind::SimpleRange
            | Kind::SumRange
            | Kind::OrderRange
            | Kind::DistinctRange
            | Kind::Join => self.range(tx, kind, statement),
            Kind::IndexUpdate | Kind::NonIndexUpdate => self.update(tx, kind, statement),
            Kind::Delete => {
                tx.execute_with(statement, 1, |values| values.int(id));
                // Somebody may have deleted it before.
                self.change(true, Effects { deleted: 1, ..Effects::default() })
            }
            Kind::Insert | Kind::InsertAuto | Kind::InsertMany => {
                self.insert(tx, kind, statement, id)
            }
            Kind::RandomPoints => self.random_points(tx, statement),
            Kind::RandomRanges => self.random_ranges(tx, statement),
            Kind::SequentialScan => {
                tx.execute(statement, &[i64::from(self.run.range_size)]);
                let rows = u64::from(self.run.range_size).min(self.table_size);
                Promise::Rows { least: rows, most: rows, c: true }
            }
            Kind::IndexScan => {
                let ends = self.ends();
                tx.execute_with(statement, 2, |values| {
                    for end in ends {
                        values.int(end);
                    }
                });
                ANY_ROWS
            }
        }
    }

    /// First and last id of a range.
    fn ends(&mut self) -> [i32; 2] {
        let first = self.ranges.pick(&mut self.rng);
        [int(first), int(first + u64::from(self.run.range_size) - 1)]
    }

    /// A select of one range, which a join has twice.
    fn range(&mut self, tx: &mut Transaction, kind: Kind, statement: usize) -> Promise {
        let range = u64::from(self.run.range_size);
        let ends = self.ends();
        let both = if kind == Kind::Join { 2 } else { 1 };
        tx.execute_with(statement, 2 * both, |values| {
            for _ in 0..both {
                for end in ends {
                    values.int(end);
                }
            }
        });
        match kind {
            Kind::SumRange => ONE_ROW,
            // A run with the same seed as another one writes the same texts, into other rows.
            Kind::DistinctRange => self.by_id(1, range),
            _ => self.by_id(range, range),
        }
    }

    fn update(&mut self, tx: &mut Transaction, kind: Kind, statement: usize) -> Promise {
        let replaces = self.run.replaces();
        let id = self.id();
        if kind == Kind::IndexUpdate {
            tx.execute_with(statement, 1, |values| values.int(id));
            return self.change(replaces, Effects { added: 1, ..Effects::default() });
        }
        let texts = &mut self.texts;
        tx.execute_with(statement, 2, |values| {
            values.text(C, |text| texts::write(texts, text));
            values.int(id);
        });
        self.change(replaces, Effects::default())
    }

    fn random_points(&mut self, tx: &mut Transaction, statement: usize) -> Promise {
        let (count, size) = (self.run.random_points as usize, self.table_size);
        let rng = &mut self.rng;
        tx.execute_with(statement, count, |values| {
            (0..count).for_each(|_| values.int(int(rng.random_range(1..=size))));
        });
        ANY_ROWS
    }

    fn random_ranges(&mut self, tx: &mut Transaction, statement: usize) -> Promise {
        let (count, size) = (self.run.number_of_ranges as usize, self.table_size);
        let (delta, rng) = (u64::from(self.run.delta), &mut self.rng);
        tx.execute_with(statement, 2 * count, |values| {
            for _ in 0..count {
                let first = rng.random_range(1..=size);
                values.int(int(first));
                values.int(int(first + delta));
            }
        });
        ONE_ROW
    }

    /// One row, or many in one statement.
    fn insert(&mut self, tx: &mut Transaction, kind: Kind, statement: usize, id: i32) -> Promise {
        let count = if kind == Kind::InsertMany { self.run.batch_insert_count } else { 1 };
        let with_id = kind == Kind::Insert || (kind == Kind::InsertMany && !self.auto_inc);
        let replaces = self.run.replaces();
        let columns = if with_id { 4 } else { 3 };
        let mut added = 0;
        let write = |values: &mut Values<'_>| {
            for _ in 0..count {
                if with_id {
                    values.int(if replaces { id } else { self.own_id() });
                }
                let k = self.ids.pick(&mut self.rng);
                added += k;
                values.int(int(k));
                let texts = &mut self.texts;
                values.text(C, |text| texts::write(texts, text));
                values.text(PAD, |text| texts::write(texts, text));
            }
        };
        tx.execute_with(statement, columns * count as usize, write);
        let rows = u64::from(count);
        let (inserted, reinserted) = if replaces { (0, rows) } else { (rows, 0) };
        let effects = Effects { inserted, reinserted, deleted: 0, added };
        Promise::Insert { rows, effects }
    }

    /// Ends a round trip, where each statement has one.
    fn step(&self, tx: &mut Transaction, last: bool) {
        if last || !self.run.pipeline {
            tx.end_step();
        }
    }
}

/// Ids and what `k` holds are far below the end of the type.
fn int(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

impl Generator for OltpGenerator {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        tx.begin(0, self.rows);
        self.promises.clear();
        let explicit = self.run.is_explicit();
        if explicit {
            tx.execute(0, &[]);
            self.promises.push(Promise::Word("BEGIN"));
            self.step(tx, false);
        }
        let recipe = std::mem::take(&mut self.recipe);
        for (number, (kinds, count)) in recipe.iter().enumerate() {
            let table = self.rng.random_range(0..self.tables);
            for round in 1..=*count {
                let id = if kinds.contains(&Kind::Delete) { self.id() } else { 0 };
                for (position, &kind) in kinds.iter().enumerate() {
                    let promise = self.statement(tx, kind, table, id);
                    if let Promise::Change { effects, .. } | Promise::Insert { effects, .. } =
                        promise
                    {
                        tx.changes(effects);
                    }
                    self.promises.push(promise);
                    let last = number + 1 == recipe.len()
                        && round == *count
                        && position + 1 == kinds.len();
                    self.step(tx, last && !explicit);
                }
            }
        }
        self.recipe = recipe;
        if explicit {
            tx.execute(1, &[]);
            self.promises.push(Promise::Word("COMMIT"));
            self.step(tx, true);
        }
        if self.run.skip_trx {
            tx.autocommit();
        }
        true
    }

    fn reply(&mut self, _: &Transaction, reply: &Reply<'_>, outcome: &mut Outcome) {
        outcome.rows += 1;
        outcome.returned += 1;
        let promise = self.promises.get(outcome.complete as usize);
        if let Some(Promise::Rows { c: true, .. }) = promise {
            outcome.wrong |= reply.first_length() != Some(C_BYTES);
        }
    }

    fn complete(&mut self, _: &Transaction, tag: &str, outcome: &mut Outcome) {
        let promise = self.promises.get(outcome.complete as usize);
        match promise {
            Some(Promise::Word(word)) => outcome.wrong |= tag != *word,
            Some(Promise::Rows { least, most, .. }) => {
                outcome.wrong |= !(*least..=*most).contains(&outcome.returned);
            }
            Some(Promise::Change { least, most, effects }) => {
                let touched = rows_of(tag);
                outcome.rows += touched;
                outcome.effects = outcome.effects.and(effects.times(touched));
                outcome.wrong |= !(*least..=*most).contains(&touched);
            }
            Some(Promise::Insert { rows, effects }) => {
                let inserted = rows_of(tag);
                outcome.rows += inserted;
                outcome.effects = outcome.effects.and(*effects);
                outcome.wrong |= inserted != *rows;
            }
            None => outcome.wrong = true,
        }
        outcome.complete += 1;
        outcome.returned = 0;
    }
}
