//! The text of `riops script check`.

use riops_model::record::checked_statement::{CheckedStatement, Finding};
use riops_model::units::format::{count, number_of};
use riops_model::units::text::one_line;
use riops_script::Script;

/// Returns the line about a whole script.
pub fn script_title(script: &Script) -> String {
    let commands = number_of(script.commands.len() as u64, "command");
    let (name, statements) = (one_line(&script.name), count(script.statements().count() as u64));
    format!("{name}: {commands}, {statements} of them SQL\n")
}

/// Returns the lines about one statement.
pub fn script_statement(checked: &CheckedStatement) -> String {
    let mut lines =
        vec![String::new(), format!("command {}, line {}", checked.command, checked.line)];
    lines.extend(checked.sql.lines().map(|line| format!("  {line}")));
    let parameters = (1..).zip(&checked.parameters);
    lines.extend(parameters.map(|(position, parameter)| {
        format!("    ${position} = :{}  {}", parameter.variable, parameter.kind)
            .trim_end()
            .to_owned()
    }));
    match &checked.finding {
        Finding::Plan(plan) => {
            lines.extend(plan.iter().map(|line| format!("    {}", one_line(line))));
        }
        Finding::NoPlan => lines.push("    no plan".to_owned()),
        Finding::Several(count) => lines
            .push(format!("    not checked: {count} statements at once need the simple protocol")),
        Finding::Refused(error) => lines.push(format!("    refused: {}", one_line(error))),
    }
    lines.join("\n") + "\n"
}
