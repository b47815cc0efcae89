//! The style, the scripts and the templates of pages, and the policy under which browsers run them.
//!
//! A page is either one file, with its style and its scripts in it, or it links to them (`riops serve`). Both run
//! only the scripts of riops: a file names their hashes, a linked page allows only those from the same server. Data is
//! never part of a script.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, HtmlEscape};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::super::document::Findings;
use super::glossary::{anchor, terms};

const UPLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const CHARTS: &str = include_str!("../../assets/page/charts.js");
const STYLE: &str = concat!(
    include_str!("../../assets/uplot/uPlot.min.css"),
    include_str!("../../assets/page/style.css")
);
const BASE: &str = include_str!("../../assets/page/base.html");
const MACROS: &str = include_str!("../../assets/page/macros.html");
const REPORT: &str = include_str!("../../assets/page/report.html");
const FINDINGS: &str = include_str!("../../assets/page/findings.html");

/// The `Content-Security-Policy` header of linked pages.
pub const LINKED_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The policy of pages that are files beside their assets, also without a server.
const FILES_POLICY: &str = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data:; base-uri 'none'; form-action 'none'";

/// A file that linked pages load from `/assets/`.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Name below `/assets/`.
    pub name: &'static str,
    /// MIME type.
    pub content_type: &'static str,
    /// Contents.
    pub text: &'static str,
}

/// The files that linked pages load.
pub const ASSETS: [Asset; 3] = [
    Asset { name: "style.css", content_type: "text/css; charset=utf-8", text: STYLE },
    Asset { name: "uplot.js", content_type: "text/javascript; charset=utf-8", text: UPLOT },
    Asset { name: "charts.js", content_type: "text/javascript; charset=utf-8", text: CHARTS },
];

/// How a page gets its style and its scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// They are part of the page, which needs no other file.
    Inline,
    /// The page loads them from `/assets/`.
    Linked,
}

/// The style and the scripts of a page that is one file.
#[derive(Debug, Clone, Copy, Serialize)]
struct Inline {
    style: &'static str,
    scripts: [&'static str; 2],
}

/// A link in the head of a page.
#[derive(Debug, Clone, Serialize)]
pub struct Link {
    /// The text.
    pub text: String,
    /// The address.
    pub href: String,
    /// Whether it is the page itself.
    pub current: bool,
}

/// What the frame of a page needs: the variable `layout` of `base.html`.
#[derive(Debug, Clone, Serialize)]
pub struct Layout {
    /// Title of the page.
    pub title: String,
    /// Links in the head of the page.
    pub nav: Vec<Link>,
    /// The commands that import and repeat what the page shows, in its foot.
    pub reproduce: Option<String>,
    version: &'static str,
    inline: Option<Inline>,
    /// Policy of a page that is a file.
    policy: Option<&'static str>,
    /// Folder of the files of the page.
    assets: String,
}

impl Layout {
    /// Returns the frame of a page without links to other pages.
    pub fn new(title: impl Into<String>, delivery: Delivery) -> Self {
        let inline = Inline { style: STYLE, scripts: [UPLOT, CHARTS] };
        let is_inline = delivery == Delivery::Inline;
        Self {
            title: title.into(),
            nav: Vec::new(),
            reproduce: None,
            version: env!("CARGO_PKG_VERSION"),
            inline: is_inline.then_some(inline),
            policy: is_inline.then(inline_policy),
            assets: "/assets/".to_owned(),
        }
    }

    /// Returns the frame of a page that is a file beside its assets: `root` is the way to the folder with `assets`.
    pub fn beside(title: impl Into<String>, root: &str) -> Self {
        let assets = format!("{root}assets/");
        Self { policy: Some(FILES_POLICY), assets, ..Self::new(title, Delivery::Linked) }
    }
}

/// Returns the templates: `base.html` (blocks `main`, `footer` and `scripts`), `macros.html` (tables, charts, facts)
/// `report.html` and `findings.html`. Every value is escaped.
///
/// # Errors
/// Returns the syntax error of a template. Not expected in practice: the templates are part of riops.
pub fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_global("terms", Value::from(Serde(terms())));
    environment.add_filter("term", linked_term);
    environment.add_template("base.html", BASE)?;
    environment.add_template("macros.html", MACROS)?;
    environment.add_template("report.html", REPORT)?;
    environment.add_template("findings.html", FINDINGS)?;
    Ok(environment)
}

/// A label as a link to its meaning, if it is a term.
fn linked_term(label: &str) -> Value {
    let text = HtmlEscape(label);
    Value::from_safe_string(match anchor(label) {
        Some(id) => format!("<a class=\"term\" href=\"#{id}\">{text}</a>"),
        None => text.to_string(),
    })
}

/// Returns the page of the findings within a frame that the caller chooses.
///
/// # Errors
/// Returns the error of the template engine. Not expected in practice: the template is part of riops.
pub fn findings_html(findings: &Findings, layout: &Layout) -> Result<String, minijinja::Error> {
    #[derive(Debug, Serialize)]
    struct Page<'a> {
        layout: &'a Layout,
        found: &'a Findings,
    }
    let page = Page { layout, found: findings };
    environment()?.get_template("findings.html")?.render(Value::from(Serde(page)))
}

/// Returns the policy of a page that is one file: it names the hashes of its scripts and of its style, so that
/// neither a script in the data of a run nor a request to anywhere is possible.
fn inline_policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let hash = |text: &str| format!("'sha256-{}'", BASE64.encode(Sha256::digest(text)));
        format!(
            "default-src 'none'; script-src {} {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
            hash(UPLOT),
            hash(CHARTS),
            hash(STYLE)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_or_style_can_end_its_element() {
        for text in [UPLOT, CHARTS, STYLE] {
            let text = text.to_lowercase();
            assert!(
                !text.contains("</script") && !text.contains("</style") && !text.contains("<!--")
            );
        }
    }

    #[test]
    fn neither_assets_nor_templates_load_anything_from_elsewhere() {
        for text in [CHARTS, STYLE, BASE, MACROS, REPORT, FINDINGS] {
            assert!(!text.contains("url(") && !text.contains("@import"), "{text}");
            let addresses = text
                .split("http")
                .skip(1)
                .filter(|rest| rest.starts_with("://") || rest.starts_with("s://"));
            // The name space of SVG is not requested.
            assert!(addresses.into_iter().all(|rest| rest.starts_with("://www.w3.org/2000/svg")));
        }
    }

    #[test]
    fn the_policy_of_a_file_allows_only_its_own_scripts() {
        let policy = inline_policy();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("self"));
    }
}
