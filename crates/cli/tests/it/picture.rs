//! A drawn screen as text and as a picture.

use std::fmt::Write;

use vt100::{Color, Screen};

/// In pixels. Most monospaced fonts are three fifths as wide as they are high.
const WIDTH: f32 = 8.4;
const HEIGHT: u16 = 18;
const FONT: u16 = 14;
const MARGIN: u16 = 12;
const GROUND: &str = "#1a1b26";
const TEXT: &str = "#c0caf5";
/// The first sixteen colours.
const NAMED: [&str; 16] = [
    "#15161e", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#a9b1d6", "#414868",
    "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#c0caf5",
];

pub(crate) type Row = Vec<Cell>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Empty behind a wide letter.
    text: String,
    style: Style,
}

#[derive(Clone, Debug, PartialEq)]
struct Style {
    text: String,
    ground: Option<String>,
    /// Such as `font-weight="bold"`.
    marks: String,
}

pub(crate) fn rows(screen: &Screen) -> Vec<Row> {
    let (rows, columns) = screen.size();
    (0..rows).map(|row| (0..columns).map(|column| cell(screen, row, column)).collect()).collect()
}

fn cell(screen: &Screen, row: u16, column: u16) -> Cell {
    let cell = screen.cell(row, column).unwrap();
    let text = match cell.contents() {
        _ if cell.is_wide_continuation() => String::new(),
        "" => " ".to_owned(),
        text => text.to_owned(),
    };
    let (mut colour, mut ground) = (name(cell.fgcolor()), name(cell.bgcolor()));
    if cell.inverse() {
        let (front, back) = (ground.take(), colour.take());
        colour = Some(front.unwrap_or_else(|| GROUND.to_owned()));
        ground = Some(back.unwrap_or_else(|| TEXT.to_owned()));
    }
    let marks = [
        (cell.bold(), " font-weight=\"bold\""),
        (cell.italic(), " font-style=\"italic\""),
        (cell.underline(), " text-decoration=\"underline\""),
        (cell.dim(), " opacity=\"0.6\""),
    ];
    let marks = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark).collect();
    Cell { text, style: Style { text: colour.unwrap_or_else(|| TEXT.to_owned()), ground, marks } }
}

fn name(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(number) => Some(numbered(number)),
    }
}

/// The colours of a terminal with 256 of them: sixteen, a cube, and greys.
fn numbered(number: u8) -> String {
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    match number {
        0..16 => NAMED[usize::from(number)].to_owned(),
        16..232 => {
            let cube = number - 16;
            let [red, green, blue] = [cube / 36, cube / 6 % 6, cube % 6].map(level);
            format!("#{red:02x}{green:02x}{blue:02x}")
        }
        232.. => {
            let grey = 8 + 10 * (number - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

pub(crate) fn text(row: &Row) -> String {
    row.iter().map(|cell| cell.text.as_str()).collect()
}

/// Puts another text in the place of one, and moves what follows.
pub(crate) fn replace(row: &mut Row, old: &str, new: &str) {
    let Some(at) = text(row).find(old) else { return };
    let place = |bytes: usize| {
        let mut left = bytes;
        row.iter().take_while(move |cell| {
            let is_before = left > 0;
            left = left.saturating_sub(cell.text.len());
            is_before
        })
    };
    let (start, end, columns) = (place(at).count(), place(at + old.len()).count(), row.len());
    let (style, blank) = (row[start].style.clone(), row[columns - 1].style.clone());
    row.splice(start..end, new.chars().map(|letter| Cell { text: letter.to_string(), style: style.clone() }));
    row.resize(columns, Cell { text: " ".to_owned(), style: blank });
}

pub(crate) fn svg(rows: &[Row]) -> String {
    let columns = u16::try_from(rows.iter().map(Vec::len).max().unwrap_or(0)).unwrap();
    let width = f32::from(columns) * WIDTH + f32::from(2 * MARGIN);
    let height = u16::try_from(rows.len()).unwrap() * HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height}\" font-family=\"DejaVu Sans Mono, \
         Menlo, Consolas, monospace\" font-size=\"{FONT}\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n"
    );
    for (number, row) in rows.iter().enumerate() {
        let top = u16::try_from(number).unwrap() * HEIGHT + MARGIN;
        let mut column = 0_u16;
        for run in row.chunk_by(|one, next| one.style == next.style) {
            draw(&mut svg, run, column, top);
            column += u16::try_from(run.len()).unwrap();
        }
    }
    svg + "</svg>\n"
}

/// Some cells that look alike.
fn draw(svg: &mut String, run: &[Cell], column: u16, top: u16) {
    let Style { text: colour, ground, marks } = &run[0].style;
    let (left, width) =
        (f32::from(column) * WIDTH + f32::from(MARGIN), f32::from(u16::try_from(run.len()).unwrap()) * WIDTH);
    if let Some(ground) = ground {
        writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{ground}\"/>"
        )
        .unwrap();
    }
    let text: String = run.iter().map(|cell| cell.text.as_str()).collect();
    if !text.trim().is_empty() {
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let base = top + FONT;
        writeln!(
            svg,
            "<text x=\"{left:.1}\" y=\"{base}\" fill=\"{colour}\"{marks} textLength=\"{width:.1}\" xml:space=\"preserve\">{escaped}</text>"
        )
        .unwrap();
    }
}

#[test]
fn a_replaced_text_moves_what_follows() {
    let mut parser = vt100::Parser::new(1, 20, 0);
    parser.process("é /tmp/x \x1b[31m& more".as_bytes());
    let mut rows = rows(parser.screen());
    replace(&mut rows[0], "/tmp/x", "/p");
    replace(&mut rows[0], "nothing", "something");
    assert_eq!(text(&rows[0]), "é /p & more         ");
    let svg = svg(&rows);
    assert!(svg.contains("fill=\"#f7768e\"") && svg.contains("&amp; more"), "{svg}");
}
