//! A comparison as Markdown, for a ticket.

use super::super::format::number_of;
use super::super::page::markdown::escaped;
use super::text::{interval_text, outcome_text, p_text, relative, verdict_lines};
use super::{Comparison, Side};

/// The comparison as GitHub-flavored Markdown.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let mut lines =
        vec![format!("## riops compare: {}", escaped(&comparison.workload)), String::new()];
    for line in verdict_lines(comparison) {
        lines.push(format!("**{}**", escaped(&line)));
    }
    lines.push(String::new());
    let side = |name: &str, side: &Side| {
        format!("- {name}: {} ({})", escaped(&side.name), number_of(side.runs.len() as u64, "run"))
    };
    lines.extend([side("A", &comparison.a), side("B", &comparison.b), String::new()]);
    if !comparison.changes.is_empty() {
        lines.extend(["| changed | A | B |".to_owned(), "| --- | --- | --- |".to_owned()]);
        for change in &comparison.changes {
            let name = format!("{}: {}", change.topic.name(), change.name);
            lines.push(format!(
                "| {} | {} | {} |",
                escaped(&name),
                escaped(&change.a),
                escaped(&change.b)
            ));
        }
        lines.push(String::new());
    }
    lines.push("| figure | A | B | B relative to A | 95% interval | p | verdict |".to_owned());
    lines.push("| --- | ---: | ---: | ---: | --- | ---: | --- |".to_owned());
    for stage in &comparison.stages {
        for figure in &stage.figures {
            let value = |value: Option<f64>| {
                value.map_or_else(|| "n/a".to_owned(), |value| figure.figure.text(value))
            };
            let name = match &stage.stage {
                Some(stage) => format!("{stage}: {}", figure.name),
                None => figure.name.clone(),
            };
            let effect = figure.effect.as_ref();
            lines.push(format!(
                "| {} | {} | {} | {} | {} | {} | {} |",
                escaped(&name),
                value(figure.a),
                value(figure.b),
                relative(figure),
                effect.map(interval_text).unwrap_or_default(),
                effect.map(|effect| p_text(effect.p_adjusted)).unwrap_or_default(),
                effect.map_or("", |effect| outcome_text(effect.outcome)),
            ));
        }
    }
    if !comparison.notes.is_empty() {
        lines.push(String::new());
        lines.extend(comparison.notes.iter().map(|note| format!("- {}", escaped(note))));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_change_the_table() {
        assert_eq!(escaped("a|b\n<i>`x`"), "a\\|b &lt;i&gt;\\`x\\`");
    }
}
