//! Colours by what they mean. A widget never names a colour.

use ratatui::style::{Color, Modifier, Style};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorDepth {
    /// Bold, underlined and reversed text only.
    None,
    /// The sixteen that users choose themselves.
    #[default]
    Ansi16,
    Ansi256,
    True,
}

/// What the text stands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    #[default]
    Dark,
    Light,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    pub text: Style,
    /// What matters less: line numbers, hints, addresses.
    pub muted: Style,
    /// What the eye should find: the prompt, a name, a key.
    pub accent: Style,
    pub heading: Style,
    pub strong: Style,
    pub emphasis: Style,
    pub struck: Style,
    pub link: Style,
    /// Code within text.
    pub code: Style,
    pub quote: Style,
    /// Lines of tables, bars and rules.
    pub border: Style,
    pub success: Style,
    pub warning: Style,
    pub error: Style,
    pub added: Style,
    pub removed: Style,
    /// The part of an added line that is new, and of a removed line that is gone.
    pub added_part: Style,
    pub removed_part: Style,
    /// The row of a list that is chosen.
    pub selected: Style,
    /// What a filter or a search has found.
    pub found: Style,
    /// What stands for something else in the text input.
    pub chip: Style,
    pub keyword: Style,
    pub string: Style,
    pub comment: Style,
    pub number: Style,
    pub function: Style,
    pub type_name: Style,
}

impl Default for Theme {
    fn default() -> Theme {
        Theme::new(ColorDepth::default(), Background::default())
    }
}

const NO_MODIFIER: Modifier = Modifier::empty();
const BOLD: Modifier = Modifier::BOLD;
const UNDERLINED: Modifier = Modifier::UNDERLINED;

impl Theme {
    pub fn new(colours: ColorDepth, ground: Background) -> Theme {
        let palette = ThemePalette { colours, ground };
        let of = |dark, light, named, plain| palette.foreground(dark, light, named, plain);
        let only = |modifier: Modifier, plain| palette.modified(modifier, plain);
        Theme {
            text: Style::new(),
            muted: of(0x8a_8f98, 0x6e_7781, Color::DarkGray, NO_MODIFIER),
            accent: of(0x7a_a2f7, 0x2a_5db0, Color::Cyan, BOLD),
            heading: of(0x7a_a2f7, 0x2a_5db0, Color::Blue, UNDERLINED).add_modifier(BOLD),
            strong: only(BOLD, BOLD),
            emphasis: only(Modifier::ITALIC, UNDERLINED),
            struck: only(Modifier::CROSSED_OUT, NO_MODIFIER),
            link: of(0x73_daca, 0x0f_766e, Color::Cyan, UNDERLINED).add_modifier(UNDERLINED),
            code: of(0xe0_af68, 0x9a_6700, Color::Yellow, BOLD),
            quote: of(0xa9_b1d6, 0x57_606a, Color::DarkGray, NO_MODIFIER),
            border: of(0x5a_5f6b, 0xb0_b6be, Color::DarkGray, NO_MODIFIER),
            success: of(0x9e_ce6a, 0x1a_7f37, Color::Green, NO_MODIFIER),
            warning: of(0xe0_af68, 0x9a_6700, Color::Yellow, BOLD),
            error: of(0xf7_768e, 0xc1_2f3b, Color::Red, BOLD),
            added: of(0x9e_ce6a, 0x1a_7f37, Color::Green, NO_MODIFIER),
            removed: of(0xf7_768e, 0xc1_2f3b, Color::Red, NO_MODIFIER),
            added_part: palette.marked(0x2b_4a2f, 0xab_f2bc, Color::Green),
            removed_part: palette.marked(0x5a_2a33, 0xff_c1c0, Color::Red),
            selected: palette.background(0x2d_3650, 0xdd_e7fb),
            found: of(0xff_9e64, 0xb3_5900, Color::Yellow, UNDERLINED).add_modifier(BOLD),
            chip: of(0xbb_9af7, 0x82_50df, Color::Magenta, BOLD),
            keyword: of(0xbb_9af7, 0x82_50df, Color::Magenta, BOLD),
            string: of(0x9e_ce6a, 0x11_6329, Color::Green, NO_MODIFIER),
            comment: of(0x7a_8099, 0x6e_7781, Color::DarkGray, NO_MODIFIER),
            number: of(0xff_9e64, 0x95_3800, Color::Yellow, NO_MODIFIER),
            function: of(0x7a_a2f7, 0x2a_5db0, Color::Blue, NO_MODIFIER),
            type_name: of(0x2a_c3de, 0x0b_7285, Color::Cyan, NO_MODIFIER),
        }
    }
}

struct ThemePalette {
    colours: ColorDepth,
    ground: Background,
}

impl ThemePalette {
    fn foreground(&self, dark: u32, light: u32, named: Color, plain: Modifier) -> Style {
        match self.colours {
            ColorDepth::None => Style::new().add_modifier(plain),
            ColorDepth::Ansi16 => Style::new().fg(named),
            _ => Style::new().fg(self.mixed(dark, light)),
        }
    }

    fn background(&self, dark: u32, light: u32) -> Style {
        match self.colours {
            ColorDepth::None | ColorDepth::Ansi16 => Style::new().add_modifier(Modifier::REVERSED),
            _ => Style::new().bg(self.mixed(dark, light)),
        }
    }

    /// Part of a line whose other parts have the same colour.
    fn marked(&self, dark: u32, light: u32, named: Color) -> Style {
        match self.colours {
            ColorDepth::None => Style::new().add_modifier(Modifier::REVERSED),
            ColorDepth::Ansi16 => Style::new().fg(named).add_modifier(Modifier::REVERSED),
            _ => Style::new().bg(self.mixed(dark, light)),
        }
    }

    fn modified(&self, modifier: Modifier, plain: Modifier) -> Style {
        Style::new().add_modifier(if self.colours == ColorDepth::None { plain } else { modifier })
    }

    fn mixed(&self, dark: u32, light: u32) -> Color {
        let [_, r, g, b] = if self.ground == Background::Dark { dark } else { light }.to_be_bytes();
        if self.colours == ColorDepth::True { Color::Rgb(r, g, b) } else { Color::Indexed(nearest(r, g, b)) }
    }
}

/// The nearest of the 6×6×6 cube and the greys.
fn nearest(r: u8, g: u8, b: u8) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step =
        |value: u8| (0u8..).zip(STEPS).min_by_key(|(_, step)| step.abs_diff(value)).unwrap_or_default();
    let distance = |x: u8, y: u8, z: u8| {
        [(x, r), (y, g), (z, b)]
            .iter()
            .map(|(one, other)| u32::from(one.abs_diff(*other)).pow(2))
            .sum::<u32>()
    };
    let (red, green, blue) = (step(r), step(g), step(b));
    let grey = (0u8..24).min_by_key(|n| distance(8 + 10 * n, 8 + 10 * n, 8 + 10 * n)).unwrap_or_default();
    let of_grey = 8 + 10 * grey;
    if distance(of_grey, of_grey, of_grey) < distance(red.1, green.1, blue.1) {
        232 + grey
    } else {
        16 + 36 * red.0 + 6 * green.0 + blue.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_colours_are_near() {
        assert_eq!([nearest(0, 0, 0), nearest(255, 255, 255), nearest(255, 0, 0)], [16, 231, 196]);
        assert_eq!([nearest(128, 128, 128), nearest(95, 135, 175)], [244, 67]);
    }

    #[test]
    fn without_colours_there_are_only_modifiers_that_every_terminal_has() {
        let told = format!("{:?}", Theme::new(ColorDepth::None, Background::Dark));
        for unwanted in ["fg", "bg", "Color", "italic", "dim", "crossed", "blink"] {
            assert!(!told.to_lowercase().contains(&unwanted.to_lowercase()), "{unwanted} in {told}");
        }
    }

    #[test]
    fn sixteen_colours_are_those_of_the_user() {
        let told = format!("{:?}", Theme::new(ColorDepth::Ansi16, Background::Light));
        assert!(!told.contains("Rgb") && !told.contains("Indexed"), "{told}");
    }
}
