//! The contents of a report, independent of its output form: facts, tables, charts, notes and commands in their order.
//! Sections and subjects write a document; renderers read it and know no subject.

use serde::{Serialize, Serializer};

use crate::chart::Chart;
use crate::flame::Flame;
use crate::table::Table;

/// Whether a fact is the main figure, or good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// The main figure.
    Main,
    /// Good news.
    Good,
    /// Makes the result less reliable.
    Warn,
    /// Bad news.
    Bad,
}

impl Tone {
    /// The sequence that sets the color of a text in a terminal.
    pub(super) const fn sequence(self) -> &'static str {
        match self {
            Self::Main => "\x1b[1m",
            Self::Good => "\x1b[32m",
            Self::Warn => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// How much a text for people says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The facts that decide, and at most three unusual ones: at most 12 lines.
    Answer,
    /// The same without unusual facts that are not bad news.
    AnswerWithoutWarnings,
    /// Everything that is known.
    Everything,
}

/// The lines of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// Columns of a line.
    pub columns: usize,
    /// Whether verdicts and warnings have colors.
    pub colors: bool,
    /// How much they say.
    pub detail: Detail,
}

impl From<usize> for Lines {
    fn from(columns: usize) -> Self {
        Self { columns, colors: false, detail: Detail::Everything }
    }
}

/// A label and its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Label.
    pub label: String,
    /// Its texts, a line each.
    pub texts: Vec<String>,
    /// Tone, if it matters.
    pub tone: Option<Tone>,
}

/// The state of what is reported, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Badge {
    /// The words.
    pub text: String,
    /// Their tone.
    pub tone: Tone,
}

/// The main result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Headline {
    /// Name of the figure.
    pub label: String,
    /// Its value.
    pub value: String,
    /// Its unit.
    pub unit: String,
    /// Details, such as the number of transactions.
    pub detail: String,
}

/// A command to try and what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) command: String,
    pub(super) purpose: &'static str,
}

impl Hint {
    pub(super) fn new(command: impl Into<String>, purpose: &'static str) -> Self {
        Self { command: command.into(), purpose }
    }
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    /// The title of the document or of a part.
    Title(String),
    /// A labeled text; an empty label continues the fact before.
    Line {
        label: String,
        text: String,
        tone: Option<Tone>,
    },
    /// Names and values with one label.
    Pairs {
        label: String,
        pairs: Vec<(String, String)>,
    },
    Table(Table),
    Chart(Box<Chart>),
    /// A chart that only pages show.
    Picture(Box<Chart>),
    /// A flame graph, which only pages show.
    Flame(Box<Flame>),
    /// Text whose spaces have a meaning, such as the plan of a statement.
    Verbatim(String),
    Commands {
        label: String,
        commands: Vec<Hint>,
    },
    /// Separates groups of lines.
    Gap,
}

/// What a report says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    pub(super) blocks: Vec<Block>,
}

impl Document {
    pub(super) fn title(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Title(text.into()));
    }

    pub(super) fn line(&mut self, label: &str, text: impl Into<String>) {
        self.push_line(label, text.into(), None);
    }

    pub(super) fn toned(&mut self, label: &str, text: impl Into<String>, tone: Tone) {
        self.push_line(label, text.into(), Some(tone));
    }

    /// Texts of one label.
    pub(super) fn lines(&mut self, label: &str, texts: impl IntoIterator<Item = String>) {
        self.toned_lines(label, texts.into_iter().map(|text| (text, None)));
    }

    /// Texts of one label with their tones.
    pub(super) fn toned_lines(
        &mut self,
        label: &str,
        texts: impl IntoIterator<Item = (String, Option<Tone>)>,
    ) {
        for (position, (text, tone)) in texts.into_iter().enumerate() {
            self.push_line(if position == 0 { label } else { "" }, text, tone);
        }
    }

    /// A labeled text, unless it is empty.
    pub(super) fn known(&mut self, label: &str, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.line(label, text);
        }
    }

    pub(super) fn pairs<N: Into<String>>(
        &mut self,
        label: &str,
        pairs: impl IntoIterator<Item = (N, String)>,
    ) {
        let pairs: Vec<_> = pairs.into_iter().map(|(name, value)| (name.into(), value)).collect();
        if !pairs.is_empty() {
            self.blocks.push(Block::Pairs { label: label.to_owned(), pairs });
        }
    }

    /// A table, unless it has no rows.
    pub(super) fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    pub(super) fn chart(&mut self, chart: Chart) {
        self.blocks.push(Block::Chart(Box::new(chart)));
    }

    pub(super) fn picture(&mut self, chart: Chart) {
        self.blocks.push(Block::Picture(Box::new(chart)));
    }

    pub(super) fn verbatim(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Verbatim(text.into()));
    }

    pub(super) fn commands(&mut self, label: &str, commands: Vec<Hint>) {
        self.blocks.push(Block::Commands { label: label.to_owned(), commands });
    }

    /// Adds options, with a leading space, to all commands.
    pub(super) fn add_to_commands(&mut self, options: &str) {
        for block in &mut self.blocks {
            if let Block::Commands { commands, .. } = block {
                for hint in commands {
                    hint.command.push_str(options);
                }
            }
        }
    }

    pub(super) fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// Whether it has nothing that pages show.
    pub(super) fn is_empty(&self) -> bool {
        let is_shown = |block: &Block| {
            use Block::{Chart, Flame, Line, Pairs, Picture, Table};
            matches!(
                block,
                Line { .. } | Pairs { .. } | Table(_) | Chart(_) | Picture(_) | Flame(_)
            )
        };
        !self.blocks.iter().any(is_shown)
    }

    /// The labeled texts, with those that continue them.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = Vec::new();
        let mut add = |label: &str, text: String, tone: Option<Tone>| match facts.last_mut() {
            Some(last) if label.is_empty() => last.texts.push(text),
            _ => facts.push(Fact { label: label.to_owned(), texts: vec![text], tone }),
        };
        for block in &self.blocks {
            match block {
                Block::Line { label, text, tone } => add(label, text.clone(), *tone),
                Block::Pairs { label, pairs } => {
                    for (position, (name, value)) in pairs.iter().enumerate() {
                        let label = if position == 0 { label } else { "" };
                        add(label, format!("{name}: {value}"), None);
                    }
                }
                _ => {}
            }
        }
        facts
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        })
    }

    pub(super) fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) | Block::Picture(chart) => Some(chart.as_ref()),
            _ => None,
        })
    }

    pub(super) fn flame(&mut self, flame: Flame) {
        self.blocks.push(Block::Flame(Box::new(flame)));
    }

    fn flames(&self) -> impl Iterator<Item = &Flame> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Flame(flame) => Some(flame.as_ref()),
            _ => None,
        })
    }

    pub(super) fn push_line(&mut self, label: &str, text: String, tone: Option<Tone>) {
        self.blocks.push(Block::Line { label: label.to_owned(), text, tone });
    }
}

/// The parts that pages show.
impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Parts<'a> {
            facts: Vec<Fact>,
            charts: Vec<&'a Chart>,
            flames: Vec<&'a Flame>,
            tables: Vec<&'a Table>,
        }
        let (charts, flames) = (self.charts().collect(), self.flames().collect());
        let parts = Parts { facts: self.facts(), charts, flames, tables: self.tables().collect() };
        parts.serialize(serializer)
    }
}

/// The labeled texts that `write` adds to a document.
pub(super) fn facts(write: impl FnOnce(&mut Document)) -> Vec<Fact> {
    let mut document = Document::default();
    write(&mut document);
    document.facts()
}

/// The findings of several runs. A text is the answer, or everything with the conclusion at the end, where a reader of a terminal
/// looks; pages and Markdown begin with the conclusion.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Findings {
    /// Title of the page.
    pub title: String,
    /// Id of the experiment; empty without one.
    pub(super) id: String,
    pub(super) badge: Option<Badge>,
    pub(super) headline: Option<Headline>,
    /// The compared runs and their conditions.
    pub(super) conditions: Document,
    /// Tables and charts.
    pub(super) results: Document,
    /// Conclusions from them, and their limits.
    pub(super) conclusion: Document,
    /// The facts that decide, the most important first.
    #[serde(skip)]
    pub(super) answer: Document,
}

impl Findings {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds the options that select the store, with a leading space, to the commands of the answer.
    #[must_use]
    pub fn with_store_options(mut self, options: &str) -> Self {
        self.answer.add_to_commands(options);
        self
    }
}
