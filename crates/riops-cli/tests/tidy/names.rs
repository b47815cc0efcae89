//! Names: words that do not say what a value is, and function names that begin without a subject or a verb.

use syn::visit::{self, Visit};

use crate::workspace::read;

/// Words that fit any value.
const NO_NAMES: [&str; 6] = ["found", "each", "of", "whole", "looks", "number"];
/// Prefixes of function names that are neither an action nor a question nor a noun.
const NO_STARTS: [&str; 5] = ["that_", "those_", "what_", "it_is_", "there_is_"];

/// Returns the variables, parameters and functions of a file whose names say nothing.
pub(crate) fn empty_names(file: &str) -> Vec<String> {
    let text = read(file).unwrap();
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    list(&syntax).into_iter().map(|(line, name)| format!("{file}:{line}: {name}")).collect()
}

fn list(syntax: &syn::File) -> Vec<(usize, String)> {
    let mut names = Names(Vec::new());
    names.visit_file(syntax);
    names.0
}

struct Names(Vec<(usize, String)>);

impl Names {
    fn check(&mut self, name: &syn::Ident, is_wrong: impl Fn(&str) -> bool) {
        let text = name.to_string();
        if is_wrong(&text) {
            self.0.push((name.span().start().line, text));
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.check(&pattern.ident, |name| NO_NAMES.contains(&name));
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.check(&signature.ident, |name| {
            NO_NAMES.contains(&name) || NO_STARTS.iter().any(|start| name.starts_with(start))
        });
        visit::visit_signature(self, signature);
    }
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn finds_empty_names_of_variables_parameters_and_functions() {
        let text = "\
fn of(number: u8) {
    let Some(found) = rows.iter().find(|each| each.number == number) else { return };
}
fn what_is_left(numbers: &[u8]) {
    let of_stage = Row { number: 1, whole };
}
";
        let names: Vec<_> = list(&syn::parse_file(text).unwrap())
            .into_iter()
            .map(|(line, name)| format!("{line} {name}"))
            .collect();
        assert_eq!(names, ["1 of", "1 number", "2 found", "2 each", "4 what_is_left"]);
    }
}
