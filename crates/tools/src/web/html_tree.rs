//! Pages of the web as trees.
//!
//! Whatever a page is made of, reading it takes time in proportion to its length. The rules of HTML look through all open
//! elements at each tag and make copies of what was not closed, so that a page can be made for which they take hours. All that
//! work goes through the [`CountingTreeSink`], which counts it. Once there was too much, only the words are kept of the rest.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{
    ElementFlags, NodeOrText, QuirksMode, Tracer, TreeBuilder, TreeBuilderOpts, TreeSink,
};
use html5ever::{Attribute, ExpandedName, QualName, TokenizerResult};
use markup5ever_rcdom::{Node, NodeData, RcDom};
use tokio_util::sync::CancellationToken;

use crate::web::attribute_limit::limit_attributes;

/// How often the rules may look at an element. No page that people read comes near.
const MAX_PARSE_WORK: usize = 20_000_000;
/// What an element costs, which takes memory.
const ELEMENT_WORK: usize = 100;
/// So many siblings are passed in the time of one look.
const SIBLINGS_PER_WORK: usize = 8;
/// What is open is counted anew after so many of the tags that are compared with each other, which is counted as so much work.
const RECOUNT_INTERVAL_TAGS: usize = 64;
const COMPARISON_WORK: usize = 4;
/// Those tags.
const FORMATTING_TAGS: [&str; 13] =
    ["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// What is ever asked for.
const KEPT_ATTRIBUTES: [&str; 7] = ["alt", "class", "hidden", "href", "src", "start", "title"];
/// Between two pieces of a page it is asked whether somebody still waits for it.
const PARSE_CHUNK_BYTES: usize = 4 << 10;

/// Reads a page; nothing if it was stopped.
pub(crate) fn parse(html: &str, stop: &CancellationToken) -> Option<Rc<Node>> {
    grown(html, MAX_PARSE_WORK, stop).map(BoundedTokenSink::into_tree)
}

fn grown(html: &str, most: usize, stop: &CancellationToken) -> Option<BoundedTokenSink> {
    // Without scripts, pages show what they have for readers like us.
    let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let builder = TreeBuilder::new(CountingTreeSink::default(), options);
    let sieve = BoundedTokenSink {
        builder,
        most,
        compared: Cell::default(),
        open: Cell::default(),
        rest: RefCell::default(),
    };
    let tokenizer = Tokenizer::new(sieve, TokenizerOpts::default());
    let input = BufferQueue::default();
    let html = limit_attributes(html);
    let mut rest = html.as_str();
    while !rest.is_empty() {
        if stop.is_cancelled() {
            return None;
        }
        let (piece, after) =
            rest.split_at_checked(rest.floor_char_boundary(PARSE_CHUNK_BYTES)).unwrap_or((rest, ""));
        input.push_back(StrTendril::from(piece));
        // It pauses after each script, for whoever would run it.
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        rest = after;
    }
    tokenizer.end();
    Some(tokenizer.sink)
}

/// Lets tags through as long as there was not too much work.
struct BoundedTokenSink {
    builder: TreeBuilder<Rc<Node>, CountingTreeSink>,
    /// How much work there may be.
    most: usize,
    /// How many tags were compared with what is open, and how much that was of late.
    compared: Cell<usize>,
    open: Cell<usize>,
    /// The words after that.
    rest: RefCell<Option<RemainingWords>>,
}

#[derive(Default)]
struct RemainingWords {
    words: String,
    /// Whether what comes is a script, a style or the like.
    is_hidden: bool,
}

impl BoundedTokenSink {
    fn into_tree(self) -> Rc<Node> {
        let document = self.builder.sink.finish();
        if let Some(RemainingWords { words, .. }) = self.rest.into_inner() {
            let node = Node::new(NodeData::Text { contents: RefCell::new(words.into()) });
            node.parent.set(Some(Rc::downgrade(&document)));
            document.children.borrow_mut().push(node);
        }
        document
    }

    /// Only a tag that begins something ends the patience: before it, a script is over.
    fn is_enough(&self, token: &Token) -> bool {
        let mut rest = self.rest.borrow_mut();
        let begins = matches!(token, Token::TagToken(tag) if tag.kind == TagKind::StartTag);
        if rest.is_none() && begins && self.builder.sink.work.get() > self.most {
            *rest = Some(RemainingWords::default());
        }
        rest.is_some()
    }

    /// Work of the rules that the grove does not see.
    fn count_comparing(&self, tag: &Tag) {
        if tag.kind != TagKind::StartTag || !FORMATTING_TAGS.contains(&&*tag.name) {
            return;
        }
        let number = self.compared.get();
        self.compared.set(number + 1);
        if number.is_multiple_of(RECOUNT_INTERVAL_TAGS) {
            let counter = OpenElementCounter::default();
            self.builder.trace_handles(&counter);
            self.open.set(counter.0.get());
        }
        self.builder.sink.count(self.open.get() * COMPARISON_WORK);
    }
}

/// Counts what is open.
#[derive(Default)]
struct OpenElementCounter(Cell<usize>);

impl Tracer for OpenElementCounter {
    type Handle = Rc<Node>;

    fn trace_handle(&self, _: &Rc<Node>) {
        self.0.set(self.0.get() + 1);
    }
}

impl TokenSink for BoundedTokenSink {
    type Handle = Rc<Node>;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Rc<Node>> {
        if self.is_enough(&token)
            && let Some(rest) = self.rest.borrow_mut().as_mut()
            && token != Token::EOFToken
        {
            return rest.take(&token);
        }
        match token {
            Token::ParseError(_) | Token::CommentToken(_) => TokenSinkResult::Continue,
            Token::TagToken(mut tag) => {
                tag.attrs.retain(|attr| KEPT_ATTRIBUTES.contains(&&*attr.name.local));
                self.count_comparing(&tag);
                self.builder.process_token(Token::TagToken(tag), line)
            }
            token => self.builder.process_token(token, line),
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl RemainingWords {
    fn take(&mut self, token: &Token) -> TokenSinkResult<Rc<Node>> {
        match token {
            Token::CharacterTokens(text) if !self.is_hidden => self.words.push_str(text),
            Token::TagToken(tag) => {
                self.words.push(' ');
                let raw = raw_text(tag);
                self.is_hidden = raw.is_some();
                return raw.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// How what follows a tag is read, if that is no markup.
fn raw_text(tag: &Tag) -> Option<RawKind> {
    match &*tag.name {
        _ if tag.kind == TagKind::EndTag => None,
        "script" => Some(RawKind::ScriptData),
        "iframe" | "noembed" | "noframes" | "style" | "xmp" => Some(RawKind::Rawtext),
        "textarea" | "title" => Some(RawKind::Rcdata),
        _ => None,
    }
}

/// A tree that grows, and how much work that was.
#[derive(Default)]
struct CountingTreeSink {
    dom: RcDom,
    work: Cell<usize>,
}

impl CountingTreeSink {
    fn count(&self, work: usize) {
        self.work.set(self.work.get().saturating_add(work));
    }

    /// Finding a node among its siblings.
    fn count_siblings(&self, node: &Rc<Node>) {
        let parent = node.parent.take();
        let siblings = parent.as_ref().and_then(|parent| parent.upgrade());
        node.parent.set(parent);
        self.count(1 + siblings.map_or(0, |parent| parent.children.borrow().len() / SIBLINGS_PER_WORK));
    }
}

impl TreeSink for CountingTreeSink {
    type Handle = Rc<Node>;
    type Output = Rc<Node>;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Rc<Node> {
        self.dom.document
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Rc<Node> {
        self.dom.get_document()
    }

    fn elem_name<'a>(&'a self, node: &'a Rc<Node>) -> ExpandedName<'a> {
        self.count(1);
        self.dom.elem_name(node)
    }

    fn same_node(&self, one: &Rc<Node>, other: &Rc<Node>) -> bool {
        self.count(1);
        self.dom.same_node(one, other)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> Rc<Node> {
        self.count(ELEMENT_WORK);
        self.dom.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Rc<Node> {
        self.dom.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Rc<Node> {
        self.dom.create_pi(target, data)
    }

    fn append(&self, parent: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.dom.append(parent, child);
    }

    fn append_before_sibling(&self, sibling: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.count_siblings(sibling);
        self.dom.append_before_sibling(sibling, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<Node>,
        previous: &Rc<Node>,
        child: NodeOrText<Rc<Node>>,
    ) {
        self.count_siblings(element);
        self.dom.append_based_on_parent_node(element, previous, child);
    }

    /// Nobody reads it.
    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, node: &Rc<Node>) -> Rc<Node> {
        self.dom.get_template_contents(node)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.dom.set_quirks_mode(mode);
    }

    fn add_attrs_if_missing(&self, node: &Rc<Node>, attrs: Vec<Attribute>) {
        self.dom.add_attrs_if_missing(node, attrs);
    }

    fn remove_from_parent(&self, node: &Rc<Node>) {
        self.count_siblings(node);
        self.dom.remove_from_parent(node);
    }

    fn reparent_children(&self, node: &Rc<Node>, new_parent: &Rc<Node>) {
        self.count(node.children.borrow().len());
        self.dom.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, node: &Rc<Node>) -> bool {
        self.count(1);
        self.dom.is_mathml_annotation_xml_integration_point(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 64 << 10;
    const MOST: usize = 1_000_000;

    /// A page that is one thing again and again, and says something at its end.
    fn repeated(unit: impl Fn(usize) -> String) -> String {
        let mut html = String::new();
        for number in 0.. {
            html.push_str(&unit(number));
            if html.len() > LENGTH {
                break;
            }
        }
        html + "<p>deep"
    }

    fn has_word(node: &Rc<Node>, word: &str) -> bool {
        let mut waiting = vec![node.clone()];
        while let Some(node) = waiting.pop() {
            if matches!(&node.data, NodeData::Text { contents } if contents.borrow().contains(word)) {
                return true;
            }
            waiting.extend(node.children.borrow().iter().cloned());
        }
        false
    }

    #[test]
    fn the_work_is_bounded_whatever_a_page_is_made_of() {
        let units = [
            "<div>",
            "<div>x",
            "<b>",
            "<b>x",
            "<b>x</b>",
            "<ul><li>",
            "<ol><li>x",
            "<table><tr><td>",
            "<blockquote>x",
            "<p>x",
            "<li>x",
            "<a href=x>y</a>",
            "<a href=x>y",
            "<a><div>",
            "<b><p>",
            "<b><div></b>",
            "<a><table><a>",
            "<svg>x",
            "<math><mi>",
            "<button>",
            "<form>",
            "</p>",
            "</div>",
            "<span>",
            "<h1>x",
            "<object>x",
            "<nobr>x",
            "<ruby><rt>",
            "<dl><dt><dd>",
            "<!--x-->",
            "<",
        ];
        let mut pages: Vec<(String, String)> =
            units.iter().map(|unit| (unit.to_string(), repeated(|_| unit.to_string()))).collect();
        let opened = |opening: &str, unit: &str| {
            (opening.to_owned(), opening.to_owned() + &repeated(|_| unit.to_owned()))
        };
        let numbered: [fn(usize) -> String; 4] = [
            |number| format!("<p><b class={number}>x</p>"),
            |number| format!("<p><font class={number}>x"),
            |number| format!("<code class={number}>"),
            |number| format!("<body a{number}>"),
        ];
        pages.extend(numbered.map(|unit| (unit(0), repeated(unit))));
        pages.push(opened("<table>", "x<b></b>"));
        pages.push(opened("<table>", "<i>x</i>"));
        pages.push(opened(&"<b><i><u><s><em><tt><big><code><small><strong><font>".repeat(3), "<p>x"));
        pages.push(("attribute".to_owned(), format!("<p title='{}'>deep", "x".repeat(LENGTH))));
        pages.push((
            "attributes".to_owned(),
            format!("<p {}>deep", (0..LENGTH / 6).map(|number| format!("a{number} ")).collect::<String>()),
        ));
        for (name, html) in pages {
            let sieve = grown(&html, MOST, &CancellationToken::new()).unwrap();
            let work = sieve.builder.sink.work.get();
            assert!(work < MOST + MOST / 50, "{name}: {work}");
            assert!(has_word(&sieve.into_tree(), "deep"), "{name}");
        }
    }

    #[test]
    fn what_comes_after_too_much_is_words_and_no_scripts() {
        let deep = "<div>".repeat(20_000);
        let html = format!(
            "{deep}<p>one</p>two<script>no < '<p>' no</script>three<style>no</style><title>no</title> <i>four</i>"
        );
        let document = parse(&html, &CancellationToken::new()).unwrap();
        let last = document.children.borrow().last().cloned().unwrap();
        let NodeData::Text { contents } = &last.data else { panic!("{last:?}") };
        let words: Vec<String> = contents.borrow().split_whitespace().map(str::to_owned).collect();
        assert_eq!(words, ["one", "two", "three", "four"]);
    }
}
