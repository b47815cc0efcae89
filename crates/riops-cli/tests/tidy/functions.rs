//! Functions: their lengths, from the signature to the closing brace, including functions in macros, and their parameters.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::workspace::read;

/// Returns the functions of a file with more than `lines_max` lines.
pub(crate) fn list_longer_than(lines_max: usize, file: &str) -> Vec<String> {
    let text = read(file).unwrap();
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    functions(&syntax)
        .into_iter()
        .filter(|function| function.lines > lines_max)
        .map(|Function { name, line, lines }| format!("{file}:{line}: {name} has {lines} lines"))
        .collect()
}

/// Returns the parameters of a file's functions that are tuples: their parts have no names, so that equal types can be swapped.
pub(crate) fn tuple_parameters(file: &str) -> Vec<String> {
    let text = read(file).unwrap();
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut parameters = TupleParameters(Vec::new());
    parameters.visit_file(&syntax);
    parameters.0.iter().map(|(name, line)| format!("{file}:{line}: {name} has a tuple")).collect()
}

struct TupleParameters(Vec<(String, usize)>);

impl<'ast> Visit<'ast> for TupleParameters {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }

    /// Skips implementations of traits: the trait declares the parameters, and it may be from a library.
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if item.trait_.is_none() {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let parameters = signature.inputs.iter();
        let is_tuple = parameters.filter(|parameter| match parameter {
            syn::FnArg::Typed(typed) => is_tuple(&typed.ty),
            syn::FnArg::Receiver(_) => false,
        });
        let line = signature.fn_token.span.start().line;
        self.0.extend(is_tuple.map(|_| (signature.ident.to_string(), line)));
    }
}

fn is_tuple(parameter: &syn::Type) -> bool {
    match parameter {
        syn::Type::Tuple(_) => true,
        syn::Type::Reference(reference) => is_tuple(&reference.elem),
        syn::Type::Group(group) => is_tuple(&group.elem),
        _ => false,
    }
}

#[derive(Debug, PartialEq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

fn functions(file: &syn::File) -> Vec<Function> {
    let mut functions = Functions(Vec::new());
    functions.visit_file(file);
    functions.0
}

struct Functions(Vec<Function>);

impl Functions {
    fn add(&mut self, name: &str, first: Span, last: Span) {
        let (line, end) = (first.start().line, last.end().line);
        self.0.push(Function { name: name.to_owned(), line, lines: end + 1 - line });
    }

    fn scan(&mut self, tokens: TokenStream) {
        let mut open: Option<(String, Span)> = None;
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "fn" => {
                    if let Some(TokenTree::Ident(name)) = tokens.peek() {
                        open = Some((name.to_string(), word.span()));
                    }
                }
                TokenTree::Punct(end) if end.as_char() == ';' => open = None,
                TokenTree::Group(group) => {
                    if group.delimiter() == Delimiter::Brace
                        && let Some((name, first)) = open.take()
                    {
                        self.add(&name, first, group.span_close());
                    }
                    self.scan(group.stream());
                }
                _ => {}
            }
        }
    }

    fn add_parsed(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let name = &signature.ident;
        self.add(&name.to_string(), signature.fn_token.span, block.brace_token.span.close());
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add_parsed(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add_parsed(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add_parsed(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.scan(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::{Function, functions};

    #[test]
    fn counts_lines_of_methods_nested_functions_and_functions_in_macros() {
        let text = "\
/// Not counted.
#[inline]
pub fn outer(
    a: u8,
) {
    fn nested() {
    }
}
impl A {
    fn method(&self) {}
}
proptest! {
    #[test]
    fn property(a in 0..1) {
        {}
    }
}
trait T {
    fn declared(&self);
}
";
        let listed = functions(&syn::parse_file(text).unwrap());
        let expected = [("outer", 3, 6), ("nested", 6, 2), ("method", 10, 1), ("property", 14, 3)];
        let expected =
            expected.map(|(name, line, lines)| Function { name: name.to_owned(), line, lines });
        assert_eq!(listed, expected);
    }
}
