//! Tables, and bars for a few figures.

use serde_json::Value;

use super::escaped;

/// A table of texts. Cells that begin with a digit are aligned as numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub fn new<T: Into<String>>(heads: impl IntoIterator<Item = T>) -> Self {
        Self { heads: heads.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds a row of values as they are in JSON.
    pub fn values<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) {
        self.row(values.into_iter().map(text));
    }

    pub(super) fn html(&self) -> String {
        let heads: String =
            self.heads.iter().map(|head| format!("<th>{}</th>", escaped(head))).collect();
        let rows: String = self.rows.iter().map(|row| row_html(row)).collect();
        format!(
            "<div class=\"wide\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
             </table></div>\n"
        )
    }
}

fn row_html(cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| cell_html(cell)).collect();
    format!("<tr>{cells}</tr>\n")
}

fn cell_html(cell: &str) -> String {
    let is_number =
        cell.trim_start_matches(['-', '+', '−']).starts_with(|c: char| c.is_ascii_digit());
    let class = if is_number { " class=\"n\"" } else { "" };
    format!("<td{class}>{}</td>", escaped(cell))
}

/// A value as a cell has it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Figures as bars.
#[derive(Clone, Debug)]
pub struct Bars {
    heads: [String; 2],
    bars: Vec<(String, f64)>,
}

impl Bars {
    /// Bars with a heading for their labels, and one for their figures.
    #[must_use]
    pub fn new(label: &str, figure: &str) -> Self {
        Self { heads: [label.into(), figure.into()], bars: Vec::new() }
    }

    /// Adds a bar, unless its figure is NaN.
    pub fn bar(&mut self, label: &str, figure: f64) {
        if figure.is_finite() {
            self.bars.push((label.into(), figure));
        }
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bars.is_empty()
    }

    pub(super) fn html(&self) -> String {
        let most = self.bars.iter().fold(0.0, |most: f64, (_, figure)| most.max(*figure));
        let rows: String = self
            .bars
            .iter()
            .map(|(label, figure)| {
                let width = if most > 0.0 { figure.max(0.0) / most * 100.0 } else { 0.0 };
                let [label, figure] = [cell_html(label), cell_html(&figure.to_string())];
                format!(
                    "<tr>{label}{figure}<td class=\"bars\"><span class=\"bar\" \
                     style=\"width: {width:.1}%\"></span></td></tr>\n"
                )
            })
            .collect();
        let [label, figure] = self.heads.clone().map(|head| escaped(&head));
        format!(
            "<div class=\"wide\"><table>\n<thead><tr><th>{label}</th><th>{figure}</th><th></th></tr>\
             </thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
        )
    }
}
