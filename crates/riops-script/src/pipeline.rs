//! Errors of pipelines that happen on every path through the script that reaches the command.

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Problem, Source};
use crate::script::{Action, Command, Rows, Script, Statement};

/// Whether a pipeline may be open, and whether none may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    open: bool,
    closed: bool,
}

const OPEN: State = State { open: true, closed: false };
const CLOSED: State = State { open: false, closed: true };

impl State {
    fn or(self, other: Self) -> Self {
        Self { open: self.open || other.open, closed: self.closed || other.closed }
    }
}

/// The states in which each command is reached by jumps: from conditions that are not true, and from ends of branches.
struct Jumps(Vec<State>);

impl Jumps {
    fn state_at(&self, position: usize) -> State {
        self.0.get(position).copied().unwrap_or_default()
    }

    fn add(&mut self, position: usize, state: State) {
        if let Some(known) = self.0.get_mut(position) {
            *known = known.or(state);
        }
    }
}

impl Script {
    /// Returns the errors of its pipelines that happen on every path to the command, up to a maximum: a pipeline that is
    /// started twice, ended without a start, or never ended, and a command that cannot be part of it. pgbench and riops
    /// report them when they execute the script.
    pub fn pipeline_errors(&self) -> Vec<Diagnostic> {
        // Jumps only lead forward, so that one pass finds all states. The last place is the end of the script.
        let mut jumps = Jumps(vec![State::default(); self.commands.len() + 1]);
        let mut problems = Vec::new();
        let (mut before, mut last_start) = (CLOSED, 0);
        for (position, command) in self.commands.iter().enumerate() {
            let jumped = jumps.state_at(position);
            let state = before.or(jumped);
            problems.extend(refusal(command, state).map(|text| Problem::new(command.start, text)));
            before = match &command.action {
                Action::If { otherwise, .. } => {
                    jumps.add(*otherwise, state);
                    state
                }
                // The branch before it ends here.
                Action::ElseIf { otherwise, end, .. } => {
                    jumps.add(*end, before);
                    jumps.add(*otherwise, jumped);
                    jumped
                }
                // A failed condition jumps to the command after it.
                Action::Else { end } => {
                    jumps.add(*end, before);
                    State::default()
                }
                Action::StartPipeline => {
                    last_start = command.start;
                    OPEN
                }
                Action::EndPipeline => CLOSED,
                _ => state,
            };
        }
        if before.or(jumps.state_at(self.commands.len())) == OPEN {
            problems.push(Problem::new(last_start, "\\startpipeline without \\endpipeline"));
        }
        problems.sort_by_key(|problem| problem.at);
        problems.truncate(DIAGNOSTICS_MAX);
        let source = Source::new(&self.name, &self.text);
        problems.into_iter().map(|problem| source.diagnostic(problem)).collect()
    }
}

/// Returns why a command fails in this state.
fn refusal(command: &Command, state: State) -> Option<&'static str> {
    match &command.action {
        Action::StartPipeline if state == OPEN => Some("the pipeline has been started already"),
        Action::SyncPipeline if state == CLOSED => Some("\\syncpipeline without \\startpipeline"),
        Action::EndPipeline if state == CLOSED => Some("\\endpipeline without \\startpipeline"),
        Action::Sql(Statement { rows: Rows::Last(_) | Rows::Each(_), .. }) if state == OPEN => {
            Some("\\gset and \\aset are not allowed in a pipeline")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Names, parse};

    /// Returns the lines and the messages of the errors.
    fn errors(text: &str) -> Vec<(usize, String)> {
        let script = parse("t", text, &mut Names::default()).unwrap();
        let diagnostics = script.pipeline_errors();
        diagnostics.into_iter().map(|error| (error.line, error.message)).collect()
    }

    #[test]
    fn balanced_pipelines_have_no_errors() {
        for text in [
            "select 1;\n",
            "\\startpipeline\nselect 1;\n\\syncpipeline\nselect 2;\n\\endpipeline\nselect 1 as a \\gset\n",
            // With a condition, the pipeline is open or not.
            "\\set a 1\n\\if :a\n\\startpipeline\n\\endif\nselect 1;\n\\if :a\n\\endpipeline\n\\endif\n",
            "\\set a 1\n\\if :a\n\\startpipeline\n\\elif :a = 2\n\\startpipeline\n\\else\n\\startpipeline\n\\endif\nselect 1;\n\\endpipeline\n",
            "\\set a 1\n\\startpipeline\n\\if :a\n\\endpipeline\n\\else\nselect 1;\n\\endpipeline\n\\endif\nselect 1 as a \\gset\n",
        ] {
            assert_eq!(errors(text), [], "{text}");
        }
    }

    #[test]
    fn finds_the_errors_of_every_path() {
        let aset = "\\gset and \\aset are not allowed in a pipeline";
        for (text, expected) in [
            ("\\startpipeline\nselect 1;\n", &[(1, "\\startpipeline without \\endpipeline")][..]),
            ("select 1;\n  \\endpipeline\n", &[(2, "\\endpipeline without \\startpipeline")]),
            ("\\syncpipeline\n", &[(1, "\\syncpipeline without \\startpipeline")]),
            (
                "\\startpipeline\n\\startpipeline\n\\endpipeline\n\\endpipeline\n",
                &[
                    (2, "the pipeline has been started already"),
                    (4, "\\endpipeline without \\startpipeline"),
                ],
            ),
            ("\\startpipeline\nselect 1\n as a \\aset\n\\endpipeline\n", &[(2, aset)]),
            // On both branches.
            (
                "\\set a 1\n\\if :a\n\\startpipeline\n\\else\n\\startpipeline\n\\endif\nselect 1 as a \\gset\n\\endpipeline\n",
                &[(7, aset)],
            ),
            // In one branch, whatever happens in the other.
            (
                "\\set a 1\n\\if :a\n\\endpipeline\n\\elif :a = 2\n\\startpipeline\n\\endpipeline\n\\endif\n",
                &[(3, "\\endpipeline without \\startpipeline")],
            ),
            (
                "\\set a 1\n\\startpipeline\n\\if :a\nselect 1;\n\\endif\n",
                &[(2, "\\startpipeline without \\endpipeline")],
            ),
        ] {
            let reported = errors(text);
            let reported: Vec<_> =
                reported.iter().map(|(line, text)| (*line, text.as_str())).collect();
            assert_eq!(reported, expected, "{text}");
        }
    }
}
