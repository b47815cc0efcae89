//! Collects the items, `use` declarations and paths of a file. Code under `#[cfg(test)]` is ignored.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, Token, UseTree, punctuated::Punctuated};

use crate::modules::{Contents, Reference, Use};

/// Returns the items, `use` declarations and paths of a file.
pub(crate) fn collect(file: &syn::File) -> Contents {
    let mut collector = Collector::default();
    if !is_test(&file.attrs) {
        collector.visit_file(file);
    }
    collector.contents
}

#[derive(Default)]
struct Collector {
    contents: Contents,
    /// Names bound by patterns in the enclosing functions.
    bound: Vec<BTreeSet<String>>,
}

impl Collector {
    fn refer(&mut self, path: Vec<String>, span: Span) {
        self.contents.references.push(Reference { path, line: span.start().line });
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().any(|names| names.contains(name))
    }

    /// Visits a function with local names that shadow items.
    fn visit_within(&mut self, bound: BTreeSet<String>, visit: impl FnOnce(&mut Self)) {
        self.bound.push(bound);
        visit(self);
        self.bound.pop();
    }

    fn add_use(&mut self, prefix: &[String], tree: &UseTree, exported: bool) {
        let with = |name: &Ident| prefix.iter().cloned().chain([name.to_string()]).collect();
        let (name, path, span) = match tree {
            UseTree::Path(inner) => {
                let prefix: Vec<String> = with(&inner.ident);
                return self.add_use(&prefix, &inner.tree, exported);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_use(prefix, tree, exported));
            }
            // `a::{self}` imports `a`.
            UseTree::Name(name) if name.ident == "self" && !prefix.is_empty() => {
                (prefix.last().cloned(), prefix.to_vec(), name.ident.span())
            }
            UseTree::Name(name) => {
                (Some(name.ident.to_string()), with(&name.ident), name.ident.span())
            }
            UseTree::Rename(name) if name.ident == "self" => {
                (Some(name.rename.to_string()), prefix.to_vec(), name.ident.span())
            }
            UseTree::Rename(name) => {
                (Some(name.rename.to_string()), with(&name.ident), name.ident.span())
            }
            UseTree::Glob(glob) => (None, prefix.to_vec(), glob.star_token.span),
        };
        self.contents.uses.push(Use { name, path, exported, line: span.start().line });
    }

    /// Collects the paths in the arguments of a macro, which the parser does not parse further.
    fn scan(&mut self, tokens: &TokenStream, singles: bool) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.scan(&group.stream(), singles),
                TokenTree::Ident(first) => {
                    let path = path_at(&tokens[at..]);
                    // Each further segment is two colons and a name.
                    let end = at + 3 * (path.len() - 1);
                    let begins = !continues(&tokens[..at]);
                    let counts = path.len() > 1 || (singles && self.is_item(first, &tokens[at..]));
                    if begins && counts {
                        self.refer(path, first.span());
                    }
                    at = end;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    /// Whether a single name can refer to an item: a type, a constant or a called function.
    fn is_item(&self, name: &Ident, tokens: &[TokenTree]) -> bool {
        let name = name.to_string();
        let called = matches!(tokens.get(1), Some(TokenTree::Group(group))
            if group.delimiter() == Delimiter::Parenthesis);
        (is_upper(&name) || called) && !self.is_bound(&name)
    }
}

/// Returns the segments of the path at the start of the tokens.
fn path_at(tokens: &[TokenTree]) -> Vec<String> {
    let mut path = Vec::new();
    let mut rest = tokens;
    while let [TokenTree::Ident(name), tail @ ..] = rest {
        path.push(name.to_string());
        let [first, second, next @ ..] = tail else { break };
        if !(is_punct(first, ':') && is_punct(second, ':')) {
            break;
        }
        rest = next;
    }
    path
}

/// Whether a name after these tokens is a field, a method, a lifetime or a later segment of a path.
fn continues(before: &[TokenTree]) -> bool {
    match before {
        [.., colon, last] if is_punct(last, ':') => is_punct(colon, ':'),
        [.., dot, last] if is_punct(last, '.') => !is_punct(dot, '.'),
        [.., last] => is_punct(last, '.') || is_punct(last, '\''),
        [] => false,
    }
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

fn is_upper(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = head(item);
        if is_test(attributes) {
            return;
        }
        if let Some(name) = name {
            self.contents.items.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let inside = module.content.as_ref().map(|(_, items)| {
            let mut inner = Self::default();
            for item in items {
                inner.visit_item(item);
            }
            inner.contents
        });
        self.contents.modules.push((module.ident.to_string(), inside));
    }

    fn visit_item_use(&mut self, declaration: &'ast syn::ItemUse) {
        if declaration.leading_colon.is_none() {
            let exported = !matches!(declaration.vis, syn::Visibility::Inherited);
            self.add_use(&[], &declaration.tree, exported);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let bound = bound_names(|names| names.visit_item_fn(function));
        self.visit_within(bound, |own| visit::visit_item_fn(own, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            let bound = bound_names(|names| names.visit_impl_item_fn(function));
            self.visit_within(bound, |own| visit::visit_impl_item_fn(own, function));
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        let bound = bound_names(|names| names.visit_trait_item_fn(function));
        self.visit_within(bound, |own| visit::visit_trait_item_fn(own, function));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_test(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_test(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let local = segments.len() == 1 && self.is_bound(&segments[0]);
        if path.leading_colon.is_none() && !local {
            self.refer(segments, path.segments[0].ident.span());
        }
        visit::visit_path(self, path);
    }

    /// In a pattern, a constant has the same syntax as a new binding.
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if is_upper(&pattern.ident.to_string()) {
            self.refer(vec![pattern.ident.to_string()], pattern.ident.span());
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.scan(&call.tokens, true);
        visit::visit_macro(self, call);
    }

    /// Single words in an attribute do not name items, but paths do.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.scan(&list.tokens, false);
        }
    }
}

/// Returns the attributes of an item and the name that it defines.
fn head(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::TraitAlias(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Impl(item) => (&item.attrs, None),
        Item::Mod(item) => (&item.attrs, None),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

/// Whether code with these attributes is compiled only for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || (path.is_ident("cfg")
                && attribute.parse_args::<Meta>().is_ok_and(|meta| needs_test(&meta)))
    })
}

/// Whether a `cfg` condition is false outside tests.
fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(needs_test)),
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

/// Returns the names bound by the patterns of a function.
fn bound_names(visit: impl FnOnce(&mut Bound)) -> BTreeSet<String> {
    let mut bound = Bound(BTreeSet::new());
    visit(&mut bound);
    bound.0
}

struct Bound(BTreeSet<String>);

impl<'ast> Visit<'ast> for Bound {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        let name = pattern.ident.to_string();
        if !is_upper(&name) {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}
