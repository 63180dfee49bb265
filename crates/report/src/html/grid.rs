//! Tables of the page.

use maud::{Markup, Render, html};

/// Returns a table in a frame that scrolls. A table that is wide fills the page.
pub fn grid(is_wide: bool, heads: &Markup, rows: &Markup) -> Markup {
    html! { div.scroll { table class=[is_wide.then_some("wide")] { thead { tr { (heads) } } tbody { (rows) } } } }
}

/// Returns the headings of columns.
pub fn heads<T: Render>(names: impl IntoIterator<Item = T>) -> Markup {
    html! { @for name in names { th scope="col" { (name) } } }
}

/// Returns a row: its name and its cells.
pub fn row<T: Render>(name: impl Render, cells: impl IntoIterator<Item = T>) -> Markup {
    html! { tr { th scope="row" { (name) } @for cell in cells { td { (cell) } } } }
}
