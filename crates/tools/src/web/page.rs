//! Pages of the web as Markdown.
//!
//! Pages are hostile at times. The tree is cut to a size that can be printed before it is: how deep it is, how many
//! elements it has, how much its links take.

use std::rc::Rc;

use helve_protocol::split_words;
use htmd::options::{BulletListMarker, Options};
use htmd::{HtmlToMarkdown, Node};
use html5ever::tendril::StrTendril;
use markup5ever_rcdom::NodeData;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::web::html_tree;
use crate::web::printing;

/// A page that people read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WebPage {
    /// In one line; empty if it has none.
    pub(crate) title: String,
    pub(crate) text: String,
}

/// What is no text, or is on every page of a site.
const DROPPED_TAGS: [&str; 17] = [
    "base", "canvas", "embed", "iframe", "input", "link", "math", "meta", "nav", "object", "script",
    "select", "style", "svg", "template", "textarea", "title",
];
/// What stands for itself, so that two of them are never one.
const BLOCK_TAGS: [&str; 66] = [
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "pre",
    "script",
    "search",
    "section",
    "style",
    "summary",
    "table",
    "tbody",
    "td",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];
/// What is printed with more white space or marks before each line.
const INDENTED_TAGS: [&str; 4] = ["blockquote", "dl", "ol", "ul"];
/// Deeper than this, and after so many elements, only the words are kept.
const MAX_PAGE_DEPTH: usize = 100;
const MAX_INDENT_DEPTH: usize = 12;
const MAX_PAGE_ELEMENTS: usize = 60_000;
/// A longer link is no link that anybody follows, and all links together may take so much.
const MAX_LINK_BYTES: usize = 2_000;
const MAX_LINKS_TOTAL_BYTES: usize = 8 << 20;
const MAX_PAGE_TITLE_CHARS: usize = 200;

/// Reads a page that came from an address; nothing if it was stopped.
pub(crate) fn read(html: &str, address: &Url, stop: &CancellationToken) -> Option<WebPage> {
    let document = html_tree::parse(html, stop)?;
    let mut pruning = PagePruner {
        base: address.clone(),
        title: None,
        elements_left: MAX_PAGE_ELEMENTS,
        link_bytes_left: MAX_LINKS_TOTAL_BYTES,
    };
    pruning.prune(&document);
    join_alike(&document);
    if stop.is_cancelled() {
        return None;
    }
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let printer = HtmlToMarkdown::builder()
        .options(options)
        .add_handler(vec!["table"], printing::table)
        .add_handler(vec!["pre"], printing::code_block)
        .build();
    let text = printer.tree_to_markdown(&document);
    Some(WebPage { title: pruning.title.unwrap_or_default(), text })
}

/// Makes a tree fit to be printed.
struct PagePruner {
    /// What links are relative to.
    base: Url,
    title: Option<String>,
    elements_left: usize,
    link_bytes_left: usize,
}

/// Puts together what is alike and stands side by side: `<b>a</b><b>b</b>`. The printer does so too, but takes time for it that
/// grows with the square of their number.
fn join_alike(document: &Rc<Node>) {
    let mut waiting = vec![document.clone()];
    while let Some(node) = waiting.pop() {
        let mut children = node.children.borrow_mut();
        let mut joined: Vec<Rc<Node>> = Vec::with_capacity(children.len());
        for child in children.drain(..) {
            if !joined.last().is_some_and(|last| takes_in(last, &child)) {
                joined.push(child);
            }
        }
        waiting.extend(joined.iter().cloned());
        *children = joined;
    }
}

/// Adds the text of an element to the one before it, if both are alike and have nothing but text.
fn takes_in(one: &Node, other: &Node) -> bool {
    let (NodeData::Element { name, attrs, .. }, NodeData::Element { name: next, attrs: others, .. }) =
        (&one.data, &other.data)
    else {
        return false;
    };
    let tag: &str = &name.local;
    if name != next || tag == "a" || BLOCK_TAGS.contains(&tag) || attrs != others {
        return false;
    }
    let (Some(one), Some(other)) = (only_child(one), only_child(other)) else { return false };
    match (&one.data, &other.data) {
        (NodeData::Text { contents }, NodeData::Text { contents: more }) => {
            contents.borrow_mut().push_slice(&more.borrow());
            true
        }
        _ => false,
    }
}

fn only_child(node: &Node) -> Option<Rc<Node>> {
    match node.children.borrow().as_slice() {
        [child] => Some(child.clone()),
        _ => None,
    }
}

/// Where a node is in its tree.
#[derive(Clone, Copy, Default)]
struct NodeLevel {
    depth: usize,
    indented: usize,
}

impl PagePruner {
    /// Not by recursion, which a deep page would turn into a crash.
    fn prune(&mut self, document: &Rc<Node>) {
        let mut waiting = vec![(document.clone(), NodeLevel::default())];
        while let Some((node, level)) = waiting.pop() {
            let children = std::mem::take(&mut *node.children.borrow_mut());
            let kept: Vec<Rc<Node>> =
                children.into_iter().filter_map(|child| self.kept(child, level)).collect();
            // The first is looked at first.
            for child in kept.iter().rev().filter(|child| tag(child).is_some()) {
                waiting.push((child.clone(), level.below(child)));
            }
            *node.children.borrow_mut() = kept;
        }
    }

    /// A node as it is printed, if it is.
    fn kept(&mut self, node: Rc<Node>, level: NodeLevel) -> Option<Rc<Node>> {
        let NodeData::Element { name, attrs, .. } = &node.data else {
            return matches!(node.data, NodeData::Text { .. }).then_some(node);
        };
        let tag: &str = &name.local;
        match tag {
            "title" if self.title.is_none() => self.title = Some(short(&words(&node))),
            "base" => self.rebase(&node),
            _ => {}
        }
        let is_hidden = attrs.borrow().iter().any(|attr| &*attr.name.local == "hidden");
        if DROPPED_TAGS.contains(&tag) || is_hidden {
            return None;
        }
        if self.elements_left == 0 || level.depth >= MAX_PAGE_DEPTH || level.indented >= MAX_INDENT_DEPTH {
            let contents = StrTendril::from(words(&node)).into();
            return Some(Node::new(NodeData::Text { contents }));
        }
        self.elements_left -= 1;
        attrs.borrow_mut().retain_mut(|attr| match &*attr.name.local {
            "href" | "src" => self.link(&attr.value).map(|link| attr.value = link).is_some(),
            _ => true,
        });
        Some(node)
    }

    fn rebase(&mut self, node: &Rc<Node>) {
        let NodeData::Element { attrs, .. } = &node.data else { return };
        let attrs = attrs.borrow();
        let href = attrs.iter().find(|attr| &*attr.name.local == "href");
        let base = href.and_then(|href| self.base.join(&href.value).ok());
        if let Some(base) = base.filter(|base| base.as_str().len() <= MAX_LINK_BYTES) {
            self.base = base;
        }
    }

    /// A link that can be followed from elsewhere; nothing if it leads to nothing that is worth it.
    fn link(&mut self, link: &str) -> Option<StrTendril> {
        let link = link.trim();
        if link.starts_with('#') || link.len() > MAX_LINK_BYTES {
            return None;
        }
        let whole = self.base.join(link).ok()?;
        let whole = Some(whole.as_str())
            .filter(|whole| matches!(whole.split(':').next(), Some("http" | "https" | "mailto")))
            .filter(|whole| whole.len() <= MAX_LINK_BYTES.min(self.link_bytes_left))?;
        self.link_bytes_left -= whole.len();
        Some(StrTendril::from(whole))
    }
}

impl NodeLevel {
    fn below(self, node: &Rc<Node>) -> NodeLevel {
        let is_indented = tag(node).is_some_and(|tag| INDENTED_TAGS.contains(&tag));
        NodeLevel { depth: self.depth + 1, indented: self.indented + usize::from(is_indented) }
    }
}

pub(crate) fn tag(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

/// All text below a node, with spaces between its pieces.
pub(crate) fn words(node: &Rc<Node>) -> String {
    let mut all = String::new();
    let mut waiting = vec![node.clone()];
    while let Some(node) = waiting.pop() {
        if let NodeData::Text { contents } = &node.data {
            all.extend([&**contents.borrow(), " "]);
        }
        let children = node.children.borrow();
        let shown =
            children.iter().rev().filter(|child| tag(child).is_none_or(|tag| !DROPPED_TAGS.contains(&tag)));
        waiting.extend(shown.cloned());
    }
    all
}

fn short(title: &str) -> String {
    join_words(title).chars().take(MAX_PAGE_TITLE_CHARS).collect()
}

pub(crate) fn join_words(text: &str) -> String {
    split_words(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(html: &str) -> WebPage {
        let address = Url::parse("https://example.com/docs/page.html?q=1#here").unwrap();
        read(html, &address, &CancellationToken::new()).unwrap()
    }

    #[test]
    fn what_people_read_is_kept_and_the_rest_goes() {
        let page = page(
            "<!doctype html><html><head><title> A \n page </title><style>p {}</style></head><body><nav>menu</nav>\
             <script>alert(1)</script><svg><title>no</title><text>drawn</text></svg><h1>Head</h1><p>Some <b>bold</b> text.</p>\
             <p hidden>secret</p><ul><li>one</li><li>two</li></ul><ol><li>first</li></ol><pre><code>let x = 1;\n  y\n</code></pre>\
             <noscript>plain</noscript><!-- comment --></body></html>",
        );
        assert_eq!(page.title, "A page");
        assert_eq!(
            page.text,
            "# Head\n\nSome **bold** text.\n\n- one\n- two\n\n1. first\n\n```\nlet x = 1;\n  y\n```\n\nplain"
        );
    }

    #[test]
    fn links_can_be_followed_from_elsewhere() {
        let text = page(
            "<a href='other.html'>a</a> <a href='/root'>b</a> <a href='//cdn.test/x'>c</a> <a href='#part'>d</a> \
             <a href='javascript:x()'>e</a> <a href='mailto:a@b.c'>f</a> <img src='i.png' alt='pic'> \
             <img src='data:image/png;base64,AAAA' alt='inline'> <a href='http://['>g</a>",
        );
        assert_eq!(
            text.text,
            "[a](https://example.com/docs/other.html) [b](https://example.com/root) [c](https://cdn.test/x) d e \
             [f](mailto:a@b.c) ![pic](https://example.com/docs/i.png) g"
        );
        let based = page("<head><base href='https://else.test/d/'></head><body><a href='x'>a</a></body>");
        assert_eq!(based.text, "[a](https://else.test/d/x)");
    }

    #[test]
    fn tables_are_not_padded() {
        let html = "<table><caption>Sizes</caption><tr><th>Name</th><th>A|B</th></tr><tr><td>x</td><td><p>1</p><p>2</p></td></tr></table>";
        assert_eq!(page(html).text, "Sizes\n\n| Name | A\\|B |\n| --- | --- |\n| x | 1 2 |");
        let layout = "<table><tr><td><h2>Left</h2><p>text</p></td><td>right</td></tr></table>";
        assert_eq!(page(layout).text, "## Left\n\ntext\n\nright");
        let wide = format!(
            "<table><tr><th>{}</th></tr>{}</table>",
            "x".repeat(100_000),
            "<tr><td>y</td></tr>".repeat(10_000)
        );
        assert!(page(&wide).text.len() < 300_000);
    }

    #[test]
    fn code_is_fenced() {
        assert_eq!(
            page("<p>a<pre>\n  x *y*\n\n[z]&lt;\n</pre><p>b").text,
            "a\n\n```\n  x *y*\n\n[z]<\n```\n\nb"
        );
        let code = "<pre class='hljs'><code class='x language-rust y'>fn <b>f</b>() {<br>}\n</code></pre>";
        assert_eq!(page(code).text, "```rust\nfn f() {\n}\n```");
        let of_pre = "<pre class='lang-c++'><span>i</span><a href=x>j</a> <script>k</script></pre>";
        assert_eq!(page(of_pre).text, "```c++\nij\n```");
        assert_eq!(page("<pre>```\na ````b</pre>").text, "`````\n```\na ````b\n`````");
        assert_eq!(page("<ul><li>a<pre>b\n c</pre></ul>").text, "- a\n\n  ```\n  b\n   c\n  ```");
        assert_eq!(page("<pre><code class='language-`x y'>a</code></pre>").text, "```\na\n```");
        assert_eq!(page("a<pre> \n</pre>b").text, "a\n\nb");
    }

    #[test]
    fn what_is_alike_is_joined() {
        assert_eq!(page("<b>a</b><b>b</b><i>c</i><b>d</b>").text, "**ab***c***d**");
        let document = html_tree::parse(&"<x>y</x>".repeat(50_000), &CancellationToken::new()).unwrap();
        join_alike(&document);
        let last = |node: &Rc<Node>| node.children.borrow().last().cloned();
        let path: Vec<Rc<Node>> = std::iter::successors(Some(document), last).collect();
        assert_eq!(path.len(), 5, "the document, html, body, x and its text");
        assert_eq!(words(&path[4]).trim().len(), 50_000);
        for tag in ["p", "div", "li", "a href=x"] {
            assert!(!page(&format!("<{tag}>a</{tag}><{tag}>b</{tag}>")).text.contains("ab"), "{tag}");
        }
    }

    #[test]
    fn hostile_pages_are_cut_down() {
        for tag in
            ["div", "b", "blockquote", "ul><li", "table><tr><td", "span", "a href=x", "pre", "select><option"]
        {
            let deep = format!("{}deep", format!("<{tag}>").repeat(3_000));
            assert!(page(&deep).text.contains("deep") || tag.starts_with("select"), "{tag}");
        }
        let many = page(&"<b>x</b><i>y</i>".repeat(60_000)).text;
        assert_eq!(many.matches('x').count(), 60_000);
        let base = format!("<base href='https://e.test/{}/'>", "l".repeat(1_900));
        let links = page(&(base + &"<a href=x>y</a>".repeat(20_000))).text;
        assert!(links.len() < MAX_LINKS_TOTAL_BYTES + (1 << 20), "{}", links.len());
        let lines = format!("{}{}", "<ul><li>".repeat(500), "<br>z".repeat(10_000));
        assert!(page(&lines).text.len() < 1 << 20);
    }

    #[test]
    fn who_no_longer_waits_is_not_served() {
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(read("<p>x</p>", &Url::parse("http://e.test").unwrap(), &stop), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_page(html in ".{0,200}") {
            page(&html);
        }

        #[test]
        fn any_soup_of_tags_is_a_page(tags in prop::collection::vec((0..3_u8, 0..40_usize, "[ a|\n*_1.#é-]{0,4}"), 0..60)) {
            const TAGS: [&str; 40] = [
                "a", "b", "base", "blockquote", "body", "br", "button", "caption", "code", "dd", "dl", "em", "form", "frameset",
                "h1", "head", "hr", "html", "i", "img", "li", "math", "mi", "ol", "option", "p", "pre", "select", "span",
                "svg", "table", "tbody", "td", "template", "th", "thead", "title", "tr", "ul", "noscript",
            ];
            let html: String = tags.iter().map(|(form, tag, text)| match form {
                0 => format!("<{}>{text}", TAGS[*tag]),
                1 => format!("</{}>{text}", TAGS[*tag]),
                _ => format!("<{} href='{text}' src=x start={text} class={text}>", TAGS[*tag]),
            }).collect();
            page(&html);
        }
    }
}
